//! The errors that prevent the reference server from starting. Their messages also say what to do.

use brimful_core::Bytes;
use brimful_core::quantity::bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// An item of a service description is not `name=steps` or `name=steps/size`.
    #[error(
        "`{item}` does not describe a service class{reason}: write it like light=200us or heavy=2ms+sleep:5ms/16KiB"
    )]
    Item {
        /// The text of the item.
        item: String,
        /// The reason why the item is not valid, with a colon in front of it; may be empty.
        reason: String,
    },
    /// The list of classes is empty.
    #[error("there is no service class: give at least one, like light=200us")]
    NoClass,
    /// The name of a class cannot be used as a path.
    #[error("`{0}` cannot name a service class: use letters, digits, `-`, `.`, `_` and `~`, and not `__truth`")]
    BadName(String),
    /// Two classes have the same name.
    #[error("two service classes are named `{0}`: give each a name of its own")]
    DuplicateName(String),
    /// The response of a class is too large to be kept in memory.
    #[error("the response of class `{name}` has {} bytes: use at most {} bytes", .size.0, .limit.0)]
    TooLarge {
        /// Name of the class.
        name: String,
        /// The requested size of the response.
        size: Bytes,
        /// The maximum size of a response.
        limit: Bytes,
    },
    /// The name of the distribution is unknown.
    #[error("`{0}` is not a distribution of service demands: use deterministic or exponential")]
    UnknownDistribution(String),
    /// The number of workers is zero.
    #[error("a server with no workers serves nothing: use at least one")]
    NoWorkers,
    /// The pool, which limits the number of requests in service, has no slots.
    #[error("a pool with no places serves nothing: use at least one")]
    EmptyPool,
    /// The rate limit is zero.
    #[error("a rate limit of no requests a second serves nothing: use at least one")]
    ZeroRateLimit,
    /// A step that reads from the disk reads zero bytes, or too many.
    #[error("a step of class `{name}` reads {} bytes: use between 1 and {} bytes", .size.0, .limit.0)]
    ReadSize {
        /// Name of the class.
        name: String,
        /// The requested size of the read.
        size: Bytes,
        /// The maximum size of a read.
        limit: Bytes,
    },
    /// The file that read steps need could not be created.
    #[error(
        "cannot make the file of {} that read steps need in {} ({source}): name a directory that can be written to, \
         with as much room, by --read-dir", bytes(.needed.0 as f64), .directory.display()
    )]
    File {
        /// The directory in which the file should be created.
        directory: PathBuf,
        /// Length that the file must have: the disk space that it needs.
        needed: Bytes,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// The requested length of the listen queue exceeds the kernel's limit. The kernel would silently use a shorter
    /// queue.
    #[error(
        "a backlog of {asked} is more than this kernel allows ({limit}): choose a smaller one, or raise the limit with \
         `sysctl -w net.core.somaxconn={asked}`"
    )]
    Backlog {
        /// The requested length of the listen queue.
        asked: u32,
        /// The kernel's limit, `net.core.somaxconn`.
        limit: u32,
    },
    /// Another program already listens on the address.
    #[error(
        "{addr} is in use: stop the program that listens there (`ss -ltnp` names it), or choose another port; port 0 \
         chooses a free one"
    )]
    AddressInUse {
        /// The requested address.
        addr: SocketAddr,
    },
    /// The program has no permission to listen on the port.
    #[error(
        "no permission to listen on {addr}: choose a port from 1024 up, or grant the capability with \
         `setcap cap_net_bind_service+ep` on this program"
    )]
    Permission {
        /// The requested address.
        addr: SocketAddr,
    },
    /// No interface of this host has the address.
    #[error("{addr} is not an address of this host: use one that `ip address` shows, or 127.0.0.1")]
    NotLocal {
        /// The requested address.
        addr: SocketAddr,
    },
    /// Listening failed for another reason.
    #[error("cannot listen on {addr} ({source}): try another address")]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// The certificate could not be generated, or rustls rejected it.
    #[error("cannot secure the server's connections ({0}): serve without TLS")]
    Tls(String),
    /// A worker could not be pinned to its CPU.
    #[error("cannot pin a worker to CPU {cpu} ({source}): choose CPUs from `taskset -cp $$`")]
    Pin {
        /// Number of the CPU.
        cpu: usize,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// The kernel could not provide a thread or a file descriptor.
    #[error("cannot get {resource} for the server ({source}): raise the limits that `ulimit -n -u` shows")]
    Resources {
        /// The resource that is missing.
        resource: &'static str,
        /// The error of the system call.
        source: std::io::Error,
    },
}
