// Written by document-types.mjs from schema/what-if.schema.json.

/** The document. */
export interface Changed {
  /** The model with all changes; `None` if one of them is a range. */
  after?: Outlook | null;
  /** The model as it is. */
  before: Outlook;
  /** What to know before relying on the figures. */
  caveats: string[];
  /** The changes, as they are written. */
  changes: string[];
  /** The model along the ranges, if there are any. */
  curve?: Curve | null;
  /** After over before, where the demands have intervals. */
  effect?: Effect | null;
  /** In one sentence: what becomes of the limit. */
  headline: string;
  /** Both as their load grows to saturation; absent where there is no common measure of it. */
  load_curves?: LoadCurves | null;
  /** [`SCHEMA`]. */
  schema: string;
}

/** A range. */
export interface Axis {
  /** What is different from point to point, like `cpu.speed`. */
  subject: string;
  /** In what: `x` (a factor), `%` (more or less), `1/s`, `s`, `bit/s`, `B`, or nothing. */
  unit: string;
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

/** Effect of a change: ratio of after to before. */
export interface Effect {
  /** On R, by class of the model before; without the draws that keep up neither before nor after. */
  response_time: Interval90[];
  /** On the saturation rate. */
  saturation_rate: Interval90;
}

/** An objective, and the headroom until it is missed. */
export interface Headroom {
  /** Whether it is met at the present load. */
  met: boolean;
  /** Its measure at the present load; `None` if some station cannot keep up. */
  now?: number | null;
  /** The objective. */
  slo: Slo;
  /** The greatest load at which it is met. */
  until: Until;
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

/** A model along its load, before and after. */
export interface LoadCurves {
  /** With all changes. */
  after: Curve;
  /** As it is. */
  before: Curve;
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

/** A solved model. */
export interface Outlook {
  /** How far the load can grow, by objective. */
  headroom: Headroom[];
  /** 90 % intervals, where the demands have any. */
  intervals?: Intervals | null;
  /** The model. */
  model: Model;
  /** Its solution; `None` if some station cannot keep up. */
  solution?: Solution | null;
  /** The stations, in the order in which they saturate. */
  stations: StationLimit[];
  /** Why there is none. */
  unsolved?: string | null;
}

/** The order of service at a queueing station. */
export type Scheduling = "ps" | "fcfs" | "priority" | "preemptive";

/** An objective: a measure that is to stay below a limit. */
export type Slo = string;

/** A solved network. */
export interface Solution {
  /** The station that saturates first; empty if none ever does. */
  bottleneck: string;
  /** R over all requests, at their present mix. */
  mean_response_time: number;
  /** How it was solved; never `auto`. */
  method: Method;
  /** N; stations × classes. */
  queue_length: number[][];
  /** Time spent at the station, queued or served; stations × classes. */
  residence: number[][];
  /** R, by class; without think time. */
  response_time: number[];
  /** The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never. */
  saturation_rate?: number | null;
  /** X, by class. */
  throughput: number[];
  /** U = X·D/m, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the number present; of one with rate multipliers, X·D. */
  utilization: number[][];
  /** Why this way. */
  why: string;
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

/** The greatest load at which an objective is met. */
export type Until = "never" | {
  rate: number;
} | {
  population: number;
} | "always";
