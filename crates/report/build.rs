//! Compresses the web page of the HTML report into the build directory. `make web`, which needs Node, must have built
//! the page.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> io::Result<()> {
    // The path is relative, because several checkouts may share one build directory. An absolute path would stay that
    // of the first checkout that was built.
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
