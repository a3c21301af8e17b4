//! The test bed's document: which network lay between clients and server, what became of the packets in it, and how
//! far off the router was.
//!
//! The field names are an interface that scripts rely on. Times are seconds but for `late_us`, shares are fractions
//! between 0 and 1.

use crate::record::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`Testbed::schema`].
pub const SCHEMA: &str = "brimful.testbed/1";

/// One use of a test bed.
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
    /// For how long it was there, in seconds.
    pub duration_s: f64,
    /// How the command ended: its exit code, or 128 and the number of the signal that ended it.
    pub exit_code: u8,
    /// The network between each client and the router.
    pub shape: Shape,
    /// The server.
    pub server: Host,
    /// The clients, in order.
    pub clients: Vec<Client>,
    /// How well the router did.
    pub router: Router,
}

/// What every client's link to the router does to packets, each way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Share of each round-trip time that is the way from the client to the router.
    #[serde(default = "half")]
    pub up_share: f64,
    /// Share of the packets that is lost, each way.
    pub loss: f64,
    /// Share of the packets that is held back so that later ones overtake it, each way.
    pub reorder: f64,
    /// Bits per second, each way; `null` where there is no limit.
    pub rate_bits_per_s: Option<f64>,
    /// The longest that a packet waits for its turn at that rate, in seconds; beyond it packets are dropped.
    pub queue_s: f64,
    /// The largest packet, in bytes.
    pub mtu_bytes: u64,
}

/// Where a document of an older version does not say.
fn half() -> f64 {
    0.5
}

/// A host of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The name by which `ip netns exec` knows it within the test bed.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: String,
    /// Its IPv6 address; `null` where this machine has none.
    pub ipv6: Option<String>,
    /// The CPUs that do its receive work; empty where it is not steered.
    pub cpus: Vec<usize>,
    /// Packets that found the queue in front of the router full: it did not keep up.
    pub unread_packets: u64,
}

/// A client of the test bed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// As a host.
    #[serde(flatten)]
    pub host: Host,
    /// The addresses that it may connect from, for many ports.
    pub sources: String,
    /// Its round-trip time to the server, in seconds: of all its connections, or the least and the greatest of those
    /// that are drawn for each.
    pub rtt_s: [f64; 2],
    /// How many connections, or pairs of addresses, a round-trip time was drawn for; 0 where it is not drawn.
    pub drawn: u64,
    /// From the client to the router.
    pub up: Link,
    /// From the router to the client.
    pub down: Link,
}

/// One direction of a client's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Packets that it carried.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Packets of those that were held back so that later ones overtook them.
    pub reordered_packets: u64,
    /// Packets that were lost at random, as was asked for.
    pub lost_packets: u64,
    /// Packets that found the queue of the limited rate full.
    pub queue_full_packets: u64,
}

/// How well the router did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Router {
    /// Its CPU; `null` where it was left to the kernel.
    pub cpu: Option<usize>,
    /// Packets that it delivered.
    pub delivered_packets: u64,
    /// How much later than due they left, in microseconds; `null` without packets. How long a packet waits until the
    /// router reads it is not in it.
    pub late_us: Option<Summary>,
    /// Packets for which it had no room: more were on their way than it may hold.
    pub no_room_packets: u64,
    /// Packets for nobody: to an address that no host has.
    pub no_host_packets: u64,
    /// Packets that the kernel of the host they were for did not take.
    pub refused_packets: u64,
    /// Packets that the CPUs of this machine dropped meanwhile as their backlogs were full, those of others included.
    pub backlog_packets: u64,
    /// CPU time that it took, in seconds.
    pub cpu_s: f64,
}
