//! Checks the limits of this host's resources: descriptors, ports, queues and memory.

use super::{Finding, Fix, judged, numbers, unknown};
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Time that a connection spends in TIME_WAIT on Linux, in seconds (`TCP_TIMEWAIT_LEN`).
const TIME_WAIT_S: u64 = 60;
/// Number of ports in Linux's default range, 32768–60999.
const USUAL_PORTS: u64 = 28_232;
/// Approximate memory per open connection, in KiB. An idle connection took 7.7 KiB of kernel memory for client and
/// server together (measured on one host, Linux 6.18). The rest is memory of the two programs.
const CONNECTION_KIB: u64 = 10;

/// The soft and the hard limit on the number of this process's open descriptors.
pub(super) fn descriptor_limits() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Returns the findings about limits. `descriptors` are the soft and the hard limit on open descriptors.
pub(super) fn examine(root: &Path, descriptors: (u64, u64)) -> Vec<Finding> {
    let range = numbers(root, "proc/sys/net/ipv4/ip_local_port_range");
    let ports = range.map_or(USUAL_PORTS, |[first, last]: [u64; 2]| last.saturating_add(1).saturating_sub(first));
    vec![
        self::descriptors(root, descriptors, ports),
        range.map_or_else(
            || unknown("ports", "net.ipv4.ip_local_port_range", "limits connections from one source address"),
            |[first, last]| self::ports(first, last, ports),
        ),
        time_wait(root, ports),
        at_least(root, "somaxconn", "net.core.somaxconn", 1024, |n| {
            format!("a server on this host holds at most {n} connections that it has not accepted yet")
        }),
        at_least(root, "syn_backlog", "net.ipv4.tcp_max_syn_backlog", 512, |n| {
            format!("about {n} handshakes in progress for each listening socket of this host")
        }),
        syncookies(root),
        memory(root),
    ]
}

/// Checks the limit on descriptors. The limit suffices if a load test runs out of the ports of one source address
/// before it runs out of descriptors.
fn descriptors(root: &Path, (soft, hard): (u64, u64), ports: u64) -> Finding {
    let nr_open = numbers(root, "proc/sys/fs/nr_open").map_or(1 << 20, |[n]: [u64; 1]| n);
    let wanted = (ports + 1024).next_power_of_two().min(nr_open);
    // A child process inherits this limit from its shell. A script is a child of the user's shell, so to raise the
    // limit it must change its parent's limit.
    let fix = match hard >= ports {
        true => {
            let wanted = wanted.min(hard);
            Fix {
                shown: format!("ulimit -n {wanted}"),
                script: Some(format!("prlimit --pid $PPID --nofile={wanted}:{hard}")),
            }
        }
        false => Fix {
            shown: format!("sudo prlimit --pid $$ --nofile={wanted}:{wanted}"),
            script: Some(format!("sudo prlimit --pid $PPID --nofile={wanted}:{wanted}")),
        },
    };
    let value = format!("soft {soft}, hard {hard}, fs.nr_open {nr_open}");
    let means = format!("at most {soft} connections open at once ({hard} once the soft limit is raised)");
    judged("descriptors", soft >= ports, value, means, fix)
}

fn ports(first: u64, last: u64, ports: u64) -> Finding {
    judged(
        "ports",
        ports >= USUAL_PORTS,
        format!("{first}-{last}: {ports}"),
        format!("at most {ports} connections at once from one source address to one server port"),
        "sudo sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"",
    )
}

fn time_wait(root: &Path, ports: u64) -> Finding {
    const KEY: &str = "net.ipv4.tcp_tw_reuse";
    let Some([reuse]) = numbers(root, &path(KEY)) else {
        return unknown("time_wait", KEY, "limits new connections per second where the client closes first");
    };
    let rate = ports / TIME_WAIT_S;
    let (value, means) = match reuse {
        0 => ("0: never reused", format!("about {rate} new connections per second where the client closes first")),
        1 => (
            "1: reused after a second",
            format!("about {ports} new connections per second where the client closes first"),
        ),
        _ => (
            "2: reused on loopback only",
            format!("over a network, about {rate} new connections per second where the client closes first"),
        ),
    };
    judged("time_wait", reuse != 0, format!("{KEY} = {value}"), means, format!("sudo sysctl -w {KEY}=1"))
}

fn at_least(root: &Path, topic: &'static str, key: &str, enough: u64, means: impl Fn(u64) -> String) -> Finding {
    match numbers(root, &path(key)) {
        None => unknown(topic, key, "limits the queue of connections a server has not accepted yet"),
        Some([n]) => judged(topic, n >= enough, format!("{key} = {n}"), means(n), format!("sudo sysctl -w {key}=4096")),
    }
}

fn syncookies(root: &Path) -> Finding {
    const KEY: &str = "net.ipv4.tcp_syncookies";
    let means = match numbers(root, &path(KEY)) {
        None => return unknown("syncookies", KEY, "decides what a full queue of handshakes does with further SYNs"),
        Some([0]) => (0, "a full queue of handshakes drops further SYNs"),
        Some([1]) => (1, "a full queue of handshakes answers further SYNs with cookies"),
        Some([n]) => (n, "every SYN is answered with a cookie, which costs CPU and loses TCP options: for tests only"),
    };
    judged(
        "syncookies",
        means.0 == 1,
        format!("{KEY} = {}", means.0),
        means.1.to_owned(),
        format!("sudo sysctl -w {KEY}=1"),
    )
}

fn memory(root: &Path) -> Finding {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let kib = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let Some((total, available)) = kib("MemTotal").zip(kib("MemAvailable")) else {
        return unknown("memory", "/proc/meminfo", "limits open connections");
    };
    let connections = available / 2 / CONNECTION_KIB;
    judged(
        "memory",
        connections >= USUAL_PORTS,
        format!("{} MiB available of {} MiB", available / 1024, total / 1024),
        format!("room for about {connections} open connections in half of it, {CONNECTION_KIB} KiB each"),
        Fix::by_hand("ps aux --sort=-rss | head    # shows what holds the memory"),
    )
}

fn path(key: &str) -> String {
    format!("proc/sys/{}", key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Status;

    fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn find<'a>(findings: &'a [Finding], topic: &str) -> &'a Finding {
        findings.iter().find(|finding| finding.topic == topic).unwrap()
    }

    #[test]
    fn a_usual_host_is_fine_but_for_its_descriptors() {
        let root = fixture(&[
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("proc/sys/fs/nr_open", "1048576\n"),
            ("proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
            ("proc/sys/net/core/somaxconn", "4096\n"),
            ("proc/sys/net/ipv4/tcp_max_syn_backlog", "1024\n"),
            ("proc/sys/net/ipv4/tcp_syncookies", "1\n"),
            ("proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\nMemAvailable:    6000000 kB\n"),
        ]);
        let findings = examine(root.path(), (1024, 1 << 20));
        let bad: Vec<&str> = findings.iter().filter(|f| f.status != Status::Ok).map(|f| f.topic).collect();
        assert_eq!(bad, ["descriptors"]);
        assert_eq!(find(&findings, "descriptors").fix.as_deref(), Some("ulimit -n 32768"));
        assert!(find(&findings, "time_wait").means.contains("470"), "{:?}", find(&findings, "time_wait"));
        let findings = examine(root.path(), (1024, 20_000));
        let fix = find(&findings, "descriptors").fix.as_deref();
        assert_eq!(fix, Some("sudo prlimit --pid $$ --nofile=32768:32768"));
    }

    #[test]
    fn each_shortfall_names_the_setting_that_mends_it() {
        let root = fixture(&[
            ("proc/sys/net/ipv4/ip_local_port_range", "61000 60999"),
            ("proc/sys/net/ipv4/tcp_tw_reuse", "0"),
            ("proc/sys/net/core/somaxconn", "128"),
            ("proc/sys/net/ipv4/tcp_max_syn_backlog", "128"),
            ("proc/sys/net/ipv4/tcp_syncookies", "2"),
            ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 1000 kB\n"),
        ]);
        let findings = examine(root.path(), (1 << 20, 1 << 20));
        for (topic, setting) in [
            ("ports", "ip_local_port_range"),
            ("time_wait", "tcp_tw_reuse=1"),
            ("somaxconn", "net.core.somaxconn=4096"),
            ("syn_backlog", "tcp_max_syn_backlog=4096"),
            ("syncookies", "tcp_syncookies=1"),
            ("memory", "rss"),
        ] {
            let finding = find(&findings, topic);
            assert_eq!(finding.status, Status::Shortfall, "{topic}");
            assert!(finding.fix.as_ref().unwrap().contains(setting), "{finding:?}");
        }
    }

    #[test]
    fn garbage_is_unknown() {
        let root = fixture(&[("proc/sys/net/core/somaxconn", "many"), ("proc/meminfo", "MemTotal: x\nMemAvailable")]);
        let findings = examine(root.path(), (1, 1));
        for topic in ["somaxconn", "memory", "ports"] {
            assert_eq!(find(&findings, topic).status, Status::Unknown);
        }
    }
}
