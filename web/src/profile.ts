// The page of a profile: arrivals over time, response sizes, popular URLs, and the classes of requests.
import type { LogClass, Dispersion, PopularUrl, Profile, Times } from "./documents/profile.ts";
import { h } from "./dom.ts";
import { count, date, number, percent, rate, range, seconds, NONE, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { bars, facts, planPage } from "./plan/parts.ts";
import { tickLabel, type Chart } from "./plot.ts";
import { numberColumn, table, textColumn } from "./table.ts";

/** Bytes with three significant digits: "12.3 kB". */
const bytes: Format = (value) => {
  if (value === null || value === undefined) return NONE;
  const [unit, per] = byteUnit(value);
  return `${number(value / per)}\u202f${unit}`;
};

/** The label of a tick on an axis of bytes: "10 kB". */
function byteTick(value: number): string {
  const [unit, per] = byteUnit(value);
  return `${tickLabel(value / per)}\u202f${unit}`;
}

function byteUnit(value: number): readonly [name: string, bytes: number] {
  return ([["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const).find(([, size]) => value >= size) ?? ["B", 1];
}

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

export function profilePage(profile: Profile): Page {
  const charts = [arrivals(profile), sizes(profile), popularity(profile), dispersion(profile)].filter((chart) => chart !== null);
  return planPage(
    "characterize",
    headline(profile),
    profile.notes,
    charts,
    week(profile),
    classes(profile),
    responses(profile),
    urls(profile),
    profile.sessions && sessionTable(profile.sessions),
    facts([
      ["lines", `${count(profile.lines.read)} read = ${count(profile.lines.parsed)} parsed + ${count(profile.lines.malformed)} malformed + ${count(profile.lines.filtered)} filtered out`],
      ["format", profile.formats.map((format) => `${format.name}: ${percent(format.share)}`).join(", ") || profile.format],
      ["from, to", `${date(profile.from)} to ${date(profile.to)}; hours and days of ${profile.timezone}`],
      ["distinct", `${count(profile.unique_urls)} URLs, ${count(profile.unique_clients)} clients, both ± ${percent(2 * profile.unique_error)}`],
      ["robots", `${count(profile.robots.requests)} requests, ${bytes(profile.robots.bytes)} (${profile.robots.policy})`],
      ["bursts", bursts(profile)],
      ["Hurst", profile.hurst ? `${number(profile.hurst.value)} (${range(profile.hurst.interval95 as [number, number], number)}), from ${seconds(profile.hurst.from_s)} to ${seconds(profile.hurst.to_s)}` : (profile.hurst_missing ?? "not known")],
      ["arrivals of the workload", profile.workload_arrivals_why || "none was made"],
    ]),
  );
}

function headline({ requests, arrivals: { mean_rate }, peak, from, to }: Profile): string {
  return `${count(requests)} requests from ${date(from)} to ${date(to)}, ${rate(mean_rate)} on average; in the peak window, ${wholeTime(peak.seconds)} from ${date(peak.from)} on, ${rate(peak.rate)}`;
}

/** A whole number of seconds, in the largest unit that needs no fraction: "10 min". */
function wholeTime(s: number): string {
  return s % 3600 === 0 ? `${s / 3600}\u202fh` : s % 60 === 0 ? `${s / 60}\u202fmin` : `${s}\u202fs`;
}

function bursts({ burstiness }: Profile): string {
  if (!burstiness) return "not known";
  const { a, b, epoch_s, peak_to_mean } = burstiness;
  return `a ${number(a)}, b ${number(b)} in epochs of ${seconds(epoch_s)}; the busiest epoch has ${number(peak_to_mean)} times the mean rate`;
}

/** The format of times in a log that covers `span` seconds: days for long logs, otherwise also hours and minutes. */
function timeFormat(span: number): Format {
  return (s) => {
    if (s === null || s === undefined) return NONE;
    const text = new Date(s * 1000).toISOString();
    return span > 4 * 86_400 ? text.slice(0, 10) : text.slice(5, 16).replace("T", " ");
  };
}

function arrivals({ arrivals: { rates, from, step_s }, peak }: Profile): Chart {
  const localSeconds = (text: string) => Date.parse(`${text.slice(0, 19)}Z`) / 1000;
  const start = localSeconds(from);
  return lines({
    id: "arrivals",
    title: "Requests",
    reading: `Mean rate in each ${wholeTime(step_s)}. Classes, bursts and the workload describe the peak window.`,
    summary: `Chart: the rate of requests in ${rates.length} steps.`,
    x: { title: "", values: rates.map((_, i) => start + (i + 0.5) * step_s), format: timeFormat(rates.length * step_s), time: true },
    y: { title: "requests per second", format: rate },
    lines: [{ name: "requests", values: rates, colour: "s1" }],
    verticalLines: [{ x: localSeconds(peak.from), labels: ["peak window", rate(peak.rate)], at: "top" }],
  });
}

function sizes({ sizes: { complementary, tail } }: Profile): Chart | null {
  const points = complementary.filter(([size, share]) => size! > 0 && share! > 0) as [number, number][];
  if (points.length < 2) return null;
  const tailNote = tail ? ` Above ${bytes(tail.from_bytes)} the share falls as a power of the size, with index ${number(tail.index)} (${range(tail.interval95 as [number, number], number)}). If the index is below 2, a few large responses dominate.` : "";
  return lines({
    id: "sizes",
    title: "Share of responses larger than a size",
    reading: `A straight line on these axes means a heavy tail.${tailNote}`,
    summary: `Chart: the share of larger responses at ${points.length} sizes.`,
    x: { title: "size", values: points.map(([size]) => size), format: bytes, tick: byteTick, log: true },
    y: { title: "share of responses", format: percent },
    lines: [{ name: "larger", values: points.map(([, share]) => share), colour: "s1" }],
    log: true,
  });
}

function popularity({ popularity: { urls, zipf, zipf_fit } }: Profile): Chart | null {
  if (urls.length < 3) return null;
  const law = zipf == null ? "" : ` The number of requests for the n-th URL is proportional to n to the power of \u2212${number(zipf)} (Zipf; R² ${number(zipf_fit)}).`;
  return lines({
    id: "popularity",
    title: "Requests by URL",
    reading: `The most popular URL is first.${law}`,
    summary: `Chart: requests of the ${urls.length} most popular URLs by rank.`,
    x: { title: "rank", values: urls.map((_, i) => i + 1), format: count, log: true },
    y: { title: "requests", format: count },
    lines: [{ name: "requests", values: urls.map((url) => url.requests), colour: "s1" }],
    log: true,
  });
}

function dispersion({ dispersion: curve }: Profile): Chart | null {
  if (curve.length < 2) return null;
  const values = (pick: (point: Dispersion) => number | undefined) => curve.map((point) => pick(point) ?? null);
  return lines({
    id: "dispersion",
    title: "Burstiness of requests by time scale",
    reading: "Variance of the number of requests in an epoch, divided by its mean. Independent requests have 1 at every length of the epoch. Where the index grows, there are bursts of that length and longer.",
    summary: `Chart: the index of dispersion at ${curve.length} lengths.`,
    x: { title: "length of an epoch (s)", values: curve.map((point) => point.epoch_s), format: seconds, log: true },
    y: { title: "index of dispersion", format: number },
    lines: [
      { name: "95 % interval", values: values((point) => point.interval95[1]), colour: "band95", edge: true },
      { name: "95 % interval, lower end", values: values((point) => point.interval95[0]), colour: "band95", edge: true },
      { name: "index", values: values((point) => point.index), colour: "s1" },
    ],
    bands: [[0, 1, "band95"]],
    horizontalLines: [{ y: 1, label: "Poisson" }],
    log: true,
  });
}

/** The mean rate in each hour of the week; the busier, the darker. */
function week({ arrivals: { by_weekday_and_hour: grid } }: Profile): HTMLElement | null {
  const highest = Math.max(...grid.flat());
  if (!(highest > 0)) return null;
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  const cell = (value: number, day: number, hour: number) =>
    h("td", { style: `opacity:${(0.04 + (0.96 * value) / highest).toFixed(3)}`, title: `${DAYS[day]} ${hour}:00: ${rate(value)}` });
  const rows = grid.map((day, i) => h("tr", {}, h("th", { scope: "row" }, DAYS[i]), ...hours.map((hour) => cell(day[hour] ?? 0, i, hour))));
  const head = h("tr", {}, h("th", {}), ...hours.map((hour) => h("th", { scope: "col" }, hour % 3 === 0 ? String(hour) : "")));
  return section(
    "Hours of the week",
    `Mean rate by weekday and hour. The darkest hour has ${rate(highest)}.`,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hours of the week" }, h("table", { class: "heat", "data-table": "week" }, h("thead", {}, head), h("tbody", {}, ...rows))),
  );
}

function classes({ classes, classes_by }: Profile): HTMLElement | null {
  if (classes.length === 0) return null;
  const columns = [
    textColumn("name", "class", (row: LogClass) => row.name),
    textColumn("range", "range", (row: LogClass) => row.range),
    numberColumn("requests", "requests", (row: LogClass) => row.share_requests, percent),
    numberColumn("bytes", "data", (row: LogClass) => row.share_bytes, percent),
    numberColumn("mean", "mean bytes", (row: LogClass) => row.mean_bytes, bytes),
    numberColumn("urls", "URLs", (row: LogClass) => row.unique_urls, count),
    numberColumn("service", "service time", (row: LogClass) => row.mean_service_s, seconds),
    textColumn("derived", "derived from", (row: LogClass) => row.derived_from),
  ];
  const bar = (row: LogClass, value: number, colour: string) => ({ name: row.name, parts: [{ name: "share", value, colour }], text: percent(value) });
  return section(
    "Classes",
    `Classes of the requests in the peak window, ${classes_by}.`,
    bars("classes", "Share of requests", "Share of all requests in each class.", classes.map((row) => bar(row, row.share_requests, "s1"))),
    bars("data", "Share of data", "Share of all bytes in each class.", classes.map((row) => bar(row, row.share_bytes, "s3"))),
    table("classes", "Classes", columns, classes),
  );
}

function responses({ status, methods, zero_length, requests }: Profile): HTMLElement {
  const mostFirst = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a);
  const countTable = (name: string, title: string, counts: Record<string, number>) =>
    table(name, title, [
      textColumn("name", title, ([key]: [string, number]) => (key === "0" ? "none" : key.replaceAll("_", " "))),
      numberColumn("requests", "requests", ([, n]: [string, number]) => n, count),
      numberColumn("share", "share", ([, n]: [string, number]) => n / Math.max(1, requests), percent),
    ], mostFirst(counts));
  return section(
    "Responses",
    "Status codes, methods, and why some responses had no body.",
    countTable("status", "status", status),
    countTable("methods", "method", methods),
    Object.keys(zero_length).length > 0 ? countTable("zero_length", "reason for no body", zero_length) : null,
  );
}

function urls({ popularity: { urls, concentration }, requests }: Profile): HTMLElement | null {
  if (urls.length === 0) return null;
  const shares = concentration.map(([n, share]) => `${count(n)}: ${percent(share)}`).join(", ");
  return section(
    "URLs",
    `Share of requests for this number of the most popular URLs: ${shares}.`,
    table("urls", "URLs", [
      textColumn("url", "URL", (row: PopularUrl) => row.url),
      textColumn("method", "method", (row: PopularUrl) => row.method),
      numberColumn("requests", "requests", (row: PopularUrl) => row.requests, count),
      numberColumn("share", "share", (row: PopularUrl) => row.requests / Math.max(1, requests), percent),
      numberColumn("bytes", "mean bytes", (row: PopularUrl) => row.mean_bytes, bytes),
    ], urls.slice(0, 25)),
  );
}

function sessionTable(sessions: NonNullable<Profile["sessions"]>): HTMLElement {
  const rows: [string, Times, Format][] = [
    ["requests per session", sessions.requests, number],
    ["length of a session", sessions.length_s, seconds],
    ["bursts per session", sessions.bursts, number],
    ["requests per burst", sessions.requests_per_burst, number],
    ["time between bursts", sessions.think_s, seconds],
  ];
  const column = (name: string, p: string) => ({
    ...numberColumn(`p${p}`, name, ([, times]: [string, Times, Format]) => times.percentiles[p] ?? null, () => ""),
    text: ([, times, format]: [string, Times, Format]) => format(times.percentiles[p] ?? null),
  });
  return section(
    "Sessions",
    `${count(sessions.sessions)} sessions, ${rate(sessions.rate)}. A session ends after ${wholeTime(sessions.gap_s)} without a request; a burst (a page and what it embeds) ends after ${seconds(sessions.burst_gap_s)}.`,
    table("sessions", "Sessions", [
      textColumn("what", "", ([what]: [string, Times, Format]) => what),
      { ...numberColumn("mean", "mean", ([, times]: [string, Times, Format]) => times.mean, () => ""), text: ([, times, format]: [string, Times, Format]) => format(times.mean) },
      column("median", "50"),
      column("90 %", "90"),
      column("99 %", "99"),
    ], rows),
  );
}
