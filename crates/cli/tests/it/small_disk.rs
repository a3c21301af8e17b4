//! A small file system that can be filled. Mounting it needs root.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A file system that is unmounted when this value is dropped.
pub struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    pub fn mount(size: &str) -> Small {
        let dir = tempfile::tempdir().unwrap();
        let small = Small { dir };
        small.command("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        small
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, program: &str, args: &[&str]) {
        let status = Command::new(program).args(args).arg(self.path()).status().unwrap();
        assert!(status.success(), "{program} failed: this test mounts a file system and takes root for that");
    }

    /// Fills the free space.
    pub fn fill(&self) {
        let full = fs::write(self.path().join("other"), vec![0; 1 << 20]);
        assert!(full.is_err(), "the file system is small");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
