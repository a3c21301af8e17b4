//! Compiles the eBPF programs in `bpf/` with clang, for `src/ebpf/object.rs` to embed.
//!
//! The kernel's own headers are not needed (`bpf/kernel.h` says why), and libbpf's are those of the libbpf that is
//! linked: its crate tells its dependents where they are. `CLANG` names another compiler.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAMS: [&str; 4] = ["connections", "requests", "tasks", "walk"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return ExitCode::SUCCESS;
    }
    let sources = variable("CARGO_MANIFEST_DIR").join("../../bpf");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    match PROGRAMS.iter().try_for_each(|program| compile(&sources, program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn compile(sources: &PathBuf, program: &str) -> Result<(), String> {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let headers = variable("DEP_BPF_INCLUDE");
    // The description of the program's types and lines, which the kernel gets to see, is not to name this machine's
    // directories.
    let mut anonymous = OsString::from("-ffile-prefix-map=");
    anonymous.push(&headers);
    anonymous.push("=libbpf");
    let done = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-fdebug-compilation-dir=bpf"])
        .arg(anonymous)
        .arg("-I")
        .arg(&headers)
        .args(["-c", &format!("{program}.bpf.c"), "-o"])
        .arg(variable("OUT_DIR").join(format!("{program}.bpf.o")))
        .current_dir(sources)
        .status();
    let clang = clang.display();
    let otherwise = "or build without the figures that only eBPF can give: --no-default-features";
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("{clang} cannot compile bpf/{program}.bpf.c ({status}): use clang 14 or newer, {otherwise}"))
        }
        Err(error) => Err(format!("cannot run {clang} ({error}): sudo apt-get install clang, {otherwise}")),
    }
}

fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_default().into()
}
