// Texts about models, which several pages of the planner share.
//
// Units: times are in seconds, rates per second; utilizations are fractions. Matrices have a row for each station and a
// column for each class. Null means infinite.
import type { ModelClass, Interval90, Station } from "../documents/what-if.ts";
import { number, seconds, type Format } from "../format.ts";

/** The load of a class: "120/s", or "20 customers, think 1 s". */
export function offeredLoad(modelClass: ModelClass): string {
  const { type, rate, population = 0, think } = modelClass;
  if (type === "open") return `${number(rate)}/s`;
  const customers = population === 1 ? "1 customer" : `${population ?? 0} customers`;
  return think ? `${customers}, think ${seconds(think)}` : customers;
}

/** The kind of a station: "2 × PS", "delay". */
export function stationKind(station: Station): string {
  if (station.type === "delay") return "delay";
  const { scheduling = "ps", servers = 1 } = station;
  const order = ["ps", "fcfs"].includes(scheduling) ? scheduling.toUpperCase() : scheduling;
  return servers > 1 ? `${servers} × ${order}` : order;
}

/** "118 – 129"; empty if the interval is missing or has no width. */
export function intervalText(interval: Interval90 | undefined, format: Format): string {
  if (interval === undefined) return "";
  const [lower, upper] = [interval.lower, interval.upper].map((end) => (end === null ? "∞" : format(end)));
  return lower === upper ? "" : `${lower} – ${upper}`;
}

export function sum(list: number[]): number {
  return list.reduce((a, b) => a + b, 0);
}
