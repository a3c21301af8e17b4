//! Finds the processes of a cgroup and of all cgroups below it, from `cgroup.procs`. In version 1 of cgroups, each
//! controller has its own hierarchy in its own directory. Sources: cgroups(7); Documentation/admin-guide/cgroup-v2.rst.

use std::fs;
use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

/// The cgroups that match a path.
#[derive(Debug)]
pub(super) struct Cgroup {
    mount: PathBuf,
    wanted: PathBuf,
    /// The matching directories, relative to the mount point.
    directories: Vec<PathBuf>,
}

impl Cgroup {
    /// Creates a selector of the cgroups that match `wanted`. `root` contains /sys.
    pub fn new(root: &Path, wanted: &Path) -> Cgroup {
        let mount = root.join(MOUNT.trim_start_matches('/'));
        Cgroup { mount, wanted: wanted.to_owned(), directories: Vec::new() }
    }

    /// The processes of these cgroups, unordered. A process is repeated if it is in several hierarchies.
    pub fn processes(&mut self) -> Vec<u32> {
        self.directories.retain(|directory| directory.is_dir());
        if self.directories.is_empty() {
            self.directories = self.find();
        }
        let mut pids = Vec::new();
        for directory in &self.directories {
            visit(directory, &mut |directory| {
                let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
                // The kernel shows a process of another pid namespace as 0.
                pids.extend(text.lines().filter_map(|line| line.parse().ok()).filter(|&pid: &u32| pid > 0));
                true
            });
        }
        pids
    }

    /// The reason why no processes were found, if it is known.
    pub fn missing_reason(&self) -> Option<String> {
        (self.directories.is_empty())
            .then(|| format!("there is no such cgroup under {MOUNT}; `systemd-cgls` lists them"))
    }

    fn find(&self) -> Vec<PathBuf> {
        if let Ok(below) = self.wanted.strip_prefix(MOUNT) {
            let directory = self.mount.join(below);
            return if directory.is_dir() { vec![directory] } else { Vec::new() };
        }
        let end = self.wanted.strip_prefix("/").unwrap_or(&self.wanted);
        let mut found = Vec::new();
        visit(&self.mount, &mut |directory| {
            let matches = directory.ends_with(end);
            if matches {
                found.push(directory.to_owned());
            }
            !matches
        });
        found
    }
}

/// Calls `see` for a directory and, if it returns true, for each directory below in the same way.
fn visit(directory: &Path, see: &mut impl FnMut(&Path) -> bool) {
    if !see(directory) {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Symbolic links are skipped too, because each is only a second name of a hierarchy.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path(), see);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_by_its_path_its_end_or_in_one_hierarchy_and_again_when_it_is_back() {
        let root = tempfile::tempdir().unwrap();
        let directory = |path: &str| root.path().join("sys/fs/cgroup").join(path);
        for (path, pids) in [
            ("systemd/system.slice/nginx.service", "10\n11\n"),
            ("systemd/system.slice/nginx.service/workers", "12\n"),
            ("systemd/system.slice/not-nginx.service", "13\n"),
            ("pids/system.slice/nginx.service", "10\n0\n14\n"),
            ("pids/user.slice/web", "15\n"),
        ] {
            fs::create_dir_all(directory(path)).unwrap();
            fs::write(directory(path).join("cgroup.procs"), pids).unwrap();
        }
        let look = |cgroup: &mut Cgroup| {
            let mut pids = cgroup.processes();
            pids.sort_unstable();
            pids.dedup();
            pids
        };
        let cgroup = |wanted: &str| Cgroup::new(root.path(), Path::new(wanted));
        for wanted in ["nginx.service", "system.slice/nginx.service", "/system.slice/nginx.service"] {
            assert_eq!(look(&mut cgroup(wanted)), [10, 11, 12, 14], "{wanted}");
        }
        assert_eq!(look(&mut cgroup("/sys/fs/cgroup/pids/system.slice/nginx.service")), [10, 14]);
        assert_eq!(look(&mut cgroup("/sys/fs/cgroup/pids")), [10, 14, 15]);
        assert_eq!(look(&mut cgroup("workers")), [12]);
        assert_eq!(look(&mut cgroup("/")), [10, 11, 12, 13, 14, 15]);

        let mut web = cgroup("web");
        assert_eq!(look(&mut web), [15]);
        assert_eq!(web.missing_reason(), None);
        fs::remove_dir_all(directory("pids/user.slice/web")).unwrap();
        assert!(look(&mut web).is_empty());
        assert!(web.missing_reason().unwrap().contains("no such cgroup under /sys/fs/cgroup"));
        fs::create_dir_all(directory("pids/machine.slice/web")).unwrap();
        fs::write(directory("pids/machine.slice/web/cgroup.procs"), "16\n").unwrap();
        assert_eq!(look(&mut web), [16]);
    }
}
