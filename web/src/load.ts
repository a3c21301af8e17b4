// The page of a load: its course, its times, what became of its calls, its classes and its sessions.
import type { ClassRecord, Interval, Record, SessionFigures, SessionSummary, StatusTimes, Summary } from "./documents/record.ts";
import { count, date, number, percent, rate, seconds, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { facts, planPage } from "./plan/parts.ts";
import type { Chart } from "./plot.ts";
import { figures, table, words } from "./table.ts";

/** A percentile is shown if at least this many values are above it. */
const BEYOND = 10;

/** Percentiles by the names of their fields. */
const SHARES = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 } as const;

/** The figure `key` of a summary of `count` values, or nothing if it is a percentile of too few. */
function known(key: string, value: number, of: number): number | null {
  const share = SHARES[key as keyof typeof SHARES];
  return share === undefined || Math.round(of * (1 - share)) >= BEYOND ? value : null;
}

/** Microseconds. */
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
      ["server", run.target],
      ["verdict", verdict(run)],
      ["started", `${date(run.started_at)}; load was offered for ${seconds(run.window_s)}`],
      ["spoken", [`HTTP/${run.http ?? "1.1"}`, run.tls?.version, run.tls?.cipher_suite].filter((part) => part != null).join(", ")],
      ["generator", `${run.generator.engine}; its busiest thread had work for ${percent(run.generator.busy)} of the time`],
      ["command", run.command.join(" ")],
      ["seed", String(run.seed)],
    ]),
  );
}

function headline({ rates, counts, window_s }: Record): string {
  return `${rate(rates.completed)} completed of ${rate(rates.offered)} offered: ${count(counts.scheduled)} calls in ${seconds(window_s)}`;
}

function verdict({ verdict: { valid, failing } }: Record): string {
  if (!valid) return "INVALID: these figures are not the server\u2019s";
  return failing ? "valid, of a server that fails many calls" : "valid";
}

/** The middle of an interval, in seconds after the start. */
function middles(intervals: Interval[]): number[] {
  return intervals.map((interval) => interval.t_s + interval.length_s / 2);
}

function throughput(intervals: Interval[]): Chart | null {
  if (intervals.length < 2) return null;
  const of = (pick: (interval: Interval) => number) => intervals.map((interval) => pick(interval) / interval.length_s);
  const errors = of((interval) => interval.errors);
  return lines({
    id: "throughput",
    title: "Calls",
    reading: "What was due, and what was completed. Where completed stays below offered, the server falls behind.",
    summary: `Chart: rates of calls in ${intervals.length} intervals.`,
    x: { title: "seconds after the start", values: middles(intervals), format: seconds },
    y: { title: "calls per second", format: rate },
    lines: [
      { name: "offered", values: of((interval) => interval.offered), colour: "s1", dash: [6, 4] },
      { name: "completed", values: of((interval) => interval.completed), colour: "s2" },
      ...(errors.some((value) => value > 0) ? [{ name: "failed", values: errors, colour: "s3" }] : []),
    ],
  });
}

function times(intervals: Interval[]): Chart | null {
  const of = (pick: (interval: Interval) => number | null | undefined) => intervals.map((interval) => scaled(pick(interval)));
  const [median, slow] = [of((interval) => interval.p50_us), of((interval) => interval.p99_us)];
  if (median.filter((value) => value !== null).length < 2) return null;
  return lines({
    id: "times",
    title: "Response time",
    reading: "From when a call was due to its last byte, of the calls completed in each interval.",
    summary: `Chart: response times in ${intervals.length} intervals.`,
    x: { title: "seconds after the start", values: middles(intervals), format: seconds },
    y: { title: "response time", format: seconds },
    lines: [
      { name: "median", values: median, colour: "s1" },
      { name: "99 %", values: slow, colour: "s2" },
    ],
    log: true,
  });
}

function scaled(us: number | null | undefined): number | null {
  return us == null ? null : us / 1e6;
}

/** What the table of calls leaves out: calls that were sent again, and the errors that a server of HTTP/2 sent. */
function remarks({ counts, http2_errors }: Record): string[] {
  const { closed_on_reuse: closed = 0, retried_closed: again = 0, refused_streams: refused = 0 } = counts;
  const errors = (http2_errors ?? []).filter((error) => error.frame === "RST_STREAM" || error.code !== 0 || error.text);
  return [
    closed > 0 && again === 0 && "--retry-closed sends calls again whose reused connection the server closed.",
    again > 0 &&
      `Calls were sent again ${count(again)} times as the server had closed a reused connection (--retry-closed).`,
    refused > 0 && `Calls were sent again ${count(refused)} times as the server had refused their HTTP/2 streams.`,
    ...errors.map(({ frame, name, frames, text }) =>
      `The server sent ${frame} ${name} ${count(frames)} times${text ? `, and said \u201c${text}\u201d` : ""}.`),
  ].filter((remark) => typeof remark === "string");
}

function calls(run: Record): HTMLElement {
  const { counts } = run;
  const named: [string, number | undefined][] = [
    ["completed", counts.completed],
    ["unexpected answer", counts.unexpected],
    ["not established in time", counts.abandoned],
    ["refused", counts.refused],
    ["reset", counts.reset - (counts.closed_on_reuse ?? 0)],
    ["closed on a reused connection before any byte", counts.closed_on_reuse],
    ["timed out", counts.timed_out],
    ["malformed answer", counts.malformed],
    ["TLS failed", counts.tls_failed],
    ["stream reset", counts.stream_reset],
    ["server gone away", counts.gone_away],
    ["not begun, as this host lacked something", counts.client_limited],
    ["under way at the end", counts.in_flight_at_end + counts.unsent_at_end],
  ];
  const rows = named.filter((row): row is [string, number] => (row[1] ?? 0) > 0 || row[0] === "completed");
  return section(
    "Calls",
    ["What became of every call that was due.", ...remarks(run)].join(" "),
    table("calls", "Calls", [
      words("outcome", "outcome", ([name]: [string, number]) => name),
      figures("calls", "calls", ([, n]: [string, number]) => n, count),
      figures("share", "share", ([, n]: [string, number]) => n / Math.max(1, counts.scheduled), percent),
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
    figures(key, title, ([, summary]: [string, Summary]) => known(key, summary[key], summary.count), micros);
  return section(
    "Times",
    "Response: from when a call was due to its last byte. Service: from its first byte sent to its last byte. Lateness: from due to when the generator acted.",
    table("times", "Times", [
      words("time", "", ([name]: [string, Summary]) => name),
      column("mean", "mean"),
      column("p50", "median"),
      column("p90", "90 %"),
      column("p99", "99 %"),
      column("p999", "99.9 %"),
      column("max", "most"),
    ], rows),
  );
}

/** Times by status class: errors that are fast must not pass for a fast server. */
function statuses({ status_classes }: Record): HTMLElement | null {
  const order = ["1xx", "2xx", "3xx", "4xx", "429", "5xx"];
  const rows = order.flatMap((name): [string, StatusTimes][] => {
    const found = status_classes?.[name];
    return found === undefined ? [] : [[name, found]];
  });
  if (rows.every(([name]) => name === "2xx")) return null;
  const column = (key: "mean" | "p50" | "p90" | "p99" | "max", title: string) =>
    figures(key, title, ([, { response_time_us: found }]: [string, StatusTimes]) => found && known(key, found[key], found.count), micros);
  return section(
    "Statuses",
    "Response times of whole answers by status class. 429 is part of 4xx.",
    table("statuses", "Statuses", [
      words("status", "status", ([name]: [string, StatusTimes]) => name),
      figures("answers", "answers", ([, found]: [string, StatusTimes]) => found.count, count),
      column("mean", "mean"),
      column("p50", "median"),
      column("p90", "90 %"),
      column("p99", "99 %"),
      column("max", "most"),
    ], rows),
  );
}

function classes(all: [string, ClassRecord][]): HTMLElement | null {
  if (all.length < 2) return null;
  return section(
    "Classes",
    "Response times are of the calls that completed.",
    table("classes", "Classes", [
      words("name", "class", ([name]: [string, ClassRecord]) => name),
      figures("calls", "calls", ([, found]: [string, ClassRecord]) => found.counts.scheduled, count),
      figures("completed", "completed", ([, found]: [string, ClassRecord]) => found.counts.completed, count),
      figures("mean", "mean response", ([, found]: [string, ClassRecord]) => found.response_time_us?.mean, micros),
      figures("p99", "99 %", ([, { response_time_us: found }]: [string, ClassRecord]) => found && known("p99", found.p99, found.count), micros),
    ], all),
  );
}

/** A figure of the sessions of one outcome. */
interface OfSessions {
  outcome: string;
  what: string;
  summary: SessionSummary;
  /** A share of this total. */
  sessions: number;
  format: Format;
}

function sessions(found: SessionFigures): HTMLElement {
  const all = (outcome: string, sessions: number, calls: Figure, bursts: Figure, lifetime: Figure, connections: Figure) =>
    ([["calls", calls, number], ["bursts", bursts, number], ["lifetime", lifetime, seconds], ["connections", connections, number]] as const)
      .flatMap(([what, summary, format]) => (summary == null ? [] : [{ outcome, what, summary, sessions, format }]));
  const rows: OfSessions[] = [
    ...all("completed", found.completed, found.calls, found.bursts, found.lifetime_s, found.connections),
    ...all("failed", found.failed, found.failed_calls, found.failed_bursts, found.failed_lifetime_s, found.failed_connections),
  ];
  const column = (key: "mean" | "p50" | "p90" | "p99" | "max", title: string) => ({
    ...figures(key, title, (row: OfSessions) => known(key, row.summary[key], row.sessions), number),
    text: (row: OfSessions) => row.format(known(key, row.summary[key], row.sessions)),
  });
  const outcomes: [string, number][] = [["completed", found.completed], ["failed", found.failed], ["under way at the end", found.in_progress]];
  return section(
    "Sessions",
    `${count(found.started)} sessions began, ${rate(found.rate)}. How large they were is known of those that began and ended within the run: where sessions last long against the run, these are the shorter ones.`,
    table("session-outcomes", "Outcomes of sessions", [
      words("outcome", "outcome", ([name]: [string, number]) => name),
      figures("sessions", "sessions", ([, n]: [string, number]) => n, count),
      figures("share", "share", ([, n]: [string, number]) => n / Math.max(1, found.started), percent),
    ], outcomes),
    rows.length > 0
      ? table("sessions", "Sessions", [
          words("outcome", "sessions", (row: OfSessions) => row.outcome),
          words("what", "of each", (row: OfSessions) => row.what),
          column("mean", "mean"),
          column("p50", "median"),
          column("p90", "90 %"),
          column("p99", "99 %"),
          column("max", "most"),
        ], rows)
      : null,
  );
}

type Figure = SessionSummary | null | undefined;
