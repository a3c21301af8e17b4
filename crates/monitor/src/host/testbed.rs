//! Checks the requirements of a test bed with several hosts on this machine: TUN devices, and `ip`.

use super::{Finding, judged};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

/// Path of the file that programs open to create TUN devices, relative to the root directory.
const TUN: &str = "dev/net/tun";

/// Returns the findings about TUN devices and `ip`. `path` is the value of the environment variable `PATH`.
pub(super) fn examine(root: &Path, path: OsString) -> Vec<Finding> {
    vec![tun(root), ip(path)]
}

fn tun(root: &Path) -> Finding {
    // Opening this file shows whether TUN devices can be created, but creates none.
    let opened = OpenOptions::new().read(true).write(true).open(root.join(TUN));
    let (value, fix) = match &opened {
        Ok(_) => (format!("/{TUN} can be opened"), String::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            (format!("/{TUN}: {error}"), format!("sudo chmod 666 /{TUN}"))
        }
        Err(error) => (format!("/{TUN}: {error}"), "sudo modprobe tun".to_owned()),
    };
    let means = "`brimful testbed` connects its hosts by TUN devices".to_owned();
    judged("tun", opened.is_ok(), value, means, fix)
}

fn ip(path: OsString) -> Finding {
    let found = std::env::split_paths(&path).map(|dir| dir.join("ip")).find(|ip| ip.is_file());
    let value = found.as_ref().map_or_else(|| "not in PATH".to_owned(), |ip| ip.display().to_string());
    let means =
        "`brimful testbed` configures its hosts with it, and its command runs programs on them with it".to_owned();
    judged("ip", found.is_some(), value, means, "sudo apt-get install -y iproute2")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Status;
    use std::fs;

    #[test]
    fn what_is_missing_is_mended() {
        let root = tempfile::tempdir().unwrap();
        let [tun, ip] = <[Finding; 2]>::try_from(examine(root.path(), OsString::new())).unwrap();
        assert_eq!((tun.status, tun.script.as_deref()), (Status::Shortfall, Some("sudo modprobe tun")));
        assert_eq!((ip.status, ip.value.as_str()), (Status::Shortfall, "not in PATH"));
        assert!(ip.script.unwrap().contains("iproute2"));
    }

    #[test]
    fn what_is_there_is_fine() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("dev/net")).unwrap();
        fs::write(root.path().join(TUN), "").unwrap();
        fs::write(root.path().join("ip"), "").unwrap();
        let found = examine(root.path(), root.path().as_os_str().to_owned());
        assert!(found.iter().all(|finding| finding.status == Status::Ok && finding.fix.is_none()), "{found:?}");
    }
}
