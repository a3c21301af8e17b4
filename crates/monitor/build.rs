//! Compiles the eBPF programs in `bpf/` with clang, for `src/ebpf/object.rs` to embed.
//!
//! The kernel's own headers are not needed (`bpf/kernel.h` explains why). The libbpf headers belong to the linked
//! libbpf: its crate passes their path to its dependents. The environment variable `CLANG` selects another compiler.
//!
//! libelf and zlib, which libbpf needs, are linked statically if the host has their archives. The program then runs on
//! hosts without these libraries.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
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
    match PROGRAMS.iter().try_for_each(|program| compile(&sources, program)).and_then(|()| prefer_archives()) {
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
    // The debug information becomes part of brimful's binary, so it must not contain directories of the build host.
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

/// Makes the linker options `-lelf` and `-lz`, which libbpf's crate passes, link static archives. For this purpose, the
/// function creates linker scripts with the names that the linker looks for first. If `LIBBPF_SYS_LIBRARY_PATH` names
/// other libraries, libbpf's crate links those, and this function does nothing (see `scripts/release`).
fn prefer_archives() -> Result<(), String> {
    if env::var_os("CARGO_FEATURE_STATIC").is_some() {
        return Ok(());
    }
    let (Some(elf), Some(z)) = (archive("elf"), archive("z")) else {
        println!(
            "cargo::warning=libelf.a or libz.a is missing: the program will need the shared libraries of this host"
        );
        return Ok(());
    };
    let mut together = vec![elf.clone(), z.clone()];
    // Since elfutils 0.189, libelf may call zstd to decompress sections. The program then also needs the archive of
    // zstd.
    if mentions(&elf, b"ZSTD_").unwrap_or(false) {
        together.push(archive("zstd").ok_or("libelf.a needs libzstd.a: sudo apt-get install libzstd-dev")?);
    }
    let directory = variable("OUT_DIR").join("archives");
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(directory.join("libelf.so"), linker_script(&together)))
        .and_then(|()| fs::write(directory.join("libz.so"), linker_script(&[z])))
        .map_err(|error| format!("cannot write to {}: {error}", directory.display()))?;
    println!("cargo::rustc-link-search=native={}", directory.display());
    Ok(())
}

/// The path of a library's archive, if the C compiler finds one.
fn archive(library: &str) -> Option<PathBuf> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let asked = Command::new(compiler).arg(format!("-print-file-name=lib{library}.a")).output().ok()?;
    // The compiler prints the bare file name if it does not find the file.
    let path = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim_end());
    path.is_absolute().then(|| path.canonicalize().ok()).flatten()
}

fn mentions(file: &Path, word: &[u8]) -> io::Result<bool> {
    Ok(fs::read(file)?.windows(word.len()).any(|bytes| bytes == word))
}

/// Text of a linker script that links all of `archives` in place of one library. The order of the archives does not
/// matter.
fn linker_script(archives: &[PathBuf]) -> String {
    let names: Vec<String> = archives.iter().map(|path| format!("\"{}\"", path.display())).collect();
    format!("GROUP ( {} )\n", names.join(" "))
}

fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_default().into()
}
