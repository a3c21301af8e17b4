// Written by document-types.mjs from schema/record.schema.json.

/** One run. */
export interface Record {
  /** Everything that was seen of the calls, so that Records of shards can be merged exactly. */
  account?: PackedAccount | null;
  /** The server's addresses, where the URL's host has several or is a name that was looked up again when a connection failed. */
  addresses?: AddressRecord[];
  /** Bytes on the wire, heads included; those of TLS itself are not. */
  bytes: Traffic;
  /** How [`Generator::max_rate`] was found, if this command found it. */
  calibration?: ClientCalibration | null;
  /** The same, per request class. */
  classes: { [key: string]: ClassRecord };
  /** The command line; of a load that was made in parts, the first one's. */
  command: string[];
  /** From the start of an attempt to its establishment. */
  connect_time_us?: Summary | null;
  /** What became of every scheduled call. */
  counts: Counts;
  /** From the start to the end of the last call. */
  duration_s: number;
  /** From the first byte sent to the first byte received. */
  first_byte_us?: Summary | null;
  /** What the load cost the host that made it. */
  generator: Generator;
  /** From the establishment of a connection to the end of its TLS handshake; left out where there is no TLS. */
  handshake_time_us?: Summary | null;
  /** The histograms behind the summaries, values in `hdr_value_unit`: base64 of compressed HdrHistogram V2, as other tools read it (Records of earlier versions hold it uncompressed). Where responses were of several status classes, each has one of its own, like `response_time_us.5xx`. */
  hdr: { [key: string]: string };
  /** The unit of the values inside `hdr`: nanoseconds. */
  hdr_value_unit: string;
  /** The version of HTTP that was spoken: `1.0`, `1.1` or `2`. Absent from Records of versions that did not say. */
  http?: string | null;
  /** The error codes that a server of HTTP/2 sent, and what it said with them. */
  http2_errors?: Http2Error[];
  /** Whether the user ended the run early. */
  interrupted: boolean;
  /** The course of the run. */
  intervals: Interval[];
  /** From due to the moment the generator acted. */
  lateness_us?: Summary | null;
  /** The objectives that were given, and whether they were met. A load that was made in parts has those that it was merged with. */
  objectives?: Objective[];
  /** Per second, over `window_s`. */
  rates: Rates;
  /** What became of redirects, where they are followed. */
  redirects?: Redirects | null;
  /** Throughput sampled every five seconds (Mosberger & Jin 1998, §3.2). */
  reply_rate: ReplyRate;
  /** Half width of the 95 % confidence interval of the mean response time, by batch means. */
  response_mean_ci95_us?: number | null;
  /** From due to the last byte. */
  response_time_us?: Summary | null;
  /** [`SCHEMA`]. */
  schema: string;
  /** Seed of all randomness. */
  seed: number;
  /** What the monitor saw, if one was running. */
  server?: Server | null;
  /** From the first byte sent to the last byte received. */
  service_time_us?: Summary | null;
  /** What became of its sessions, if it has any. */
  sessions?: SessionFigures | null;
  /** Which parts of a load this is, where it was made in parts. */
  shards?: ShardOrigin[];
  /** Wall-clock time of the start, RFC 3339. */
  started_at: string;
  /** `CLOCK_MONOTONIC` at the start, in nanoseconds: anchors every `t_s` of this Record on that host's clock. */
  started_monotonic_ns: number;
  /** Times of whole responses by status class: `1xx` to `5xx`, and `429`, which is part of `4xx` as well. Unexpected responses are among them, which `response_time_us` leaves out. */
  status_classes?: { [key: string]: StatusTimes };
  /** Whole responses by status code, like `"503": 12`; unexpected ones among them. */
  status_codes?: { [key: string]: number };
  /** The URL, as resolved. */
  target: string;
  /** What client and server agreed on in the handshake before the run, where there is TLS and one succeeded. */
  tls?: TlsSpoken | null;
  /** Why calls failed that TLS failed, if any did. */
  tls_failures?: TlsFailure[];
  /** Whether the numbers can be trusted. */
  verdict: Verdict;
  /** An `http://` URL was loaded where the server speaks TLS: nothing but errors came, and a handshake after them worked. */
  wants_tls?: boolean;
  /** The window in which load was offered; every rate is over this window. An open load of a number of calls lasts until the next call would have been due, a closed one until its last call has ended. */
  window_s: number;
  /** The load that was made: what was requested, in which mix, and how calls came. Secrets are left out. */
  workload?: Workload | null;
}

/** The accept queue of one listening socket. */
export interface AcceptQueue {
  /** Connections that waited to be accepted, the most that a sample saw. */
  length?: number;
  /** How many may wait; Linux lets one more. */
  limit?: number;
}

/** What became of the calls that went to one address of the server. */
export interface AddressRecord {
  /** The address and port, like `192.0.2.7:443`. */
  address: string;
  /** Calls that went there. */
  calls: number;
  /** Calls that were completed. */
  completed: number;
  /** Connections that were established. */
  connections: number;
  /** Calls that failed, those that found no connection among them. */
  failed: number;
  /** From due to the last byte. */
  response_time_us?: Summary | null;
  /** The same, as a share of the calls of all addresses. */
  share: number;
}

/** What becomes of a session's connections while its user thinks. */
export type BetweenBursts = "keep" | "close";

/** One class of request. */
export interface Class {
  /** Request body. */
  body?: string;
  /** A file with the request body, in place of `body`; its path from the working directory. It is sent piece by piece as the server takes it, with its size at the start of the run as `Content-Length`. */
  body_file?: string;
  /** A file of comma-separated values for `{csv.COLUMN}`; its first line names the columns. The n-th call of the class has the n-th row, and after the last the first comes again. */
  csv?: string | null;
  /** What an answer has to be like; one that is not is `unexpected`, and a failure. */
  expect?: Expect | null;
  /** A set of files below `path`. */
  file_set?: FileSet | null;
  /** Extra header fields. */
  headers?: { [key: string]: string };
  /** HTTP method. */
  method?: string;
  /** Its name in every table and document; unique. */
  name: string;
  /** In which order those of a list are asked for. */
  order?: Order;
  /** Path and query; the URL on the command line gives scheme and authority. Left out where there are `urls`. Here, in `urls`, in the values of `headers` and in `body`, `{seq}`, `{uuid}`, `{rand:1-500}` and `{csv.COLUMN}` are filled in anew for every call. */
  path?: string;
  /** How often each of them is asked for, by its place in the list or set: `zipf:0.8`. Where it is absent, their weights say so. */
  popularity?: Popularity | null;
  /** In place of `urls`: a file of requests, one JSON object on a line: path, and method, headers, body, class, weight and bytes if wanted. Of requests that name a class it has those of this one. */
  requests_file?: string | null;
  /** What is asked for in place of one path, each as often as its weight says. */
  urls?: Url[];
  /** In place of `urls`: a file of them, one on a line, each with its weight and its bytes if wanted: `/a.png 3 4096`. */
  urls_file?: string | null;
  /** Its share of the calls, relative to the other classes' weights. */
  weight?: number;
}

/** One request class of a run. */
export interface ClassRecord {
  /** As in [`Record::bytes`]. */
  bytes?: Traffic | null;
  /** As in [`Record::counts`]. */
  counts: Counts;
  /** As in [`Record::first_byte_us`]. */
  first_byte_us?: Summary | null;
  /** As in [`Record::lateness_us`]. */
  lateness_us?: Summary | null;
  /** As in [`Record::response_time_us`]. */
  response_time_us?: Summary | null;
  /** As in [`Record::service_time_us`]. */
  service_time_us?: Summary | null;
  /** As in [`Record::status_classes`]. */
  status_classes?: { [key: string]: StatusTimes };
  /** As in [`Record::status_codes`]. */
  status_codes?: { [key: string]: number };
}

/** What this client can offer: the largest load of which a server answers as much when it comes from one generator as when it comes from two, half from each (Banga & Druschel 1997, §4.3). Loads and throughputs are calls per second, or connection attempts per second for S-Clients. */
export interface ClientCalibration {
  /** Every load tried, in increasing order; one that was tried again is there twice. */
  curve: ClientLevel[];
  /** Whether the maximum may be higher: the built-in server that answered fell short before the client did. */
  lower_bound: boolean;
  /** That load; `None` when the client was its own limit at every load tried. */
  max_rate?: number | null;
  /** Whether the second generator had to share CPUs with the first or with the server, for want of free ones. Its help is then smaller than another host's would be, and the client's own lateness and CPU time decide more. */
  second_shares_cpus: boolean;
}

/** One load of a [`ClientCalibration`]. Throughputs are means over short runs, made in pairs. */
export interface ClientLevel {
  /** Half width of the 95 % confidence interval of `two − one`, from the differences within pairs. */
  difference_ci95_half_width?: number | null;
  /** Why the client was held to be the limit at this load; `None` where it was not. */
  limited?: string | null;
  /** The load. */
  load: number;
  /** Throughput with one generator. */
  one: number;
  /** Its standard deviation. */
  one_stddev?: number | null;
  /** Pairs of runs: one with one generator, one with two. */
  pairs: number;
  /** Throughput with two generators. */
  two: number;
  /** Its standard deviation. */
  two_stddev?: number | null;
}

/** The offset between two hosts' monotonic clocks, measured by exchanges of their readings (Cristian 1989). */
export interface ClockOffset {
  /** The server's clock less the generator's, in seconds. */
  offset_s: number;
  /** The offset is within this of the truth: half the shortest round trip, and half the drift seen over the run. */
  uncertainty_s: number;
}

/** One CPU. */
export interface Core {
  /** Its number. */
  cpu: number;
  /** Idle, waiting for disks included. */
  idle?: number;
  /** Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side. */
  interrupt?: number | null;
  /** Part of `idle`: while a thread waited for a disk. */
  io_wait?: number | null;
  /** Taken by the hypervisor. */
  steal?: number;
  /** Kernel, interrupts included. */
  system?: number;
  /** User mode, niced and guests included. */
  user?: number;
}

/** What became of every call. `scheduled = sent + client_limited + abandoned + refused + reset_before_sending + tls_failed_before_sending + unsent_at_end`, and `sent = completed + unexpected + timed_out + (reset − reset_before_sending) + malformed + stream_reset + gone_away + (tls_failed − tls_failed_before_sending) + in_flight_at_end`. */
export interface Counts {
  /** Attempts given up after the connect timeout. */
  abandoned: number;
  /** Calls that this host had no descriptor, port or memory for, or whose body it could not read. */
  client_limited: number;
  /** Those of `reset` that came before any byte of the response, on a connection that had answered before or had been idle: as a rule, the server had closed it while the request was on its way. Left out where there is none. */
  closed_on_reuse?: number;
  /** Whole responses that are as expected, where something is. */
  completed: number;
  /** Connection attempts. */
  connect_attempts: number;
  /** Empty lines before whole responses, where none belongs: a server that ends a body with a line break which its length does not count. They are skipped. Left out where there is none. */
  empty_lines?: number;
  /** Connections established. */
  established: number;
  /** HTTP/2: calls that a server that goes away has not looked at (GOAWAY). */
  gone_away?: number;
  /** TLS handshakes that succeeded. */
  handshakes?: number;
  /** Those of `handshakes` that resumed an earlier session. */
  handshakes_resumed?: number;
  /** Calls in flight when the run ended. */
  in_flight_at_end: number;
  /** Responses that are not HTTP. */
  malformed: number;
  /** Attempts refused. */
  refused: number;
  /** HTTP/2: times that a call was sent again because the server had refused its stream (REFUSED_STREAM, GOAWAY); a call that was answered then is neither of the two before. Left out where there is none. */
  refused_streams?: number;
  /** Connections closed or reset before the response was whole. */
  reset: number;
  /** Those of `reset` that happened before anything was sent. */
  reset_before_sending: number;
  /** Times that a call was sent again because it had met such a connection (`--retry-closed`); a call that was answered then is no `reset`. Left out where there is none. */
  retried_closed?: number;
  /** Calls the schedule brought. */
  scheduled: number;
  /** Calls of which a byte was sent. */
  sent: number;
  /** Whole responses by status class, unexpected ones among them. */
  status: StatusCounts;
  /** HTTP/2: calls whose streams the server gave up (RST_STREAM). This and the next are left out where there is none. */
  stream_reset?: number;
  /** Calls without a whole response within the response timeout. */
  timed_out: number;
  /** Calls whose TLS handshake failed, or whose TLS stream broke its rules. This and the next three are left out where there is none. */
  tls_failed?: number;
  /** Those of `tls_failed` that happened before anything was sent. */
  tls_failed_before_sending?: number;
  /** Whole responses that are not what was expected. Left out where there is none. */
  unexpected?: number;
  /** Calls not yet sent when the run ended. */
  unsent_at_end: number;
}

/** What one request of a class costs the server's CPUs, in microseconds: the mean m of its sampled CPU time and its part of the unexplained CPU time, ```text D = m + (C − Σ mⱼ nⱼ) / N ``` where C is the CPU time of the server's processes in the stretch, or where the kernel does not tell it of its workers, nⱼ the requests of each class and N all of them. So the demands of all requests add up to C, whatever was sampled. */
export interface CpuDemand {
  /** The mean is within this of the truth, at 95 % confidence: D as a sum of means of independent samples, and what C lacks at the ends of the stretch, as it is told in ticks of the kernel's clock, or was read at sampled requests. */
  ci95_half_width: number;
  /** Its mean, D. */
  mean: number;
  /** Standard deviation of the sampled CPU time. */
  stddev: number;
}

/** Parts of the CPU time of a mean request, in microseconds: by phase. */
export interface CpuParts {
  /** The log line was written. */
  log?: number;
  /** The head was read and understood. */
  parse?: number;
  /** The answer was made and handed to the kernel. */
  process?: number;
}

/** A limit on the CPU time of a control group, and how often it was reached. */
export interface CpuQuota {
  /** CPUs that it may have: 0.5 is half of one. */
  cpus: number;
  /** The directory of the group. */
  group: string;
  /** Share of the quota's periods in which it was used up, so that threads were stopped until the next. */
  throttled_periods: number;
  /** For how long; of several CPUs together. */
  throttled_s: number;
}

/** Shares of CPU time; `user`, `system`, `idle` and `steal` are together 1. */
export interface CpuShares {
  /** Idle, waiting for disks included. */
  idle?: number;
  /** Part of `system`: interrupts and what they leave to do, like most of TCP's receiving side. */
  interrupt?: number | null;
  /** Part of `idle`: while a thread waited for a disk. */
  io_wait?: number | null;
  /** Taken by the hypervisor. */
  steal?: number;
  /** Kernel, interrupts included. */
  system?: number;
  /** User mode, niced and guests included. */
  user?: number;
}

/** Traffic of a disk. A block is 512 bytes, whatever the disk's own are. */
export interface Disk {
  /** Blocks read. */
  blocks_read_per_s?: number;
  /** Blocks written. */
  blocks_written_per_s?: number;
  /** Mean number of operations under way. */
  queue_length?: number;
  /** Read operations completed. */
  reads_per_s?: number;
  /** Share of time in which an operation was under way; of several disks, the busiest one's. */
  utilization?: number;
  /** Write operations completed. */
  writes_per_s?: number;
}

/** Elapsed times, in microseconds. Percentiles are interpolated in buckets, four to an octave: they are within 25 % of the truth, and within a few percent where many times are spread over several buckets. */
export interface Elapsed {
  /** How many requests had this phase. */
  count: number;
  /** Their mean. */
  mean: number;
  /** Their median. */
  p50: number;
  /** Nine of ten are no longer. */
  p90: number;
  /** 99 of 100 are no longer. */
  p99: number;
  /** Their standard deviation. */
  stddev: number;
}

/** What all answers to a class have to be like. */
export interface Expect {
  /** Bytes of content, as sent: a compressed answer has those it is compressed to. */
  length?: number | null;
  /** SHA-256 of the content as sent, in 64 hexadecimal digits. */
  sha256?: Sha256 | null;
  /** The status: 200, "2xx", or several of these; any if absent. */
  status?: Statuses | null;
}

/** Files below the class's path. */
export interface FileSet {
  /** Bytes of a file, or how those of all are distributed: the sizes that `brimful fileset` makes. */
  bytes?: Spread | null;
  /** How many. */
  files: number;
  /** The number of the file that such a walk begins at. */
  first?: number;
  /** They are asked for one after another, and one call in how many goes on to the next: with 0.25 every fourth call does, with 1 each, the very first one too. After the last comes the first. Without it each call asks for any of them. */
  ratio?: number | null;
  /** How many files such a walk goes on by, for clients that share a set: each begins at a file of its own and goes on by as many as there are clients. */
  stride?: number;
}

/** What the load cost the host that made it. */
export interface Generator {
  /** The first request body that could not be read from its file during the run, and why. */
  body_error?: string | null;
  /** Share of the threads' time in which they had work to do (waiting and spinning excluded): the busiest thread's. */
  busy: number;
  /** CPU time, exact. */
  cpu_s?: number | null;
  /** Of that, in the kernel, likewise. */
  cpu_system_s?: number | null;
  /** Of that, in user mode, as the kernel's ticks sampled it; `None` when they were too few to tell. */
  cpu_user_s?: number | null;
  /** Which I/O engine ran. */
  engine: string;
  /** What its host kept from it. */
  host?: HostContention;
  /** How fast its first CPU was right before the load began; of a load that was made in parts, the slowest part's. `None` in Records from before there was such a probe. */
  host_probe?: HostProbe | null;
  /** The longest that a thread was kept from its work: it neither waited nor got on with what was due, but was stopped or had no CPU. */
  longest_gap_s?: number | null;
  /** Most connections open at once, over all threads. */
  max_open_connections: number;
  /** The highest rate this client was found to offer without being the limit itself, if that was measured. */
  max_rate?: number | null;
  /** Messages of its threads that panicked. Their calls are counted up to then, and the other threads went on. */
  panics?: string[];
  /** Threads, one shard each. */
  threads: number;
  /** Calls began only once in so many seconds, and so up to that late, if that was asked for. */
  tick_s?: number | null;
}

/** What a host kept from the generator during the run, from its kernel's accounts. What the kernel does not say is absent. */
export interface HostContention {
  /** Time for which a thread was ready to run and something else had the CPU: the thread's that waited longest. */
  cpu_wait_s?: number | null;
  /** Share of the time of the generator's CPUs that the hypervisor gave to other guests. */
  steal?: number | null;
  /** Time for which a CPU quota of the generator's control group, or of one above it, stopped the group; summed over CPUs. */
  throttled_s?: number | null;
}

/** How fast one CPU of a host was at one moment, in some ten milliseconds of its time. Both figures swing when neighbours share the cache, the core or the clock frequency: runs are comparable where these are. */
export interface HostProbe {
  /** Integer operations, each of which needs the result of the one before: millions per second. */
  arithmetic_mops: number;
  /** Reads at random places of 16 MiB, each at a place that the one before tells: millions per second. */
  memory_mreads: number;
}

/** The frames of one kind that a server sent with one error code. */
export interface Http2Error {
  /** The error code; 4294967295 stands for all that RFC 9113 does not name. */
  code: number;
  /** The kind of frame. */
  frame: Http2Frame;
  /** The number of frames. */
  frames: number;
  /** Its name, like `ENHANCE_YOUR_CALM`. */
  name: string;
  /** One of the texts that the server sent with it, at most 200 bytes: the first in alphabetical order. */
  text?: string;
}

/** The frames that carry an error code. */
export type Http2Frame = "GOAWAY" | "RST_STREAM";

/** Interrupts per second, whole machine. */
export interface Interrupts {
  /** From all devices, timers included. */
  all_per_s?: number | null;
  /** For disks: the softirq BLOCK. */
  disk_per_s?: number | null;
  /** For the network: its softirqs (NET_RX and NET_TX), which one device interrupt or one poll may cause. */
  network_per_s?: number | null;
}

/** One stretch of the run; all stretches of a run are equally long. */
export interface Interval {
  /** Calls completed in it. */
  completed: number;
  /** Calls that failed in it. */
  errors: number;
  /** Its length. */
  length_s: number;
  /** Calls due in it. */
  offered: number;
  /** Median response time of those completed. */
  p50_us?: number | null;
  /** 99th percentile of the same. */
  p99_us?: number | null;
  /** Calls first sent in it. */
  sent: number;
  /** Its beginning, seconds after the start. */
  t_s: number;
}

/** Calls that the generator's host had no means for, by what was lacking. Together they are `Counts::client_limited`. */
export interface Limited {
  /** The file with the request's body could not be read. */
  bodies?: number;
  /** For want of a file descriptor. */
  descriptors: number;
  /** For want of socket memory. */
  memory: number;
  /** For want of a local port. */
  ports: number;
}

/** Listening sockets. */
export interface Listener {
  /** Length of the accept queue at the end. */
  accept_queue?: number;
  /** The longest accept queue that a sample saw. */
  accept_queue_max?: number;
  /** Connections established; `sources` says whether those of other ports are among them. */
  accepted_per_s?: number | null;
  /** The queues' limit, that of all sockets together. */
  backlog?: number;
  /** Dropped by these sockets, because the accept queue was full or for want of memory. */
  dropped_per_s?: number;
  /** The socket that was nearest to its limit: one that is full drops, whatever room the others have. */
  fullest?: AcceptQueue;
  /** How many sockets these are: IPv4 and IPv6, or one for each worker (SO_REUSEPORT). */
  sockets?: number;
  /** SYNs that asked for a connection: accepted and dropped. */
  syn_per_s?: number | null;
}

/** How calls come. */
export interface Load {
  /** How calls of an open load are spaced, as `--arrivals` writes it; `constant` if absent. */
  arrivals?: string | null;
  /** Closed load: so many clients that wait for their answers. */
  clients?: number | null;
  /** Open load: the requests of access logs. */
  log?: LogReplay | null;
  /** Open load: calls per second, whatever the server does; with `stages`, the rate before the first. */
  rate?: number | null;
  /** S-Clients: so many connection attempts always under way. */
  s_clients?: number | null;
  /** Sessions: bursts of calls with time to think in between. */
  sessions?: SessionLoad | null;
  /** Open load: the rate goes linearly from stage to stage. */
  stages?: Stage[];
  /** Between an answer and the client's next call, in seconds; 0 if absent. */
  think_s?: number | null;
  /** Open load: at these instants. */
  trace?: Trace | null;
}

/** The requests of access logs. */
export interface LogReplay {
  /** Their paths. */
  files: string[];
  /** Whether the same requests come at a constant rate. */
  flattened?: boolean;
  /** The longest pause between two calls; longer ones are cut to it. */
  max_gap_s?: number | null;
  /** What the gaps between requests are divided by. */
  speed?: number;
}

/** Memory, whole machine. */
export interface Memory {
  /** What programs could still get without swapping. */
  available_bytes?: number | null;
  /** All there is. */
  total_bytes: number;
}

/** Server Module: requests as the servers themselves see them (WebMonitor, §3.2). */
export interface Module {
  /** Each class of request of each server. */
  classes?: ModuleClass[];
  /** The servers, one for each file that a module writes. What replaced its file in the stretch is there twice, each with its part of the time. */
  servers?: ModuleServer[];
}

/** One class of request, from inside the server. */
export interface ModuleClass {
  /** Of the requests, those whose client went away before it had the answer. */
  aborted?: number;
  /** Bytes of bodies sent. */
  bytes_per_s?: number;
  /** The mean of `cpu_us` is within this of the truth, at 95 % confidence. */
  cpu_ci95_half_width_us?: number | null;
  /** Of the requests chosen to be sampled, the share whose thread worked on others in between: their CPU time is not known. */
  cpu_mixed?: number | null;
  /** What the mean of `cpu_us` is made of. */
  cpu_parts_us?: CpuParts | null;
  /** CPU time of one request, user and system, on the thread that served it. Reading that clock is costly, so few requests are sampled. */
  cpu_us?: Sampled | null;
  /** What a request costs the server's CPUs, its part of the unexplained CPU time included. */
  demand_us?: CpuDemand | null;
  /** Of the requests, those answered with 5xx. */
  failed?: number;
  /** Its name. Those of a Record's class that is called the same are the same requests. */
  name?: string;
  /** Elapsed time by phase. */
  phases_us?: Phases;
  /** Requests served, all of them: those that have a line in the access log. */
  requests?: number;
  /** The same per second. */
  requests_per_s?: number;
  /** Which of `servers` it is of, from 0. */
  server?: number;
  /** Per request: how often a worker took it up, once and again each time that it had left it to wait for its client or a server behind this one. A worker that waits itself, as most of Apache's do, does not leave it. */
  turns?: number | null;
}

/** A server that has the module loaded. */
export interface ModuleServer {
  /** Blocks of 512 bytes that its processes had read from disks, per request. */
  blocks_read_per_request?: number | null;
  /** Connections accepted. */
  connections_per_s?: number | null;
  /** CPU time of its workers per time: 1.5 is one CPU and a half. */
  cores?: number | null;
  /** CPU time is measured of one request in so many, or of fewer where they come densely; 0 of none. */
  cpu_one_in?: number;
  /** The same in the kernel. */
  cpu_system_us?: number | null;
  /** CPU time of its processes per request, outside the kernel. Linux splits CPU time by what it finds running when its clock ticks, every few milliseconds: so this is known of many requests together, and not by class. */
  cpu_user_us?: number | null;
  /** The file that its module writes. */
  file?: string;
  /** What it calls itself, like `nginx/1.22.1`. */
  name?: string;
  /** Read calls of its processes per request, as the kernel counts them (`syscr` of proc(5)): of files, and of sockets where the server reads them like files. */
  reads_per_request?: number | null;
  /** Whether it records the requests that begin; it may be turned off. */
  recording?: boolean;
  /** Requests at this moment. */
  requests_in_progress?: number;
  /** Requests of all classes. */
  requests_per_s?: number;
  /** CPU time of its workers per request, less what was measured in the phases of requests: accepting and closing connections, waiting for events. Below zero where that is less than what the measuring of a request costs it. */
  unexplained_cpu_us?: number | null;
  /** Worker processes, or threads where these serve, at this moment. */
  workers?: number;
  /** How many of them were busy, on average. */
  workers_busy?: number | null;
  /** Workers that found no place in the file: what they serve is missing here. */
  workers_lost?: number;
  /** How many requests or connections the server works on at a time at most, where it has such a limit. */
  workers_most?: number | null;
}

/** Network group: the network of one namespace. */
export interface Network {
  /** Collisions on a shared wire, which modern networks do not have. */
  collisions_per_s?: number;
  /** Each interface by name; without those that came, went or began to count anew. */
  interfaces?: { [key: string]: Traffic2 };
  /** Packets that the kernel dropped because a CPU's receive queue was full, whole machine. */
  queue_overflows_per_s?: number | null;
  /** Bytes received. */
  rx_bytes_per_s?: number;
  /** Packets received and thrown away, for want of memory or of a taker. */
  rx_dropped_per_s?: number;
  /** Packets that came damaged. */
  rx_errors_per_s?: number;
  /** Packets received. */
  rx_packets_per_s?: number;
  /** TCP of this namespace. */
  tcp?: Tcp | null;
  /** Bytes sent. */
  tx_bytes_per_s?: number;
  /** Packets to be sent and thrown away. */
  tx_dropped_per_s?: number;
  /** Packets that could not be sent. */
  tx_errors_per_s?: number;
  /** Packets sent. */
  tx_packets_per_s?: number;
}

/** Redirects that were not followed, by why. */
export interface NotFollowed {
  /** The content of the request would have had to be sent once more. */
  content: number;
  /** They lead to another server, or to this one by another scheme or port. */
  elsewhere: number;
  /** Where they lead was not said, or no URL. */
  nowhere: number;
  /** They came after as many as are followed. */
  too_many: number;
}

/** What came of an objective of a run, like `p99<50ms`. It is about answers that were expected: any but 5xx and 429, or those of the statuses that the Workload expects. Every other answer and every failed call counts as slower than any limit. */
export interface Objective {
  /** The share of its calls that were not answered as expected: they failed, or the answer was 5xx, 429 or another status than the Workload expects. Calls that this host had no means for, or that the end of the run cut off, are not among its calls. Absent where there was no call. */
  error_share?: number | null;
  /** What was measured, in seconds; `None` where so many calls were not answered as expected, or so few were made, that there is no such time. */
  measured_s?: number | null;
  /** For people: which calls were not answered as expected, if there were any, and what that means for the objective. */
  message?: string | null;
  /** Whether the objective is met. */
  met: boolean;
  /** As it is written. */
  objective: string;
}

/** In which order what is listed is asked for. */
export type Order = "random" | "listed" | "once";

/** What watching cost. */
export interface Overhead {
  /** CPU time of the monitor's thread; of `brimful watch` all of it. */
  monitor_cpu_s: number;
  /** CPU time of one sample, in microseconds. */
  per_sample_us: number;
  /** How many samples were taken. */
  samples: number;
}

/** The whole Account. */
export interface PackedAccount {
  /** Calls by the server's addresses, where these are told apart: their counts and response times. */
  addresses?: PackedClass[];
  /** Length of a batch in nanoseconds, a power of two. */
  batch_ns: number;
  /** Response times by when their calls ended, up to the last batch that has one. */
  batches: PackedBatch[];
  /** In the workload's order. */
  classes: PackedClass[];
  /** Calls that were completed within the window. */
  completed_in_window: number;
  /** From the start of an attempt to its establishment; `None` where there is none, like all times. */
  connect_time?: PackedTimes | null;
  /** From the establishment of a connection to the end of its TLS handshake. */
  handshake_time?: PackedTimes | null;
  /** The error codes that a server of HTTP/2 sent. */
  http2_errors?: Http2Error[];
  /** Length of an interval in seconds, a power of two from 1/32 on. */
  interval_s: number;
  /** The course of the run, up to its last event. */
  intervals: PackedInterval[];
  /** What this host had no means for. */
  limited: Limited;
  /** What became of redirects, where they are followed. */
  redirects?: PackedRedirects | null;
  /** Calls completed in each five seconds of the window, up to the last that has one. */
  replies: number[];
  /** Its sessions, if it has any. */
  sessions?: PackedSessions | null;
  /** Calls that TLS failed, by why. */
  tls_faults?: { [key: string]: number };
  /** For how long load was to be offered, in nanoseconds; `None` when that was not known beforehand. */
  window_ns?: number | null;
}

/** The response times of one batch. */
export interface PackedBatch {
  /** How many. */
  count: number;
  /** In nanoseconds. */
  sum: Whole;
}

/** What became of the calls of one class. */
export interface PackedClass {
  /** Bytes on the wire, heads included. */
  bytes: Traffic;
  /** As in `ClassRecord`, as are the others. */
  counts: Counts;
  /** From the first byte sent to the first byte received. */
  first_byte?: PackedTimes | null;
  /** From due to the moment the generator acted. */
  lateness?: PackedTimes | null;
  /** The class. */
  name: string;
  /** From due to the last byte. */
  response_time?: PackedTimes | null;
  /** From the first byte sent to the last byte received. */
  service_time?: PackedTimes | null;
  /** Whole responses by status code. */
  status_codes?: { [key: string]: number };
  /** `response_time` and `service_time` by status class, and the times of unexpected responses. Left out where all responses were expected and of one class. */
  status_times?: PackedStatusTimes[];
}

/** One interval of the course of a run. */
export interface PackedInterval {
  /** Calls completed in it. */
  completed: number;
  /** Calls that failed in it. */
  errors: number;
  /** Calls due in it. */
  offered: number;
  /** Response times of those completed, if there were any: in microseconds, from 1 to a minute, two digits. */
  response_us?: string | null;
  /** Calls first sent in it. */
  sent: number;
}

/** What became of redirects, as in `Redirects`. */
export interface PackedRedirects {
  /** The calls that followed one. */
  followed: PackedClass;
  /** The redirects that none followed. */
  not_followed: NotFollowed;
}

/** What became of the sessions of a run, as in `SessionFigures`. Whole numbers are distributed as if they were nanoseconds. */
export interface PackedSessions {
  /** Bursts of one session. */
  bursts?: PackedTimes | null;
  /** Calls of one session. */
  calls?: PackedTimes | null;
  /** Sessions whose last call was completed. */
  completed: number;
  /** Connections that were established for one session. */
  connections?: PackedTimes | null;
  /** Sessions that a failed call ended. */
  failed: number;
  /** Bursts of such a session. */
  failed_bursts?: PackedTimes | null;
  /** Calls of one session that failed. */
  failed_calls?: PackedTimes | null;
  /** Connections that were established for such a session. */
  failed_connections?: PackedTimes | null;
  /** From such a session's first due time to the end of its last call. */
  failed_lifetime?: PackedTimes | null;
  /** Sessions that had not ended when the run did. */
  in_progress: number;
  /** From a session's first due time to its last answer. */
  lifetime?: PackedTimes | null;
}

/** Times of the whole responses of one status class. */
export interface PackedStatusTimes {
  /** Whether they are completed calls, and in `response_time`; false for unexpected responses. */
  expected: boolean;
  /** As in `PackedClass`. */
  response_time?: PackedTimes | null;
  /** As in `PackedClass`. */
  service_time?: PackedTimes | null;
  /** `1xx`, `2xx`, `3xx`, `4xx` (all but 429), `429` or `5xx`. */
  status: string;
}

/** A distribution of at least one time, in nanoseconds. */
export interface PackedTimes {
  /** From 1 ns to an hour, three digits. */
  histogram: string;
  /** The longest. */
  max: number;
  /** The shortest. */
  min: number;
  /** Of all times. */
  sum: Whole;
  /** Of the squares of all times. */
  sum_of_squares: Whole;
}

/** Paging per second, whole machine. A page is the machine's (4 KiB on most). */
export interface Paging {
  /** Page faults that had to wait for a disk. */
  major_faults_per_s?: number | null;
  /** Pages read from disks, file contents and swap. */
  page_ins_per_s?: number | null;
  /** Pages written to disks, file contents and swap. */
  page_outs_per_s?: number | null;
  /** Of them, from swap. */
  swap_ins_per_s?: number | null;
  /** Of them, to swap. */
  swap_outs_per_s?: number | null;
}

/** Elapsed time of a request by what the server did: WebMonitor's three phases (parse, process, log), with what is the client's own (head, send) and what other servers took (upstream) apart from them. Together they are the time from the first byte of the request to its log line. */
export interface Phases {
  /** From the first byte of the request to the last of its head: the client's own. */
  head?: Elapsed | null;
  /** Writing the log. */
  log?: Elapsed | null;
  /** The head is read and understood. */
  parse?: Elapsed | null;
  /** The answer is made and handed to the kernel, but for the next two. */
  process?: Elapsed | null;
  /** Waiting until the client has read enough for the rest to be handed over: the client's own. */
  send?: Elapsed | null;
  /** Waiting for a server behind this one. */
  upstream?: Elapsed | null;
}

/** A law of popularity, written as `zipf:0.8`. */
export type Popularity = string;

/** One port of the server. */
export interface Port {
  /** Its connections by TCP state. A state that the source cannot tell is left out; one that it tells is there, be it 0. */
  connections?: { [key: string]: number } | null;
  /** Its listening sockets together, as they were last; `null` if nothing listened. */
  listener?: Listener | null;
  /** Which. */
  port?: number;
}

/** Pressure of each resource. */
export interface Pressure {
  /** Of the CPUs. */
  cpu?: Stall | null;
  /** Of disks. */
  io?: Stall | null;
  /** Of memory. */
  memory?: Stall | null;
}

/** Process group: one program, that is processes with their descendants. Totals are over the stretch. */
export interface Program {
  /** Context switches, voluntary and not. */
  context_switches?: number | null;
  /** CPU time per time: 1.5 is one CPU and a half. */
  cores?: number;
  /** CPU time, nanosecond clock. Of processes that ended there is what was read last, which for those that their parent has waited for is all; what lived shorter than from one sample to the next and was never waited for is missing. */
  cpu_s?: number;
  /** Of it, in the kernel. */
  cpu_s_system?: number;
  /** Of it, in user mode (the split is the kernel's, the sum is `cpu_s`). */
  cpu_s_user?: number;
  /** Processes that were found to have ended. */
  ended?: number;
  /** Page faults that had to wait for a disk. */
  major_faults?: number | null;
  /** `rss_bytes` as a share of the machine's memory; more than 1 is possible where pages are shared. */
  memory_share?: number | null;
  /** Its name. */
  name?: string;
  /** Its processes. */
  pids?: number[];
  /** How many copies of it there are: Table 2's *started processes*. */
  processes?: number;
  /** The limit on its CPU time, of its control group or of one above it: of several, the one that stopped it for longest, or else the tightest. Left out where there is none, or none can be seen. */
  quota?: CpuQuota | null;
  /** Resident memory; pages that processes share count once for each. The kernel adds up its counters of each CPU now and then: of each process up to 96 pages for each CPU (384 KiB) may be missing. */
  rss_bytes?: number;
  /** Time that its threads were ready and waited for a CPU. */
  run_queue_wait_s?: number | null;
  /** Its threads that run or wait for a CPU: Table 2's *running processes*. */
  running?: number | null;
  /** Processes that were found to have started. */
  started?: number;
  /** Threads of all its processes. */
  threads?: number | null;
}

/** Rates per second over the offered window. */
export interface Rates {
  /** Whole responses received inside the window. */
  completed: number;
  /** Connection attempts. */
  connect_attempts: number;
  /** Connections established. */
  established: number;
  /** TLS handshakes that succeeded; left out where there is none, as is the next. */
  handshakes?: number;
  /** Those of them that resumed an earlier session. */
  handshakes_resumed?: number;
  /** Calls the schedule asked for. */
  offered: number;
  /** Calls of which a byte was sent. */
  sent: number;
}

/** One reason not to trust a run. */
export interface Reason {
  /** For scripts. */
  code: ReasonCode;
  /** For people: what happened and what to do next. */
  message: string;
}

/** The reasons a script can tell apart. */
export type ReasonCode = "generator_late" | "generator_cpu" | "generator_stalled" | "generator_panicked" | "descriptors" | "ports" | "memory" | "body_file" | "beyond_client_max" | "shard_lost" | "unbalanced" | "interrupted" | "server_died" | "other_work" | "incomplete" | "server_errors" | "rate_limited" | "throttled" | "server_changed" | "model_refuted";

/** What became of redirects, in a run that follows them. */
export interface Redirects {
  /** The calls that followed one, up to several after one another. They are in no other figure of the Record: neither in its counts and rates nor in its classes. Their response time is from when the first call was due. */
  followed: ClassRecord;
  /** The redirects that none followed. */
  not_followed: NotFollowed;
}

/** Replies per second, one sample per five seconds of the window. */
export interface ReplyRate {
  /** Half width of the 95 % confidence interval of the mean (Student's t); needs two samples. */
  ci95_half_width?: number | null;
  /** Highest. */
  max?: number | null;
  /** Mean. */
  mean?: number | null;
  /** Lowest. */
  min?: number | null;
  /** How many whole samples. */
  samples: number;
  /** Standard deviation; needs two samples. */
  stddev?: number | null;
}

/** Times of a sample of the requests, in microseconds. */
export interface Sampled {
  /** How many were sampled. */
  count: number;
  /** Their mean. */
  mean: number;
  /** Their standard deviation. */
  stddev: number;
}

/** One session. */
export interface Script {
  /** Its bursts, at least one. */
  bursts: ScriptedBurst[];
}

/** One burst of a session. */
export interface ScriptedBurst {
  /** Its calls, at least one; the first is answered before the others are made. */
  calls: ScriptedCall[];
  /** Seconds from its last answer to the next burst's first call; as the sessions' `think_s` says if absent. */
  think_s?: number | null;
}

/** One call of a burst. */
export interface ScriptedCall {
  /** Request body; the class's if absent. */
  body?: string | null;
  /** The class that it is reported as; the first one if absent. */
  class?: string;
  /** HTTP method; the class's if absent. */
  method?: string;
  /** Path and query; the class's if absent. */
  path?: string;
}

/** What the monitor saw of a server over a run. */
export interface Server {
  /** Threads that waited for a disk, whole machine. */
  blocked?: number | null;
  /** How the server's clock was brought to the generator's, if the server is on another host. */
  clock?: ClockOffset | null;
  /** Connections of all watched ports together, by TCP state. */
  connections?: { [key: string]: number } | null;
  /** Whole machine. */
  context_switches_per_s?: number | null;
  /** Each of them that was online all the time. */
  cores?: Core[];
  /** The CPUs that were watched (all, or those named), together. */
  cpu?: CpuShares | null;
  /** Which CPUs those are. */
  cpus?: number[];
  /** Whole disks together. */
  disk?: Disk | null;
  /** Each whole disk by name, if it was there all the time. */
  disks?: { [key: string]: Disk };
  /** Processes and threads started, whole machine. */
  forks_per_s?: number | null;
  /** How fast the server's host was when `brimful watch` began there. */
  host_probe?: HostProbe | null;
  /** Work that devices asked for. */
  interrupts?: Interrupts | null;
  /** The course of the run. */
  intervals?: ServerInterval[];
  /** The listening sockets of all watched ports together. */
  listener?: Listener | null;
  /** Memory. */
  memory?: Memory | null;
  /** What the Server Module saw from inside the server, if it is loaded there. */
  module?: Module | null;
  /** The network of the server's namespace. */
  network?: Network | null;
  /** What watching cost. */
  overhead?: Overhead;
  /** Traffic between memory and disks. */
  paging?: Paging | null;
  /** Each watched port. */
  ports?: Port[];
  /** Pressure stall information: the share of time in which work waited for want of something. */
  pressure?: Pressure | null;
  /** The server's programs. */
  process?: Program[];
  /** Requests as the server's sockets show them, if that was asked for. */
  requests?: SocketRequests | null;
  /** Threads that ran or waited for a CPU, whole machine, the monitor's own left out. */
  runnable?: number | null;
  /** Where each kind of figures comes from, or `none: …` with the reason and what to do about it. */
  sources?: { [key: string]: string };
}

/** One stretch between two samples of the monitor: the course of the main figures, for charts. */
export interface ServerInterval {
  /** Length of the accept queue at its end. */
  accept_queue?: number | null;
  /** Connections established, per second. */
  accepted_per_s?: number | null;
  /** Context switches per second, whole machine. */
  context_switches_per_s?: number | null;
  /** The CPUs that were watched. */
  cpu?: CpuShares | null;
  /** Utilization of the busiest disk. */
  disk_utilization?: number | null;
  /** SYNs dropped by the listener, per second. */
  dropped_per_s?: number | null;
  /** Connections that are established, at its end. */
  established?: number | null;
  /** Its length. */
  length_s?: number;
  /** Bytes received and sent per second, all interfaces. */
  network_bytes_per_s?: number | null;
  /** CPU time of all watched processes, in cores: 0.5 is half of one core. */
  process_cores?: number | null;
  /** Of it, in user mode. */
  process_cores_user?: number | null;
  /** Requests per second, as the Server Module counts them. */
  requests_per_s?: number | null;
  /** TCP segments sent again, per second. */
  retransmitted_per_s?: number | null;
  /** Time that the threads of watched processes waited for a CPU, per second. */
  run_queue_wait?: number | null;
  /** Its beginning, seconds after the start of the load. */
  t_s?: number;
  /** Workers that were busy on average, as the Server Module says. */
  workers_busy?: number | null;
}

/** What became of the sessions of a run. The distributions are of those that began within the run and completed in it, and apart of those that failed: where sessions last long against the run, these are the shorter ones. */
export interface SessionFigures {
  /** Bursts of one session. */
  bursts?: SessionSummary | null;
  /** Calls of one session. */
  calls?: SessionSummary | null;
  /** Sessions whose last call was completed. */
  completed: number;
  /** Connections that were established for one session. */
  connections?: SessionSummary | null;
  /** Sessions that a failed call ended. */
  failed: number;
  /** Bursts of such a session, the one that it failed in among them. */
  failed_bursts?: SessionSummary | null;
  /** Calls of one session that began within the run and failed, the failed ones among them. */
  failed_calls?: SessionSummary | null;
  /** Connections that were established for such a session. */
  failed_connections?: SessionSummary | null;
  /** Seconds from such a session's first due time to the end of its last call; none above an hour. */
  failed_lifetime_s?: SessionSummary | null;
  /** Sessions that had not ended when the run did. */
  in_progress: number;
  /** Seconds from a session's first due time to its last answer; none above an hour. */
  lifetime_s?: SessionSummary | null;
  /** Sessions that began, per second over [`Record::window_s`]; those under way when the run began among them. */
  rate: number;
  /** Sessions of which a call was made: `completed + failed + in_progress`. */
  started: number;
}

/** A load of sessions. */
export interface SessionLoad {
  /** How they are spaced, as `--arrivals` writes it; `poisson` if absent. */
  arrivals?: string | null;
  /** What becomes of its connections between bursts. */
  between_bursts?: BetweenBursts;
  /** Bursts of one session; 1 if absent. */
  bursts?: Spread | null;
  /** In place of `bursts`: calls of one session in all, in as many bursts as it takes. */
  calls?: Spread | null;
  /** Calls of one burst; the first is answered before the others are made; 1 if absent. */
  calls_per_burst?: Spread | null;
  /** Connections of one session at most. */
  connections?: number;
  /** Whether each session keeps the cookies that it is given, and sends them. */
  cookies?: boolean;
  /** Whether the load begins as if it had always gone on. */
  in_progress?: boolean;
  /** Whether the other calls of a burst go out together on one connection, as long as the server keeps it open. */
  pipelined?: boolean;
  /** New sessions per second, whatever the server does. */
  rate?: number | null;
  /** Seconds from the end of a user's session to the next one's beginning; 0 if absent. */
  rest_s?: Spread | null;
  /** Whether a call whose answer is whole, but not what its class expects, is made again at once, and does not end its session. */
  retry?: boolean;
  /** Sessions that are written out, made in turn, in place of `bursts` and `calls_per_burst`. */
  script?: Script[];
  /** So many sessions in all; no bound if absent. */
  sessions?: number | null;
  /** In place of `bursts`: the probability that a user stays for another burst after each. */
  stay?: number | null;
  /** Seconds from the last answer of a burst to the next burst's first call. */
  think_s?: Spread;
  /** In place of a rate: so many users, each beginning another session after the last one. */
  users?: number | null;
}

/** How one figure differs from session to session. */
export interface SessionSummary {
  /** Exact. */
  max: number;
  /** Exact. */
  mean: number;
  /** Median; this and the other quantiles are within 0.1 %. */
  p50: number;
  /** 90th percentile. */
  p90: number;
  /** 99th percentile. */
  p99: number;
}

/** The digest of a body. */
export type Sha256 = string;

/** One part of a load: what one process made of it. */
export interface ShardOrigin {
  /** How far its host's clock was ahead of the one by which the instant was agreed on (behind, if negative), where that was measured. It was taken off when the load began, and is not in `offset_us`. */
  clock_ahead_us?: number | null;
  /** How far off that may be. */
  clock_error_us?: number | null;
  /** The host that made it. */
  host: string;
  /** Which part, from 1. */
  index: number;
  /** Seconds after the start at which its process was lost, if it was; nothing of it is known after that. */
  lost_at_s?: number | null;
  /** Of how many. */
  of: number;
  /** How long after the agreed instant it began, by its own host's clock; `None` where none was agreed. */
  offset_us?: number | null;
  /** What speaks against this part by itself, once it is one of several. That of the whole need not show it. */
  reasons?: Reason[];
}

/** Requests of one port whose answers have similar sizes, heads included. */
export interface SocketClass {
  /** Its name, as of the Server Module's own classes. */
  name?: string;
  /** Which port. */
  port?: number;
  /** Requests that had their answer before their slice's end. */
  requests?: number;
  /** The same per second. */
  requests_per_s?: number | null;
  /** Bytes of answers per second. */
  sent_bytes_per_s?: number | null;
  /** As of the port. */
  service_us?: Elapsed | null;
  /** As of the port. */
  wait_us?: Elapsed | null;
}

/** The requests of one port. */
export interface SocketPort {
  /** Of the requests, the share that had no answer, or not all of it, at their slice's end. */
  open_share?: number | null;
  /** Which. */
  port?: number;
  /** Bytes of requests per second, with their heads and whatever encrypts them. */
  received_bytes_per_s?: number | null;
  /** Requests that were counted. */
  requests?: number;
  /** Requests per second; `null` if nothing was attached. */
  requests_per_s?: number | null;
  /** Bytes of answers per second, likewise. */
  sent_bytes_per_s?: number | null;
  /** From there until the last bytes of the answer were handed to the kernel. */
  service_us?: Elapsed | null;
  /** Of the requests, the share whose connection the server closed, or lost, without a byte of an answer. */
  unanswered_share?: number | null;
  /** Requests that waited or were being served, on average; those without an answer at their slice's end are missing. */
  under_way?: number | null;
  /** From when the first bytes of a request could be read until the server read them: its own queueing. */
  wait_us?: Elapsed | null;
}

/** Requests seen on the sockets of the watched ports, by tracepoints that are attached for slices of time. A request is counted if its first bytes arrive in the first part of a slice, and followed until the slice ends. So rates are of that first part, however long requests take; and times are of those that had their answer before the end, with the share of those that did not beside them. */
export interface SocketRequests {
  /** Requests of each port by the size of their answers. */
  classes?: SocketClass[];
  /** The share of time in which the tracepoints were attached. */
  duty?: number;
  /** What these figures do not tell, in words. */
  limits?: string[];
  /** Each port. */
  ports?: SocketPort[];
  /** How long a slice is at the end of the stretch; `null` if they are attached all the time. */
  slice_s?: number | null;
  /** Slices that ended in the stretch. */
  slices?: number;
}

/** A distribution of numbers that are not negative; the unit is that of the field. */
export type Spread = number | string;

/** The rate goes linearly from where it was to `rate` within `length_s`. A stage of no length is a jump, one with the rate before it a level. */
export interface Stage {
  /** How long, in seconds. */
  length_s: number;
  /** Calls per second at its end. */
  rate: number;
}

/** Shares of time (Linux's PSI, from its totals in microseconds). */
export interface Stall {
  /** All threads that had anything to do waited. Of CPUs there is no such thing, because some thread runs on them. */
  full?: number | null;
  /** Some threads waited. */
  some: number;
}

/** One of several. */
export type Status = number | string;

/** Whole responses by status class. */
export interface StatusCounts {
  /** Of those, "too many requests": the server limits the rate of its clients. Left out where there is none. */
  "429"?: number;
  /** The protocol was switched (101), which spends the connection. Other informational responses are passed over. Left out where there is none. */
  "1xx"?: number;
  /** Success. */
  "2xx": number;
  /** Redirection. */
  "3xx": number;
  /** The client's error. */
  "4xx": number;
  /** The server's error; invalid codes from 600 on are taken for such (RFC 9110 §15). */
  "5xx": number;
}

/** Whole responses of one status class. */
export interface StatusTimes {
  /** How many. */
  count: number;
  /** From due to the last byte. */
  response_time_us?: Summary | null;
  /** From the first byte sent to the last byte received. */
  service_time_us?: Summary | null;
}

/** Some status codes. */
export type Statuses = number | string | Status[];

/** A distribution of times, in microseconds. */
export interface Summary {
  /** How many. */
  count: number;
  /** Exact. */
  max: number;
  /** Exact. */
  mean: number;
  /** Exact. */
  min: number;
  /** Median; this and the other quantiles are within 0.1 %. */
  p50: number;
  /** 90th percentile. */
  p90: number;
  /** 95th percentile. */
  p95: number;
  /** 99th percentile. */
  p99: number;
  /** 99.9th percentile. */
  p999: number;
  /** Standard deviation. */
  stddev: number;
}

/** TCP of a network namespace, all ports. */
export interface Tcp {
  /** Connections that this side began. */
  active_opens_per_s?: number | null;
  /** Segments dropped because a socket's backlog was full. */
  backlog_drops_per_s?: number | null;
  /** Sockets in use. */
  in_use?: number | null;
  /** Packets dropped at a listener for any reason, overflows included. */
  listen_drops_per_s?: number | null;
  /** Packets that found a listener's accept queue full. */
  listen_overflows_per_s?: number | null;
  /** Memory of all sockets' buffers, whole machine. */
  memory_bytes?: number | null;
  /** Sockets that no process holds any more, whole machine. */
  orphans?: number | null;
  /** Connections that the other side began and that were established. */
  passive_opens_per_s?: number | null;
  /** Resets sent. */
  resets_out_per_s?: number | null;
  /** Segments sent again. */
  retransmitted_per_s?: number | null;
  /** Segments received. */
  segments_in_per_s?: number | null;
  /** Segments sent, without those sent again. */
  segments_out_per_s?: number | null;
  /** SYN cookies sent, because the queue of half-open connections was full. */
  syn_cookies_per_s?: number | null;
  /** Sockets in TIME_WAIT. */
  time_wait?: number | null;
}

/** How the connections to an `https://` URL are secured: the table `[tls]`. Keys and certificates are never in a document; the command line names their files. */
export interface Tls {
  /** Whether any certificate will do. */
  insecure?: boolean;
  /** The oldest version that is spoken. */
  minimum?: TlsVersion;
  /** Whether a new connection resumes the session of an earlier one where it has a ticket for it. Without that every handshake is a full one, as those of users who come for the first time are. */
  resume?: boolean;
  /** The server's name: what it is asked for, and what its certificate has to be for; the URL's host if absent. */
  sni?: string | null;
}

/** Calls that TLS failed, of one kind. */
export interface TlsFailure {
  /** How many calls. */
  calls: number;
  /** Why, for people: what happened and what to do next. */
  message: string;
  /** Why, for scripts. */
  reason: TlsFault;
}

/** The ways a handshake can fail, or a TLS stream can break its rules. */
export type TlsFault = "not_tls" | "certificate_expired" | "certificate_not_yet_valid" | "certificate_name" | "certificate_issuer" | "certificate_invalid" | "version" | "nothing_in_common" | "client_certificate" | "unknown_name" | "protocol" | "alert" | "timed_out" | "truncated" | "undecryptable" | "misbehaved";

/** What client and server agreed on in the handshake before a run. */
export interface TlsSpoken {
  /** Cipher suite, by its name at IANA. */
  cipher_suite: string;
  /** Group of the key exchange, like `X25519`. */
  key_exchange?: string | null;
  /** The protocol inside, if the server chose one (ALPN): `http/1.1` or `h2`. */
  protocol?: string | null;
  /** Version, like `TLS 1.3`. */
  version: string;
}

/** A version of TLS. */
export type TlsVersion = "1.2" | "1.3";

/** The instants of a file. */
export interface Trace {
  /** Its path: one instant in seconds per line. */
  file: string;
  /** What the gaps between them are divided by. */
  speed?: number;
}

/** Bytes on the wire. */
export interface Traffic {
  /** Of responses. */
  received: number;
  /** Of requests. */
  sent: number;
}

/** Traffic of network interfaces, per second. */
export interface Traffic2 {
  /** Collisions on a shared wire, which modern networks do not have. */
  collisions_per_s: number;
  /** Bytes received. */
  rx_bytes_per_s: number;
  /** Packets received and thrown away, for want of memory or of a taker. */
  rx_dropped_per_s: number;
  /** Packets that came damaged. */
  rx_errors_per_s: number;
  /** Packets received. */
  rx_packets_per_s: number;
  /** Bytes sent. */
  tx_bytes_per_s: number;
  /** Packets to be sent and thrown away. */
  tx_dropped_per_s: number;
  /** Packets that could not be sent. */
  tx_errors_per_s: number;
  /** Packets sent. */
  tx_packets_per_s: number;
}

/** One of the URLs of a class. */
export interface Url {
  /** Bytes of the answer's body, where that is known: the size of the file that `brimful fileset` makes. */
  bytes?: number | null;
  /** Path and query. */
  path: string;
  /** Its share of the class's calls, relative to the other URLs' weights. */
  weight?: number;
}

/** Whether a run can be trusted, and whether its server worked. The two are apart: an overload test that went well is a valid measurement of a failing server. */
export interface Verdict {
  /** The calls in `error_share` that are no failures: whole answers of 5xx or 429. Left out where there is none. */
  error_answers?: number;
  /** The share of the scheduled calls that failed, however, or were refused by their answer: 5xx or 429, where the Workload expects no particular status. Absent where there was no call, and like `failing`. */
  error_share?: number | null;
  /** Whether more calls failed than were completed, or none was completed; those that this host had no means for do not count, nor do the attempts that S-Clients abandon, which is how they overload a server. Absent where the verdict is not of one run. */
  failing?: boolean | null;
  /** Why not valid. */
  reasons: Reason[];
  /** True when there are no reasons against it: what was measured is the server, not the generator. */
  valid: boolean;
}

/** A whole number that may be too large for a number of JSON: its decimal digits in a string. */
export type Whole = string;

/** The whole document. */
export interface Workload {
  /** The request classes, at least one. */
  class: Class[];
  /** How calls come; absent where a command line says it, or where it is the command's own business. */
  load?: Load | null;
  /** How connections to an `https://` URL are secured, where that is not as usual. */
  tls?: Tls | null;
}
