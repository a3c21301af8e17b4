//! Why the reference server cannot start, and what to do about it.

use brimful_core::Bytes;
use brimful_core::quantity::bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// One item of a service description is not `name=steps` or `name=steps/size`.
    #[error(
        "`{item}` does not describe a service class{reason}: write it like light=200us or heavy=2ms+sleep:5ms/16KiB"
    )]
    Item {
        /// The item.
        item: String,
        /// What is wrong with it, after a colon; may be empty.
        reason: String,
    },
    /// The list of classes is empty.
    #[error("there is no service class: give at least one, like light=200us")]
    NoClass,
    /// A name that cannot be a path.
    #[error("`{0}` cannot name a service class: use letters, digits, `-`, `.`, `_` and `~`, and not `__truth`")]
    BadName(String),
    /// Two classes share a name.
    #[error("two service classes are named `{0}`: give each a name of its own")]
    DuplicateName(String),
    /// A response that is too large to be held in memory.
    #[error("the response of class `{name}` has {} bytes: use at most {} bytes", .size.0, .limit.0)]
    TooLarge {
        /// The class.
        name: String,
        /// The requested size.
        size: Bytes,
        /// The largest size.
        limit: Bytes,
    },
    /// An unknown name of a distribution.
    #[error("`{0}` is not a distribution of service demands: use deterministic or exponential")]
    UnknownDistribution(String),
    /// A server without workers.
    #[error("a server with no workers serves nothing: use at least one")]
    NoWorkers,
    /// A pool without places.
    #[error("a pool with no places serves nothing: use at least one")]
    EmptyPool,
    /// A rate limit of zero.
    #[error("a rate limit of no requests a second serves nothing: use at least one")]
    ServesNothing,
    /// A read step of zero bytes, or of too many.
    #[error("a step of class `{name}` reads {} bytes: use between 1 and {} bytes", .size.0, .limit.0)]
    ReadSize {
        /// The class.
        name: String,
        /// The requested size.
        size: Bytes,
        /// The largest size.
        limit: Bytes,
    },
    /// The file of read steps could not be created.
    #[error(
        "cannot make the file of {} that read steps need in {} ({source}): name a directory that can be written to, \
         with as much room, by --read-dir", bytes(.needed.0 as f64), .directory.display()
    )]
    File {
        /// Its directory.
        directory: PathBuf,
        /// Its length.
        needed: Bytes,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The kernel would silently use a shorter listen queue.
    #[error(
        "a backlog of {asked} is more than this kernel allows ({limit}): choose a smaller one, or raise the limit with \
         `sysctl -w net.core.somaxconn={asked}`"
    )]
    Backlog {
        /// The requested length.
        asked: u32,
        /// The kernel's limit.
        limit: u32,
    },
    /// Another program listens there already.
    #[error(
        "{addr} is in use: stop the program that listens there (`ss -ltnp` names it), or choose another port; port 0 \
         chooses a free one"
    )]
    AddressInUse {
        /// The address.
        addr: SocketAddr,
    },
    /// A privileged port.
    #[error(
        "no permission to listen on {addr}: choose a port from 1024 up, or grant the capability with \
         `setcap cap_net_bind_service+ep` on this program"
    )]
    Permission {
        /// The address.
        addr: SocketAddr,
    },
    /// No interface has the address.
    #[error("{addr} is not an address of this host: use one that `ip address` shows, or 127.0.0.1")]
    NotLocal {
        /// The address.
        addr: SocketAddr,
    },
    /// Another failure of the listening socket.
    #[error("cannot listen on {addr} ({source}): try another address")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The certificate could not be made, or rustls rejects it.
    #[error("cannot secure the server's connections ({0}): serve without TLS")]
    Tls(String),
    /// A worker could not be pinned.
    #[error("cannot pin a worker to CPU {cpu} ({source}): choose CPUs from `taskset -cp $$`")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The kernel refused a thread or a descriptor.
    #[error("cannot get {what} for the server ({source}): raise the limits that `ulimit -n -u` shows")]
    Resources {
        /// The missing resource.
        what: &'static str,
        /// The kernel's reason.
        source: std::io::Error,
    },
}
