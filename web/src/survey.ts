// What the page works out from a survey's document.
//
// Times are seconds, rates are per second, utilizations and shares are fractions between 0 and 1.

import type { Comparison, Level, Role, Station, Survey as Document } from "./documents/survey.ts";
import { NONE } from "./format.ts";
import { documentOf } from "./page.ts";

/** The document; its seed as it stands there, since 64 bits are more than a number here can hold. */
export type Survey = Omit<Document, "seed"> & { seed: string };

export const ROLES: Record<Role, string> = {
  calibration: "calibration",
  held_out: "held out",
  past_saturation: "past saturation",
};

/** Reads the document; what it throws is a sentence for the reader. */
export function read(json: string): Survey {
  const survey = documentOf<Survey>(json);
  const parts = ["saturation_rate", "levels", "demands", "verdict", "model", "command", "server_cpus", "client_cpus"] as const;
  const lacking = parts.filter((part) => typeof survey[part] !== "object" || survey[part] == null);
  if (lacking.length > 0) throw new Error(`The survey inside this file is incomplete: it has no ${lacking.join(", no ")}.`);
  return { ...survey, seed: /"seed":\s*(\d+)/.exec(json)?.[1] ?? NONE };
}

/** Whether what was measured holds: at most the model is refuted. */
export function isMeasuredWell(survey: Survey): boolean {
  return survey.verdict.reasons.every((reason) => reason.code === "model_refuted");
}

/** The levels that the charts show: those of the whole mix. */
export function mixLevels(survey: Survey): Level[] {
  return survey.levels.filter((level) => level.workload === "mix").sort((a, b) => a.offered - b.offered);
}

/** The held-out levels of other loads than a steady stream of the mix: another mix, bursts. */
export function otherLoads(survey: Survey): Level[] {
  return survey.levels.filter((level) => level.role === "held_out" && level.workload !== "mix");
}

/** The levels of one role, in the order of the document. */
export function ofRole(survey: Survey, role: Role): Level[] {
  return survey.levels.filter((level) => level.role === role);
}

/** Between which figures a measurement was predicted to lie, nine times in ten. */
export function between(comparison: Comparison): [number, number] | null {
  const [low, high] = comparison.interval90 ?? [];
  return low === undefined || high === undefined ? null : [low, high];
}

/** Whether the measurement lies there; null where one of the two is not known. */
export function holds(comparison: Comparison): boolean | null {
  const interval = between(comparison);
  const { measured } = comparison;
  return interval === null || measured == null ? null : interval[0] <= measured && measured <= interval[1];
}

/** How many intervals hold, by what was predicted; levels in doubt do not count. */
export function intervals(survey: Survey): { name: string; hold: number; all: number }[] {
  const levels = ofRole(survey, "held_out").filter((level) => level.verdict.valid);
  const percentiles = ({ response_percentiles_s: { p50, p95, p99 } }: Level) => [p50, p95, p99];
  const kinds: [string, Comparison[]][] = [
    ["capacity", [survey.saturation_rate]],
    ["mean response", levels.map((level) => level.response_time_s)],
    ["percentiles", levels.flatMap(percentiles)],
    ["utilization", levels.map((level) => level.utilization)],
  ];
  return kinds.flatMap(([name, comparisons]) => {
    const known = comparisons.map(holds).filter((held) => held !== null);
    return known.length === 0 ? [] : [{ name, hold: known.filter((held) => held).length, all: known.length }];
  });
}

/** The held-out levels at 70–80 % of the predicted saturation rate whose mean response time was predicted. */
export function busyLevels(survey: Survey): Level[] {
  const busy = (level: Level) => level.fraction > 0.695 && level.fraction < 0.805;
  return mixLevels(survey).filter((l) => l.role === "held_out" && busy(l) && l.response_time_s.error != null);
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
    c.seconds / ((c.station.servers ?? 1) * (1 - (c.station.background ?? 0)));
  const named = candidates.find(({ station }) => station.name === survey.bottleneck);
  return named ?? candidates.sort((a, b) => load(b) - load(a))[0] ?? null;
}

/** What a whole survey has and this one lacks. */
export function missing(survey: Survey): string[] {
  const levels = mixLevels(survey);
  const has = (role: Role) => levels.some((level) => level.role === role);
  return [
    [has("calibration"), "calibration levels"],
    [survey.demands.length > 0, "fitted demands"],
    [survey.saturation_rate.predicted != null, "the predicted saturation rate"],
    [has("held_out"), "held-out levels"],
    [has("past_saturation"), "levels past saturation"],
    [survey.saturation_rate.measured != null, "the measured saturation rate"],
    [survey.client_max_rate != null, "the client’s maximum rate"],
  ].flatMap(([there, what]) => (there ? [] : [what as string]));
}
