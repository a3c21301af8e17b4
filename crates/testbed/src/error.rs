//! Why there is no test bed, and what to do.

use std::io;

/// A test bed that could not be made, or did not last.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// No privilege, or a kernel that has none of them.
    #[error(
        "cannot make a network namespace: {0}; run as root, or let users make namespaces: \
         `sysctl -w kernel.unprivileged_userns_clone=1` on Debian, \
         `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, `--privileged` for a container"
    )]
    Namespace(io::Error),
    /// Users and groups of the user namespace could not be set.
    #[error("cannot set who is root in a user namespace: {path}: {source}; run as root")]
    UserNamespace {
        /// The file below /proc.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The device that packets come from.
    #[error(
        "cannot open a TUN device: {0}; `modprobe tun`, let users open it (`chmod 666 /dev/net/tun`), and give a \
         container `--device /dev/net/tun`"
    )]
    Tun(io::Error),
    /// The program that sets addresses is not there.
    #[error("cannot start the program ip: {0}; install it: `apt-get install iproute2`")]
    NoIp(io::Error),
    /// It has refused something.
    #[error("the program ip refuses to set up {host}: {said}; is iproute2 older than version 5?")]
    Ip {
        /// Of which host.
        host: String,
        /// What it said.
        said: String,
    },
    /// A file system that the test bed needs to itself.
    #[error("cannot mount {what}: {source}; run as root, outside of a container or in one with `--privileged`")]
    Mount {
        /// What, and where.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A setting of a namespace.
    #[error("cannot write {path}: {source}; run as root")]
    Setting {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A CPU that is not there.
    #[error("{flag} names CPU {cpu}, which is not online: there are {online}")]
    Cpu {
        /// What named it.
        flag: &'static str,
        /// It.
        cpu: usize,
        /// Those there are.
        online: String,
    },
    /// Anything else that the kernel does not do.
    #[error("cannot {what}: {source}; raise the limits of this host (`ulimit -n`, `ulimit -u`) and try again")]
    Kernel {
        /// What was to be done.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The command is not there, or is no program.
    #[error("cannot start `{program}`: {source}; give the command behind `--`, as for a shell")]
    Command {
        /// Its first word.
        program: String,
        /// Why.
        source: io::Error,
    },
}

impl TestbedError {
    /// Whether whoever gave the command line is to blame.
    pub fn is_usage(&self) -> bool {
        matches!(self, TestbedError::Cpu { .. } | TestbedError::Command { .. })
    }

    /// For `map_err`.
    pub(crate) fn kernel<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> TestbedError {
        move |source| TestbedError::Kernel { what, source: source.into() }
    }
}
