// The page of a load: rates and times during the run, and its calls by outcome, class and session.
import type { ClassRecord, Interval, Record, SessionFigures, SessionSummary, StatusTimes, Summary } from "./documents/record.ts";
import { count, date, number, percent, rate, seconds, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { facts, labelFacts, machineFacts, planPage } from "./plan/parts.ts";
import type { Chart } from "./plot.ts";
import { numberColumn, table, textColumn } from "./table.ts";

/** A percentile is shown if at least this many values are above it. */
const MIN_VALUES_ABOVE = 10;

/** The percentiles by their field names, as shares of the values below them. */
const PERCENTILES = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 } as const;

/** The value of the field `key` in a summary of `count` values; null for a percentile of too few values. */
function reliable(key: string, value: number, count: number): number | null {
  const share = PERCENTILES[key as keyof typeof PERCENTILES];
  return share === undefined || Math.round(count * (1 - share)) >= MIN_VALUES_ABOVE ? value : null;
}

/** Formats a time that is given in microseconds. */
const micros: Format = (value) => seconds(value == null ? value : value / 1e6);

export function loadPage(run: Record): Page {
  return planPage(
    "load",
    headline(run),
    run.verdict.reasons.map((reason) => reason.message),
    [throughput(run.intervals), times(run.intervals)].filter((chart) => chart !== null),
    calls(run),
    distributions(run),
    statuses(run),
    classes(Object.entries(run.classes)),
    run.sessions && sessions(run.sessions),
    facts([
      ["server", run.server_software ? `${run.target} (${run.server_software})` : run.target],
      ...labelFacts(run.labels),
      ["verdict", verdict(run)],
      ["started", `${date(run.started_at)}; load was offered for ${seconds(run.window_s)}`],
      ["protocol", [`HTTP/${run.http ?? "1.1"}`, run.tls?.version, run.tls?.cipher_suite].filter((part) => part != null).join(", ")],
      ["generator", `${run.generator.engine}; its busiest thread was busy ${percent(run.generator.busy)} of the time`],
      ...machineFacts(run.machine),
      ["command", run.command.join(" ")],
      ["seed", String(run.seed)],
    ]),
  );
}

function headline({ rates, counts, window_s }: Record): string {
  return `${rate(rates.completed)} completed of ${rate(rates.offered)} offered: ${count(counts.scheduled)} calls in ${seconds(window_s)}`;
}

function verdict({ verdict: { valid, failing } }: Record): string {
  if (!valid) return "INVALID: these figures do not describe the server";
  return failing ? "valid, but many calls failed" : "valid";
}

/** The middle of an interval, in seconds after the start. */
function middles(intervals: Interval[]): number[] {
  return intervals.map((interval) => interval.t_s + interval.length_s / 2);
}

function throughput(intervals: Interval[]): Chart | null {
  if (intervals.length < 2) return null;
  const ratesOf = (count: (interval: Interval) => number) => intervals.map((interval) => count(interval) / interval.length_s);
  const errors = ratesOf((interval) => interval.errors);
  return lines({
    id: "throughput",
    title: "Calls",
    reading: "Calls that were due, and calls that were completed. Where fewer are completed than offered, the server falls behind.",
    summary: `Chart: rates of calls in ${intervals.length} intervals.`,
    x: { title: "seconds after the start", values: middles(intervals), format: seconds },
    y: { title: "calls per second", format: rate },
    lines: [
      { name: "offered", values: ratesOf((interval) => interval.offered), colour: "s1", dash: [6, 4] },
      { name: "completed", values: ratesOf((interval) => interval.completed), colour: "s2" },
      ...(errors.some((value) => value > 0) ? [{ name: "failed", values: errors, colour: "s3" }] : []),
    ],
  });
}

function times(intervals: Interval[]): Chart | null {
  const medians = intervals.map((interval) => toSeconds(interval.p50_us));
  const slowest = intervals.map((interval) => toSeconds(interval.p99_us));
  if (medians.filter((value) => value !== null).length < 2) return null;
  return lines({
    id: "times",
    title: "Response time",
    reading: "From the time a call was due until its last byte was received, for the calls completed in each interval.",
    summary: `Chart: response times in ${intervals.length} intervals.`,
    x: { title: "seconds after the start", values: middles(intervals), format: seconds },
    y: { title: "response time", format: seconds },
    lines: [
      { name: "median", values: medians, colour: "s1" },
      { name: "99 %", values: slowest, colour: "s2" },
    ],
    log: true,
  });
}

function toSeconds(us: number | null | undefined): number | null {
  return us == null ? null : us / 1e6;
}

/** Sentences on what the table of calls does not show: retries, and errors that an HTTP/2 server sent. */
function remarks({ counts, http2_errors }: Record): string[] {
  const { closed_on_reuse: closed = 0, retried_closed: retried = 0, refused_streams: refused = 0 } = counts;
  const errors = (http2_errors ?? []).filter((error) => error.frame === "RST_STREAM" || error.code !== 0 || error.text);
  return [
    closed > 0 && retried === 0 && "With --retry-closed, a call is sent again if the server closes its reused connection.",
    retried > 0 &&
      `Calls were sent again ${count(retried)} times because the server had closed a reused connection (--retry-closed).`,
    refused > 0 && `Calls were sent again ${count(refused)} times because the server had refused their HTTP/2 streams.`,
    ...errors.map(({ frame, name, frames, text }) =>
      `The server sent ${frame} ${name} ${count(frames)} times${text ? `, with the text \u201c${text}\u201d` : ""}.`),
  ].filter((remark) => typeof remark === "string");
}

function calls(run: Record): HTMLElement {
  const { counts } = run;
  const named: [string, number | undefined][] = [
    ["completed", counts.completed],
    ["unexpected response", counts.unexpected],
    ["not established in time", counts.abandoned],
    ["refused", counts.refused],
    ["reset", counts.reset - (counts.closed_on_reuse ?? 0)],
    ["closed on a reused connection before any byte", counts.closed_on_reuse],
    ["timed out", counts.timed_out],
    ["malformed response", counts.malformed],
    ["TLS failed", counts.tls_failed],
    ["stream reset", counts.stream_reset],
    ["server gone away", counts.gone_away],
    ["not sent: this host lacked a resource", counts.client_limited],
    ["unfinished at the end", counts.in_flight_at_end + counts.unsent_at_end],
  ];
  const rows = named.filter((row): row is [string, number] => (row[1] ?? 0) > 0 || row[0] === "completed");
  return section(
    "Calls",
    ["The outcome of every call that was due.", ...remarks(run)].join(" "),
    table("calls", "Calls", [
      textColumn("outcome", "outcome", ([name]: [string, number]) => name),
      numberColumn("calls", "calls", ([, n]: [string, number]) => n, count),
      numberColumn("share", "share", ([, n]: [string, number]) => n / Math.max(1, counts.scheduled), percent),
    ], rows),
  );
}

function distributions(run: Record): HTMLElement | null {
  const named: [string, Summary | null | undefined][] = [
    ["response", run.response_time_us],
    ["service", run.service_time_us],
    ["connect", run.connect_time_us],
    ["TLS handshake", run.handshake_time_us],
    ["first byte", run.first_byte_us],
    ["lateness", run.lateness_us],
  ];
  const rows = named.filter((row): row is [string, Summary] => row[1] != null);
  if (rows.length === 0) return null;
  const column = (key: "mean" | "p50" | "p90" | "p99" | "p999" | "max", title: string) =>
    numberColumn(key, title, ([, summary]: [string, Summary]) => reliable(key, summary[key], summary.count), micros);
  return section(
    "Times",
    "Response: from the time a call was due until its last byte was received. Service: from the first byte sent to the last byte received. Lateness: from the time a call was due until the generator acted.",
    table("times", "Times", [
      textColumn("time", "", ([name]: [string, Summary]) => name),
      column("mean", "mean"),
      column("p50", "median"),
      column("p90", "90 %"),
      column("p99", "99 %"),
      column("p999", "99.9 %"),
      column("max", "max"),
    ], rows),
  );
}

/** Response times by status class, so that fast errors do not make the server look fast. */
function statuses({ status_classes }: Record): HTMLElement | null {
  const order = ["1xx", "2xx", "3xx", "4xx", "429", "5xx"];
  const rows = order.flatMap((name): [string, StatusTimes][] => {
    const times = status_classes?.[name];
    return times === undefined ? [] : [[name, times]];
  });
  if (rows.every(([name]) => name === "2xx")) return null;
  const column = (key: "mean" | "p50" | "p90" | "p99" | "max", title: string) =>
    numberColumn(key, title, ([, { response_time_us: summary }]: [string, StatusTimes]) => summary && reliable(key, summary[key], summary.count), micros);
  return section(
    "Statuses",
    "Response times of complete responses by status class. 429 is also counted in 4xx.",
    table("statuses", "Statuses", [
      textColumn("status", "status", ([name]: [string, StatusTimes]) => name),
      numberColumn("answers", "responses", ([, times]: [string, StatusTimes]) => times.count, count),
      column("mean", "mean"),
      column("p50", "median"),
      column("p90", "90 %"),
      column("p99", "99 %"),
      column("max", "max"),
    ], rows),
  );
}

function classes(all: [string, ClassRecord][]): HTMLElement | null {
  if (all.length < 2) return null;
  return section(
    "Classes",
    "Response times of completed calls.",
    table("classes", "Classes", [
      textColumn("name", "class", ([name]: [string, ClassRecord]) => name),
      numberColumn("calls", "calls", ([, record]: [string, ClassRecord]) => record.counts.scheduled, count),
      numberColumn("completed", "completed", ([, record]: [string, ClassRecord]) => record.counts.completed, count),
      numberColumn("mean", "mean response", ([, record]: [string, ClassRecord]) => record.response_time_us?.mean, micros),
      numberColumn("p99", "99 %", ([, { response_time_us: summary }]: [string, ClassRecord]) => summary && reliable("p99", summary.p99, summary.count), micros),
    ], all),
  );
}

/** A row of the table of sessions: one quantity of the sessions that had one outcome. */
interface SessionRow {
  outcome: string;
  quantity: string;
  summary: SessionSummary;
  /** The number of sessions that had the outcome. */
  sessions: number;
  format: Format;
}

function sessions(all: SessionFigures): HTMLElement {
  const rowsOf = (outcome: string, sessions: number, calls: Quantity, bursts: Quantity, lifetime: Quantity, connections: Quantity) =>
    ([["calls", calls, number], ["bursts", bursts, number], ["lifetime", lifetime, seconds], ["connections", connections, number]] as const)
      .flatMap(([quantity, summary, format]) => (summary == null ? [] : [{ outcome, quantity, summary, sessions, format }]));
  const rows: SessionRow[] = [
    ...rowsOf("completed", all.completed, all.calls, all.bursts, all.lifetime_s, all.connections),
    ...rowsOf("failed", all.failed, all.failed_calls, all.failed_bursts, all.failed_lifetime_s, all.failed_connections),
  ];
  const column = (key: "mean" | "p50" | "p90" | "p99" | "max", title: string) => ({
    ...numberColumn(key, title, (row: SessionRow) => reliable(key, row.summary[key], row.sessions), number),
    text: (row: SessionRow) => row.format(reliable(key, row.summary[key], row.sessions)),
  });
  const outcomes: [string, number][] = [["completed", all.completed], ["failed", all.failed], ["unfinished at the end", all.in_progress]];
  return section(
    "Sessions",
    `${count(all.started)} sessions started, ${rate(all.rate)}. The second table covers only sessions that started and ended during the run: if sessions are long compared with the run, it lacks the longer ones.`,
    table("session-outcomes", "Outcomes of sessions", [
      textColumn("outcome", "outcome", ([name]: [string, number]) => name),
      numberColumn("sessions", "sessions", ([, n]: [string, number]) => n, count),
      numberColumn("share", "share", ([, n]: [string, number]) => n / Math.max(1, all.started), percent),
    ], outcomes),
    rows.length > 0
      ? table("sessions", "Sessions", [
          textColumn("outcome", "sessions", (row: SessionRow) => row.outcome),
          textColumn("what", "per session", (row: SessionRow) => row.quantity),
          column("mean", "mean"),
          column("p50", "median"),
          column("p90", "90 %"),
          column("p99", "99 %"),
          column("max", "max"),
        ], rows)
      : null,
  );
}

type Quantity = SessionSummary | null | undefined;
