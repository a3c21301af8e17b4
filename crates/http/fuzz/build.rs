//! Links each fuzz target without unused code, because libFuzzer scans the counters of all linked code after each
//! input.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--gc-sections,-z,start-stop-gc");
    println!("cargo:rerun-if-changed=build.rs");
}
