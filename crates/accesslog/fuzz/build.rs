//! Links each target without the code that it does not use: libFuzzer scans the counters of all linked code after each
//! input, and the statistics alone have a quarter of a million counters.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--gc-sections,-z,start-stop-gc");
    println!("cargo:rerun-if-changed=build.rs");
}
