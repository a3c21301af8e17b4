//! Finds the TCP ports on which some processes listen. /proc/net/tcp lists the inodes of listening sockets, and
//! /proc/PID/fd shows which process has them open. Source: proc_net_tcp(5), proc_pid_fd(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Value of the column `st` for a listening socket.
const LISTEN: &str = "0A";

/// The ports on which the processes `pids` listen, without duplicates, in ascending order. `net` is the path of
/// /proc/net in the sockets' network namespace. Processes that this user may not inspect are skipped.
pub(super) fn listened_on(proc: &Path, net: &Path, pids: &[u32]) -> Vec<u16> {
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(net.join(table)).unwrap_or_default());
    let listening: BTreeMap<u64, u16> = tables.iter().flat_map(|table| table.lines().filter_map(listener)).collect();
    let mut ports = BTreeSet::new();
    for pid in pids {
        let Ok(descriptors) = fs::read_dir(proc.join(format!("{pid}/fd"))) else { continue };
        for descriptor in descriptors.flatten() {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            ports.extend(inode.and_then(|inode: u64| listening.get(&inode)));
        }
    }
    ports.into_iter().collect()
}

/// Parses inode and port of a line `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`.
fn listener(line: &str) -> Option<(u64, u16)> {
    let mut fields = line.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    (state == LISTEN).then_some((inode, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 901 1 0 100 0 0 10 0\n   \
        1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 902 1 0 100 0 0 10 0\n   \
        2: 0100007F:1F91 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 903 1 0 20 4 30 10 -1\n";
    const TCP6: &str = "  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n   \
        0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 \
        00000000     0        0 904 1 0 100 0 0 10 0\n";

    #[test]
    fn ports_are_those_of_the_listening_sockets_that_a_process_holds() {
        let proc = tempfile::tempdir().unwrap();
        let net = proc.path().join("net");
        for directory in ["net", "7/fd", "8/fd"] {
            fs::create_dir_all(proc.path().join(directory)).unwrap();
        }
        fs::write(net.join("tcp"), TCP).unwrap();
        fs::write(net.join("tcp6"), TCP6).unwrap();
        for (descriptor, target) in [("7/fd/3", "socket:[901]"), ("7/fd/4", "pipe:[902]"), ("7/fd/5", "socket:[903]")] {
            symlink(target, proc.path().join(descriptor)).unwrap();
        }
        for (descriptor, inode) in [("8/fd/6", 902), ("8/fd/7", 904), ("8/fd/8", 999)] {
            symlink(format!("socket:[{inode}]"), proc.path().join(descriptor)).unwrap();
        }
        let of = |pids: &[u32]| listened_on(proc.path(), &net, pids);
        assert_eq!((of(&[7]), of(&[8]), of(&[8, 7, 9])), (vec![8080], vec![80], vec![80, 8080]));
        assert!(listened_on(proc.path(), proc.path(), &[7]).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "[ :0-9A-Fa-f]{0,160}|\\PC{0,60}") {
            let _ = listener(&line);
        }
    }
}
