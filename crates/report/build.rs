//! Compresses the page of the HTML report. `make web` must have built it before, which needs Node.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> io::Result<()> {
    // Use a relative path: several checkouts may share one build directory, and an absolute path would be the path of
    // the checkout that was built first.
    let page = Path::new("../../web/dist/report.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=web/dist/report.html is missing: run `make web` first (needs Node)");
        return Ok(());
    }
    let mut compressed = DeflateEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(&fs::read(page)?)?;
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("report.html.deflate"), compressed.finish()?)
}
