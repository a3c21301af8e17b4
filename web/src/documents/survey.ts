// Written by document-types.mjs from schema/survey.schema.json.

/** One survey. */
export interface Survey {
  /** Share of the server's CPUs that was busy before any load. */
  background?: number | null;
  /** What is full when the server takes no more: a station of the model. `cpu`; `disk` and a name; `workers` whom calls occupy, processes or threads; `lock or backend`, one call at a time; `backend pool`, several. A server that is a black box is `server`. */
  bottleneck?: string | null;
  /** Why that is believed, for people. */
  bottleneck_evidence?: string | null;
  /** The version of brimful that made it. */
  brimful_version: string;
  /** The client's CPUs. */
  client_cpus: number[];
  /** The highest rate this client was found to offer without being the limit itself. */
  client_max_rate?: number | null;
  /** The command line. */
  command: string[];
  /** Which connections the loads used. */
  connections?: Connections;
  /** What one request costs. */
  demands: Demand[];
  /** How long the survey took. */
  elapsed_s?: number | null;
  /** What the server can take, or that this was not determined. */
  headline: string;
  /** What calibration did to the server. */
  inflicted?: Inflicted | null;
  /** What the server itself measured of its requests during calibration, where the demands of the classes stand on that: it has the Server Module, with the classes of the load. */
  inside?: InsideServer | null;
  /** How the cost of a call might depend on the load, and how far off each of these laws is at a calibration level that it was not fitted to. The best comes first and is the model's. */
  laws?: Law[];
  /** The load levels, in the order of their offered load. */
  levels: Level[];
  /** The model that the predictions are of, fitted before any held-out level was measured. Its demands are those of a busy server, which `demands` has too; its rates come to 0.7 of the predicted saturation rate in the proportions of the mix. Without stations if the survey ended before there was a model. */
  model: Model;
  /** The programs in which a call of the mix spends its CPU time, the costliest first. Programs that share CPUs are one station of the model. */
  programs?: ProgramDemand[];
  /** Path of the report, if one was written. */
  report?: string | null;
  /** The server's capacity, in calls per second. */
  saturation_rate: Comparison;
  /** [`SCHEMA`]. */
  schema: string;
  /** Seed of all randomness. */
  seed: number;
  /** The server's CPUs. */
  server_cpus: number[];
  /** How fast the server was in each block of calibration, in turn, over its mean: 0.9 is a tenth slower. */
  speed_by_block?: number[];
  /** Wall-clock time of the start, RFC 3339. */
  started_at: string;
  /** Where the survey stopped, if it did not reach its end. */
  stopped?: Stopped | null;
  /** What came of so many clients at once during calibration, in the order of their number: the server seen from outside (Chandy, Herzog & Woo 1975). */
  throughput_by_clients?: ByClients[];
  /** What was surveyed. */
  url: string;
  /** Whether the numbers can be trusted. */
  verdict: Verdict;
  /** What a call costs the server beyond its demand when it finds it idle: this times a power, the model's, of the share of time in which the server's CPUs are idle. */
  wakeup_s?: number | null;
  /** What a change of the server did, in the end. */
  what_if?: WhatIf | null;
}

/** Throughput of so many clients, each calling again as soon as it is answered. */
export interface ByClients {
  /** Half width of its 95 % confidence interval, by the blocks. */
  ci95_half_width?: number | null;
  /** How many. */
  clients: number;
  /** Calls per second. */
  throughput: number;
  /** Of the server's CPUs by the server's processes, if those can be seen. */
  utilization?: number | null;
}

/** One class of request. */
export interface Class {
  /** Its name. */
  name: string;
  /** Customers of a closed class. */
  population?: number | null;
  /** Urgency at stations that serve by priority: the smaller, the sooner. */
  priority?: number;
  /** Arrivals per second of an open class. */
  rate?: number | null;
  /** Think time of a closed class, in seconds. */
  think?: number;
  /** Whether its requests come from outside. */
  type: ClassKind;
}

/** Whether a class is fed from outside. */
export type ClassKind = "open" | "closed";

/** A prediction beside its measurement. */
export interface Comparison {
  /** predicted ÷ measured − 1, signed. */
  error?: number | null;
  /** What of the error is the host's: it was faster or slower then than during calibration. */
  error_drift?: number | null;
  /** Between which figures 90 % of such measurements lie, as it said beforehand, on a host as variable as calibration saw it. */
  interval90?: number[] | null;
  /** What was then measured. */
  measured?: number | null;
  /** Half width of the measurement's 95 % confidence interval (batch means). */
  measured_ci95_half_width?: number | null;
  /** What the model said beforehand. */
  predicted?: number | null;
}

/** Which connections the loads of a survey used. */
export interface Connections {
  /** Whether that is because the server closes each connection after its answer. */
  closed_by_server?: boolean;
  /** Connections that an open load had at most at once: calls that found all of them taken waited for one. Absent where each such call opened a connection more. */
  most?: number | null;
  /** Whether each call had a connection of its own. */
  one_call_each?: boolean;
  /** Connections that the server serves at a time, where the survey met that limit: calls on further connections wait until one of these is closed, though it is idle. */
  served_at_once?: number | null;
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

/** The fitted service demand of one class at one station. */
export interface Demand {
  /** Half width of its 95 % confidence interval. */
  ci95_half_width?: number | null;
  /** The class. */
  class: string;
  /** The demand, in seconds per request. */
  seconds: number;
  /** The station. */
  station: string;
  /** The true demand, where the server tells it: CPU time per call by its own account, while it was saturated. */
  truth?: number | null;
}

/** How the demands of a queue depend on its load: on average a request of each class that visits needs `seconds`·I^`power` more than its demand, with I the share (0 to 1) of the station's capacity that nobody uses, neither requests nor other work. Above 0 it is paid by those who find servers idle: at one server and power 1, all of it by each of them, and nothing by who waits (Welch 1964). Below 0 all requests pay alike. */
export interface IdleCost {
  /** How fast it fades as the load grows: 1 with the idleness, 2 with its square, and so on up to 4. */
  power: number;
  /** In seconds, at an idle station, and as variable as service is. Above 0 for a server that has to wake up; below, where requests get in one another's way, and cost less the fewer there are. */
  seconds: number;
}

/** What calibration did to a server that others use, too, and what it was allowed to. */
export interface Inflicted {
  /** The longest response time of calibration's calls: so long a stranger's call may have had to wait for ours. */
  longest_wait_s: number;
  /** What that was to stay below, in so far as the server's own speed decides it. */
  max_delay_s?: number | null;
  /** What that was to stay below. */
  max_load?: number | null;
  /** Mean load over all of calibration, rests included: of the server's CPUs by its processes, or where those cannot be seen, throughput as a share of what the server can take. */
  mean_load: number;
  /** The most clients at once. */
  most_clients: number;
}

/** What a server measured of its own requests during calibration: how its classes differ, whose demands are CPU time within the phases of a request and an equal share of what the server used outside of them. */
export interface InsideServer {
  /** Requests whose CPU time was measured. */
  sampled?: number;
  /** Squared coefficient of variation of the CPU time of a request of a class, over classes by their second moments. */
  scv?: number | null;
  /** Half width of its 95 % confidence interval. */
  scv_ci95_half_width?: number | null;
  /** Whether its workers are more than its CPUs and take turns there: then the model's variability is not that of service, but fitted to how long calls waited. */
  takes_turns?: boolean;
  /** How many workers it may have, where it serves no more calls at a time. */
  workers?: number | null;
  /** How many of them were busy while clients left it no rest. */
  workers_busy?: number | null;
}

/** Classes that were measured only together: their demands at the station come from that of their mean request by a rule of proportion, which holds while they come in these proportions. */
export interface JointDemand {
  /** The classes' names, at least two. */
  classes: string[];
  /** The classes' shares of the requests among them; together 1. */
  shares: number[];
  /** The station's name. */
  station: string;
}

/** A law that was tried. */
export interface Law {
  /** Root mean square of its relative error at the levels left out, each in turn. */
  left_out_error: number;
  /** Its name: `constant`, or `idle^1` for a cost that fades with the idleness of the server, `idle^2` with its square, and so on; `busy` for one that grows with the load. */
  name: string;
}

/** One load level. */
export interface Level {
  /** Share and cost of each class in this level. */
  classes: LevelClass[];
  /** Clients of a closed level; open levels have none. */
  clients?: number | null;
  /** Where the time of the server's CPUs went. */
  cpu?: CpuShares | null;
  /** Share of the calls that failed or were answered with an error of the server (5xx). */
  error_share: number;
  /** The planned load over the saturation rate as it was known when the level was planned. */
  fraction: number;
  /** Speed of the server just before and after this level over that during calibration, with as many clients: 0.9 is a tenth slower. */
  host_speed?: number | null;
  /** Median lateness of the generator. */
  lateness_p50_s?: number | null;
  /** 99th percentile of the same. */
  lateness_p99_s?: number | null;
  /** Offered load, calls per second; for a closed level, what its clients came to. */
  offered: number;
  /** Percentiles of the response time. */
  response_percentiles_s: Percentiles;
  /** Mean response time, from due to last byte. Predicted on a host as variable as calibration saw it. */
  response_time_s: Comparison;
  /** What the level is for. */
  role: Role;
  /** The same as predicted on a host that keeps its speed, which is what the model by itself says. */
  steady_response_s?: number | null;
  /** Whole responses per second. */
  throughput: Comparison;
  /** Of the server's CPUs by the server's processes. */
  utilization: Comparison;
  /** Whether this level can be trusted. */
  verdict: Verdict;
  /** How long load was offered. */
  window_s: number;
  /** What was requested: `mix`, or the name of the one class. */
  workload: string;
}

/** One class at one level. */
export interface LevelClass {
  /** Its name. */
  name: string;
  /** Mean response time. */
  response_time_s: Comparison;
  /** Whole responses per second. */
  throughput: number;
}

/** A network of stations visited by classes of request. */
export interface Model {
  /** Who visits. */
  classes: Class[];
  /** Half widths of the demands' 95 % confidence intervals in seconds, stations × classes, as calibration found them. Empty, or 0 where one is not known: it is then taken as exact. */
  demand_ci95_half_width?: number[][];
  /** How the errors of the classes' demands at one station hang together: stations × classes × classes, correlation coefficients as calibration found them. Empty: they are independent. Those of two stations always are. */
  demand_correlation?: number[][][];
  /** Service demand in seconds, stations × classes: total time one request of the class needs at the station. */
  demands: number[][];
  /** Classes whose demands at a station are known only together. Their rates keep these proportions. */
  joint_demands?: JointDemand[];
  /** Where requests spend time. */
  stations: Station[];
}

/** Percentiles of a response time. */
export interface Percentiles {
  /** Median. */
  p50: Comparison;
  /** 95th. */
  p95: Comparison;
  /** 99th. */
  p99: Comparison;
}

/** What a call of the mix costs in one of the server's programs while clients leave it no rest. */
export interface ProgramDemand {
  /** Half width of its 95 % confidence interval, by the blocks. */
  ci95_half_width?: number | null;
  /** CPU seconds of a call. */
  demand_s: number;
  /** The program's name. */
  name: string;
  /** How many processes it has. */
  processes: number;
  /** Of the CPU time of a call in all programs, 0..1. */
  share: number;
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

/** What a level is for. */
export type Role = "calibration" | "held_out" | "past_saturation";

/** The order of service at a queueing station. */
export type Scheduling = "ps" | "fcfs" | "priority" | "preemptive";

/** One station. */
export interface Station {
  /** Share of the station's capacity that other work takes (between 0 and 1), as calibration measured it. */
  background?: number;
  /** What a request costs more, or less, while the servers are partly idle; the demands are then those at saturation. */
  idle_cost?: IdleCost | null;
  /** Its name. */
  name: string;
  /** Service rate with 1, 2, … requests present, over the rate at which the demands hold; the last holds for any more. For a station whose speed depends on its load; empty means that it does not, beyond what `servers` says. */
  rate_multipliers?: number[];
  /** The order of service. */
  scheduling?: Scheduling;
  /** Squared coefficient of variation of the service times of each class by itself; 1 is exponential, 0 deterministic. What all classes together come to follows from their demands and rates. Processor sharing does not feel it. */
  scv?: number;
  /** Parallel servers of a queueing station. */
  servers?: number;
  /** In place of `scv`: that of the service times of all requests together, at the rates of the open classes. At least what the classes' unequal demands come to by themselves. */
  total_scv?: number | null;
  /** Whether requests queue at it. */
  type: StationKind;
}

/** Whether requests queue at a station. */
export type StationKind = "queue" | "delay";

/** Where and why a survey stopped early. */
export interface Stopped {
  /** At which level. */
  level: string;
  /** Why. */
  reason: string;
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

/** A change of the server that was predicted, then made, measured and undone. */
export interface WhatIf {
  /** What was changed, as on the command line: `quota=50%`. */
  change: string;
  /** CPUs that the server then had. */
  cpus: number;
  /** Speed of the server just before and after over that during calibration. */
  host_speed?: number | null;
  /** Half of the predicted rate, offered to measure the mean response time. */
  offered: number;
  /** The period of the quota, in seconds: when it is used up, the server stops until the next. */
  period_s: number;
  /** Mean response time there. It is predicted more roughly than that of levels: from a simulation of the quota. */
  response_time_s: Comparison;
  /** The server's capacity then, in calls per second. */
  saturation_rate: Comparison;
  /** Of the server's CPUs by the server's processes at that rate. */
  utilization: Comparison;
  /** Whether these figures can be trusted. */
  verdict: Verdict;
}
