// The page of a sweep: the throughput, the response times and the CPU use at each level of load.
import type { Sweep, SweepLevel } from "./documents/sweep.ts";
import { count, percent, rate, seconds, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { facts, planPage } from "./plan/parts.ts";
import type { Chart } from "./plot.ts";
import { numberColumn, table, textColumn } from "./table.ts";

export function sweepPage(sweep: Sweep): Page {
  return planPage(
    "load --sweep",
    sweep.headline,
    caveats(sweep),
    sweep.levels.length > 1 ? [throughput(sweep), times(sweep)] : [],
    levels(sweep),
    facts([
      ["server", sweep.target],
      ["started", sweep.levels[0]?.record.started_at ?? "–"],
      ["command", sweep.command.join(" ")],
    ]),
  );
}

/** How each level of a kind of sweep is named and formatted. */
function axisOf({ kind }: Sweep): { title: string; format: Format } {
  return kind === "rate" ? { title: "calls offered per second", format: rate } : { title: "S-Clients", format: count };
}

/** The reasons why levels are invalid, each once, and why the sweep ended early. */
function caveats(sweep: Sweep): string[] {
  const { format } = axisOf(sweep);
  const reasons = new Map<string, string>();
  for (const { level, record } of sweep.levels) {
    for (const { code, message } of record.verdict.reasons) {
      if (!reasons.has(code)) reasons.set(code, `At ${format(level)}: ${message}`);
    }
  }
  const stopped = sweep.levels.at(-1)?.record.stopped_by;
  const end = stopped ? [`The sweep was stopped by ${stopped}.`] : sweep.interrupted ? ["The sweep was interrupted."] : [];
  return [...reasons.values(), ...end];
}

function attempted({ kind }: Sweep, { record }: SweepLevel): number {
  return kind === "rate" ? record.rates.sent : record.rates.connect_attempts;
}

/** Whether the levels are so far apart that only a logarithmic axis shows all of them. */
function isWide(values: number[]): boolean {
  return Math.max(...values) > 10 * Math.min(...values);
}

function throughput(sweep: Sweep): Chart {
  const { title, format } = axisOf(sweep);
  const values = sweep.levels.map(({ level }) => level);
  return lines({
    id: "throughput",
    title: "Throughput",
    reading: "Where fewer calls are completed than attempted, the server is beyond its capacity.",
    summary: `Chart: completed calls at ${values.length} levels. ${sweep.headline}`,
    x: { title, values, format, log: isWide(values) },
    y: { title: "calls per second", format: rate },
    lines: [
      { name: "attempted", values: sweep.levels.map((level) => attempted(sweep, level)), colour: "s1", dash: [6, 4] },
      { name: "completed", values: sweep.levels.map(({ record }) => record.rates.completed), colour: "s2" },
    ],
    log: isWide(values),
  });
}

function times(sweep: Sweep): Chart {
  const { title, format } = axisOf(sweep);
  const values = sweep.levels.map(({ level }) => level);
  const timeOf = (key: "p50" | "p99") => sweep.levels.map(({ record }) => toSeconds(record.response_time_us?.[key]));
  return lines({
    id: "times",
    title: "Response time",
    reading: "From the time a call was due until its last byte was received, for the completed calls of each level.",
    summary: `Chart: response times at ${values.length} levels.`,
    x: { title, values, format, log: isWide(values) },
    y: { title: "response time", format: seconds },
    lines: [
      { name: "median", values: timeOf("p50"), colour: "s1" },
      { name: "99 %", values: timeOf("p99"), colour: "s2" },
    ],
    log: true,
  });
}

function toSeconds(us: number | null | undefined): number | null {
  return us == null ? null : us / 1e6;
}

function levels(sweep: Sweep): HTMLElement {
  const { title, format } = axisOf(sweep);
  const micros = (pick: (level: SweepLevel) => number | undefined) => (level: SweepLevel) => toSeconds(pick(level));
  return section(
    "Levels",
    "Each level is a load of its own. The failed calls include responses with status 5xx and 429.",
    table("levels", "Levels", [
      numberColumn("level", title, ({ level }: SweepLevel) => level, format),
      numberColumn("attempted", "attempted", (level: SweepLevel) => attempted(sweep, level), rate),
      numberColumn("completed", "completed", ({ record }: SweepLevel) => record.rates.completed, rate),
      numberColumn("failed", "failed", ({ record }: SweepLevel) => record.verdict.error_share, percent),
      numberColumn("p50", "median", micros(({ record }) => record.response_time_us?.p50), seconds, "response time"),
      numberColumn("p99", "99 %", micros(({ record }) => record.response_time_us?.p99), seconds, "response time"),
      numberColumn("drops", "drops", ({ record }: SweepLevel) => record.server?.network?.tcp?.listen_drops_per_s, rate),
      textColumn("verdict", "verdict", ({ record }: SweepLevel) => (record.verdict.valid ? "valid" : "INVALID")),
    ], sweep.levels),
  );
}
