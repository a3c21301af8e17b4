//! Errors of the test bed.

use std::io;

/// The reason why a test bed cannot be started, or has ended. The message also says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// This process is not permitted to create network namespaces, or the kernel does not support them.
    #[error(
        "cannot make a network namespace: {0}; run as root, or let users make namespaces: \
         `sysctl -w kernel.unprivileged_userns_clone=1` on Debian, \
         `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, `--privileged` for a container"
    )]
    Namespace(io::Error),
    /// The user and group ID maps of the user namespace could not be written.
    #[error("cannot become root in a user namespace: {path}: {source}; run as root")]
    UserNamespace {
        /// The file in /proc that could not be written.
        path: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The TUN device that connects a host with the router could not be opened.
    #[error(
        "cannot open a TUN device: {0}; `modprobe tun`, let users open it (`chmod 666 /dev/net/tun`), and give a \
         container `--device /dev/net/tun`"
    )]
    Tun(io::Error),
    /// The program `ip`, which configures network devices and addresses, could not be started.
    #[error("cannot start the program ip: {0}; install it: `apt-get install iproute2`")]
    NoIp(io::Error),
    /// The program `ip` failed.
    #[error("the program ip refuses to set up {host}: {message}; is iproute2 older than version 5?")]
    Ip {
        /// Name of the host that `ip` was configuring.
        host: String,
        /// Error message of `ip`.
        message: String,
    },
    /// A file system could not be mounted.
    #[error("cannot mount {what}: {source}; run as root, outside of a container or in one with `--privileged`")]
    Mount {
        /// The file system, and the path at which it could not be mounted.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// A kernel setting of a namespace could not be written.
    #[error("cannot write {path}: {source}; run as root")]
    Setting {
        /// Path of the setting's file.
        path: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// A flag contains the number of a CPU that is not online.
    #[error("{flag} names CPU {cpu}, which is not online: there are {online}")]
    Cpu {
        /// The flag with the CPU's number.
        flag: &'static str,
        /// Number of the CPU.
        cpu: usize,
        /// The CPUs that are online.
        online: String,
    },
    /// Another system call failed.
    #[error("cannot {what}: {source}; raise the limits of this host (`ulimit -n`, `ulimit -u`) and try again")]
    Kernel {
        /// The action for which the system call was made.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The user's command could not be started.
    #[error("cannot start `{program}`: {source}; give the command behind `--`, as for a shell")]
    Command {
        /// The program that the command names.
        program: String,
        /// The error of the system call.
        source: io::Error,
    },
}

impl TestbedError {
    /// Whether the cause is the command line, as opposed to the environment.
    pub fn is_usage(&self) -> bool {
        matches!(self, TestbedError::Cpu { .. } | TestbedError::Command { .. })
    }

    /// Returns a function for `map_err` that converts the error of a system call. `what` is the action that failed.
    pub(crate) fn kernel<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> TestbedError {
        move |source| TestbedError::Kernel { what, source: source.into() }
    }
}
