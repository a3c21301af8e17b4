//! The module's sources, which are embedded in this program, and a private directory in which they are compiled.

use anyhow::Context;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

macro_rules! source {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../../server-module/", $path)))
    };
}

/// The module's sources: paths below `server-module/`, and their contents.
const SOURCES: [(&str, &str); 23] = [
    source!("classes.h"),
    source!("clock.h"),
    source!("file.h"),
    source!("layout.h"),
    source!("place.h"),
    source!("record.h"),
    source!("recorder.h"),
    source!("slots.h"),
    source!("words.h"),
    source!("nginx/config"),
    source!("nginx/ngx_http_brimful_module.c"),
    source!("nginx/account.h"),
    source!("nginx/connection.h"),
    source!("nginx/log.h"),
    source!("nginx/module.h"),
    source!("nginx/request.h"),
    source!("nginx/stream.h"),
    source!("nginx/upstream.h"),
    source!("apache/mod_brimful.c"),
    source!("apache/connection.h"),
    source!("apache/request.h"),
    source!("apache/upstream.h"),
    source!("apache/worker.h"),
];

/// Prefix of the names of scratch directories. The process ID follows.
const SCRATCH: &str = "brimful-module-";

/// A private directory with the sources, in the layout of `server-module/`. It is removed when this value is dropped.
#[derive(Debug)]
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// Makes the directory and writes the sources.
    ///
    /// # Errors
    /// Returns an error if the directory for temporary files cannot be written.
    pub fn new() -> anyhow::Result<ScratchDirectory> {
        remove_orphans();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let path = std::env::temp_dir().join(format!("{SCRATCH}{}-{now}", process::id()));
        let cannot =
            || format!("cannot write to {}; free disk space, or set TMPDIR to another directory", path.display());
        // Creating the directory fails if the name exists, even as a link. So another user cannot create it first.
        DirBuilder::new().mode(0o700).create(&path).with_context(cannot)?;
        let scratch = ScratchDirectory(path.clone());
        for (name, text) in SOURCES {
            let file = scratch.0.join(name);
            file.parent().map_or(Ok(()), fs::create_dir_all).with_context(cannot)?;
            fs::write(file, text).with_context(cannot)?;
        }
        Ok(scratch)
    }

    /// The path of an entry in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Errors are ignored: the next call of `remove_orphans` removes the rest.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the scratch directories that killed runs of the caller left.
pub fn remove_orphans() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(SCRATCH));
        let pid = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        let is_left = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        let is_ours = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if is_left && is_ours() {
            // Removing fails if a compiler is still writing to the directory. The next call then removes the rest.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The path of the only file in a directory with the extension `ending`; `None` if there is no such file, or several.
pub fn find_only_file(directory: &Path, ending: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = entries.filter(|path| path.extension().is_some_and(|found| found == ending));
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every source file of the module must be embedded in this program, because otherwise the module cannot be
    /// compiled.
    #[test]
    fn every_source_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server-module");
        for directory in ["", "nginx", "apache"] {
            for entry in fs::read_dir(root.join(directory)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                let is_source =
                    path.extension().is_some_and(|ending| ending == "c" || ending == "h") || name.ends_with("config");
                assert!(
                    !is_source || SOURCES.iter().any(|(source, _)| *source == name),
                    "{name} is missing in SOURCES"
                );
            }
        }
    }

    #[test]
    fn the_sources_exist_until_the_drop() {
        let scratch = ScratchDirectory::new().unwrap();
        let header = scratch.join("layout.h");
        assert!(fs::read_to_string(&header).unwrap().contains("struct brimful_header"));
        assert_eq!(find_only_file(&scratch.join("nginx"), "c"), Some(scratch.join("nginx/ngx_http_brimful_module.c")));
        assert_eq!(find_only_file(scratch.path(), "so"), None);
        drop(scratch);
        assert!(!header.exists());
    }
}
