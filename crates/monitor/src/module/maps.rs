//! Parses /proc/PID/maps to find the files through which a process shares memory. Source: proc(5).

/// A shared mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping<'a> {
    /// The range of addresses, as in /proc/PID/map_files.
    pub range: &'a str,
    /// Device and inode as /proc/PID/maps shows them. On some file systems, stat(2) shows other values.
    pub device_and_inode: (&'a str, u64),
    /// The path of the file below the process's own root.
    pub path: &'a str,
    /// Whether the file has been removed or replaced.
    pub deleted: bool,
}

/// The shared mappings whose path contains a word. Lines that cannot be parsed are skipped.
pub(super) fn shared<'a>(maps: &'a str, word: &'a str) -> impl Iterator<Item = Mapping<'a>> {
    maps.lines()
        .filter(move |line| line.contains(word))
        .filter_map(mapping)
        .filter(move |found| found.path.contains(word))
}

/// Parses `7f00-7f01 rw-s 00000000 00:1a 12345   /dev/shm/a file (deleted)`.
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (range, permissions, _offset, device, inode) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if !permissions.ends_with('s') {
        return None;
    }
    let path = fields.next()?.trim_start_matches(' ');
    let (path, deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |path| (path, true));
    let inode = inode.parse().ok().filter(|&inode| inode != 0)?;
    (path.starts_with('/')).then_some(Mapping { range, device_and_inode: (device, inode), path, deleted })
}

/// The process's pid in its own namespace, from /proc/PID/status: the last number of `NSpid`.
pub(super) fn innermost_pid(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_ascii_whitespace().next_back()?.parse().ok())
}

/// The effective user of a process, from /proc/PID/status: the second number of `Uid`.
pub(super) fn effective_user(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
559d6d0d8000-559d6d0fe000 r--p 00000000 fe:01 1049 /usr/sbin/nginx
7f1a2c000000-7f1a2c004000 r-xp 00000000 fe:01 2050                       /usr/lib/nginx/modules/ngx_http_brimful_module.so
7f1a2c200000-7f1a2c280000 rw-s 00000000 00:1a 77                         /dev/shm/brimful-nginx
7f1a2c300000-7f1a2c380000 rw-s 00000000 00:1a 78                         /dev/shm/brimful old (deleted)
7f1a2c400000-7f1a2c480000 rw-s 00000000 00:01 3072                       /dev/zero (deleted)
7f1a2c500000-7f1a2c580000 rw-s 00000000 00:1a 79                         /dev/shm/other
7ffc0a9e4000-7ffc0aa05000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn shared_mappings_are_found_by_their_paths() {
        let found: Vec<_> = shared(MAPS, "brimful").collect();
        let nginx = Mapping {
            range: "7f1a2c200000-7f1a2c280000",
            device_and_inode: ("00:1a", 77),
            path: "/dev/shm/brimful-nginx",
            deleted: false,
        };
        assert_eq!(found[0], nginx);
        assert_eq!((found[1].path, found[1].deleted, found.len()), ("/dev/shm/brimful old", true, 2));
    }

    #[test]
    fn a_process_has_a_number_in_its_own_namespace() {
        assert_eq!(innermost_pid("Name:\tnginx\nNSpid:\t4711\t12\nNSpgid:\t1\n"), Some(12));
        assert_eq!(innermost_pid("NSpid:\t4711\n"), Some(4711));
        assert_eq!((innermost_pid("Pid:\t1\n"), innermost_pid("NSpid:\n")), (None, None));
    }

    #[test]
    fn a_process_acts_as_a_user() {
        assert_eq!(effective_user("Name:\tnginx\nUid:\t0\t33\t0\t33\n"), Some(33));
        assert_eq!((effective_user("Uid:\t0\n"), effective_user("Gid:\t0\t33\n")), (None, None));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\n]{0,200}", line in "[0-9a-f:s -/]{0,80}brimful.{0,20}") {
            let _ = (shared(&text, "brimful").count(), shared(&line, "brimful").count(), innermost_pid(&text), effective_user(&text));
        }
    }
}
