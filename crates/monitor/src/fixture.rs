//! Made-up processes for tests: a directory in place of /proc. Its pids are larger than any that Linux gives out, so
//! their clocks do not exist and ticks of 10 ms stand in.

use std::path::Path;

pub struct Fixture(tempfile::TempDir);

/// Added to a fixture's pids.
pub const P: u32 = 5_000_000;

impl Fixture {
    pub fn new() -> Fixture {
        Fixture(tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// `ticks`: user, system, children's user, children's system.
    pub fn process(&self, pid: u32, parent: u32, comm: &str, ticks: [u64; 4]) {
        let directory = self.root().join(pid.to_string());
        std::fs::create_dir_all(directory.join(format!("task/{pid}"))).unwrap();
        let [a, b, c, d] = ticks;
        let text = format!("{pid} ({comm}) S {parent} 1 1 0 -1 0 0 0 0 0 {a} {b} {c} {d} 20 0 1 0 9 8 2 0\n");
        std::fs::write(directory.join("stat"), text).unwrap();
    }

    pub fn thread(&self, pid: u32, tid: u32, file: &str, text: &str) {
        let directory = self.root().join(format!("{pid}/task/{tid}"));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(file), text).unwrap();
    }

    /// A kept descriptor on a process that is gone cannot be read; one on an emptied file makes no sense.
    pub fn end(&self, pid: u32) {
        std::fs::write(self.root().join(format!("{pid}/stat")), "").unwrap();
    }
}
