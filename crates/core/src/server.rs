//! What the monitor saw of a server: the figures of one stretch of time, be it a whole run (`Record.server`), the second
//! between two lines of `brimful watch`, or one line of a group's log.
//!
//! Four groups, as in WebMonitor's Kernel Module (Almeida, Almeida & Yates 1997, Table 2): [`Kernel`], [`Program`],
//! [`Network`] and [`Connections`]; and its Server Module: [`Module`]. Rates are means over the stretch, `…_per_s`;
//! shares lie between 0 and 1; anything else is as at the end of the stretch. What the kernel does not tell is `null`,
//! never zero, and [`Server::sources`] says why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the monitor saw of a server over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// Where each kind of figures comes from, or `none: …` with the reason and what to do about it.
    pub sources: BTreeMap<String, String>,
    /// What watching cost.
    pub overhead: Overhead,
    /// How the server's clock was brought to the generator's, if the server is on another host.
    pub clock: Option<ClockOffset>,
    /// The machine.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// The server's programs.
    pub process: Vec<Program>,
    /// The network of the server's namespace.
    pub network: Option<Network>,
    /// The server's ports.
    #[serde(flatten)]
    pub connections: Connections,
    /// What the Server Module saw from inside the server, if it is loaded there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// How fast the server's host was when `brimful watch` began there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_probe: Option<HostProbe>,
    /// The course of the run.
    pub intervals: Vec<ServerInterval>,
}

/// How fast one CPU of a host was at one moment, in some ten milliseconds of its time. Both figures swing when neighbours
/// share the cache, the core or the clock frequency: runs are comparable where these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostProbe {
    /// Integer operations, each of which needs the result of the one before: millions per second.
    pub arithmetic_mops: f64,
    /// Reads at random places of 16 MiB, each at a place that the one before tells: millions per second.
    pub memory_mreads: f64,
}

impl HostProbe {
    /// The lower figure of either kind.
    pub fn slower(self, other: HostProbe) -> HostProbe {
        HostProbe {
            arithmetic_mops: self.arithmetic_mops.min(other.arithmetic_mops),
            memory_mreads: self.memory_mreads.min(other.memory_mreads),
        }
    }
}

/// From this share of the watched CPUs on, work that is not the server's is somebody else's: what the server then does with
/// the rest says little about it. Interrupts and the kernel's own threads alone can take a tenth of a loaded CPU.
pub const OTHER_WORK: f64 = 0.15;

/// What watching cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// CPU time of the monitor's thread; of `brimful watch` all of it.
    pub monitor_cpu_s: f64,
    /// CPU time of one sample, in microseconds.
    pub per_sample_us: f64,
    /// How many samples were taken.
    pub samples: u64,
}

/// The offset between two hosts' monotonic clocks, measured by exchanges of their readings (Cristian 1989).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// The server's clock less the generator's, in seconds.
    pub offset_s: f64,
    /// The offset is within this of the truth: half the shortest round trip, and half the drift seen over the run.
    pub uncertainty_s: f64,
}

/// Kernel group: the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kernel {
    /// The CPUs that were watched (all, or those named), together.
    pub cpu: Option<CpuShares>,
    /// Which CPUs those are.
    pub cpus: Vec<usize>,
    /// Each of them that was online all the time.
    pub cores: Vec<Core>,
    /// Threads that ran or waited for a CPU, whole machine, the monitor's own left out.
    pub runnable: Option<u64>,
    /// Threads that waited for a disk, whole machine.
    pub blocked: Option<u64>,
    /// Whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Processes and threads started, whole machine.
    pub forks_per_s: Option<f64>,
    /// Work that devices asked for.
    pub interrupts: Option<Interrupts>,
    /// Traffic between memory and disks.
    pub paging: Option<Paging>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Whole disks together.
    pub disk: Option<Disk>,
    /// Each whole disk by name, if it was there all the time.
    pub disks: BTreeMap<String, Disk>,
    /// Pressure stall information: the share of time in which work waited for want of something.
    pub pressure: Option<Pressure>,
}

/// Shares of CPU time; `user`, `system`, `idle` and `steal` are together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuShares {
    /// User mode, niced and guests included.
    pub user: f64,
    /// Kernel, interrupts included.
    pub system: f64,
    /// Idle, waiting for disks included.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<f64>,
    /// Part of `idle`: while a thread waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// Its number.
    pub cpu: usize,
    /// Where its time went.
    #[serde(flatten)]
    pub shares: CpuShares,
}

/// Interrupts per second, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// From all devices, timers included.
    pub all_per_s: Option<f64>,
    /// For the network: its softirqs (NET_RX and NET_TX), which one device interrupt or one poll may cause.
    pub network_per_s: Option<f64>,
    /// For disks: the softirq BLOCK.
    pub disk_per_s: Option<f64>,
}

/// Paging per second, whole machine. A page is the machine's (4 KiB on most).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Paging {
    /// Pages read from disks, file contents and swap.
    pub page_ins_per_s: Option<f64>,
    /// Pages written to disks, file contents and swap.
    pub page_outs_per_s: Option<f64>,
    /// Of them, from swap.
    pub swap_ins_per_s: Option<f64>,
    /// Of them, to swap.
    pub swap_outs_per_s: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults_per_s: Option<f64>,
}

/// Memory, whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// What programs could still get without swapping.
    pub available_bytes: Option<u64>,
}

/// Bytes of a block: Linux counts those of this size, whatever the disk's own are.
pub const BLOCK_BYTES: u64 = 512;

/// Traffic of a disk. A block is 512 bytes, whatever the disk's own are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// Read operations completed.
    pub reads_per_s: f64,
    /// Blocks read.
    pub blocks_read_per_s: f64,
    /// Write operations completed.
    pub writes_per_s: f64,
    /// Blocks written.
    pub blocks_written_per_s: f64,
    /// Share of time in which an operation was under way; of several disks, the busiest one's.
    pub utilization: f64,
    /// Mean number of operations under way.
    pub queue_length: f64,
}

/// Pressure of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pressure {
    /// Of the CPUs.
    pub cpu: Option<Stall>,
    /// Of memory.
    pub memory: Option<Stall>,
    /// Of disks.
    pub io: Option<Stall>,
}

/// Shares of time (Linux's PSI, from its totals in microseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Some threads waited.
    pub some: f64,
    /// All threads that had anything to do waited. Of CPUs there is no such thing, because some thread runs on them.
    pub full: Option<f64>,
}

/// Process group: one program, that is processes with their descendants. Totals are over the stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub pids: Vec<u32>,
    /// How many copies of it there are: Table 2's *started processes*.
    pub processes: u64,
    /// Its threads that run or wait for a CPU: Table 2's *running processes*.
    pub running: Option<u64>,
    /// Threads of all its processes.
    pub threads: Option<u64>,
    /// Processes that were found to have started.
    pub started: u64,
    /// Processes that were found to have ended.
    pub ended: u64,
    /// CPU time, nanosecond clock. Of processes that ended there is what was read last, which for those that their parent has
    /// waited for is all; what lived shorter than from one sample to the next and was never waited for is missing.
    pub cpu_s: f64,
    /// Of it, in user mode (the split is the kernel's, the sum is `cpu_s`).
    pub cpu_s_user: f64,
    /// Of it, in the kernel.
    pub cpu_s_system: f64,
    /// CPU time per time: 1.5 is one CPU and a half.
    pub cores: f64,
    /// Time that its threads were ready and waited for a CPU.
    pub run_queue_wait_s: Option<f64>,
    /// Resident memory; pages that processes share count once for each. The kernel adds up its counters of each CPU now and
    /// then: of each process up to 96 pages for each CPU (384 KiB) may be missing.
    pub rss_bytes: u64,
    /// `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared.
    pub memory_share: Option<f64>,
    /// Page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
    /// Context switches, voluntary and not.
    pub context_switches: Option<u64>,
    /// The limit on its CPU time, of its control group or of one above it: of several, the one that stopped it for longest,
    /// or else the tightest. Left out where there is none, or none can be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
}

/// A limit on the CPU time of a control group, and how often it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// The directory of the group.
    pub group: String,
    /// CPUs that it may have: 0.5 is half of one.
    pub cpus: f64,
    /// Share of the quota's periods in which it was used up, so that threads were stopped until the next.
    pub throttled_periods: f64,
    /// For how long; of several CPUs together.
    pub throttled_s: f64,
}

/// Network group: the network of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// All interfaces together, loopback included. What passes through two interfaces, like a bridge and its port,
    /// counts twice.
    #[serde(flatten)]
    pub all: Option<Traffic>,
    /// Each interface by name; without those that came, went or began to count anew.
    pub interfaces: BTreeMap<String, Traffic>,
    /// Packets that the kernel dropped because a CPU's receive queue was full, whole machine.
    pub queue_overflows_per_s: Option<f64>,
    /// TCP of this namespace.
    pub tcp: Option<Tcp>,
}

/// Traffic of network interfaces, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets received.
    pub rx_packets_per_s: f64,
    /// Packets sent.
    pub tx_packets_per_s: f64,
    /// Bytes received.
    pub rx_bytes_per_s: f64,
    /// Bytes sent.
    pub tx_bytes_per_s: f64,
    /// Packets that came damaged.
    pub rx_errors_per_s: f64,
    /// Packets that could not be sent.
    pub tx_errors_per_s: f64,
    /// Packets received and thrown away, for want of memory or of a taker.
    pub rx_dropped_per_s: f64,
    /// Packets to be sent and thrown away.
    pub tx_dropped_per_s: f64,
    /// Collisions on a shared wire, which modern networks do not have.
    pub collisions_per_s: f64,
}

/// TCP of a network namespace, all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tcp {
    /// Segments received.
    pub segments_in_per_s: Option<f64>,
    /// Segments sent, without those sent again.
    pub segments_out_per_s: Option<f64>,
    /// Segments sent again.
    pub retransmitted_per_s: Option<f64>,
    /// Resets sent.
    pub resets_out_per_s: Option<f64>,
    /// Connections that this side began.
    pub active_opens_per_s: Option<f64>,
    /// Connections that the other side began and that were established.
    pub passive_opens_per_s: Option<f64>,
    /// Packets that found a listener's accept queue full.
    pub listen_overflows_per_s: Option<f64>,
    /// Packets dropped at a listener for any reason, overflows included.
    pub listen_drops_per_s: Option<f64>,
    /// SYN cookies sent, because the queue of half-open connections was full.
    pub syn_cookies_per_s: Option<f64>,
    /// Segments dropped because a socket's backlog was full.
    pub backlog_drops_per_s: Option<f64>,
    /// Sockets in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Sockets in use.
    pub in_use: Option<u64>,
    /// Sockets that no process holds any more, whole machine.
    pub orphans: Option<u64>,
    /// Memory of all sockets' buffers, whole machine.
    pub memory_bytes: Option<u64>,
}

/// Connections group: the server's ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// The listening sockets of all watched ports together.
    pub listener: Option<Listener>,
    /// Connections of all watched ports together, by TCP state.
    pub connections: Option<BTreeMap<State, u64>>,
    /// Each watched port.
    pub ports: Vec<Port>,
}

/// One port of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// Which.
    pub port: u16,
    /// Its listening sockets together, as they were last; `null` if nothing listened.
    pub listener: Option<Listener>,
    /// Its connections by TCP state. A state that the source cannot tell is left out; one that it tells is there, be it 0.
    pub connections: Option<BTreeMap<State, u64>>,
}

/// Listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// SYNs that asked for a connection: accepted and dropped.
    pub syn_per_s: Option<f64>,
    /// Connections established; `sources` says whether those of other ports are among them.
    pub accepted_per_s: Option<f64>,
    /// Dropped by these sockets, because the accept queue was full or for want of memory.
    pub dropped_per_s: f64,
    /// Length of the accept queue at the end.
    pub accept_queue: u64,
    /// The longest accept queue that a sample saw.
    pub accept_queue_max: u64,
    /// The queues' limit, that of all sockets together.
    pub backlog: u64,
    /// How many sockets these are: IPv4 and IPv6, or one for each worker (SO_REUSEPORT).
    pub sockets: u64,
    /// The socket that was nearest to its limit: one that is full drops, whatever room the others have.
    pub fullest: AcceptQueue,
}

/// The accept queue of one listening socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcceptQueue {
    /// Connections that waited to be accepted, the most that a sample saw.
    pub length: u64,
    /// How many may wait; Linux lets one more.
    pub limit: u64,
}

impl AcceptQueue {
    /// How full it was, from 0 to 1.
    pub fn fullness(self) -> f64 {
        (self.length as f64 / self.limit.max(1) as f64).min(1.0)
    }

    /// The fuller of two.
    pub fn fuller(self, other: AcceptQueue) -> AcceptQueue {
        if self.fullness().total_cmp(&other.fullness()).is_lt() { other } else { self }
    }
}

/// TCP states of connections (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Both sides may send.
    Established,
    /// This side has asked for a connection.
    SynSent,
    /// The other side has asked, and has not answered the answer yet.
    SynReceived,
    /// This side has closed, and the other has not acknowledged that.
    FinWait1,
    /// This side has closed, and the other has not.
    FinWait2,
    /// Waiting for stray segments to die out.
    TimeWait,
    /// The other side has closed, and this has not.
    CloseWait,
    /// Both have closed, and the other has not acknowledged ours.
    LastAck,
    /// Both have closed at the same time.
    Closing,
}

impl State {
    /// All of them.
    pub const ALL: [State; 9] = [
        State::Established,
        State::SynSent,
        State::SynReceived,
        State::FinWait1,
        State::FinWait2,
        State::TimeWait,
        State::CloseWait,
        State::LastAck,
        State::Closing,
    ];

    /// As in documents.
    pub fn name(self) -> &'static str {
        match self {
            State::Established => "established",
            State::SynSent => "syn_sent",
            State::SynReceived => "syn_received",
            State::FinWait1 => "fin_wait1",
            State::FinWait2 => "fin_wait2",
            State::TimeWait => "time_wait",
            State::CloseWait => "close_wait",
            State::LastAck => "last_ack",
            State::Closing => "closing",
        }
    }
}

/// Server Module: requests as the servers themselves see them (WebMonitor, §3.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// The servers, one for each file that a module writes. What replaced its file in the stretch is there twice, each
    /// with its part of the time.
    pub servers: Vec<ModuleServer>,
    /// Each class of request of each server.
    pub classes: Vec<ModuleClass>,
}

/// A server that has the module loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleServer {
    /// What it calls itself, like `nginx/1.22.1`.
    pub name: String,
    /// The file that its module writes.
    pub file: String,
    /// Whether it records the requests that begin; it may be turned off.
    pub recording: bool,
    /// Requests of all classes.
    pub requests_per_s: f64,
    /// Connections accepted.
    pub connections_per_s: Option<f64>,
    /// Requests at this moment.
    pub requests_in_progress: u64,
    /// Worker processes, or threads where these serve, at this moment.
    pub workers: u64,
    /// How many of them were busy, on average.
    pub workers_busy: Option<f64>,
    /// How many requests or connections the server works on at a time at most, where it has such a limit.
    pub workers_most: Option<u64>,
    /// Workers that found no place in the file: what they serve is missing here.
    pub workers_lost: u64,
    /// CPU time of its workers per time: 1.5 is one CPU and a half.
    pub cores: Option<f64>,
    /// CPU time is measured of one request in so many; 0 of none.
    pub cpu_one_in: u64,
    /// CPU time of its workers per request, less what was measured in the phases of requests: accepting and closing
    /// connections, waiting for events. Below zero where that is less than what the measuring of a request costs it.
    pub unexplained_cpu_us: Option<f64>,
    /// Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): of files, and of
    /// sockets where the server reads them like files.
    pub reads_per_request: Option<f64>,
    /// Blocks of 512 bytes that its processes had read from disks, per request.
    pub blocks_read_per_request: Option<f64>,
}

/// One class of request, from inside the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleClass {
    /// Its name. Those of a Record's class that is called the same are the same requests.
    pub name: String,
    /// Which of `servers` it is of, from 0.
    pub server: u64,
    /// Requests served, all of them: those that have a line in the access log.
    pub requests: u64,
    /// The same per second.
    pub requests_per_s: f64,
    /// Bytes of bodies sent.
    pub bytes_per_s: f64,
    /// Of the requests, those answered with 5xx.
    pub failed: u64,
    /// Of the requests, those whose client went away before it had the answer.
    pub aborted: u64,
    /// Elapsed time by phase.
    pub phases_us: Phases,
    /// CPU time of one request, user and system, on the thread that served it. Reading that clock is costly, so few requests are
    /// sampled.
    pub cpu_us: Option<Sampled>,
    /// The mean of `cpu_us` is within this of the truth, at 95 % confidence.
    pub cpu_ci95_half_width_us: Option<f64>,
    /// What the mean of `cpu_us` is made of.
    pub cpu_parts_us: Option<CpuParts>,
    /// Of the requests chosen to be sampled, the share whose thread worked on others in between: their CPU time is not
    /// known.
    pub cpu_mixed: Option<f64>,
    /// What a request costs the server's CPUs, its part of the unexplained CPU time included.
    pub demand_us: Option<CpuDemand>,
}

/// Elapsed time of a request by what the server did: WebMonitor's three phases (parse, process, log), with what is the
/// client's own (head, send) and what other servers took (upstream) apart from them. Together they are the time from
/// the first byte of the request to its log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phases {
    /// From the first byte of the request to the last of its head: the client's own.
    pub head: Option<Elapsed>,
    /// The head is read and understood.
    pub parse: Option<Elapsed>,
    /// The answer is made and handed to the kernel, but for the next two.
    pub process: Option<Elapsed>,
    /// Waiting for a server behind this one.
    pub upstream: Option<Elapsed>,
    /// Waiting until the client has read enough for the rest to be handed over: the client's own.
    pub send: Option<Elapsed>,
    /// Writing the log.
    pub log: Option<Elapsed>,
}

impl Phases {
    /// Their names, in the order of a request's life.
    pub const NAMES: [&str; 6] = ["head", "parse", "process", "upstream", "send", "log"];

    /// All of them, in the order of the names.
    pub fn all(&self) -> [Option<Elapsed>; 6] {
        [self.head, self.parse, self.process, self.upstream, self.send, self.log]
    }
}

/// Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: they are within 25 % of
/// the truth, and within a few percent where many times are spread over several buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {
    /// How many requests had this phase.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
    /// Their median.
    pub p50: f64,
    /// Nine of ten are no longer.
    pub p90: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
}

/// Parts of the CPU time of a mean request, in microseconds: by phase, and user and system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuParts {
    /// The head was read and understood.
    pub parse: f64,
    /// The answer was made and handed to the kernel.
    pub process: f64,
    /// The log line was written.
    pub log: f64,
    /// Of all of it, outside the kernel; where the server's system tells that of threads.
    pub user: Option<f64>,
    /// Of all of it, in the kernel.
    pub system: Option<f64>,
}

/// What one request of a class costs the server's CPUs, in microseconds: the mean m of its sampled CPU time and its
/// part of the unexplained CPU time,
///
/// ```text
/// D = m + (C − Σ mⱼ nⱼ) / N
/// ```
///
/// where C is the CPU time of the server's workers in the stretch, nⱼ the requests of each class and N all of them. So
/// the demands of all requests add up to C, whatever was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDemand {
    /// Its mean, D.
    pub mean: f64,
    /// The mean is within this of the truth, at 95 % confidence: D as a sum of means of independent samples, and what C
    /// lacks at the ends of the stretch, because it is read at sampled requests only.
    pub ci95_half_width: f64,
    /// Standard deviation of the sampled CPU time.
    pub stddev: f64,
}

/// Times of a sample of the requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// How many were sampled.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
}

/// One stretch between two samples of the monitor: the course of the main figures, for charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerInterval {
    /// Its beginning, seconds after the start of the load.
    pub t_s: f64,
    /// Its length.
    pub length_s: f64,
    /// The CPUs that were watched.
    pub cpu: Option<CpuShares>,
    /// CPU time of all watched processes, in cores: 0.5 is half of one core.
    pub process_cores: Option<f64>,
    /// Of it, in user mode.
    pub process_cores_user: Option<f64>,
    /// Time that the threads of watched processes waited for a CPU, per second.
    pub run_queue_wait: Option<f64>,
    /// Context switches per second, whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Bytes received and sent per second, all interfaces.
    pub network_bytes_per_s: Option<f64>,
    /// TCP segments sent again, per second.
    pub retransmitted_per_s: Option<f64>,
    /// Utilization of the busiest disk.
    pub disk_utilization: Option<f64>,
    /// Connections that are established, at its end.
    pub established: Option<u64>,
    /// Length of the accept queue at its end.
    pub accept_queue: Option<u64>,
    /// SYNs dropped by the listener, per second.
    pub dropped_per_s: Option<f64>,
    /// Connections established, per second.
    pub accepted_per_s: Option<f64>,
    /// Requests per second, as the Server Module counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Workers that were busy on average, as the Server Module says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_busy: Option<f64>,
}

/// One line of a group's log (`brimful watch --log`): the figures of the stretch that ends at `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine<T> {
    /// The end of the stretch by the wall clock, RFC 3339 in UTC with milliseconds. That clock may step: lengths and rates
    /// are by the other.
    pub at: String,
    /// The same instant by `CLOCK_MONOTONIC`, in seconds since boot without the time the machine was suspended.
    pub t_s: f64,
    /// Length of the stretch by `CLOCK_MONOTONIC`.
    pub length_s: f64,
    /// How long the machine was suspended meanwhile, which is no part of the length.
    pub suspended_s: f64,
    /// The group's figures.
    #[serde(flatten)]
    pub figures: T,
}

/// Process group, as its log has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// The server's programs.
    pub process: Vec<Program>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Generator;

    #[test]
    fn a_probe_is_read_back_and_may_be_missing() {
        let probe = HostProbe { arithmetic_mops: 2_310.25, memory_mreads: 25.3 };
        let other = HostProbe { arithmetic_mops: 1_999.0, memory_mreads: 30.0 };
        assert_eq!(probe.slower(other), HostProbe { arithmetic_mops: 1_999.0, memory_mreads: 25.3 });
        for host_probe in [None, Some(probe)] {
            let generator = Generator { host_probe, ..Generator::default() };
            let text = serde_json::to_string(&generator).unwrap();
            assert_eq!(serde_json::from_str::<Generator>(&text).unwrap(), generator);
            let server = Server { host_probe, ..Server::default() };
            let text = serde_json::to_string(&server).unwrap();
            assert_eq!(text.contains("host_probe"), host_probe.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Server>(&text).unwrap(), server);
        }
        // A Record from before there was one.
        let mut old = serde_json::to_value(Generator::default()).unwrap();
        assert!(old.as_object_mut().unwrap().remove("host_probe").is_some());
        assert_eq!(serde_json::from_value::<Generator>(old).unwrap().host_probe, None);
    }

    #[test]
    fn traffic_that_is_not_known_is_read_back_so() {
        let traffic = Traffic { rx_bytes_per_s: 5.0, ..Traffic::default() };
        for all in [None, Some(traffic)] {
            let network = Network { all, queue_overflows_per_s: Some(1.0), ..Network::default() };
            let text = serde_json::to_string(&network).unwrap();
            assert_eq!(text.contains("rx_bytes_per_s"), all.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
        }
    }
}
