//! All processes of a /proc, and who descends from whom.

use crate::procfs::{self, PidStat, ProcFile};
use std::collections::BTreeMap;
use std::path::Path;

/// Every process there is: its parent, and what the caller made of its pid and name.
pub(crate) type Table<T> = BTreeMap<u32, (u32, Option<T>)>;

/// All processes under a directory that is /proc.
pub(crate) fn process_table<T>(root: &Path, tag: impl Fn(u32, &[u8]) -> Option<T>) -> Table<T> {
    let (mut table, mut buffer) = (BTreeMap::new(), Vec::new());
    for pid in procfs::numeric_entries(root) {
        let Ok(file) = ProcFile::open(&root.join(format!("{pid}/stat"))) else { continue };
        let Some(PidStat { comm, parent, .. }) = file.read(&mut buffer).ok().and_then(procfs::pid_stat) else {
            continue;
        };
        table.insert(pid, (parent, tag(pid, comm)));
    }
    table
}

/// The processes that bear a tag, and those whose nearest ancestor with one passes it on. This process passes on its
/// own tag only, not that of its ancestors: what it starts is not the server unless it was selected.
pub(crate) fn with_descendants<T: Copy>(table: &Table<T>) -> Vec<(u32, T)> {
    let inherited = |mut pid: u32| {
        // The steps are counted because parents that were read at different moments may form a ring.
        for _ in 0..table.len() {
            match *table.get(&pid)? {
                (_, Some(tag)) => return Some(tag),
                _ if pid == std::process::id() => return None,
                (parent, None) => pid = parent,
            }
        }
        None
    };
    table.keys().filter_map(|&pid| Some((pid, inherited(pid)?))).collect()
}
