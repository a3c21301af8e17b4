//! Checks that the report's page has been built, which needs Node and is `make web`'s job.

use std::path::Path;

fn main() {
    // Relative, for a build directory that checkouts share: an absolute path would be that of the first of them.
    let page = Path::new("../../web/dist/report.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=web/dist/report.html is missing: run `make web` first (needs Node)");
    }
}
