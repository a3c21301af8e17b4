//! Finds servers with the Server Module in another mount namespace or below another root directory, such as in a
//! container. Their files have no path in this namespace, and are found through the mappings of the servers' processes.

use super::ServerSample;
use super::file::{ModuleFile, ModuleFileError};
use super::find::{MappedFiles, open_mapped};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A server in another mount namespace or below another root directory.
#[derive(Debug)]
pub struct ContainerServer {
    /// Processes of the server that map the file, by their pids in this namespace, in ascending order.
    pub pids: Vec<u32>,
    /// The path by which this process can open the file: through the root directory of one of the server's processes.
    pub path: PathBuf,
    file: ModuleFile,
    /// The server's living processes, by the pids in their own namespace.
    living: Vec<u32>,
}

impl ContainerServer {
    /// Reads the server's file.
    ///
    /// Returns an error if the file cannot be read any more, or is no longer a file of the Server Module.
    pub fn sample(&mut self) -> Result<ServerSample, ModuleFileError> {
        let living = &self.living;
        self.file.sample(&|pid| living.contains(&pid))
    }
}

/// Finds all servers in other namespaces whose processes this user may inspect. `proc` is the path of /proc.
pub fn servers_in_containers(proc: &Path) -> Vec<ContainerServer> {
    let here = MountLocation::of_process(&proc.join("self"));
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            MountLocation::of_process(&proc.join(pid.to_string())).is_some_and(|there| Some(there) != here)
        })
        .collect();
    pids.sort_unstable();
    let found = MappedFiles::scan(proc, &pids);
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

/// The mount namespace and root directory of a process.
#[derive(PartialEq, Eq)]
struct MountLocation {
    namespace: OsString,
    /// Device and inode of the root directory.
    root: [u64; 2],
}

impl MountLocation {
    /// Reads the directory of a process in /proc; `None` if the process is gone, or this user may not inspect it.
    fn of_process(process: &Path) -> Option<MountLocation> {
        let namespace = fs::read_link(process.join("ns/mnt")).ok()?.into_os_string();
        let root = fs::metadata(process.join("root")).ok()?;
        Some(MountLocation { namespace, root: [root.dev(), root.ino()] })
    }
}
