//! Tests that the program can be copied to another host, because it needs only common libraries.

use std::process::Command;

/// Libraries that exist on every Linux with glibc, including the dynamic loader and the kernel's vDSO.
const EVERYWHERE: [&str; 5] = ["libc.so", "libm.so", "libgcc_s.so", "linux-vdso", "ld-linux"];

#[test]
fn the_program_runs_where_libelf_and_zlib_are_not_installed() {
    let done = Command::new("ldd").arg(env!("CARGO_BIN_EXE_brimful")).output().unwrap();
    let needed = String::from_utf8(done.stdout).unwrap();
    assert!(needed.contains("libc.so"), "{needed}");
    let others: Vec<&str> =
        needed.lines().filter(|line| EVERYWHERE.iter().all(|library| !line.contains(library))).collect();
    assert_eq!(others, [""; 0]);
}
