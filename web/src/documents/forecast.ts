// Written by document-types.mjs from schema/forecast.schema.json.

/** The document. */
export interface Forecasted {
  /** How good such forecasts were before; absent if the history is too short to try. */
  backtest?: Backtest | null;
  /** Configurations compared, if there were any. */
  cost?: CostTable | null;
  /** When they reach it. */
  crossing?: Crossing | null;
  /** Relative growth of the trend in a month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives now, if the last season is repeated, or if the history lasts less than two months. */
  growth_per_month?: number | null;
  /** What to do, where configurations were compared, and when arrivals are too many. */
  headline: string;
  /** What it is made from: the history given, or its days. */
  history: Series;
  /** How well one step ahead was predicted within the history. */
  in_sample: InSample;
  /** The rate that they must not reach, if one was given. */
  limit?: Limit | null;
  /** What a reader should know, in sentences. */
  notes: string[];
  /** From the mean of a step to its peak. */
  peak: Peak;
  /** The forecast, by step. */
  points: ForecastPoint[];
  /** The highest rate of the last week: that of its highest step times `peak.factor`. */
  present_peak_rate: number;
  /** Mean arrivals per second over the last week. */
  present_rate: number;
  /** The scale on which trend and seasons add up. */
  scale: Scale;
  /** [`SCHEMA`]. */
  schema: string;
  /** Lengths of the seasons found or given, in steps. */
  seasons: number[];
  /** The form of the trend. */
  trend: TrendKind;
  /** By how much the intervals were widened for the back-test's sake; 1 if they were not. */
  widening: number;
}

/** Forecasts from earlier origins, compared with what came. */
export interface Backtest {
  /** Share of the values that fell into the 80 % interval, before any widening. */
  coverage80: number;
  /** Share of the values that fell into the 95 % interval, before any widening. */
  coverage95: number;
  /** How far each looked ahead, in steps. */
  horizon_steps: number;
  /** Mean absolute error over that of repeating the last season, one season ahead; absent if that makes none. */
  mase?: number | null;
  /** The same of repeating the last season (or value, without a season) as far as the others looked ahead. */
  naive_mase?: number | null;
  /** How many. */
  origins: number;
  /** All that were compared; the trend that fits best, on each scale, is that of the whole history. */
  tried: Tried[];
}

/** One configuration. */
export interface CostRow {
  /** The rate per second up to which it meets the objective; absent if it does at no rate. */
  capacity?: number | null;
  /** Price of a million requests when peaks reach the capacity. */
  cost_per_million_at_capacity?: number | null;
  /** Price of a million requests at the present mean rate, whether it can take it or not; absent if nothing arrives. */
  cost_per_million_now?: number | null;
  /** When arrivals reach the capacity. */
  crossing?: Crossing | null;
  /** Capacity over the present peak, less 1: 0.5 is half as much again; negative if it is too small already. Absent if nothing arrives, or without capacity. */
  headroom?: number | null;
  /** It is likely to last as long as asked. */
  lasts: boolean;
  /** It lasts as long as asked even at the upper end of the 95 % interval. */
  lasts_safely: boolean;
  /** Months from the end of the history to the likely date; 0 if it is too small already, absent if the date lies beyond the horizon or there is no capacity. */
  months_of_headroom?: number | null;
  /** Its name. */
  name: string;
  /** Its price per month. */
  price_per_month: number;
  /** What it changes of the model, as `--set` takes it: `cpu.servers=4`. */
  set?: string[];
}

/** Configurations compared, the cheapest first. */
export interface CostTable {
  /** The cheapest that is likely to last; absent if none is. */
  cheapest?: string | null;
  /** The cheapest that lasts even at the upper end of the 95 % interval; absent if none does. */
  cheapest_safe?: string | null;
  /** Months that the forecast looks ahead: more of headroom cannot be seen. */
  horizon_months: number;
  /** Months from the end of the history that a configuration should last. */
  months: number;
  /** The highest rate of the last week. */
  present_peak_rate: number;
  /** Mean arrivals per second over the last week. */
  present_rate: number;
  /** By price; of equal price, the largest first. */
  rows: CostRow[];
}

/** When arrivals reach a rate. A date is absent if it lies beyond the horizon. */
export interface Crossing {
  /** It was reached within the last week of the history already; the dates are then when. */
  already: boolean;
  /** When the upper end of the 95 % interval reaches it: hardly before. */
  earliest?: Timestamp | null;
  /** When the lower end of the 95 % interval reaches it: hardly after. */
  latest?: Timestamp | null;
  /** When the likely rate reaches it. */
  likely?: Timestamp | null;
  /** The rate, per second. */
  limit_rate: number;
}

/** Arrivals per second within one step to come. */
export interface ForecastPoint {
  /** As likely to be exceeded as not. */
  likely: number;
  /** Lower end of the 80 % interval. */
  lower80: number;
  /** Lower end of the 95 % interval. */
  lower95: number;
  /** When the step begins. */
  time: Timestamp;
  /** Upper end of the 80 % interval. */
  upper80: number;
  /** Upper end of the 95 % interval. */
  upper95: number;
}

/** A run of missing steps. */
export interface Gap {
  /** When the first of them begins. */
  from: Timestamp;
  /** How many there are. */
  steps: number;
}

/** Errors one step ahead. */
export interface InSample {
  /** Mean of |error|/rate; absent if a rate is 0. */
  mape?: number | null;
  /** Mean absolute error over that of repeating the last season; absent if that makes none. */
  mase?: number | null;
}

/** A rate that arrivals must not reach. */
export interface Limit {
  /** Per second. */
  rate: number;
  /** What happens there. */
  reason: string;
}

/** From the mean of a step to its peak. */
export interface Peak {
  /** Where it comes from. */
  basis: PeakBasis;
  /** The highest rate within a step over the step's mean. */
  factor: number;
}

/** Where a ratio of peak to mean comes from. */
export type PeakBasis = "given" | "learnt" | "unknown";

/** The scale on which trend and seasons add up. */
export type Scale = "linear" | "log";

/** Arrivals at a regular step. */
export interface Series {
  /** Steps that were missing and are interpolated. */
  bridged: Gap[];
  /** Times were written with more than one offset from UTC, and no zone was named. */
  mixed_offsets: boolean;
  /** Values that came before an earlier one and were sorted. */
  out_of_order: number;
  /** Mean arrivals per second within each step. */
  rates: number[];
  /** When the first step begins. */
  start: Timestamp;
  /** The length of a step in seconds; a day is as long as the clocks make it. */
  step_s: number;
  /** Whose clocks days and seasons follow. */
  zone: Zone;
}

/** A point in time, to the second, and what clocks somewhere show then. In documents RFC 3339: `2026-03-01T00:00:00+01:00`. */
export type Timestamp = string;

/** The form of a trend. */
export type TrendKind = "constant" | "line" | "autoregressive" | "level" | "drift" | "local" | "damped" | "moving_average" | "seasonal_naive";

/** A way to forecast that was compared with others. */
export interface Tried {
  /** As [`Backtest::mase`]. */
  mase?: number | null;
  /** The scale on which trend and seasons add up. */
  scale: Scale;
  /** The form of the trend. */
  trend: TrendKind;
}

/** A time zone: of the IANA database, or a fixed offset from UTC. In documents `UTC`, `Europe/Berlin` or `+01:00`. */
export type Zone = string;
