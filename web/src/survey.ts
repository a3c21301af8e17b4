// The survey's document, as crates/core/src/survey.rs defines it, and what the page works out from it.
//
// Times are seconds, rates are per second, utilizations and shares are fractions between 0 and 1.

import { NONE } from "./format.ts";
import { documentOf } from "./page.ts";

export interface Survey {
  schema: string;
  started_at: string;
  brimful_version: string;
  command: string[];
  /** As it stands in the document: 64 bits are more than a number here can hold. */
  seed: string;
  url: string;
  headline: string;
  saturation_rate: Comparison;
  levels: Level[];
  demands: Demand[];
  client_max_rate: number | null;
  verdict: Verdict;
  model: { stations: Station[]; classes: { name: string; rate?: number | null }[] };
  frozen: string | null;
  stopped: { level: string; reason: string } | null;
  server_cpus: number[];
  client_cpus: number[];
  background: number | null;
  /** Busy servers at any load below saturation, besides what the calls need. */
  wakeup_s: number | null;
}

export interface Comparison {
  predicted: number | null;
  measured: number | null;
  error: number | null;
  measured_ci95_half_width: number | null;
}

export interface Level {
  fraction: number;
  offered: number;
  role: Role;
  workload: string;
  clients: number | null;
  window_s: number;
  throughput: Comparison;
  response_time_s: Comparison;
  response_percentiles_s: { p50: number | null; p95: number | null; p99: number | null };
  utilization: Comparison;
  cpu: { user: number; system: number; idle: number; steal: number } | null;
  error_share: number;
  lateness_p50_s: number | null;
  lateness_p99_s: number | null;
  verdict: Verdict;
  classes: { name: string; throughput: number; response_time_s: Comparison }[];
}

export type Role = "calibration" | "held_out" | "past_saturation";

export interface Verdict {
  valid: boolean;
  reasons: { code: string; message: string }[];
}

export interface Demand {
  station: string;
  class: string;
  seconds: number;
  ci95_half_width: number | null;
  truth: number | null;
}

export interface Station {
  name: string;
  type: "queue" | "delay";
  servers: number;
  scheduling: "ps" | "fcfs";
  scv: number;
  background: number;
}

export const ROLES: Record<Role, string> = {
  calibration: "calibration",
  held_out: "held out",
  past_saturation: "past saturation",
};

/** Reads the document; what it throws is a sentence for the reader. */
export function read(json: string): Survey {
  const survey = documentOf<Survey>(json);
  const parts = ["saturation_rate", "levels", "demands", "verdict", "model", "command", "server_cpus", "client_cpus"] as const;
  const lacking = parts.filter((part) => typeof survey[part] !== "object" || survey[part] === null);
  if (lacking.length > 0) throw new Error(`The survey inside this file is incomplete: it has no ${lacking.join(", no ")}.`);
  return { ...survey, seed: /"seed":\s*(\d+)/.exec(json)?.[1] ?? NONE };
}

/** The levels that the charts show: those of the whole mix. */
export function mixLevels(survey: Survey): Level[] {
  return survey.levels.filter((level) => level.workload === "mix").sort((a, b) => a.offered - b.offered);
}

/** The held-out levels at 70–80 % of the predicted saturation rate whose mean response time was predicted. */
export function busyLevels(survey: Survey): Level[] {
  const busy = (level: Level) => level.fraction > 0.695 && level.fraction < 0.805;
  return mixLevels(survey).filter((l) => l.role === "held_out" && busy(l) && l.response_time_s.error !== null);
}

/** The queueing station that saturates first, and what one request of the mix needs there. */
export function bottleneck(survey: Survey): { station: Station; seconds: number } | null {
  const { stations, classes } = survey.model;
  const rates = classes.map((c) => c.rate ?? 0);
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  const share = (name: string) => {
    const i = classes.findIndex((c) => c.name === name);
    return total > 0 ? (rates[i] ?? 0) / total : 1 / classes.length;
  };
  const candidates = stations
    .filter((station) => station.type === "queue")
    .map((station) => {
      const here = survey.demands.filter((d) => d.station === station.name);
      return { station, seconds: here.reduce((sum, d) => sum + d.seconds * share(d.class), 0) };
    })
    .filter(({ seconds }) => seconds > 0);
  const load = (c: { station: Station; seconds: number }) =>
    c.seconds / (c.station.servers * (1 - c.station.background));
  return candidates.sort((a, b) => load(b) - load(a))[0] ?? null;
}

/** What a whole survey has and this one lacks. */
export function missing(survey: Survey): string[] {
  const levels = mixLevels(survey);
  const has = (role: Role) => levels.some((level) => level.role === role);
  return [
    [has("calibration"), "calibration levels"],
    [survey.demands.length > 0, "fitted demands"],
    [survey.saturation_rate.predicted !== null, "the predicted saturation rate"],
    [has("held_out"), "held-out levels"],
    [has("past_saturation"), "levels past saturation"],
    [survey.saturation_rate.measured !== null, "the measured saturation rate"],
    [survey.client_max_rate !== null, "the client’s maximum rate"],
  ].flatMap(([there, what]) => (there ? [] : [what as string]));
}
