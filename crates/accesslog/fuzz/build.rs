//! Makes the linker remove the code that a fuzz target does not use. After each input, libFuzzer scans the coverage
//! counters of all linked code, so unused code slows fuzzing down. The statistics library `statrs` alone has a quarter
//! of a million counters.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--gc-sections,-z,start-stop-gc");
    println!("cargo:rerun-if-changed=build.rs");
}
