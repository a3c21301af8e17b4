// The page of a solved model: how response times and utilizations grow with the load, and where the time goes.
import type { Curve, Model, Solved } from "../documents/solution.ts";
import type { Solution } from "../documents/what-if.ts";
import { number, percent, rate, seconds } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { figures, table, words, type Column } from "../table.ts";
import { COLOURS, lines } from "./lines.ts";
import { between, kind, offered, sum } from "./model.ts";
import { bars, facts, planPage } from "./parts.ts";

export function solutionPage(solved: Solved): Page {
  const { model, curve, simulation } = solved;
  const drawn = curve == null ? [] : [responseChart(curve, solved), utilizationChart(curve, solved)];
  const found = solved.method === undefined ? null : (solved as Solved & Solution);
  const run = simulation?.run;
  return planPage(
    "plan solve",
    solved.headline,
    solved.caveats,
    drawn,
    found && section("Where the time goes", "Response time of each class, by the station at which it is spent: waiting and service.", timeBars(model, found)),
    classes(solved),
    stations(solved),
    found && residence(model, found),
    facts([
      ...(found ? [["method", `${found.method}: ${found.why}`] as [string, string]] : []),
      ...(run ? [["simulation", `${number(run.events)} events in ${seconds(run.time_s)} of its time, seed ${run.seed}`] as [string, string]] : []),
      ...(solved.intervals ? [["intervals", `90 %, from ${solved.intervals.draws} draws of the demands`] as [string, string]] : []),
    ]),
  );
}

/** What the curve's axis is, and the place on it at which the model stands. */
function axisOf(curve: Curve, model: Model) {
  const closed = model.classes.every((c) => c.type === "closed");
  const now = sum(model.classes.map((c) => (closed ? c.population : c.rate) ?? 0));
  return {
    x: { title: closed ? "customers" : "offered load (requests per second)", values: curve.points.map((p) => p.x[0] ?? 0), format: closed ? number : rate },
    now: { x: now, words: ["the model's load", closed ? number(now) : rate(now)], at: "bottom" as const },
    closed,
  };
}

function responseChart(curve: Curve, solved: Solved): Chart {
  const { x, now, closed } = axisOf(curve, solved.model);
  const limit = solved.limits[0];
  const byClass = curve.classes.slice(0, COLOURS.length - 1).map((name, c) => ({
    name,
    values: curve.points.map((p) => p.steady?.response_time[c] ?? null),
    colour: COLOURS[c]!,
  }));
  const mean = { name: "all", values: curve.points.map((p) => p.steady?.mean_response_time ?? null), colour: "s6", dash: [4, 3] };
  const saturates = limit && !closed
    ? [{ x: limit.saturation_rate, words: [`${limit.station} saturates`, rate(limit.saturation_rate)], at: "top" as const }]
    : [];
  return lines({
    id: "response",
    title: "Mean response time as the load grows",
    reading: closed
      ? "With few customers nobody waits; from where the line turns up each one more waits for all before."
      : "All classes grow in proportion. Waiting grows slowly at first and without bound near saturation.",
    summary: `Chart: mean response time of ${curve.classes.length} classes over ${curve.points.length} loads.`,
    x,
    y: { title: "mean response time", format: seconds },
    lines: curve.classes.length > 1 ? [...byClass, mean] : byClass,
    uprights: [now, ...saturates],
    log: true,
  });
}

function utilizationChart(curve: Curve, solved: Solved): Chart {
  const { x, now } = axisOf(curve, solved.model);
  const queues = solved.limits.slice(0, COLOURS.length).map((limit) => limit.station);
  return lines({
    id: "utilization",
    title: "How busy the stations are",
    reading: "Share in use of what each station can give. The steepest line is the bottleneck; a faster one lets the next take its place.",
    summary: `Chart: utilization of ${queues.length} stations over ${curve.points.length} loads.`,
    x,
    y: { title: "in use", format: percent, tick: (y) => `${Math.round(y * 100)}%`, range: [0, 1] },
    lines: queues.map((name, i) => ({
      name,
      values: curve.points.map((p) => p.utilization[curve.stations.indexOf(name)] ?? null),
      colour: COLOURS[i]!,
    })),
    uprights: [now],
  });
}

function timeBars(model: Model, solution: Solution): HTMLElement {
  const heavy = model.stations
    .map((s, k) => ({ name: s.name, k, most: Math.max(...solution.residence[k]!.map((r, c) => r / (solution.response_time[c] || 1))) }))
    .sort((a, b) => b.most - a.most)
    .slice(0, COLOURS.length - 1);
  const rest = (c: number) => solution.response_time[c]! - sum(heavy.map(({ k }) => solution.residence[k]![c]!));
  return bars(
    "time",
    "Shares of the response time",
    "Each bar is one class's whole response time.",
    model.classes.map((one, c) => {
      const whole = solution.response_time[c]! || 1;
      const parts = heavy.map(({ name, k }, i) => ({ name, value: solution.residence[k]![c]! / whole, colour: COLOURS[i]! }));
      return { name: one.name, parts: [...parts, { name: "elsewhere", value: Math.max(0, rest(c) / whole), colour: "s6" }], text: seconds(solution.response_time[c]) };
    }),
  );
}

function classes(solved: Solved): HTMLElement {
  const { model, simulation, intervals } = solved;
  const columns: Column<number>[] = [
    words("class", "class", (c) => model.classes[c]!.name),
    words("offered", "offered", (c) => offered(model.classes[c]!)),
    figures("throughput", "throughput", (c) => solved.throughput?.[c] ?? null, rate),
    figures("response_time", "mean response time", (c) => solved.response_time?.[c] ?? null, seconds),
    figures("p95", "p95", (c) => solved.response_percentiles[c]?.p95 ?? null, seconds),
    figures("p99", "p99", (c) => solved.response_percentiles[c]?.p99 ?? null, seconds),
  ];
  if (intervals) columns.splice(4, 0, words("interval", "90 %", (c) => between(intervals.response_time[c], seconds)));
  if (simulation) {
    const of = (c: number) => simulation.response_time[c] ?? null;
    columns.push(
      figures("simulated", "mean", (c) => of(c)?.mean.value ?? null, seconds, "simulated response time"),
      figures("simulated_ci95", "±", (c) => of(c)?.mean.ci95_half_width ?? null, seconds, "simulated response time"),
      figures("simulated_p95", "p95", (c) => of(c)?.p95.value ?? null, seconds, "simulated response time"),
    );
  }
  return section(
    "Classes",
    "Response times are means over all requests of a class; percentiles are approximate.",
    table("classes", "Classes", columns, model.classes.map((_, c) => c)),
  );
}

function stations(solved: Solved): HTMLElement {
  const { model, simulation } = solved;
  const limit = (k: number) => solved.limits.find((l) => l.station === model.stations[k]!.name);
  const columns: Column<number>[] = [
    words("station", "station", (k) => model.stations[k]!.name),
    words("kind", "kind", (k) => kind(model.stations[k]!)),
    figures("in_use", "in use", (k) => limit(k)?.utilization ?? null, percent),
    figures("present", "requests present", (k) => (solved.queue_length ? sum(solved.queue_length[k]!) : null), number),
    figures("saturates", "saturates at", (k) => limit(k)?.saturation_rate ?? null, rate),
    figures("background", "other work", (k) => model.stations[k]!.background || null, percent),
  ];
  if (simulation) {
    columns.push(figures("simulated", "simulated use", (k) => sum(simulation.utilization[k]!.map((e) => e.value)), percent));
  }
  return section(
    "Stations",
    "In use is the share of what a station can give to these classes; it saturates at that rate of all classes together, in their present mix.",
    table("stations", "Stations", columns, model.stations.map((_, k) => k)),
  );
}

function residence(model: Model, solution: Solution): HTMLElement {
  return section(
    "Time at each station",
    "Waiting and service of one request, over all its visits.",
    table("residence", "Residence times", [
      words("station", "station", (k: number) => model.stations[k]!.name),
      ...model.classes.map((one, c) => figures(`class${c}`, one.name, (k: number) => solution.residence[k]![c] || null, seconds)),
    ], model.stations.map((_, k) => k)),
  );
}
