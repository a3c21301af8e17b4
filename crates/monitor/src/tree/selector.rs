//! Program selectors: parses them from the command line, formats them for messages, and names the programs in results.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// A selector of the processes to watch. Their descendants are watched too. On the command line: `nginx`, `1234`,
/// `port:80`, `cgroup:system.slice/nginx.service`, or a systemd unit, `nginx.service`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSelector {
    /// Every process of this name. The name may be the name of the executable, the first word of the title (`php-fpm`
    /// of `php-fpm: master process`), or the name of the script that an interpreter runs. The kernel's name of a
    /// process counts too, if the wanted name has no more than the 15 bytes that the kernel keeps. The monitoring
    /// process itself never matches.
    Name(String),
    /// The process with this pid. A later process with the same pid does not match.
    Pid(u32),
    /// The processes that listen on a TCP port of the watched network namespace.
    Port(u16),
    /// Every process in these cgroups and in the cgroups below them, except the monitoring process itself. A path that
    /// begins with `/sys/fs/cgroup` names one directory. Any other path names every cgroup directory whose path ends
    /// with it, in all hierarchies, so a systemd unit's name is enough.
    Cgroup(PathBuf),
}

impl ProcessSelector {
    /// The name of the selector's program, and whether this name is final. A name that is not final is replaced by the
    /// name of the program's first process.
    pub(super) fn label(&self) -> (bool, Arc<str>) {
        match self {
            ProcessSelector::Name(name) => (true, name.as_str().into()),
            ProcessSelector::Pid(pid) => (false, pid.to_string().into()),
            ProcessSelector::Port(port) => (false, format!("port:{port}").into()),
            ProcessSelector::Cgroup(path) => {
                (true, path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into())
            }
        }
    }
}

/// Formats the selector for messages of the form "no process … is running".
impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessSelector::Name(name) => write!(f, "named `{name}`"),
            ProcessSelector::Pid(pid) => write!(f, "with pid {pid}"),
            ProcessSelector::Port(port) => write!(f, "that listens on TCP port {port}"),
            ProcessSelector::Cgroup(path) => write!(f, "in cgroup {}", path.display()),
        }
    }
}

impl FromStr for ProcessSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<ProcessSelector, String> {
        const UNITS: [&str; 3] = [".service", ".scope", ".slice"];
        let forms = "a process is named like nginx, 1234, port:80, cgroup:system.slice/nginx.service or nginx.service";
        let refuse = |what: &str| Err(format!("`{text}` {what}: {forms}"));
        let is_path =
            |path: &str| !path.is_empty() && !Path::new(path).components().any(|part| part.as_os_str() == "..");
        if let Some(port) = text.strip_prefix("port:") {
            return match port.parse() {
                Ok(port) if port > 0 => Ok(ProcessSelector::Port(port)),
                _ => refuse("names no TCP port from 1 to 65535"),
            };
        }
        if let Some(path) = text.strip_prefix("cgroup:") {
            return if is_path(path) { Ok(ProcessSelector::Cgroup(path.into())) } else { refuse("names no cgroup") };
        }
        if UNITS.iter().any(|unit| text.ends_with(unit)) && is_path(text) {
            return Ok(ProcessSelector::Cgroup(text.into()));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                Ok(pid) if pid > 0 => Ok(ProcessSelector::Pid(pid)),
                _ => refuse("is no pid"),
            };
        }
        if text.trim().is_empty() { refuse("is no name") } else { Ok(ProcessSelector::Name(text.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProcessSelector::{Cgroup, Name, Pid, Port};

    #[test]
    fn every_form_is_understood() {
        for (text, selector) in [
            ("nginx", Name("nginx".into())),
            ("7zip", Name("7zip".into())),
            ("1234", Pid(1234)),
            ("port:80", Port(80)),
            ("cgroup:system.slice/nginx.service", Cgroup("system.slice/nginx.service".into())),
            ("cgroup:/sys/fs/cgroup/web", Cgroup("/sys/fs/cgroup/web".into())),
            ("nginx.service", Cgroup("nginx.service".into())),
        ] {
            assert_eq!(text.parse(), Ok(selector));
        }
        for text in
            ["", " ", "0", "99999999999", "port:", "port:0", "port:http", "port:70000", "cgroup:", "cgroup:../a"]
        {
            let error = text.parse::<ProcessSelector>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}` ")) && error.contains("like nginx, 1234, port:80"), "{error}");
        }
    }
}
