//! Links the targets without the code that they do not use: libFuzzer goes through the counters of all code after each
//! input, and those of the statistics alone are a quarter of a million.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--gc-sections,-z,start-stop-gc");
    println!("cargo:rerun-if-changed=build.rs");
}
