//! The `Testbed` document: the emulated network between clients and server, its packets by outcome, and the precision
//! of the router.
//!
//! The field names are an interface that scripts rely on. Times are seconds but for `late_us`, shares are fractions
//! between 0 and 1.

use crate::record::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`Testbed::schema`].
pub const SCHEMA: &str = "brimful.testbed/1";

/// One run of a test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Testbed {
    /// [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made it.
    pub brimful_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Lifetime of the test bed, in seconds.
    pub duration_s: f64,
    /// Exit code of the command, or 128 plus the number of the signal that ended it.
    pub exit_code: u8,
    /// The network between each client and the router.
    pub shape: Shape,
    /// The server.
    pub server: Host,
    /// The clients, in order.
    pub clients: Vec<Client>,
    /// The router's performance.
    pub router: Router,
}

/// The properties of every client's link to the router, in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Share of the round-trip time that is on the way from the client to the router.
    #[serde(default = "half")]
    pub up_share: f64,
    /// Share of the packets that is lost in each direction.
    pub loss: f64,
    /// Share of the packets that is delayed in each direction so that later packets overtake it.
    pub reorder: f64,
    /// Rate limit in bits per second in each direction; `null` without a limit.
    pub rate_bits_per_s: Option<f64>,
    /// Longest time that a packet waits in the queue of the limited rate, in seconds; a packet that would wait longer
    /// is dropped.
    pub queue_s: f64,
    /// The largest packet, in bytes.
    pub mtu_bytes: u64,
}

/// The default of [`Shape::up_share`], for documents of older versions.
fn half() -> f64 {
    0.5
}

/// A host of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its network namespace, for `ip netns exec` within the test bed.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: String,
    /// Its IPv6 address; `null` if this machine has no IPv6.
    pub ipv6: Option<String>,
    /// The CPUs that its receive work is steered to; empty if it is not steered.
    pub cpus: Vec<usize>,
    /// Packets dropped because the queue in front of the router was full: the router did not keep up.
    pub unread_packets: u64,
}

/// A client of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// The client's host.
    #[serde(flatten)]
    pub host: Host,
    /// The source addresses that it may connect from; several provide more ports.
    pub sources: String,
    /// The shortest and the longest round-trip time of its connections to the server, in seconds; equal unless one is
    /// drawn for each.
    pub rtt_s: [f64; 2],
    /// Number of connections, or pairs of addresses, for which a round-trip time was drawn; 0 if none is drawn.
    pub drawn: u64,
    /// The link from the client to the router.
    pub up: Link,
    /// The link from the router to the client.
    pub down: Link,
}

/// One direction of a client's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Packets that the link carried.
    pub packets: u64,
    /// Bytes of the carried packets.
    pub bytes: u64,
    /// ClosedStream packets that were delayed so that later ones overtook them.
    pub reordered_packets: u64,
    /// Packets dropped at random, as configured.
    pub lost_packets: u64,
    /// Packets dropped because the queue of the limited rate was full.
    pub queue_full_packets: u64,
}

/// The router's performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// The CPU it was pinned to; `null` if it was not pinned.
    pub cpu: Option<usize>,
    /// Packets that it delivered.
    pub delivered_packets: u64,
    /// Delay of delivered packets beyond their due times, in microseconds; `null` without packets. It excludes the time
    /// that a packet waits until the router reads it.
    pub late_us: Option<Summary>,
    /// Packets dropped because the router held as many packets as it may.
    pub no_room_packets: u64,
    /// Packets to an address that no host has.
    pub no_host_packets: u64,
    /// Packets that the kernel of their destination host rejected.
    pub refused_packets: u64,
    /// Packets that this machine's CPUs dropped during the run because their backlogs were full, including other
    /// programs' packets.
    pub backlog_packets: u64,
    /// CPU time of the router, in seconds.
    pub cpu_s: f64,
}
