// The page of a what-if: before and after side by side, or a model along a range.
import type { Changed, Curve, Headroom, Outlook } from "../documents/what-if.ts";
import { error, number, percent, rate, seconds, type Format } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { figures, table, words, type Column } from "../table.ts";
import { COLOURS, lines, sample } from "./lines.ts";
import { between, offered } from "./model.ts";
import { bars, facts, planPage } from "./parts.ts";

export function whatIfPage(changed: Changed): Page {
  const { before, after, curve, load_curves: loads } = changed;
  const drawn = [
    ...(loads ? [loadChart(loads.before, loads.after)] : []),
    ...(curve && curve.axes.length === 1 ? [alongChart(curve), saturationChart(curve)] : []),
  ];
  const now = after ?? before;
  return planPage(
    "plan what-if",
    changed.headline,
    changed.caveats,
    drawn,
    after && limitBars(before, after),
    after && classes(before, after),
    before.headroom.length > 0 ? objectives(before, after) : null,
    curve && points(curve),
    facts([
      ...changed.changes.map((change): [string, string] => ["change", change]),
      ...(now.solution ? [["method", `${now.solution.method}: ${now.solution.why}`] as [string, string]] : []),
      ...(now.intervals ? [["intervals", `90 %, from ${now.intervals.draws} draws of the demands`] as [string, string]] : []),
    ]),
  );
}

/** Mean response time over the load, before and after, on one axis. */
function loadChart(before: Curve, after: Curve): Chart {
  const at = (curve: Curve) => new Map(curve.points.map((p) => [p.x[0]!, p.steady?.mean_response_time ?? null]));
  const [old, next] = [at(before), at(after)];
  const values = [...new Set([...old.keys(), ...next.keys()])].sort((a, b) => a - b);
  const limits = [before, after].map((curve) => curve.points[0]!);
  return lines({
    id: "load",
    title: "Mean response time as the load grows, before and after",
    reading: "All classes together, growing in proportion. The distance between the two ends is what the change is worth.",
    summary: `Chart: mean response time over the load, before and after.`,
    x: { title: "offered load (requests per second)", values, format: rate },
    y: { title: "mean response time", format: seconds },
    lines: [
      { name: "before", values: values.map((x) => old.get(x) ?? null), colour: "s6", bridged: true },
      { name: "after", values: values.map((x) => next.get(x) ?? null), colour: "s1", bridged: true },
    ],
    uprights: limits.flatMap((point, i) => {
      const x = point.saturation_rate;
      return x == null ? [] : [{ x, words: [i === 0 ? "before" : "after", rate(x)], at: i === 0 ? ("bottom" as const) : ("top" as const) }];
    }),
    log: true,
  });
}

function place(curve: Curve): { title: string; values: number[]; format: Format } {
  const { subject, unit } = curve.axes[0]!;
  const formats: Record<string, Format> = { "1/s": rate, s: seconds, "%": (x) => `${number(x)} %`, x: (x) => `${number(x)}×` };
  return { title: unit ? `${subject} (${unit})` : subject, values: curve.points.map((p) => p.x[0]!), format: formats[unit] ?? number };
}

function alongChart(curve: Curve): Chart {
  const byClass = curve.classes.slice(0, COLOURS.length - 1).map((name, c) => ({
    name,
    values: curve.points.map((p) => p.steady?.response_time[c] ?? null),
    colour: COLOURS[c]!,
  }));
  const mean = { name: "all", values: curve.points.map((p) => p.steady?.mean_response_time ?? null), colour: "s6", dash: [4, 3] };
  const full = curve.points.find((p) => p.steady == null);
  return lines({
    id: "along",
    title: `Mean response time along ${curve.axes[0]!.subject}`,
    reading: "Where a line ends the server no longer keeps up.",
    summary: `Chart: mean response time of ${curve.classes.length} classes at ${curve.points.length} points.`,
    x: place(curve),
    y: { title: "mean response time", format: seconds },
    lines: curve.classes.length > 1 ? [...byClass, mean] : byClass,
    ...(full ? { uprights: [{ x: full.x[0]!, words: [`${full.bottleneck} is full`], at: "top" as const }] } : {}),
    log: true,
  });
}

function saturationChart(curve: Curve): Chart {
  return lines({
    id: "saturation",
    title: `Saturation along ${curve.axes[0]!.subject}`,
    reading: "The rate of all classes together, in their mix at each point, at which the first station saturates.",
    summary: `Chart: saturation rate at ${curve.points.length} points.`,
    x: place(curve),
    y: { title: "requests per second", format: rate },
    lines: [{ name: "saturation", values: curve.points.map((p) => p.saturation_rate ?? null), colour: "s1" }],
  });
}

function limitBars(before: Outlook, after: Outlook): HTMLElement {
  const least = Math.min(...after.stations.map((s) => s.saturation_rate), ...before.stations.map((s) => s.saturation_rate));
  const near = after.stations.filter((s) => s.saturation_rate <= 5 * least).slice(0, 8);
  return section(
    "What limits",
    "The rate of all classes together at which each station saturates, for those that are anywhere near it.",
    bars(
      "limits",
      "Saturation rates",
      "The shortest bar is the bottleneck.",
      near.flatMap((s) => {
        const old = before.stations.find((b) => b.station === s.station);
        const bar = (name: string, value: number, colour: string) => ({ name, parts: [{ name: colour === "s6" ? "before" : "after", value, colour }], text: rate(value) });
        return [...(old ? [bar(s.station, old.saturation_rate, "s6")] : []), bar(old ? "" : s.station, s.saturation_rate, "s1")];
      }),
    ),
  );
}

function classes(before: Outlook, after: Outlook): HTMLElement {
  const was = (c: number) => before.model.classes.findIndex((one) => one.name === after.model.classes[c]!.name);
  const old = (c: number) => (was(c) < 0 ? null : (before.solution?.response_time[was(c)] ?? null));
  const next = (c: number) => after.solution?.response_time[c] ?? null;
  const change = (c: number) => {
    const [a, b] = [old(c), next(c)];
    return a == null || b == null ? null : b / a - 1;
  };
  const R = "mean response time";
  const columns: Column<number>[] = [
    words("class", "class", (c) => after.model.classes[c]!.name),
    words("offered", "offered", (c) => offered(after.model.classes[c]!)),
    figures("before", "before", old, seconds, R),
    figures("after", "after", next, seconds, R),
    figures("change", "change", change, error, R),
    figures("throughput", "throughput", (c) => after.solution?.throughput[c] ?? null, rate),
  ];
  const { intervals } = after;
  if (intervals) columns.splice(4, 0, { ...words("interval", "90 %", (c: number) => between(intervals.response_time[c], seconds)), group: R });
  return section("Classes", "A class that is new has no before.", table("classes", "Classes before and after", columns, after.model.classes.map((_, c) => c)));
}

function objectives(before: Outlook, after: Outlook | null | undefined): HTMLElement {
  const until = ({ until: u }: Headroom) =>
    u === "never" ? "at no load" : u === "always" ? "at any load" : "rate" in u ? rate(u.rate) : `${number(u.population)} customers`;
  const now = (h: Headroom) => `${h.slo.includes("utilization") ? percent(h.now) : seconds(h.now)} ${h.met ? "✓" : "✗"}`;
  const columns: Column<number>[] = [words("slo", "objective", (i) => before.headroom[i]!.slo)];
  for (const [name, outlook] of [["before", before], ["after", after]] as const) {
    if (outlook == null) continue;
    columns.push({ ...words(`${name}.now`, "now", (i: number) => now(outlook.headroom[i]!)), group: name });
    columns.push({ ...words(`${name}.until`, "met up to", (i: number) => until(outlook.headroom[i]!)), group: name });
    const { intervals } = outlook;
    if (intervals) columns.push({ ...words(`${name}.interval`, "90 %", (i: number) => between(intervals.headroom[i], number)), group: name });
  }
  return section("Objectives", "Up to which load each is met, all classes growing in proportion.", table("objectives", "Objectives", columns, before.headroom.map((_, i) => i)));
}

function points(curve: Curve): HTMLElement {
  const rows = sample(curve.points.length);
  const columns: Column<number>[] = [
    ...curve.axes.map((axis, a) => figures(`x${a}`, axis.unit ? `${axis.subject} (${axis.unit})` : axis.subject, (i: number) => curve.points[i]!.x[a]!, number)),
    figures("saturation", "saturates at", (i) => curve.points[i]!.saturation_rate, rate),
    words("bottleneck", "first", (i) => curve.points[i]!.bottleneck),
    ...curve.classes.map((name, c) => figures(`class${c}`, name, (i: number) => curve.points[i]!.steady?.response_time[c] ?? null, seconds)),
    figures("all", "all", (i: number) => curve.points[i]!.steady?.mean_response_time ?? null, seconds),
  ];
  return section(
    "The curve as numbers",
    "Mean response times; where the server does not keep up there are none.",
    table("curve", "Points of the curve", columns, rows),
  );
}
