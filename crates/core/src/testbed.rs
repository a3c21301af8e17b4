//! The `Testbed` document: the emulated network between clients and server, its packets by outcome, and the precision
//! of the router.
//!
//! The field names are an interface that scripts rely on. Times are in seconds (except `late_us`, in microseconds);
//! shares are fractions between 0 and 1.

use crate::record::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identifier of the document's schema, and the value of [`Testbed::schema`].
pub const SCHEMA: &str = "brimful.testbed/1";

/// The results of one run of a test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Testbed {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Lifetime of the test bed, in seconds.
    pub duration_s: f64,
    /// Exit code of the command; if a signal ended it, 128 plus the signal's number.
    pub exit_code: u8,
    /// The network between each client and the router.
    pub shape: Shape,
    /// The server's host.
    pub server: Host,
    /// The clients, in order.
    pub clients: Vec<Client>,
    /// Performance of the router.
    pub router: Router,
}

/// The properties of every client's link to the router, in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Share of the round-trip time that packets spend on the way from the client to the router.
    #[serde(default = "half")]
    pub up_share: f64,
    /// Share of the packets that are lost, in each direction.
    pub loss: f64,
    /// Share of the packets that are delayed so that later packets overtake them, in each direction.
    pub reorder: f64,
    /// Rate limit of each direction, in bits per second; `null` if there is no limit.
    pub rate_bits_per_s: Option<f64>,
    /// Longest time that a packet waits in the queue of the rate limit, in seconds. A packet that would wait longer is
    /// dropped.
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
    /// The host's network namespace, for `ip netns exec` within the test bed.
    pub name: String,
    /// The host's IPv4 address.
    pub ipv4: String,
    /// The host's IPv6 address; `null` if this machine has no IPv6.
    pub ipv6: Option<String>,
    /// The CPUs that the host's receive work is steered to; empty if this work is not steered.
    pub cpus: Vec<usize>,
    /// Number of packets dropped because the queue in front of the router was full: the router did not keep up.
    pub unread_packets: u64,
}

/// A client of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// The client's host.
    #[serde(flatten)]
    pub host: Host,
    /// The source addresses that the client may connect from; several addresses provide more ports.
    pub sources: String,
    /// The shortest and the longest round-trip time of the client's connections to the server, in seconds. Both times
    /// are equal unless a time is drawn for each connection.
    pub rtt_s: [f64; 2],
    /// Number of connections, or pairs of addresses, for which a round-trip time was drawn; 0 if none was drawn.
    pub drawn: u64,
    /// The link from the client to the router.
    pub up: Link,
    /// The link from the router to the client.
    pub down: Link,
}

/// One direction of a client's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Number of packets that the link carried.
    pub packets: u64,
    /// Bytes of the carried packets.
    pub bytes: u64,
    /// Number of packets that were delayed so that later packets overtook them.
    pub reordered_packets: u64,
    /// Number of packets dropped at random, as configured.
    pub lost_packets: u64,
    /// Number of packets dropped because the queue of the rate limit was full.
    pub queue_full_packets: u64,
}

/// Performance of the router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// The CPU that the router was pinned to; `null` if the router was not pinned.
    pub cpu: Option<usize>,
    /// Number of packets that the router delivered.
    pub delivered_packets: u64,
    /// Delay of delivered packets beyond their due times, in microseconds; `null` if there were no packets. The delay
    /// excludes the time that a packet waits until the router reads it.
    pub late_us: Option<Summary>,
    /// Number of packets dropped because the router already stored the highest number of packets that it accepts.
    pub no_room_packets: u64,
    /// Number of packets whose destination address belongs to no host.
    pub no_host_packets: u64,
    /// Number of packets that the kernel of the destination host rejected.
    pub refused_packets: u64,
    /// Number of packets that this machine's CPUs dropped during the run because their backlogs were full, including
    /// other programs' packets.
    pub backlog_packets: u64,
    /// CPU time of the router, in seconds.
    pub cpu_s: f64,
}
