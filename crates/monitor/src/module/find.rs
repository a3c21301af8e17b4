//! Finds the files of the watched servers: files through which the servers' processes share memory, and files that the
//! user named.
//!
//! A file is opened through a process's mapping (/proc/PID/map_files). This opens exactly the mapped file, even in a
//! container and even if the file was removed or replaced. If this is not possible, the file is opened by its path
//! below the process's own root. No symbolic link can lead out of that root. Then it is checked that the opened file is
//! the mapped file. A server may have two files for a while: after a reload, old workers continue with the replaced
//! file.
//!
//! The file may be in /run/brimful, in /dev/shm, or in a directory that the server's configuration names. A file that
//! belongs neither to root nor to the server's user is not read.

use super::file::{ModuleFile, ModuleFileError};
use super::io::IoTotals;
use super::maps::{Mapping, effective_user, innermost_pid, shared};
use super::{ModuleSample, ServerSample};
use crate::MonitorError;
use crate::search::SearchLimiter;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The word that the path of every file of the Server Module contains.
const PATH_WORD: &str = "brimful";
/// Maximum number of files that are read at a time.
const MAX_FILES: usize = 16;

/// Finds and reads the files in which the Server Modules of the watched servers write their metrics.
#[derive(Debug)]
pub struct ModuleWatch {
    proc: PathBuf,
    servers: Vec<WatchedFile>,
    /// The files that the user named.
    named: Vec<PathBuf>,
    /// For each file that was found but is not read, the reason, by path.
    refused: BTreeMap<String, String>,
    /// Whether a search has inspected at least one process since monitoring began.
    has_searched: bool,
    /// Whether the last search found a process that this user may not inspect.
    closed: bool,
    search: SearchLimiter,
}

/// A file of the Server Module that is read for each sample.
#[derive(Debug)]
struct WatchedFile {
    file: ModuleFile,
    /// Device and inode as in /proc/PID/maps; `None` for a file that only the user has named.
    place: Option<(String, u64)>,
    /// Index of the file among the files that the user named; `None` if the user did not name it.
    named: Option<usize>,
    /// The processes that map the file.
    pids: BTreeSet<u32>,
    /// Process ids of workers that have ended, in the server's pid namespace.
    dead: BTreeSet<u32>,
    io: IoTotals,
    latest: Option<Arc<ServerSample>>,
}

/// The files of the Server Module that some processes map.
#[derive(Debug, Default)]
pub(super) struct MappedFiles {
    /// The mapped files by device and inode, as in /proc/PID/maps.
    pub files: BTreeMap<(String, u64), SharedMapping>,
    /// The living processes, by the pids in their own namespaces.
    pub living: BTreeSet<u32>,
    /// Whether there is a process that this user may not inspect.
    closed: bool,
}

/// A mapping of a file, and the processes that have this mapping.
#[derive(Debug)]
pub(super) struct SharedMapping {
    range: String,
    path: String,
    deleted: bool,
    /// The processes that map the file.
    pub pids: BTreeSet<u32>,
}

impl ModuleWatch {
    /// Opens the named files. `root` contains /proc.
    ///
    /// Returns an error if a named file cannot be read.
    pub(super) fn open(root: &Path, named: &[PathBuf]) -> Result<ModuleWatch, MonitorError> {
        let mut watch = ModuleWatch {
            proc: root.join("proc"),
            servers: Vec::new(),
            named: named.to_vec(),
            refused: BTreeMap::new(),
            has_searched: false,
            closed: false,
            search: SearchLimiter::default(),
        };
        for (index, path) in named.iter().enumerate() {
            let file = ModuleFile::open(path)
                .map_err(|error| MonitorError::Module { path: path.clone(), why: error.to_string() })?;
            watch.add(file, None, Some(index));
        }
        Ok(watch)
    }

    /// Looks for files that the watched processes map, if a search is due. A search is slow, so it should end before
    /// the files are read.
    pub(crate) fn search(&mut self, pids: &[u32]) {
        if !self.search.is_due() {
            return;
        }
        let begun = SearchLimiter::begin();
        // A worker that owned a slot before the search, and that the search does not find, has ended.
        let owners: Vec<Vec<u32>> =
            self.servers.iter().map(|server| server.file.owners().unwrap_or_default()).collect();
        let found = MappedFiles::scan(&self.proc, pids);
        self.has_searched |= !pids.is_empty();
        self.closed = found.closed;
        self.refused.clear();
        for (server, owners) in self.servers.iter_mut().zip(owners) {
            let is_alive = |owner: &u32| found.living.contains(owner) || self.proc.join(owner.to_string()).exists();
            server.dead = owners.into_iter().filter(|owner| !is_alive(owner)).collect();
        }
        self.renew_named();
        self.take(found);
        self.search.end(begun);
    }

    /// Opens again each named file whose path now leads to another file.
    fn renew_named(&mut self) {
        for (index, path) in self.named.clone().iter().enumerate() {
            let there = fs::symlink_metadata(path).ok().map(|now| [now.dev(), now.ino()]);
            let known = |server: &WatchedFile| Some(server.file.device_and_inode()) == there;
            let Some(place) = there.filter(|_| !self.servers.iter().any(known)) else { continue };
            if let Ok(file) = ModuleFile::open(path).map_err(|error| self.refuse(&path.display().to_string(), &error))
                && file.device_and_inode() == place
            {
                // The old file is kept as long as a process maps it.
                self.servers.iter_mut().filter(|server| server.named == Some(index)).for_each(|old| old.named = None);
                self.add(file, None, Some(index));
            }
        }
    }

    /// Opens new files, and closes files that no process maps any more.
    fn take(&mut self, found: MappedFiles) {
        for server in &mut self.servers {
            server.pids.clear();
        }
        for (place, sharing) in found.files {
            if !self.servers.iter().any(|server| server.place.as_ref() == Some(&place)) {
                match open_mapped(&self.proc, &place, &sharing) {
                    Ok(file) => self.add(file, Some(place.clone()), None),
                    Err(error) => self.refuse(&sharing.path, &error),
                }
            }
            let known = self.servers.iter_mut().find(|server| server.place.as_ref() == Some(&place));
            known.into_iter().for_each(|server| server.pids.clone_from(&sharing.pids));
        }
        self.servers.retain(|server| server.named.is_some() || !server.pids.is_empty());
    }

    /// Adds a file. If the file is already known, only the fields `place` and `named` are updated.
    fn add(&mut self, file: ModuleFile, place: Option<(String, u64)>, named: Option<usize>) {
        if let Some(known) =
            self.servers.iter_mut().find(|server| server.file.device_and_inode() == file.device_and_inode())
        {
            known.place = known.place.take().or(place);
            known.named = known.named.or(named);
        } else if self.servers.len() < MAX_FILES {
            let (pids, dead, io) = Default::default();
            self.servers.push(WatchedFile { file, place, named, pids, dead, io, latest: None });
        }
    }

    fn refuse(&mut self, path: &str, why: &ModuleFileError) {
        if self.refused.len() < MAX_FILES {
            self.refused.insert(path.to_owned(), why.to_string());
        }
    }

    /// Reads the counters of all servers. `buffer` is scratch space.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> ModuleSample {
        let proc = &self.proc;
        let mut servers = Vec::with_capacity(self.servers.len());
        for server in &mut self.servers {
            let dead = &server.dead;
            server.latest = match server.file.read(buffer, &|owner| !dead.contains(&owner)) {
                Ok(mut sample) => {
                    sample.io = server.io.read(proc, server.pids.iter().copied(), sample.requests());
                    Some(Arc::new(sample))
                }
                Err(error) => {
                    self.refused.insert(server.file.path().to_owned(), error.to_string());
                    None
                }
            };
            servers.extend(server.latest.clone());
        }
        ModuleSample { servers }
    }

    /// The source of the metrics, or the reason why there are none.
    pub(super) fn source(&self) -> String {
        let describe = |server: &ServerSample| {
            let ServerSample { name, file, enabled, cpu_one_in, lost, .. } = server;
            let off = if *enabled { "" } else { "; it is turned off, `brimful module on` turns it on" };
            let lost = match lost {
                0 => String::new(),
                n => format!("; {n} workers have found no free slot in it: raise `brimful_slots`"),
            };
            let cpu = match cpu_one_in {
                0 => "no CPU time".to_owned(),
                1 => "CPU time of each request".to_owned(),
                n => format!("CPU time of 1 request in {n}"),
            };
            format!("{file} of {name}, {cpu}{off}{lost}")
        };
        let read: Vec<String> =
            self.servers.iter().filter_map(|server| server.latest.as_deref().map(describe)).collect();
        let refused = self.refused.iter().map(|(path, why)| format!("{path}: {why}"));
        match read.is_empty() {
            false => read.into_iter().chain(refused).collect::<Vec<_>>().join("; "),
            true if !self.refused.is_empty() => format!("none: {}", refused.collect::<Vec<_>>().join("; ")),
            true if self.closed => "none: this user may not inspect the server's processes: run as root".to_owned(),
            true if !self.has_searched => {
                "none: the watched processes are not known yet; --module names a file".to_owned()
            }
            true => {
                "none: no watched process has the module loaded: `brimful module install` adds it to nginx and Apache"
                    .to_owned()
            }
        }
    }
}

impl MappedFiles {
    /// Finds the files of the Server Module that the processes `pids` map. `proc` is the path of /proc.
    pub fn scan(proc: &Path, pids: &[u32]) -> MappedFiles {
        let mut found = MappedFiles::default();
        for &pid in pids {
            match fs::read(proc.join(format!("{pid}/maps"))) {
                Ok(maps) => found.add(proc, pid, &String::from_utf8_lossy(&maps)),
                Err(error) => found.closed |= error.kind() == io::ErrorKind::PermissionDenied,
            }
        }
        found
    }

    fn add(&mut self, proc: &Path, pid: u32, maps: &str) {
        let mut any = false;
        for Mapping { range, device_and_inode: (device, inode), path, deleted } in shared(maps, PATH_WORD) {
            let place = (device.to_owned(), inode);
            if self.files.len() < MAX_FILES || self.files.contains_key(&place) {
                let (range, path) = (range.to_owned(), path.to_owned());
                let new = || SharedMapping { range, path, deleted, pids: BTreeSet::new() };
                any |= self.files.entry(place).or_insert_with(new).pids.insert(pid);
            }
        }
        if any {
            let status = fs::read_to_string(proc.join(format!("{pid}/status"))).unwrap_or_default();
            self.living.insert(innermost_pid(&status).unwrap_or(pid));
        }
    }
}

/// Opens a mapped file through any of the processes that map it.
pub(super) fn open_mapped(
    proc: &Path,
    place: &(String, u64),
    sharing: &SharedMapping,
) -> Result<ModuleFile, ModuleFileError> {
    let SharedMapping { range, path, deleted, pids } = sharing;
    let gone = || io::Error::new(io::ErrorKind::NotFound, "the process that has it has ended");
    let mut last = ModuleFileError::Io(gone());
    for pid in pids {
        let process = proc.join(pid.to_string());
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        // The address range is from the first process that maps the file. Workers have the mapping at the same
        // addresses as the process that they were forked from.
        let exact = File::options().read(true).custom_flags(flags).open(process.join("map_files").join(range));
        let opened = match exact {
            Ok(file) => same_inode(file, place),
            Err(_) if *deleted => Err(ModuleFileError::Io(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it was removed or replaced, and only root may read the file that the server still has open",
            ))),
            Err(_) => {
                below_root(&process.join("root"), path).map_err(Into::into).and_then(|file| same_inode(file, place))
            }
        };
        match opened.and_then(|file| ModuleFile::new(file, path.clone())) {
            Ok(file) if file.owner() != 0 && !users(&process).contains(&file.owner()) => {
                last = ModuleFileError::Untrusted(file.owner());
            }
            Ok(file) => return Ok(file),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The users that may own the files of a process: its effective user, and the owner of its directory in /proc. If a
/// worker has given up root's rights, its directory belongs to the root user of the process's user namespace.
fn users(process: &Path) -> Vec<u32> {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let owner = fs::metadata(process).ok().map(|metadata| metadata.uid());
    effective_user(&status).into_iter().chain(owner).collect()
}

/// Returns the file if it has the inode of the mapped file, and an error otherwise.
fn same_inode(file: File, place: &(String, u64)) -> Result<File, ModuleFileError> {
    match file.metadata()?.ino() == place.1 {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "another file has taken its place").into()),
    }
}

/// Opens a path as a process with this root directory would, whatever symbolic links it contains.
fn below_root(root: &Path, path: &str) -> io::Result<File> {
    let root = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let relative = path.trim_start_matches('/');
    let opened = openat2(&root, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS);
    match opened {
        // Linux is older than 5.6, or a sandbox refuses openat2. The opened file is compared with the mapped file in
        // any case.
        Err(Errno::NOSYS | Errno::PERM) => Ok(openat(&root, relative, flags, Mode::empty())?.into()),
        opened => Ok(opened?.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::header_bytes;
    use super::super::layout::{SLOT_ALIGN, class, slot, sums};
    use super::*;
    use crate::fixture::{Fixture, PID_OFFSET};

    /// A file of the Server Module with two slots. The first slot belongs to a worker.
    fn module_file(owner: u32, requests: u64) -> Vec<u8> {
        let mut bytes = header_bytes(2, 2);
        let slot_size = (slot::CLASSES_OFFSET + 2 * class::SIZE).next_multiple_of(SLOT_ALIGN);
        bytes.resize(896 + 2 * slot_size, 0);
        bytes[896 + slot::OWNER_OFFSET..][..4].copy_from_slice(&owner.to_ne_bytes());
        bytes[896 + slot::OWNERS_OFFSET..][..8].copy_from_slice(&1_u64.to_ne_bytes());
        bytes[896 + slot::CLASSES_OFFSET + sums::REQUESTS_OFFSET..][..8].copy_from_slice(&requests.to_ne_bytes());
        bytes
    }

    /// Creates a process with its own root directory, and a file with these contents that the process maps. `inner_pid`
    /// is the process's pid in its own namespace. Returns the path of the file.
    fn process(fixture: &Fixture, pid: u32, bytes: &[u8], inner_pid: u32) -> PathBuf {
        fixture.process(pid, 1, "nginx", [0; 4]);
        let process = fixture.proc_root().join(pid.to_string());
        let shm = process.join("root/dev/shm");
        fs::create_dir_all(&shm).unwrap();
        let path = shm.join("brimful-nginx");
        fs::write(&path, bytes).unwrap();
        map(fixture, pid, &path, "");
        fs::write(process.join("status"), format!("NSpid:\t{pid}\t{inner_pid}\n")).unwrap();
        path
    }

    fn map(fixture: &Fixture, pid: u32, path: &Path, deleted: &str) {
        let inode = fs::metadata(path).unwrap().ino();
        let maps = format!("7f00-7f10 rw-s 00000000 00:1a {inode} /dev/shm/brimful-nginx{deleted}\n");
        fs::write(fixture.proc_root().join(format!("{pid}/maps")), maps).unwrap();
    }

    fn sample(watch: &mut ModuleWatch, pids: &[u32]) -> Vec<(u64, u64)> {
        watch.search = SearchLimiter::default();
        watch.search(pids);
        let servers = watch.read(&mut Vec::new()).servers;
        servers.iter().map(|server| (server.requests(), server.workers)).collect()
    }

    #[test]
    fn files_are_found_by_what_processes_have_mapped_in_their_own_roots() {
        let fixture = Fixture::new();
        process(&fixture, PID_OFFSET + 1, &module_file(12, 5), 12);
        process(&fixture, PID_OFFSET + 2, &module_file(12, 7), 13);
        fixture.process(PID_OFFSET + 3, 1, "nginx", [0; 4]);
        let mut watch = ModuleWatch::open(fixture.system_root(), &[]).unwrap();
        assert!(watch.source().starts_with("none: the watched processes"), "{}", watch.source());
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 3]), []);
        assert!(watch.source().starts_with("none: no watched process has the module"), "{}", watch.source());
        // This search opens the files. Only the next search can notice that the owner of a slot has ended.
        sample(&mut watch, &[PID_OFFSET + 1, PID_OFFSET + 2, PID_OFFSET + 3]);
        let mut found = sample(&mut watch, &[PID_OFFSET + 1, PID_OFFSET + 2, PID_OFFSET + 3]);
        found.sort_unstable();
        assert_eq!(found, [(5, 1), (7, 1)], "process 12 is alive, even if it belongs to another server");
        assert!(watch.source().starts_with("/dev/shm/brimful-nginx of test/1"), "{}", watch.source());
        assert_eq!(
            sample(&mut watch, &[PID_OFFSET + 2]),
            [(7, 0)],
            "one server has ended, and so has the other server's worker"
        );
        assert_eq!(sample(&mut watch, &[]), []);
    }

    #[test]
    fn a_file_in_run_is_found_as_one_in_dev_shm_is() {
        let fixture = Fixture::new();
        let path = process(&fixture, PID_OFFSET + 1, &module_file(1, 5), 1);
        let run = fixture.proc_root().join(format!("{}/root/run/brimful", PID_OFFSET + 1));
        fs::create_dir_all(&run).unwrap();
        fs::rename(&path, run.join("nginx")).unwrap();
        let inode = fs::metadata(run.join("nginx")).unwrap().ino();
        let maps = format!("7f00-7f10 rw-s 00000000 00:1a {inode} /run/brimful/nginx\n");
        fs::write(fixture.proc_root().join(format!("{}/maps", PID_OFFSET + 1)), maps).unwrap();
        let mut watch = ModuleWatch::open(fixture.system_root(), &[]).unwrap();
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), [(5, 1)]);
        assert!(watch.source().starts_with("/run/brimful/nginx of test/1"), "{}", watch.source());
    }

    #[test]
    fn a_file_of_neither_root_nor_the_servers_user_is_not_read() {
        let fixture = Fixture::new();
        let path = process(&fixture, PID_OFFSET + 1, &module_file(1, 5), 1);
        let directory = fixture.proc_root().join((PID_OFFSET + 1).to_string());
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("LEFT OUT: only root can give a file to another user");
            return;
        }
        let mut watch = ModuleWatch::open(fixture.system_root(), &[]).unwrap();
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), []);
        assert!(watch.source().contains("it belongs to user 65534, neither to root"), "{}", watch.source());
        fs::write(directory.join("status"), "Uid:\t0\t65534\t0\t0\nNSpid:\t1\n").unwrap();
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), [(5, 1)], "the file belongs to the server's own user");
    }

    #[test]
    fn no_link_leads_out_of_a_servers_root_and_no_other_file_is_taken_for_its_own() {
        let fixture = Fixture::new();
        let path = process(&fixture, PID_OFFSET + 1, &module_file(1, 5), 1);
        let ours = fixture.system_root().join("brimful-ours");
        fs::rename(&path, &ours).unwrap();
        std::os::unix::fs::symlink(&ours, &path).unwrap();
        let mut watch = ModuleWatch::open(fixture.system_root(), &[]).unwrap();
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), []);
        assert!(watch.source().starts_with("none: /dev/shm/brimful-nginx: "), "{}", watch.source());
        fs::remove_file(&path).unwrap();
        fs::write(&path, module_file(1, 6)).unwrap();
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), []);
        assert!(watch.source().contains("another file has taken its place"), "{}", watch.source());
        map(&fixture, PID_OFFSET + 1, &path, " (deleted)");
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), []);
        assert!(
            watch.source().contains("only root may read the file that the server still has open"),
            "{}",
            watch.source()
        );
        map(&fixture, PID_OFFSET + 1, &path, "");
        assert_eq!(sample(&mut watch, &[PID_OFFSET + 1]), [(6, 1)]);
    }

    #[test]
    fn a_named_file_is_read_without_any_process_and_followed_when_it_is_replaced() {
        let fixture = Fixture::new();
        let path = fixture.system_root().join("brimful-x");
        let error = ModuleWatch::open(fixture.system_root(), std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(error.contains("brimful-x") && error.contains("start the server"), "{error}");
        fs::write(&path, b"something else").unwrap();
        let error = ModuleWatch::open(fixture.system_root(), std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(error.contains("no file of the Server Module"), "{error}");
        fs::write(&path, module_file(0, 5)).unwrap();
        let mut watch = ModuleWatch::open(fixture.system_root(), std::slice::from_ref(&path)).unwrap();
        assert_eq!(sample(&mut watch, &[]), [(5, 0)]);
        let other = fixture.system_root().join("brimful-y");
        fs::write(&other, module_file(0, 1)).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(sample(&mut watch, &[]), [(1, 0)]);
        fs::remove_file(&path).unwrap();
        assert_eq!(sample(&mut watch, &[]), [(1, 0)], "the removed file is still read");
    }
}
