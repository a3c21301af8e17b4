//! Checks that the report's page has been built, which needs Node and is `make web`'s job.

use std::path::Path;

fn main() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist/report.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=web/dist/report.html is missing: run `make web` first (needs Node)");
    }
}
