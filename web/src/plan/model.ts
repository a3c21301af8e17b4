// What the pages of the planner say of models alike.
//
// Times are seconds, rates are per second, utilizations are fractions; matrices are stations × classes. What is infinite is null.
import type { ModelClass, Interval90, Station } from "../documents/what-if.ts";
import { number, seconds, type Format } from "../format.ts";

/** What comes of a class. */
export function offered(c: ModelClass): string {
  if (c.type === "open") return `${number(c.rate)}/s`;
  const customers = c.population === 1 ? "1 customer" : `${c.population ?? 0} customers`;
  return c.think ? `${customers}, think ${seconds(c.think)}` : customers;
}

/** What a station is: "2 × PS", "delay". */
export function kind(s: Station): string {
  if (s.type === "delay") return "delay";
  const { scheduling = "ps", servers = 1 } = s;
  const order = ["ps", "fcfs"].includes(scheduling) ? scheduling.toUpperCase() : scheduling;
  return servers > 1 ? `${servers} × ${order}` : order;
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
