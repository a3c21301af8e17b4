//! Servers that have the module in a mount namespace or below a root of their own, as in a container: their files have
//! no name here, and are found by what their processes have mapped.

use super::ServerSample;
use super::file::{ModuleFile, ModuleFileError};
use super::find::{MappedFiles, open_mapped};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A server of another mount namespace, or another root.
#[derive(Debug)]
pub struct ContainerServer {
    /// Its processes that have the file mapped, by their ids here, in ascending order.
    pub pids: Vec<u32>,
    /// The file as this process may name it, by the root of one of them.
    pub path: PathBuf,
    file: ModuleFile,
    /// Its processes by their own ids.
    living: Vec<u32>,
}

impl ContainerServer {
    /// What its file says now.
    ///
    /// # Errors
    /// It cannot be read any more, or has become something else.
    pub fn sample(&mut self) -> Result<ServerSample, ModuleFileError> {
        let living = &self.living;
        self.file.sample(&|pid| living.contains(&pid))
    }
}

/// All of them, as far as this user may look into their processes; `proc` is where the kernel tells of processes.
pub fn servers_in_containers(proc: &Path) -> Vec<ContainerServer> {
    let here = Place::of(&proc.join("self"));
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| Place::of(&proc.join(pid.to_string())).is_some_and(|there| Some(there) != here))
        .collect();
    pids.sort_unstable();
    let found = MappedFiles::look(proc, &pids);
    let living: Vec<u32> = found.living.iter().copied().collect();
    let opened = found.files.iter().filter_map(|(place, sharing)| {
        let file = open_mapped(proc, place, sharing).ok()?;
        let pids: Vec<u32> = sharing.pids.iter().copied().collect();
        let root = proc.join(pids.first()?.to_string()).join("root");
        let path = root.join(file.path().trim_start_matches('/'));
        Some(ContainerServer { pids, path, file, living: living.clone() })
    });
    opened.collect()
}

/// Where a process sees its files.
#[derive(PartialEq, Eq)]
struct Place {
    namespace: OsString,
    /// Device and inode.
    root: [u64; 2],
}

impl Place {
    /// Of the process of this directory; `None` of one that is gone, or nobody may look into.
    fn of(process: &Path) -> Option<Place> {
        let namespace = fs::read_link(process.join("ns/mnt")).ok()?.into_os_string();
        let root = fs::metadata(process.join("root")).ok()?;
        Some(Place { namespace, root: [root.dev(), root.ino()] })
    }
}
