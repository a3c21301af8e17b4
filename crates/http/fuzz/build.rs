//! Links each fuzz target without unused code. libFuzzer scans the coverage counters of all linked code after each
//! input, so less code makes it faster.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--gc-sections,-z,start-stop-gc");
    println!("cargo:rerun-if-changed=build.rs");
}
