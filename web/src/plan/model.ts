// What the planner's documents have in common, as crates/core/src/model.rs and crates/model, estimate and forecast define it.
//
// Times are seconds, rates are per second, utilizations are fractions; matrices are stations × classes. What is infinite is null.
import { number, seconds, type Format } from "../format.ts";

export interface Model {
  stations: Station[];
  classes: Class[];
  demands: number[][];
  demand_ci95_half_width?: number[][];
}

export interface Station {
  name: string;
  type: "queue" | "delay";
  servers: number;
  scheduling: string;
  scv: number;
  background: number;
}

export interface Class {
  name: string;
  type: "open" | "closed";
  rate: number | null;
  population: number | null;
  think: number;
}

export interface Solution {
  method: string;
  why: string;
  throughput: number[];
  response_time: number[];
  residence: number[][];
  queue_length: number[][];
  utilization: number[][];
  bottleneck: string;
  saturation_rate: number | null;
  mean_response_time: number;
}

export interface StationLimit {
  station: string;
  saturation_rate: number;
  utilization: number;
}

export interface Interval90 {
  lower: number | null;
  upper: number | null;
}

export interface Intervals {
  draws: number;
  saturation_rate: Interval90;
  response_time: Interval90[];
  headroom: Interval90[];
}

export interface Curve {
  axes: { subject: string; unit: string }[];
  classes: string[];
  stations: string[];
  points: CurvePoint[];
}

export interface CurvePoint {
  x: number[];
  steady: { throughput: number[]; response_time: number[]; mean_response_time: number } | null;
  utilization: number[];
  saturation_rate: number | null;
  bottleneck: string;
}

/** What comes of a class. */
export function offered(c: Class): string {
  if (c.type === "open") return `${number(c.rate)}/s`;
  const customers = c.population === 1 ? "1 customer" : `${c.population ?? 0} customers`;
  return c.think > 0 ? `${customers}, think ${seconds(c.think)}` : customers;
}

/** What a station is: "2 × PS", "delay". */
export function kind(s: Station): string {
  if (s.type === "delay") return "delay";
  const order = ["ps", "fcfs"].includes(s.scheduling) ? s.scheduling.toUpperCase() : s.scheduling;
  return s.servers > 1 ? `${s.servers} × ${order}` : order;
}

/** "118 – 129", or nothing where nothing is left open. */
export function between(interval: Interval90 | undefined, format: Format): string {
  if (interval === undefined) return "";
  const [lower, upper] = [interval.lower, interval.upper].map((end) => (end === null ? "∞" : format(end)));
  return lower === upper ? "" : `${lower} – ${upper}`;
}

export function sum(list: number[]): number {
  return list.reduce((a, b) => a + b, 0);
}
