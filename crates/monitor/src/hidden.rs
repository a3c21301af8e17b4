//! Whether processes are hidden from this user. /proc may hide the processes of other users, and a PID namespace hides
//! the processes of the host and of other containers. Source: proc(5), mount options `hidepid` and `gid`;
//! pid_namespaces(7).

use std::fs;
use std::path::Path;

/// Link text of the initial PID namespace of a host (`PROC_PID_INIT_INO` in Linux's proc_ns.h). All processes are
/// visible in this namespace.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// A message about the mount option that hides processes from this user, with a remedy; `None` if the option hides
/// none. `root` is the directory that contains /proc.
pub(crate) fn hidepid_remark(root: &Path) -> Option<String> {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let options = options_of_proc(&mounts)?;
    let option = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let hidepid = option("hidepid").filter(|value| !matches!(*value, "0" | "off"))?;
    // A user who may inspect process 1 may inspect all processes.
    if fs::read(root.join("proc/1/stat")).is_ok() {
        return None;
    }
    let group = option("gid").map(|gid| format!(", or with group {gid}")).unwrap_or_default();
    Some(format!(
        "/proc is mounted with hidepid={hidepid} and hides other users' processes: run as root{group}, or: sudo mount -o \
         remount,hidepid=0 /proc"
    ))
}

/// A hint to run brimful on the host or in the server's PID namespace; `None` if brimful already runs in the host's PID
/// namespace, where all processes are visible.
pub(crate) fn pid_namespace_hint(root: &Path) -> Option<String> {
    let own = fs::read_link(root.join("proc/self/ns/pid")).ok()?;
    (own.as_os_str() != FIRST_NAMESPACE).then(|| {
        "from this PID namespace, as from inside a container, no processes but its own are seen: look from the host, or \
         from the server's"
            .to_owned()
    })
}

/// The mount options of the topmost file system at /proc.
fn options_of_proc(mountinfo: &str) -> Option<&str> {
    mountinfo.lines().rev().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.splitn(3, ' ');
        let here = mount.split(' ').nth(4)? == "/proc" && system.next()? == "proc";
        system.nth(1).filter(|_| here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_processes_is_said_to_whom_it_concerns() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let says = |options: &str| {
            let text = format!(
                "20 1 0:19 / /sys rw - sysfs sys rw,hidepid=1\n21 1 0:20 / /proc rw - proc proc rw,hidepid=9\n\
                 22 1 0:20 / /proc rw,nosuid shared:2 - proc proc rw,{options}\n23 1 0:21 / /procs rw - proc proc rw\n"
            );
            fs::write(root.path().join("proc/self/mountinfo"), text).unwrap();
            hidepid_remark(root.path())
        };
        for options in ["relatime", "hidepid=0", "hidepid=off"] {
            assert_eq!(says(options), None);
        }
        for options in ["hidepid=2", "gid=27,hidepid=invisible", "hidepid=noaccess"] {
            let text = says(options).unwrap();
            assert!(text.contains("sudo mount -o remount,hidepid=0 /proc") && text.contains("hidepid="), "{text}");
            assert_eq!(text.contains("or with group 27"), options.contains("gid=27"), "{text}");
        }
        fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink(FIRST_NAMESPACE, root.path().join("proc/self/ns/pid")).unwrap();
        assert_eq!(pid_namespace_hint(root.path()), None);
        fs::remove_file(root.path().join("proc/self/ns/pid")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532201]", root.path().join("proc/self/ns/pid")).unwrap();
        assert!(pid_namespace_hint(root.path()).unwrap().contains("from this PID namespace"));
        fs::create_dir_all(root.path().join("proc/1")).unwrap();
        fs::write(root.path().join("proc/1/stat"), "1 (init) S").unwrap();
        assert_eq!(says("hidepid=2"), None, "no warning if all processes are visible anyway");
    }
}
