//! A small file system in memory that tests can fill. Mounting it needs root.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A mounted file system. Dropping this value unmounts it.
pub struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts a file system of this size.
    pub fn mount(size: &str) -> SmallDisk {
        let dir = tempfile::tempdir().unwrap();
        let small = SmallDisk { dir };
        small.command("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        small
    }

    /// Path at which the file system is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, program: &str, args: &[&str]) {
        let status = Command::new(program).args(args).arg(self.path()).status().unwrap();
        assert!(status.success(), "{program} failed: this test mounts a file system and needs root for that");
    }

    /// Fills the free space of the file system.
    pub fn fill(&self) {
        let full = fs::write(self.path().join("other"), vec![0; 1 << 20]);
        assert!(full.is_err(), "filling the file system must end with an error");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
