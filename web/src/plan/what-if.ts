// The page of a what-if analysis: the results before and after a change side by side, or the results for a range of
// changes.
import type { Changed, Curve, Headroom, ModelResults } from "../documents/what-if.ts";
import { signedPercent, number, percent, rate, seconds, type Format } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { numberColumn, table, textColumn, type Column } from "../table.ts";
import { COLOURS, lines, sample } from "./lines.ts";
import { intervalText, offeredLoad } from "./model.ts";
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
  const timeByLoad = (curve: Curve) => new Map(curve.points.map((p) => [p.x[0]!, p.steady?.mean_response_time ?? null]));
  const timesBefore = timeByLoad(before);
  const timesAfter = timeByLoad(after);
  const values = [...new Set([...timesBefore.keys(), ...timesAfter.keys()])].sort((a, b) => a - b);
  const limits = [before, after].map((curve) => curve.points[0]!);
  return lines({
    id: "load",
    title: "Mean response time as the load grows, before and after",
    reading: "All classes together, growing in proportion. The distance between the two saturation rates is the effect of the change.",
    summary: `Chart: mean response time over the load, before and after.`,
    x: { title: "offered load (requests per second)", values, format: rate },
    y: { title: "mean response time", format: seconds },
    lines: [
      { name: "before", values: values.map((x) => timesBefore.get(x) ?? null), colour: "s6", bridged: true },
      { name: "after", values: values.map((x) => timesAfter.get(x) ?? null), colour: "s1", bridged: true },
    ],
    verticalLines: limits.flatMap((point, i) => {
      const x = point.saturation_rate;
      return x == null ? [] : [{ x, labels: [i === 0 ? "before" : "after", rate(x)], at: i === 0 ? ("bottom" as const) : ("top" as const) }];
    }),
    log: true,
  });
}

/** The x axis of a curve along one quantity. */
function xAxis(curve: Curve): { title: string; values: number[]; format: Format } {
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
  const saturated = curve.points.find((p) => p.steady == null);
  return lines({
    id: "along",
    title: `Mean response time along ${curve.axes[0]!.subject}`,
    reading: "Where a line ends, the server is saturated.",
    summary: `Chart: mean response time of ${curve.classes.length} classes at ${curve.points.length} points.`,
    x: xAxis(curve),
    y: { title: "mean response time", format: seconds },
    lines: curve.classes.length > 1 ? [...byClass, mean] : byClass,
    ...(saturated ? { verticalLines: [{ x: saturated.x[0]!, labels: [`${saturated.bottleneck} is saturated`], at: "top" as const }] } : {}),
    log: true,
  });
}

function saturationChart(curve: Curve): Chart {
  return lines({
    id: "saturation",
    title: `Saturation along ${curve.axes[0]!.subject}`,
    reading: "The rate of all classes together, in their mix at each point, at which the first station saturates.",
    summary: `Chart: saturation rate at ${curve.points.length} points.`,
    x: xAxis(curve),
    y: { title: "requests per second", format: rate },
    lines: [{ name: "saturation", values: curve.points.map((p) => p.saturation_rate ?? null), colour: "s1" }],
  });
}

function limitBars(before: ModelResults, after: ModelResults): HTMLElement {
  const least = Math.min(...after.stations.map((s) => s.saturation_rate), ...before.stations.map((s) => s.saturation_rate));
  const near = after.stations.filter((s) => s.saturation_rate <= 5 * least).slice(0, 8);
  return section(
    "Limits",
    "The rate of all classes together at which each station saturates. Stations far from saturation are left out.",
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

function classes(before: ModelResults, after: ModelResults): HTMLElement {
  const indexBefore = (c: number) => before.model.classes.findIndex((one) => one.name === after.model.classes[c]!.name);
  const timeBefore = (c: number) => (indexBefore(c) < 0 ? null : (before.solution?.response_time[indexBefore(c)] ?? null));
  const timeAfter = (c: number) => after.solution?.response_time[c] ?? null;
  const change = (c: number) => {
    const old = timeBefore(c);
    const now = timeAfter(c);
    return old == null || now == null ? null : now / old - 1;
  };
  const R = "mean response time";
  const columns: Column<number>[] = [
    textColumn("class", "class", (c) => after.model.classes[c]!.name),
    textColumn("offered", "offered", (c) => offeredLoad(after.model.classes[c]!)),
    numberColumn("before", "before", timeBefore, seconds, R),
    numberColumn("after", "after", timeAfter, seconds, R),
    numberColumn("change", "change", change, signedPercent, R),
    numberColumn("throughput", "throughput", (c) => after.solution?.throughput[c] ?? null, rate),
  ];
  const { intervals } = after;
  if (intervals) columns.splice(4, 0, { ...textColumn("interval", "90 %", (c: number) => intervalText(intervals.response_time[c], seconds)), group: R });
  return section("Classes", "A new class has no value before the change.", table("classes", "Classes before and after", columns, after.model.classes.map((_, c) => c)));
}

function objectives(before: ModelResults, after: ModelResults | null | undefined): HTMLElement {
  const until = ({ until: u }: Headroom) =>
    u === "never" ? "at no load" : u === "always" ? "at any load" : "rate" in u ? rate(u.rate) : `${number(u.population)} customers`;
  const now = (h: Headroom) => `${h.slo.includes("utilization") ? percent(h.now) : seconds(h.now)} ${h.met ? "✓" : "✗"}`;
  const columns: Column<number>[] = [textColumn("slo", "objective", (i) => before.headroom[i]!.slo)];
  for (const [name, outlook] of [["before", before], ["after", after]] as const) {
    if (outlook == null) continue;
    columns.push({ ...textColumn(`${name}.now`, "now", (i: number) => now(outlook.headroom[i]!)), group: name });
    columns.push({ ...textColumn(`${name}.until`, "met up to", (i: number) => until(outlook.headroom[i]!)), group: name });
    const { intervals } = outlook;
    if (intervals) columns.push({ ...textColumn(`${name}.interval`, "90 %", (i: number) => intervalText(intervals.headroom[i], number)), group: name });
  }
  return section("Objectives", "The load up to which each objective is met, if all classes grow in proportion.", table("objectives", "Objectives", columns, before.headroom.map((_, i) => i)));
}

function points(curve: Curve): HTMLElement {
  const rows = sample(curve.points.length);
  const columns: Column<number>[] = [
    ...curve.axes.map((axis, a) => numberColumn(`x${a}`, axis.unit ? `${axis.subject} (${axis.unit})` : axis.subject, (i: number) => curve.points[i]!.x[a]!, number)),
    numberColumn("saturation", "saturates at", (i) => curve.points[i]!.saturation_rate, rate),
    textColumn("bottleneck", "saturates first", (i) => curve.points[i]!.bottleneck),
    ...curve.classes.map((name, c) => numberColumn(`class${c}`, name, (i: number) => curve.points[i]!.steady?.response_time[c] ?? null, seconds)),
    numberColumn("all", "all", (i: number) => curve.points[i]!.steady?.mean_response_time ?? null, seconds),
  ];
  return section(
    "The curve as numbers",
    "Mean response times. There are none where the server is saturated.",
    table("curve", "Points of the curve", columns, rows),
  );
}
