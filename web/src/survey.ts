// Computes values for the page from the document of a survey.
//
// Times are seconds, rates are per second, utilizations and shares are fractions between 0 and 1.

import type { Comparison, Level, Role, Station, Survey as Document } from "./documents/survey.ts";
import { NONE } from "./format.ts";
import { parseDocument } from "./page.ts";

/** The document, with its seed as text: a JavaScript number cannot represent all 64-bit integers. */
export type Survey = Omit<Document, "seed"> & { seed: string };

export const ROLES: Record<Role, string> = {
  calibration: "calibration",
  held_out: "held out",
  past_saturation: "past saturation",
};

/** Parses the document. The message of an error is meant for the reader of the page. */
export function readSurvey(json: string): Survey {
  const survey = parseDocument<Survey>(json);
  const parts = ["saturation_rate", "levels", "demands", "verdict", "model", "command", "server_cpus", "client_cpus"] as const;
  const absent = parts.filter((part) => typeof survey[part] !== "object" || survey[part] == null);
  if (absent.length > 0) throw new Error(`The survey inside this file is incomplete: it has no ${absent.join(", no ")}.`);
  return { ...survey, seed: /"seed":\s*(\d+)/.exec(json)?.[1] ?? NONE };
}

/** Whether the measurements can be trusted, even if the model is refuted. */
export function isMeasuredWell(survey: Survey): boolean {
  return survey.verdict.reasons.every((reason) => reason.code === "model_refuted");
}

/** The levels of the whole mix, by offered load: those on the charts' lines. */
export function mixLevels(survey: Survey): Level[] {
  return survey.levels.filter((level) => level.workload === "mix").sort((a, b) => a.offered - b.offered);
}

/** The held-out levels whose load is not a steady stream of the mix, such as another mix or bursts. */
export function otherLoads(survey: Survey): Level[] {
  return survey.levels.filter((level) => level.role === "held_out" && level.workload !== "mix");
}

/** The levels of one role, in the order of the document. */
export function levelsOfRole(survey: Survey, role: Role): Level[] {
  return survey.levels.filter((level) => level.role === role);
}

/** The interval that was predicted to contain the measurement with a probability of 90 %. */
export function predictionInterval(comparison: Comparison): [number, number] | null {
  const [low, high] = comparison.interval90 ?? [];
  return low === undefined || high === undefined ? null : [low, high];
}

/** Whether the measurement is within its predicted interval; null if one of them is unknown. */
export function isWithinInterval(comparison: Comparison): boolean | null {
  const interval = predictionInterval(comparison);
  const { measured } = comparison;
  return interval === null || measured == null ? null : interval[0] <= measured && measured <= interval[1];
}

/** How many measurements are within their predicted intervals, by quantity. Levels that are not valid do not count. */
export function intervalCoverage(survey: Survey): { name: string; within: number; all: number }[] {
  const levels = levelsOfRole(survey, "held_out").filter((level) => level.verdict.valid);
  const percentiles = ({ response_percentiles_s: { p50, p95, p99 } }: Level) => [p50, p95, p99];
  const kinds: [string, Comparison[]][] = [
    ["capacity", [survey.saturation_rate]],
    ["objectives", (survey.objectives ?? []).map((objective) => objective.rate ?? {})],
    ["mean response", levels.map((level) => level.response_time_s)],
    ["percentiles", levels.flatMap(percentiles)],
    ["utilization", levels.map((level) => level.utilization)],
  ];
  return kinds.flatMap(([name, comparisons]) => {
    const known = comparisons.map(isWithinInterval).filter((isWithin) => isWithin !== null);
    return known.length === 0 ? [] : [{ name, within: known.filter((isWithin) => isWithin).length, all: known.length }];
  });
}

/** The held-out levels at 70–80 % of the predicted saturation rate whose mean response time was predicted. */
export function busyLevels(survey: Survey): Level[] {
  const isBusy = (level: Level) => level.fraction > 0.695 && level.fraction < 0.805;
  return mixLevels(survey).filter((level) => level.role === "held_out" && isBusy(level) && level.response_time_s.error != null);
}

/** The queueing station that saturates first, and the demand of a request of the mix there, in seconds. */
export function bottleneck(survey: Survey): { station: Station; seconds: number } | null {
  const { stations, classes } = survey.model;
  const rates = classes.map((c) => c.rate ?? 0);
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  const shareOfMix = (name: string) => {
    const i = classes.findIndex((c) => c.name === name);
    return total > 0 ? (rates[i] ?? 0) / total : 1 / classes.length;
  };
  const candidates = stations
    .filter((station) => station.type === "queue")
    .map((station) => {
      const here = survey.demands.filter((d) => d.station === station.name);
      return { station, seconds: here.reduce((sum, d) => sum + d.seconds * shareOfMix(d.class), 0) };
    })
    .filter(({ seconds }) => seconds > 0);
  const utilizationPerRate = ({ station, seconds }: { station: Station; seconds: number }) => {
    const { per_second = 0, per_call = 0, mean_length = 0 } = station.interruptions ?? {};
    const work = seconds / ((station.servers ?? 1) * (1 - (station.background ?? 0)));
    return (work + per_call * mean_length) / (1 - per_second * mean_length);
  };
  const named = candidates.find(({ station }) => station.name === survey.bottleneck);
  return named ?? candidates.sort((a, b) => utilizationPerRate(b) - utilizationPerRate(a))[0] ?? null;
}

/** The parts of a complete survey that this one lacks. */
export function missingParts(survey: Survey): string[] {
  const levels = mixLevels(survey);
  const hasRole = (role: Role) => levels.some((level) => level.role === role);
  return [
    [hasRole("calibration"), "calibration levels"],
    [survey.demands.length > 0, "fitted demands"],
    [survey.saturation_rate.predicted != null, "the predicted saturation rate"],
    [hasRole("held_out"), "held-out levels"],
    [hasRole("past_saturation"), "levels past saturation"],
    [survey.saturation_rate.measured != null, "the measured saturation rate"],
    [survey.client_max_rate != null, "the client’s maximum rate"],
  ].flatMap(([isPresent, name]) => (isPresent ? [] : [name as string]));
}
