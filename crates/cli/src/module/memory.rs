//! The file of shared memory that a server writes to: its default paths, its status, and the switch that turns
//! recording on and off. Programs other than the server write only to the switch.

use super::args::ServerKind;
use crate::exit::UsageError;
use anyhow::Context;
use brimful_core::quantity::count;
use brimful_core::text::one_line;
use brimful_monitor::module::{ContainerServer, ModuleFile, ModuleFileError, ServerSample, servers_in_containers};
use jiff::Timestamp;
use rustix::process::geteuid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Turns recording on or off. Returns whether it was on before.
///
/// # Errors
/// Returns an error if the file is not the shared memory of a server, or belongs to another user.
pub fn set_recording(path: &Path, on: bool) -> anyhow::Result<bool> {
    // The file is opened only once. So the file that was checked is the one that is written to, even if its path now
    // leads to another file.
    let file = ModuleFile::open_writable(path).map_err(|error| file_error(path, error))?;
    let was = file.header().map_err(|error| file_error(path, error))?.enabled;
    file.set_enabled(on).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(was)
}

/// Default paths of a server's shared memory. The first is for a server that root started, the second for a server that
/// another user started (`BRIMFUL_DEFAULT_PATH` in place.h).
pub fn default_paths(kind: ServerKind) -> [PathBuf; 2] {
    let name = kind.name();
    [PathBuf::from(format!("/run/brimful/{name}")), PathBuf::from(format!("/dev/shm/brimful-{name}"))]
}

/// The default path that the server uses. If no file exists at either path, the path at which the server will create
/// it.
pub fn default_path(paths: [PathBuf; 2]) -> PathBuf {
    let [of_root, of_others] = paths;
    match (is_trusted(&of_root), is_trusted(&of_others)) {
        (true, _) => of_root,
        (false, true) => of_others,
        (false, false) if geteuid().is_root() => of_root,
        (false, false) => of_others,
    }
}

/// Whether the file belongs to root, to the caller, or to the user of the server process that the file's header names.
/// Any other user could have created the file to deceive the caller.
fn is_trusted(path: &Path) -> bool {
    let Ok(file) = ModuleFile::open(path) else { return false };
    let of_server = |pid: u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == file.owner());
    file.owner() == 0
        || file.owner() == geteuid().as_raw()
        || file.header().is_ok_and(|header| of_server(header.master_pid))
}

/// The status of a server's shared memory, in one sentence.
pub fn describe_status(path: &Path) -> String {
    let place = path.display();
    match ModuleFile::open(path).and_then(|mut file| file.sample(&is_running)) {
        Ok(sample) => sentence(&sample, path),
        Err(ModuleFileError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            format!("not recording: the server has not created {place}; start or reload it")
        }
        Err(error) => format!("{place}: {}", one_line(&error.to_string())),
    }
}

/// Servers of this kind in containers or with other root directories: a description of each, and the status of its
/// shared memory.
pub fn container_servers(kind: ServerKind) -> Vec<(String, String)> {
    let described = |mut server: ContainerServer| {
        let sample = server.sample().ok().filter(|sample| sample.name.to_lowercase().starts_with(kind.name()))?;
        let what = format!("{} in a container, process {}", one_line(&sample.name), server.pids.first()?);
        Some((what, sentence(&sample, &server.path)))
    };
    servers_in_containers(Path::new("/proc")).into_iter().filter_map(described).collect()
}

fn sentence(sample: &ServerSample, path: &Path) -> String {
    let state = if sample.enabled { "on" } else { "off" };
    let [.., created_ns] = sample.identity;
    let since = Timestamp::from_nanosecond(i128::from(created_ns))
        .map_or_else(|_| "an unknown time".to_owned(), |made| format!("{made:.0}"));
    let lost = if sample.lost > 0 {
        format!(", {} not recorded for lack of space", count(u64::from(sample.lost)))
    } else {
        String::new()
    };
    let some = |n: u64, what: &str| format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" });
    let counted = format!("{} by {}{lost}", some(sample.requests(), "request"), some(sample.workers, "worker"));
    format!("{state}: {counted} of {} since {since}, in {}", one_line(&sample.name), path.display())
}

/// Whether the file is the shared memory of a server.
pub fn is_module_memory(path: &Path) -> bool {
    ModuleFile::open(path).is_ok()
}

/// Whether a process with this ID exists on this host. A process in a container has another ID on the host than inside
/// the container.
fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Converts an error into one with the right exit code. A file that is not a server's shared memory is bad input, and
/// an I/O error is an error of the environment.
fn file_error(path: &Path, error: ModuleFileError) -> anyhow::Error {
    let words = format!("{}: {error}", path.display());
    match error {
        ModuleFileError::Io(_) => anyhow::anyhow!(words),
        _ => UsageError(words).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_monitor::module::layout::{LAYOUT_VERSION, MAGIC, SLOT_ALIGN, class, header, slot};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn other_files_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other");
        assert!(!set_recording(&path, true).unwrap_err().is::<UsageError>());
        let text = "some other file ".repeat(100);
        fs::write(&path, &text).unwrap();
        assert!(set_recording(&path, false).unwrap_err().is::<UsageError>());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(!is_module_memory(&path));
        assert!(!is_module_memory(directory.path()));
    }

    /// Shared memory in the layout of `layout.h`, with one request class and one slot for each process ID in `owners`.
    fn memory_of(owners: &[u32]) -> Vec<u8> {
        let header_size = header::SIZE.next_multiple_of(SLOT_ALIGN);
        let slot_size = (slot::CLASSES_OFFSET + class::SIZE).next_multiple_of(SLOT_ALIGN);
        let mut bytes = vec![0; header_size + owners.len() * slot_size];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        let words = [
            (header::LAYOUT_OFFSET, LAYOUT_VERSION),
            (header::HEADER_SIZE_OFFSET, header_size as u32),
            (header::SLOT_SIZE_OFFSET, slot_size as u32),
            (header::SLOTS_OFFSET, owners.len() as u32),
            (header::CLASSES_OFFSET, 1),
        ];
        let owned = owners.iter().enumerate().flat_map(|(index, owner)| {
            let at = header_size + index * slot_size;
            [(at + slot::OWNER_OFFSET, *owner), (at + slot::OWNERS_OFFSET, 1)]
        });
        for (at, word) in words.into_iter().chain(owned) {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    #[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
    fn a_third_users_memory_is_not_chosen() {
        let directory = tempfile::tempdir().unwrap();
        let places = ["root's", "other's"].map(|name| directory.path().join(name));
        let [of_root, of_others] = places.clone();
        fs::write(&of_others, memory_of(&[0])).unwrap();
        assert_eq!(default_path(places.clone()), of_others);
        fs::write(&of_root, memory_of(&[0])).unwrap();
        assert_eq!(default_path(places.clone()), of_root);
        if std::os::unix::fs::chown(&of_root, Some(65_534), None).is_err() {
            eprintln!("LEFT OUT in part: only root can give a file to another user");
            return;
        }
        assert_eq!(default_path(places.clone()), of_others);
        // The file still belongs to user 65534, but now its header names a running process of this user.
        let mut process = Command::new("sleep").arg("1000").uid(65_534).spawn().unwrap();
        let mut bytes = memory_of(&[0]);
        bytes[header::MASTER_PID_OFFSET..][..4].copy_from_slice(&process.id().to_ne_bytes());
        fs::write(&of_root, bytes).unwrap();
        let found = default_path(places);
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(found, of_root);
    }

    #[test]
    fn the_checked_file_is_switched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        fs::write(&path, memory_of(&[0])).unwrap();
        let file = ModuleFile::open_writable(&path).unwrap();
        fs::rename(&path, directory.path().join("moved")).unwrap();
        fs::write(&path, "another file").unwrap();
        file.set_enabled(true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"another file");
        assert!(describe_status(&directory.path().join("moved")).starts_with("on: "));
        assert!(set_recording(&directory.path().join("moved"), false).unwrap());
        assert!(describe_status(&directory.path().join("moved")).starts_with("off: "));
    }

    #[test]
    fn killed_workers_are_not_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        // No process has an ID above 2^22 (PID_MAX_LIMIT).
        fs::write(&path, memory_of(&[std::process::id(), 0, u32::MAX - 1])).unwrap();
        let said = describe_status(&path);
        assert!(said.contains("off: 0 requests by 1 worker of "), "{said}");
    }

    #[test]
    fn a_missing_file_is_reported() {
        assert!(describe_status(Path::new("/nonexistent/memory")).contains("has not created /nonexistent/memory"));
    }
}
