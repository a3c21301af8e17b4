// The page of a profile: when requests come, how large their answers are, what is asked for most, and the classes.
import type { LogClass, Dispersion, PopularUrl, Profile, Times } from "./documents/profile.ts";
import { h } from "./dom.ts";
import { count, date, number, percent, rate, range, seconds, NONE, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { bars, facts, planPage } from "./plan/parts.ts";
import { tick, type Chart } from "./plot.ts";
import { figures, table, words } from "./table.ts";

/** Bytes with three significant digits: "12.3 kB". */
const bytes: Format = (value) => {
  if (value === null || value === undefined) return NONE;
  const [unit, per] = byteUnit(value);
  return `${number(value / per)}\u202f${unit}`;
};

/** Bytes at a tick: "10 kB". */
function byteTick(value: number): string {
  const [unit, per] = byteUnit(value);
  return `${tick(value / per)}\u202f${unit}`;
}

function byteUnit(value: number): readonly [name: string, bytes: number] {
  return ([["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const).find(([, size]) => value >= size) ?? ["B", 1];
}

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

export function profilePage(found: Profile): Page {
  const charts = [arrivals(found), sizes(found), popularity(found), dispersion(found)].filter((chart) => chart !== null);
  return planPage(
    "characterize",
    headline(found),
    found.notes,
    charts,
    week(found),
    classes(found),
    answers(found),
    urls(found),
    found.sessions && sessions(found.sessions),
    facts([
      ["lines", `${count(found.lines.read)} read = ${count(found.lines.parsed)} parsed + ${count(found.lines.malformed)} malformed + ${count(found.lines.filtered)} filtered out`],
      ["format", found.formats.map((format) => `${format.name}: ${percent(format.share)}`).join(", ") || found.format],
      ["from, to", `${date(found.from)} to ${date(found.to)}; hours and days of ${found.timezone}`],
      ["distinct", `${count(found.unique_urls)} URLs, ${count(found.unique_clients)} clients, both ± ${percent(2 * found.unique_error)}`],
      ["robots", `${count(found.robots.requests)} requests, ${bytes(found.robots.bytes)} (${found.robots.policy})`],
      ["bursts", bursts(found)],
      ["Hurst", found.hurst ? `${number(found.hurst.value)} (${range(found.hurst.interval95 as [number, number], number)}), from ${seconds(found.hurst.from_s)} to ${seconds(found.hurst.to_s)}` : (found.hurst_missing ?? "not known")],
      ["arrivals of the workload", found.workload_arrivals_why || "none was made"],
    ]),
  );
}

function headline({ requests, arrivals: { mean_rate }, peak, from, to }: Profile): string {
  return `${count(requests)} requests from ${date(from)} to ${date(to)}, ${rate(mean_rate)} on average; in the peak window, ${time(peak.seconds)} from ${date(peak.from)} on, ${rate(peak.rate)}`;
}

function time(s: number): string {
  return s % 3600 === 0 ? `${s / 3600}\u202fh` : s % 60 === 0 ? `${s / 60}\u202fmin` : `${s}\u202fs`;
}

function bursts({ burstiness }: Profile): string {
  if (!burstiness) return "not known";
  const { a, b, epoch_s, peak_to_mean } = burstiness;
  return `a ${number(a)}, b ${number(b)} in epochs of ${seconds(epoch_s)}; the busiest has ${number(peak_to_mean)} times the mean`;
}

/** Short logs are described in minutes and hours, long ones in days. */
function moment(span: number): Format {
  return (s) => {
    if (s === null || s === undefined) return NONE;
    const text = new Date(s * 1000).toISOString();
    return span > 4 * 86_400 ? text.slice(0, 10) : text.slice(5, 16).replace("T", " ");
  };
}

function arrivals({ arrivals: { rates, from, step_s }, peak }: Profile): Chart {
  const clock = (text: string) => Date.parse(`${text.slice(0, 19)}Z`) / 1000;
  const start = clock(from);
  return lines({
    id: "arrivals",
    title: "Requests",
    reading: `Mean rate of each ${time(step_s)}. Classes, bursts and the workload are those of the peak window.`,
    summary: `Chart: the rate of requests in ${rates.length} steps.`,
    x: { title: "", values: rates.map((_, i) => start + (i + 0.5) * step_s), format: moment(rates.length * step_s), time: true },
    y: { title: "requests per second", format: rate },
    lines: [{ name: "requests", values: rates, colour: "s1" }],
    uprights: [{ x: clock(peak.from), words: ["peak window", rate(peak.rate)], at: "top" }],
  });
}

function sizes({ sizes: { complementary, tail } }: Profile): Chart | null {
  const points = complementary.filter(([size, share]) => size! > 0 && share! > 0) as [number, number][];
  if (points.length < 2) return null;
  const tailNote = tail ? ` From ${bytes(tail.from_bytes)} on it falls like a power of the size, of index ${number(tail.index)} (${range(tail.interval95 as [number, number], number)}); below 2, a few large answers decide.` : "";
  return lines({
    id: "sizes",
    title: "Answers larger than a size",
    reading: `A straight line on these axes is a heavy tail.${tailNote}`,
    summary: `Chart: the share of answers that are larger, at ${points.length} sizes.`,
    x: { title: "size", values: points.map(([size]) => size), format: bytes, tick: byteTick, log: true },
    y: { title: "share of answers", format: percent },
    lines: [{ name: "larger", values: points.map(([, share]) => share), colour: "s1" }],
    log: true,
  });
}

function popularity({ popularity: { urls, zipf, zipf_fit } }: Profile): Chart | null {
  if (urls.length < 3) return null;
  const law = zipf == null ? "" : ` The n-th is asked for as n to the power of \u2212${number(zipf)} (Zipf; R² ${number(zipf_fit)}).`;
  return lines({
    id: "popularity",
    title: "How often each URL is asked for",
    reading: `The most popular first.${law}`,
    summary: `Chart: requests of the ${urls.length} most popular URLs by rank.`,
    x: { title: "rank", values: urls.map((_, i) => i + 1), format: count, log: true },
    y: { title: "requests", format: count },
    lines: [{ name: "requests", values: urls.map((url) => url.requests), colour: "s1" }],
    log: true,
  });
}

function dispersion({ dispersion: curve }: Profile): Chart | null {
  if (curve.length < 2) return null;
  const of = (pick: (at: Dispersion) => number | undefined) => curve.map((at) => pick(at) ?? null);
  return lines({
    id: "dispersion",
    title: "How requests bunch, by the length of time looked at",
    reading: "Variance over mean of the number of requests. Independent requests have 1 at every length; where it grows, there are bursts of that length and longer.",
    summary: `Chart: the index of dispersion at ${curve.length} lengths.`,
    x: { title: "length of an epoch (s)", values: curve.map((at) => at.epoch_s), format: seconds, log: true },
    y: { title: "index of dispersion", format: number },
    lines: [
      { name: "95 % interval", values: of((at) => at.interval95[1]), colour: "band95", edge: true },
      { name: "from", values: of((at) => at.interval95[0]), colour: "band95", edge: true },
      { name: "index", values: of((at) => at.index), colour: "s1" },
    ],
    bands: [[0, 1, "band95"]],
    levels: [{ y: 1, words: "Poisson" }],
    log: true,
  });
}

/** Hours of the week, the busier the darker. */
function week({ arrivals: { by_weekday_and_hour: grid } }: Profile): HTMLElement | null {
  const most = Math.max(...grid.flat());
  if (!(most > 0)) return null;
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  const cell = (value: number, day: number, hour: number) =>
    h("td", { style: `opacity:${(0.04 + (0.96 * value) / most).toFixed(3)}`, title: `${DAYS[day]} ${hour}:00: ${rate(value)}` });
  const rows = grid.map((day, i) => h("tr", {}, h("th", { scope: "row" }, DAYS[i]), ...hours.map((hour) => cell(day[hour] ?? 0, i, hour))));
  const head = h("tr", {}, h("th", {}), ...hours.map((hour) => h("th", { scope: "col" }, hour % 3 === 0 ? String(hour) : "")));
  return section(
    "Hours of the week",
    `Mean rate by hour and weekday, the busier the darker: up to ${rate(most)}.`,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hours of the week" }, h("table", { class: "heat", "data-table": "week" }, h("thead", {}, head), h("tbody", {}, ...rows))),
  );
}

function classes({ classes, classes_by }: Profile): HTMLElement | null {
  if (classes.length === 0) return null;
  const columns = [
    words("name", "class", (row: LogClass) => row.name),
    words("range", "range", (row: LogClass) => row.range),
    figures("requests", "requests", (row: LogClass) => row.share_requests, percent),
    figures("bytes", "data", (row: LogClass) => row.share_bytes, percent),
    figures("mean", "mean bytes", (row: LogClass) => row.mean_bytes, bytes),
    figures("urls", "URLs", (row: LogClass) => row.unique_urls, count),
    figures("service", "service time", (row: LogClass) => row.mean_service_s, seconds),
    words("derived", "derived from", (row: LogClass) => row.derived_from),
  ];
  const bar = (row: LogClass, value: number, colour: string) => ({ name: row.name, parts: [{ name: "share", value, colour }], text: percent(value) });
  return section(
    "Classes",
    `Of the peak window, ${classes_by}.`,
    bars("classes", "Share of requests", "What most requests are.", classes.map((row) => bar(row, row.share_requests, "s1"))),
    bars("data", "Share of data", "What most bytes are.", classes.map((row) => bar(row, row.share_bytes, "s3"))),
    table("classes", "Classes", columns, classes),
  );
}

function answers({ status, methods, zero_length, requests }: Profile): HTMLElement {
  const list = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a);
  const one = (name: string, title: string, counts: Record<string, number>) =>
    table(name, title, [
      words("name", title, ([key]: [string, number]) => (key === "0" ? "none" : key.replaceAll("_", " "))),
      figures("requests", "requests", ([, n]: [string, number]) => n, count),
      figures("share", "share", ([, n]: [string, number]) => n / Math.max(1, requests), percent),
    ], list(counts));
  return section(
    "Answers",
    "What was asked with, what was answered, and why some answers had no body.",
    one("status", "status", status),
    one("methods", "method", methods),
    Object.keys(zero_length).length > 0 ? one("zero_length", "no body, because", zero_length) : null,
  );
}

function urls({ popularity: { urls, concentration }, requests }: Profile): HTMLElement | null {
  if (urls.length === 0) return null;
  const some = concentration.map(([n, share]) => `${count(n)}: ${percent(share)}`).join(", ");
  return section(
    "URLs",
    `Share of requests for the most popular ones: ${some}.`,
    table("urls", "URLs", [
      words("url", "URL", (row: PopularUrl) => row.url),
      words("method", "method", (row: PopularUrl) => row.method),
      figures("requests", "requests", (row: PopularUrl) => row.requests, count),
      figures("share", "share", (row: PopularUrl) => row.requests / Math.max(1, requests), percent),
      figures("bytes", "mean bytes", (row: PopularUrl) => row.mean_bytes, bytes),
    ], urls.slice(0, 25)),
  );
}

function sessions(found: NonNullable<Profile["sessions"]>): HTMLElement {
  const rows: [string, Times, Format][] = [
    ["requests of a session", found.requests, number],
    ["length of a session", found.length_s, seconds],
    ["bursts of a session", found.bursts, number],
    ["requests of a burst", found.requests_per_burst, number],
    ["between two bursts", found.think_s, seconds],
  ];
  const at = (name: string, p: string) => figures(`p${p}`, name, ([, times]: [string, Times, Format]) => times.percentiles[p] ?? null, () => "");
  const column = (name: string, p: string) => ({ ...at(name, p), text: ([, times, format]: [string, Times, Format]) => format(times.percentiles[p] ?? null) });
  return section(
    "Sessions",
    `${count(found.sessions)} visits, ${rate(found.rate)}; one ends with ${time(found.gap_s)} without a request, and a burst (a page and what it embeds) with ${seconds(found.burst_gap_s)}.`,
    table("sessions", "Sessions", [
      words("what", "", ([what]: [string, Times, Format]) => what),
      { ...figures("mean", "mean", ([, times]: [string, Times, Format]) => times.mean, () => ""), text: ([, times, format]: [string, Times, Format]) => format(times.mean) },
      column("median", "50"),
      column("90 %", "90"),
      column("99 %", "99"),
    ], rows),
  );
}
