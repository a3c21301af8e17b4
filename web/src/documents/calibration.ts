// Written by document-types.mjs from schema/calibration.schema.json.

/** The document. */
export interface Calibration {
  /** Busy CPUs without requests, of the server's own. */
  background: Estimate;
  /** How bursty arrivals were, and the cost of bursts. */
  bursts: Bursts;
  /** Of the regression at the CPU; above some 30 the intervals are wide. */
  condition_number: number;
  /** D(X) of the mix, where it depends on the load: from the lowest rate measured to saturation. */
  demand_curve: DemandAtRate[];
  /** In one sentence: what limits, and at which rate. */
  headline: string;
  /** Records of an idle server, likewise. */
  idle: number[];
  /** What the server itself measured of its requests, if it has the Server Module with the classes of the load, beside what the runs say without that. */
  inside?: InsideDemands | null;
  /** Where the measured throughput bends, without a queueing model. */
  knee: KneeCheck;
  /** The others, and why. */
  left_out: LeftOut[];
  /** What saturates first, and what after it. */
  limits: StationLimit[];
  /** Whether requests cost more or less under load. */
  load_dependence?: LoadDependence | null;
  /** Classes that the runs cannot tell apart at the CPU. */
  merged: Merged[];
  /** Stations: `cpu`, the disks that were used, and `elsewhere`, a delay, if there were response times. Open classes, at the mean rates of the runs of the mix (of all runs, if each had one class). */
  model: Model;
  /** The one of them that the others' law does not explain, if there is one. */
  odd?: OddRun | null;
  /** The Records' names, in the order of their indices elsewhere. */
  records: string[];
  /** Delay and variability, from response times. */
  response?: ResponseFit | null;
  /** What each run that the demands stand on says of the mean request, and what they say of it. */
  runs: RunDemand[];
  /** Where the model saturates, at the mix of its classes. */
  saturation: Saturation;
  /** [`SCHEMA`]. */
  schema: string;
  /** What demands have to do with sizes, if there are at least three. */
  sizes?: SizeDemand | null;
  /** Beside [`Model::demands`], stations × classes. */
  uncertainty: Uncertainty[][];
  /** Records that the demands stand on, by their place in the input, from 0. */
  used: number[];
  /** Warnings for users of the model. */
  warnings: string[];
}

/** D = D_f + α·b. */
export interface BurstDemand {
  /** α, in seconds; never negative. */
  alpha: Estimate;
  /** D_f: without bursts, in seconds. */
  without_bursts: Estimate;
}

/** How bursty a sequence of counts is. */
export interface BurstFactors {
  /** a = λ⁺/λ; `None` if no epoch is above the mean. */
  a?: number | null;
  /** b: share of the epochs in which more than the mean arrived. */
  b: number;
  /** Index of dispersion of the counts: variance (n − 1) over mean. */
  dispersion: number;
  /** Number of epochs. */
  epochs: number;
  /** The largest count over the mean one. */
  peak_to_mean: number;
  /** λ: arrivals per second over all of them. */
  rate: number;
  /** λ⁺: arrivals per second in those; `None` if there are none. */
  rate_above?: number | null;
}

/** Burstiness of one run. */
export interface BurstRun {
  /** b, or 0 if it is not bursty. */
  b: number;
  /** Whether it is more than 1 beyond doubt. */
  bursty: boolean;
  /** The index of dispersion, by the length of the window. */
  dispersion: Dispersion[];
  /** Length of an epoch, in seconds. */
  epoch_s: number;
  /** a and b, and other measures of the same counts. */
  factors: BurstFactors;
  /** The Record's place in the input, from 0. */
  record: number;
}

/** Burstiness of the runs, and the cost of bursts. */
export interface Bursts {
  /** D = D_f + α·b of the mean request of the model's mix, from at least two levels of b. */
  demand?: BurstDemand | null;
  /** b at which the model's demands hold: the mean of the runs that they stand on. */
  measured_at_b: number;
  /** Runs of arrivals that did not wait for answers. */
  runs: BurstRun[];
  /** Requests per second at which the model saturates at the highest b measured. */
  saturation_rate?: number | null;
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

/** Demand of the mean request of the mix at one rate. */
export interface DemandAtRate {
  /** CPU seconds of one. */
  demand_s: number;
  /** Requests per second, all classes together. */
  rate: number;
}

/** The index of dispersion in windows of one length. */
export interface Dispersion {
  /** Its confidence interval. */
  ci95: Interval;
  /** Variance (n − 1) over mean. */
  index: number;
  /** Length of a window, in epochs. */
  window: number;
  /** How many there are. */
  windows: number;
}

/** A number that was fitted or simulated. */
export interface Estimate {
  /** Half width of its 95 % confidence interval; `None` where the data leave no freedom to judge it by. */
  ci95_half_width?: number | null;
  /** Its value. */
  value: number;
}

/** An unknown that is held at zero because the fit would make it negative. */
export type Held = "per_request" | "per_byte";

/** How the demands of a queue depend on its load: on average a request of each class that visits needs `seconds`·I^`power` more than its demand, with I the share (0 to 1) of the station's capacity that nobody uses, neither requests nor other work. Above 0 it is paid by those who find servers idle: at one server and power 1, all of it by each of them, and nothing by who waits (Welch 1964). Below 0 all requests pay alike. */
export interface IdleCost {
  /** How fast it fades as the load grows: 1 with the idleness, 2 with its square, and so on up to 4. */
  power: number;
  /** In seconds, at an idle station, and as variable as service is. Above 0 for a server that has to wake up; below, where requests get in one another's way, and cost less the fewer there are. */
  seconds: number;
}

/** One class, in seconds of CPU time for a request. */
export interface InsideDemand {
  /** Its confidence interval. */
  ci95?: Interval | null;
  /** Its name. */
  class: string;
  /** The same at saturation, with what the server's processes used beside its workers: the model's. */
  demand_s: number;
  /** Half width of its 95 % confidence interval. */
  measured_ci95_half_width?: number | null;
  /** As the module has it over all runs, whatever their load: the mean of `demand_us`. `None` where so few requests came that this cannot be told. */
  measured_s?: number | null;
  /** `demand_s` over `regression_s`. */
  ratio?: number | null;
  /** Its confidence interval. */
  regression_ci95?: Interval | null;
  /** At saturation, by the utilization law without what was measured inside; `None` where the runs cannot tell the class from others. */
  regression_s?: number | null;
  /** Requests whose CPU time was measured. */
  sampled: number;
}

/** Demands at the CPU as measured inside the server, and as the runs have them without that. */
export interface InsideDemands {
  /** Each class of the model, in its order. */
  classes: InsideDemand[];
  /** Why there is no regression, where there is none. */
  no_regression?: string | null;
  /** Squared coefficient of variation of the CPU time of requests of a class, over all classes by their second moments. */
  scv?: number | null;
  /** Standard error of `scv`. */
  scv_standard_error?: number | null;
  /** Workers that may want a CPU at the same time. Where they are more than the CPUs they take turns, and how long requests wait says nothing of how variable service is: the model's variability is then fitted, not this. */
  workers?: number | null;
}

/** A confidence interval at 95 %. */
export interface Interval {
  /** Its upper end. */
  high: number;
  /** Its lower end. */
  low: number;
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

/** Where a curve bends over. */
export interface Knee {
  /** How far the curve stands above its chord there, 0..1 of its height. */
  height: number;
  /** The load there, one of those measured. */
  load: number;
  /** The throughput there. */
  throughput: number;
}

/** Where the measured throughput bends. */
export interface KneeCheck {
  /** Kneedle's knee of the throughput over the load offered, of the runs whose calls did not wait for answers. */
  knee?: Knee | null;
  /** Why there is none, and what to do about it. */
  knee_absent?: string | null;
  /** The runs of the mix, by what they offered. */
  measured: MeasuredLoad[];
  /** The universal scalability law of the throughput over the requests present: of closed runs if there are any, else of those that kept up. */
  usl?: UslFit | null;
  /** Why there is none, and what to do about it. */
  usl_absent?: string | null;
}

/** A Record that was not used. */
export interface LeftOut {
  /** Why, and what to do about it. */
  reason: string;
  /** Its place in the input, from 0. */
  record: number;
}

/** Demands that depend on the load. */
export interface LoadDependence {
  /** D in seconds, by class, without the term. */
  demands: Estimate[];
  /** The F statistic. */
  f: number;
  /** Its probability under constant demands, corrected for the number of shapes tried. */
  p: number;
  /** How: `per_second` where so many servers are busy as soon as there are requests, `idle^2` where what each request costs more fades with the square of the servers' idleness, `busy` where it grows with their utilization. */
  shape: string;
  /** w: busy servers for `per_second`, else seconds per request. */
  weight: Estimate;
}

/** One run, past saturation or not. */
export interface MeasuredLoad {
  /** Whether calls waited for answers. */
  closed: boolean;
  /** Whole responses per second. */
  completed: number;
  /** Calls per second. */
  offered: number;
  /** Mean number of requests present, by Little's law (N = X·R). */
  present?: number | null;
  /** The Record's place in the input, from 0. */
  record: number;
}

/** Classes with one demand between them. */
export interface Merged {
  /** Their names. */
  classes: string[];
  /** Demand of their mean request. */
  joint_demand_s: number;
  /** Their shares of the requests among them, over all runs used: the joint demand holds for these. */
  shares: number[];
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

/** A run whose CPU time is not what the others say. */
export interface OddRun {
  /** Busy CPUs, as measured. */
  busy: number;
  /** Busy CPUs at its rates by the law of the other runs. */
  expected: number;
  /** Probability of one so far out in some run, if all are good. */
  p: number;
  /** The Record's place in the input, from 0. */
  record: number;
  /** The difference in its standard errors (externally studentized residual). */
  residual: number;
}

/** A point far from the line. */
export interface Outlier {
  /** Probability of as large a one among all points, were they alike. */
  p: number;
  /** Which, counted from 0. */
  point: number;
  /** Its distance from the line through the others, in its own standard errors. */
  studentized_residual: number;
}

/** The highest throughput. */
export interface Peak {
  /** How reliable it is. */
  basis: PeakBasis;
  /** N*: √((1 − α)/β). */
  load: Estimate;
  /** X(N*). */
  throughput: Estimate;
}

/** How reliable a peak is. */
export type PeakBasis = "measured" | "extrapolated" | "doubtful";

/** What response times tell beyond demands. */
export interface ResponseFit {
  /** Where `scv` comes from. */
  basis: ScvBasis;
  /** Z0: time that every request spends elsewhere, in seconds. */
  delay: number;
  /** Squared coefficient of variation of the service times of each class. */
  scv: number;
  /** Standard error of `scv`, where it was measured or fitted. */
  scv_standard_error?: number | null;
}

/** What one run says of the demand of its mean request, whatever its mix. */
export interface RunDemand {
  /** The same as the demands have it, at this rate. */
  fitted_s: number;
  /** CPU seconds of one request, as measured. */
  measured_s: number;
  /** Requests per second, all classes together. */
  rate: number;
  /** The Record's place in the input, from 0. */
  record: number;
  /** Utilization of each of the server's CPUs. */
  utilization: number;
}

/** Where a model saturates. */
export interface Saturation {
  /** The station that saturates. */
  bottleneck: string;
  /** Its confidence interval; `None` where there is none of the demands, or where the CPU is not the bottleneck. */
  ci95?: Interval | null;
  /** Requests per second, all classes together. */
  rate: number;
}

/** The order of service at a queueing station. */
export type Scheduling = "ps" | "fcfs" | "priority" | "preemptive";

/** Where a coefficient of variation comes from. */
export type ScvBasis = "measured" | "fitted" | "too_few_points" | "indistinct";

/** CPU demand by the size of the response, head included. */
export interface SizeDemand {
  /** Names of the classes that the line goes through. */
  classes: string[];
  /** The line. */
  fit: SizeFit;
  /** Mean size and demand of each. */
  points: SizePoint[];
}

/** D = a + b·bytes. */
export interface SizeFit {
  /** Which of the two would have been negative. */
  held_at_zero?: Held | null;
  /** Points that do not belong to the line, the farthest first. */
  outliers: Outlier[];
  /** b: what a byte costs, in seconds. */
  per_byte_s: Estimate;
  /** a: what a request costs whatever its size, in seconds. */
  per_request_s: Estimate;
  /** Share of the variance that the line explains; 1 if there is none. */
  r2: number;
  /** Standard deviation of a point about the line (n − 2 degrees of freedom), in seconds. */
  residual_stddev_s: number;
}

/** One response, or the mean of several of the same size. */
export interface SizePoint {
  /** Size of the response. */
  bytes: number;
  /** CPU time of one request, in seconds. */
  cpu_s: number;
}

/** What a demand stands on; the first is trusted most. */
export type Source = "direct" | "single_class_run" | "regression" | "proportional" | "response_times";

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

/** Uncertainty of a demand. */
export interface Uncertainty {
  /** Interval by the bootstrap within the runs. */
  bootstrap_ci95?: Interval | null;
  /** The wider of the two below; `None` where there is neither. */
  ci95?: Interval | null;
  /** Interval by the regression over the runs. */
  fit_ci95?: Interval | null;
  /** What it was derived from. */
  source: Source;
}

/** A fitted law. */
export interface UslFit {
  /** α: contention. */
  alpha: Estimate;
  /** β: coherency. */
  beta: Estimate;
  /** γ: throughput at load 1. */
  gamma: Estimate;
  /** Where the throughput is highest; `None` if it grows without end (β = 0) or never grows (α ≥ 1). */
  peak?: Peak | null;
  /** Share of the variance of the throughputs that the law explains. */
  r2: number;
}
