// Written by document-types.mjs from schema/solution.schema.json.

/** The document. Matrices are stations × classes, in the order of the model. */
export interface Solved {
  /** The station that saturates first; empty if none ever does. */
  bottleneck?: string;
  /** By class of a closed network, what it can reach at most and must at least; else empty. */
  bounds: AsymptoticBounds[];
  /** What to know before relying on the figures. */
  caveats: string[];
  /** The same model from idleness to saturation, or at growing populations. */
  curve?: Curve | null;
  /** In one sentence: what limits, and at which rate. */
  headline: string;
  /** 90 % intervals, where the demands have any. */
  intervals?: Intervals | null;
  /** What saturates first, and what after it. */
  limits: StationLimit[];
  /** R over all requests, at their present mix. */
  mean_response_time?: number;
  /** How it was solved; never `auto`. */
  method?: Method;
  /** The network. */
  model: Model;
  /** N; stations × classes. */
  queue_length?: number[][];
  /** Time spent at the station, queued or served; stations × classes. */
  residence?: number[][];
  /** How long requests take, by class; approximate. Empty without a formula. */
  response_percentiles: Percentiles[];
  /** R, by class; without think time. */
  response_time?: number[];
  /** The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never. */
  saturation_rate?: number | null;
  /** [`SCHEMA`]. */
  schema: string;
  /** By simulation, if it was asked for. */
  simulation?: Simulation | null;
  /** X, by class. */
  throughput?: number[];
  /** U = X·D/m, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the number present; of one with rate multipliers, X·D. */
  utilization?: number[][];
  /** Why this way. */
  why?: string;
}

/** Asymptotic bounds of one class. */
export interface AsymptoticBounds {
  /** What they say at the given population. */
  bounds: Bounds;
  /** N* = (D + Z)/Dmax: the population of this class at which its two upper bounds on X meet and queueing must begin. */
  saturation_population: number;
}

/** A range. */
export interface Axis {
  /** What is different from point to point, like `cpu.speed`. */
  subject: string;
  /** In what: `x` (a factor), `%` (more or less), `1/s`, `s`, `bit/s`, `B`, or nothing. */
  unit: string;
}

/** Where a closed class must lie. */
export interface Bounds {
  /** R, in seconds, without think time and with delay stations; at most infinite (JSON: null) where nothing is known. */
  response_time: Range;
  /** X, per second. */
  throughput: Range;
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

/** A model along one range, or over the grid of two. */
export interface Curve {
  /** The ranges. */
  axes: Axis[];
  /** The classes, in the order of the points' figures. */
  classes: string[];
  /** The points; with two ranges, the second one changes fastest. */
  points: CurvePoint[];
  /** The stations, likewise. */
  stations: string[];
}

/** One point. */
export interface CurvePoint {
  /** Which one that is; empty if none. */
  bottleneck: string;
  /** The rate of all classes together, at their mix here, at which the first station saturates. */
  saturation_rate?: number | null;
  /** What is reached there; `None` if there is no solution. */
  steady?: Steady | null;
  /** Why there is none: a station that cannot keep up, or what a solver could not do. */
  unsolved?: string | null;
  /** Share in use of what each station can give to our classes, 1 or more where it cannot keep up; of a delay, the number present. Without closed classes where there is no solution. */
  utilization: number[];
  /** Where it is, by axis. */
  x: number[];
}

/** Why a run ended. */
export type Ended = "precision" | "events" | "time" | "resolution";

/** A number that was fitted or simulated. */
export interface Estimate {
  /** Half width of its 95 % confidence interval; `None` where the data leave no freedom to judge it by. */
  ci95_half_width?: number | null;
  /** Its value. */
  value: number;
}

/** How the demands of a queue depend on its load: on average a request of each class that visits needs `seconds`·I^`power` more than its demand, with I the share (0 to 1) of the station's capacity that nobody uses, neither requests nor other work. Above 0 it is paid by those who find servers idle: at one server and power 1, all of it by each of them, and nothing by who waits (Welch 1964). Below 0 all requests pay alike. */
export interface IdleCost {
  /** How fast it fades as the load grows: 1 with the idleness, 2 with its square, and so on up to 4. */
  power: number;
  /** In seconds, at an idle station, and as variable as service is. Above 0 for a server that has to wake up; below, where requests get in one another's way, and cost less the fewer there are. */
  seconds: number;
}

/** From the 5 % to the 95 % quantile. */
export interface Interval90 {
  /** Its lower end; `None` if unbounded. */
  lower?: number | null;
  /** Its upper end; `None` if unbounded. */
  upper?: number | null;
}

/** 90 % intervals of a model's results. */
export interface Intervals {
  /** Number of draws of the demands. */
  draws: number;
  /** Of the load up to which each objective is met. */
  headroom: Interval90[];
  /** R, by class. */
  response_time: Interval90[];
  /** Of the rate of all classes together at which the first station saturates. */
  saturation_rate: Interval90;
  /** The share of draws in which some station could not keep up. */
  unstable_share: number;
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

/** How to solve a network. */
export type Method = "auto" | "exact" | "erlang" | "seidmann" | "schweitzer" | "linearizer" | "simulation";

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

/** Of the response times of a class, in seconds, as the model has them. */
export interface Percentiles {
  /** Median. */
  p50: number;
  /** What 95 % of requests do not exceed. */
  p95: number;
  /** What 99 % of requests do not exceed. */
  p99: number;
}

/** From the least to the most. */
export interface Range {
  /** The least. */
  lower: number;
  /** The most. */
  upper: number;
}

/** The response time of a class: from arrival to the end of the last visit, without think time. */
export interface ResponseTime {
  /** Its mean. */
  mean: Estimate;
  /** Its median. */
  p50: Estimate;
  /** What 90 % of requests do not exceed. */
  p90: Estimate;
  /** What 95 % of requests do not exceed. */
  p95: Estimate;
  /** What 99 % of requests do not exceed. */
  p99: Estimate;
}

/** How a run went. */
export interface Run {
  /** Length of each. */
  batch_s: number;
  /** Number of batches of the rest. */
  batches: number;
  /** What to know before relying on the figures, and what to do about it. Empty if there is nothing. */
  caveats: string[];
  /** Why it ended. */
  ended: Ended;
  /** Events in all. */
  events: number;
  /** The greatest correlation of successive batches, among the classes' mean response times. */
  lag1_correlation: number;
  /** The widest interval, as a share of its figure, among the classes' throughputs and mean response times; `None` if one of them has none. */
  precision?: number | null;
  /** Seed of the random numbers. */
  seed: number;
  /** Whether warm-up was over before half the run. */
  settled: boolean;
  /** Simulated time that was recorded, warm-up included. */
  time_s: number;
  /** How much of that was left out as warm-up. */
  warm_up_s: number;
}

/** The order of service at a queueing station. */
export type Scheduling = "ps" | "fcfs" | "priority" | "preemptive";

/** Result of a simulation. Every figure has a 95 % confidence interval. */
export interface Simulation {
  /** N, stations × classes. */
  queue_length: Estimate[][];
  /** Time from arrival at the station to departure, stations × classes; 0 where the class has no demand, `None` where no visit was seen. */
  residence: ((Estimate | null)[])[];
  /** R, by class; `None` of a class of which no request was completed. */
  response_time: (ResponseTime | null)[];
  /** How the run went. */
  run: Run;
  /** X, by class. */
  throughput: Estimate[];
  /** U of the nominal capacity, stations × classes; of a delay station, the number present. */
  utilization: Estimate[][];
}

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

/** A station and the load at which it saturates. */
export interface StationLimit {
  /** The rate of all classes together, at their present mix, at which it saturates. */
  saturation_rate: number;
  /** Its name. */
  station: string;
  /** Share of what it can give to our classes that is in use; 1 or more if it cannot keep up. */
  utilization: number;
}

/** A network in its steady state; by class. */
export interface Steady {
  /** R over all requests. */
  mean_response_time: number;
  /** R. */
  response_time: number[];
  /** X. */
  throughput: number[];
}
