// Parses objectives like `p99<50ms`. Describes objectives, and the results of a survey for them, in words.
import type { RateUnderObjective, Survey } from "./documents/survey.ts";
import { NONE, rate, seconds, wholePercent, type Format } from "./format.ts";

/** An objective, taken apart. */
export interface Objective {
  /** The name of a class; null for all calls. */
  class: string | null;
  /** The limited measure; null if the text is not an objective that this page knows. */
  measure: "percentile" | "mean" | "errors" | null;
  /** The percentile, like 99; null for other measures. */
  percentile: number | null;
  /** The limited measure, like `p99`. */
  figure: string;
  /** The limit in words, like `50 ms` or `1 %`. */
  limit: string;
  /** The objective in words, like `search: p99 < 50 ms`. */
  name: string;
  /** The objective without its class. */
  label: string;
}

export function readObjective({ objective = "", limit }: RateUnderObjective): Objective {
  const [, className, figure, percentile, limitText] = /^(?:(.+):)?(p([\d.]+)|mean|errors)<(.+)$/s.exec(objective) ?? [];
  if (figure === undefined || limitText === undefined) {
    return { class: null, measure: null, percentile: null, figure: "objective", limit: NONE, name: objective, label: "objective" };
  }
  const isShare = figure === "errors";
  const inWords = isShare && limit != null ? share(limit) : limitText.replace(/^([\d.]+)(\D+)$/, "$1\u202f$2");
  const label = `${figure}\u00a0<\u00a0${inWords}`;
  return {
    class: className ?? null,
    measure: isShare ? "errors" : figure === "mean" ? "mean" : "percentile",
    percentile: percentile === undefined ? null : Number(percentile),
    figure,
    limit: inWords,
    name: className === undefined ? label : `${className}: ${label}`,
    label,
  };
}

/** The format of the limited measure. */
export function figureFormat({ measure }: Objective): Format {
  return measure === "errors" ? (x) => (x == null ? NONE : share(x)) : seconds;
}

/** A share with its significant digits only: "1 %", "0.125 %". */
export function share(x: number): string {
  return `${Number((100 * x).toPrecision(3))}\u202f%`;
}

/** The capacity: measured, or else predicted. */
export function capacityOf({ saturation_rate }: Pick<Survey, "saturation_rate">): number | null {
  return saturation_rate.measured ?? saturation_rate.predicted ?? null;
}

/**
 * The end of the rates at which the objective is met: the measured rate, or the low end of its interval if it was not
 * measured precisely, or else the predicted rate. Null if light load already misses the objective, or none is known.
 */
export function safeRate({ rate: rates = {}, measured_interval90, outcome }: RateUnderObjective): { rate: number; kind: "measured" | "at least" | "predicted" } | null {
  if (outcome === "missed_at_light_load") return null;
  if (rates.measured != null) return { rate: rates.measured, kind: "measured" };
  const low = measured_interval90?.[0];
  if (low !== undefined) return { rate: low, kind: "at least" };
  return rates.predicted == null ? null : { rate: rates.predicted, kind: "predicted" };
}

/** The answer in one sentence. */
export function answerSentence(result: RateUnderObjective, capacity: number | null): string {
  const { rate: rates = {}, measured_interval90: interval, outcome = "undecided", light_load } = result;
  const objective = readObjective(result);
  const { wanted, met, missed } = clauses(objective);
  const known = safeRate(result);
  const ofCapacity = known === null || capacity === null ? "" : `: that is ${wholePercent(known.rate / capacity)} of its capacity`;
  switch (outcome) {
    case "met_up_to_rate":
      return `Keep the load below ${rate(rates.measured)} if ${wanted}${ofCapacity}.`;
    case "met_up_to_capacity":
      return `Even at the capacity of ${rate(rates.measured)}, ${met}.`;
    case "missed_at_light_load":
      return `Even at light load, ${missed}${light_load == null ? "" : `: there, ${objective.figure} is ${figureFormat(objective)(light_load)}`}.`;
    case "undecided":
      if (interval != null) {
        const [low, high] = interval;
        return `The rate below which ${met} is between ${rate(low)} and ${rate(high)}: this host was too unsteady to measure it more precisely.`;
      }
      if (rates.predicted == null) return `The rate below which ${met} was neither predicted nor measured.`;
      return `By the model, keep the load below ${rate(rates.predicted)} if ${wanted}; that was not measured.`;
  }
}

/** An objective as parts of a sentence: as a wish, met, and missed. */
function clauses(objective: Objective): { wanted: string; met: string; missed: string } {
  const { measure, percentile, limit, name } = objective;
  const calls = objective.class === null ? "calls" : `calls of class ${objective.class}`;
  switch (measure) {
    case "percentile": {
      const part = `${percentile}\u202f% of ${calls}`;
      const others = `more than ${share(1 - (percentile ?? 0) / 100)} of ${calls}`;
      return { wanted: `${part} are to take less than ${limit}`, met: `${part} take less than ${limit}`, missed: `${others} take longer than ${limit}` };
    }
    case "mean":
      return {
        wanted: `${calls} are to take less than ${limit} on average`,
        met: `${calls} take less than ${limit} on average`,
        missed: `${calls} take longer than ${limit} on average`,
      };
    case "errors":
      return { wanted: `less than ${limit} of ${calls} are to fail`, met: `less than ${limit} of ${calls} fail`, missed: `more than ${limit} of ${calls} fail` };
    case null:
      return { wanted: `it is to meet ${name}`, met: `it meets ${name}`, missed: `it misses ${name}` };
  }
}

