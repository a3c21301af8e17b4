//! The `Testbed` document: the properties of an emulated network between clients and a server, its packets by outcome,
//! and the precision of the emulation. A program called the router delays, drops and forwards the packets.
//!
//! Scripts rely on the field names. Times are in seconds (except `late_us`, in microseconds); shares are fractions
//! between 0 and 1.

use crate::JsonSchema;
use crate::record::Summary;
use serde::{Deserialize, Serialize};

/// Identifier of the document's schema, and the value of [`Testbed::schema`].
pub const SCHEMA: &str = "brimful.testbed/1";

/// The results of one run of a test bed, an emulated network between clients and a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Testbed {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// The command line of brimful.
    pub command: Vec<String>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Lifetime of the test bed, in seconds.
    pub duration_s: f64,
    /// Exit code of the user's command; if a signal ended the command, 128 plus the number of the signal.
    pub exit_code: u8,
    /// The properties of the emulated links between the clients and the router.
    #[serde(rename = "shape")]
    pub link: LinkProperties,
    /// The server's host.
    pub server: Host,
    /// The clients, in order.
    pub clients: Vec<Client>,
    /// Performance of the router, the program that emulates the network.
    pub router: Router,
}

/// The properties of the emulated link between each client and the router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Shape")]
pub struct LinkProperties {
    /// Fraction of the round-trip time that a packet needs from the client to the router.
    #[serde(default = "half")]
    pub up_share: f64,
    /// Probability that a packet is lost at random, in each direction.
    pub loss: f64,
    /// Probability that a packet is delayed so that later packets overtake it, in each direction.
    pub reorder: f64,
    /// Rate limit of each direction, in bits per second; `null` if there is no limit.
    pub rate_bits_per_s: Option<f64>,
    /// Length of the queue before the rate limit, as the longest waiting time of a packet in seconds. A packet that
    /// would wait longer is dropped.
    pub queue_s: f64,
    /// Maximum size of a packet, in bytes.
    pub mtu_bytes: u64,
}

/// The default of [`LinkProperties::up_share`], which documents of older versions do not have.
fn half() -> f64 {
    0.5
}

/// A host of the test bed: the server or a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Name of the host's network namespace, for `ip netns exec` within the test bed.
    pub name: String,
    /// The host's IPv4 address.
    pub ipv4: String,
    /// The host's IPv6 address; `null` if this machine has no IPv6.
    pub ipv6: Option<String>,
    /// CPUs that process the packets received by the host; empty if the kernel chooses the CPUs.
    pub cpus: Vec<usize>,
    /// Number of packets from this host that were dropped because the router read them too slowly, so that its input
    /// queue was full.
    pub unread_packets: u64,
}

/// A client of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// The client's host, with its name, addresses and CPUs.
    #[serde(flatten)]
    pub host: Host,
    /// The source addresses that the client can use. Several addresses allow more connections than one, because each
    /// address has its own ports.
    pub sources: String,
    /// The minimum and the maximum round-trip time of the client's connections to the server, in seconds. Both are
    /// equal unless the round-trip time is drawn at random for each connection.
    pub rtt_s: [f64; 2],
    /// Number of connections, or of pairs of addresses, whose round-trip time was drawn at random; 0 if all have the
    /// same time.
    pub drawn: u64,
    /// Packets on the link from the client to the router.
    pub up: Link,
    /// Packets on the link from the router to the client.
    pub down: Link,
}

/// Numbers of packets in one direction of a client's link, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Number of packets that the link transmitted.
    pub packets: u64,
    /// Bytes of the transmitted packets.
    pub bytes: u64,
    /// Number of packets that were delayed so that later packets overtook them.
    pub reordered_packets: u64,
    /// Number of packets dropped at random, as configured.
    pub lost_packets: u64,
    /// Number of packets dropped because the queue before the rate limit was full.
    pub queue_full_packets: u64,
}

/// Performance of the router, the program that emulates the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// The CPU that the router was pinned to; `null` if the router was not pinned.
    pub cpu: Option<usize>,
    /// Number of packets that the router delivered.
    pub delivered_packets: u64,
    /// Delay of delivered packets relative to their due times, in microseconds; `null` if there were no packets. The
    /// time until the router reads a packet is not included.
    pub late_us: Option<Summary>,
    /// Number of packets dropped because the router had reached the maximum number of packets that it stores.
    pub no_room_packets: u64,
    /// Number of packets dropped because their destination address does not belong to a host of the test bed.
    pub no_host_packets: u64,
    /// Number of packets that the kernel of the destination host rejected.
    pub refused_packets: u64,
    /// Number of packets, including those of other programs, that this machine dropped during the run because the
    /// receive queue of a CPU was full.
    pub backlog_packets: u64,
    /// CPU time of the router, in seconds.
    pub cpu_s: f64,
}
