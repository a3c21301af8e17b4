// The page of a solved model: response times and utilizations as functions of the load, and the response time at each
// station.
import type { Curve, Model, Solved } from "../documents/solution.ts";
import type { Solution } from "../documents/what-if.ts";
import { number, percent, rate, seconds } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { numberColumn, table, textColumn, type Column } from "../table.ts";
import { COLOURS, lines } from "./lines.ts";
import { intervalText, stationKind, offeredLoad, sum } from "./model.ts";
import { bars, facts, planPage } from "./parts.ts";

export function solutionPage(solved: Solved): Page {
  const { model, curve, simulation } = solved;
  const drawn = curve == null ? [] : [responseChart(curve, solved), utilizationChart(curve, solved)];
  const solution = solved.method === undefined ? null : (solved as Solved & Solution);
  const run = simulation?.run;
  return planPage(
    "plan solve",
    solved.headline,
    solved.caveats,
    drawn,
    solution && section("Where the time goes", "Response time of each class, by the station at which it is spent: waiting and service.", timeBars(model, solution)),
    classes(solved),
    stations(solved),
    solution && residence(model, solution),
    facts([
      ...(solution ? [["method", `${solution.method}: ${solution.why}`] as [string, string]] : []),
      ...(run ? [["simulation", `${number(run.events)} events in ${seconds(run.time_s)} of simulated time, seed ${run.seed}`] as [string, string]] : []),
      ...(solved.intervals ? [["intervals", `90 %, from ${solved.intervals.draws} draws of the demands`] as [string, string]] : []),
    ]),
  );
}

/** The x axis of a curve, and the mark of the model's own load on it. */
function axisOf(curve: Curve, model: Model) {
  const closed = model.classes.every((c) => c.type === "closed");
  const now = sum(model.classes.map((c) => (closed ? c.population : c.rate) ?? 0));
  return {
    x: { title: closed ? "customers" : "offered load (requests per second)", values: curve.points.map((p) => p.x[0] ?? 0), format: closed ? number : rate },
    now: { x: now, labels: ["the model's load", closed ? number(now) : rate(now)], at: "bottom" as const },
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
    ? [{ x: limit.saturation_rate, labels: [`${limit.station} saturates`, rate(limit.saturation_rate)], at: "top" as const }]
    : [];
  return lines({
    id: "response",
    title: "Mean response time as the load grows",
    reading: closed
      ? "With few customers there is little waiting. After the bend, each further customer waits for all others."
      : "All classes grow in proportion. Waiting grows slowly at first and without bound near saturation.",
    summary: `Chart: mean response time of ${curve.classes.length} classes over ${curve.points.length} loads.`,
    x,
    y: { title: "mean response time", format: seconds },
    lines: curve.classes.length > 1 ? [...byClass, mean] : byClass,
    verticalLines: [now, ...saturates],
    log: true,
  });
}

function utilizationChart(curve: Curve, solved: Solved): Chart {
  const { x, now } = axisOf(curve, solved.model);
  const queues = solved.limits.slice(0, COLOURS.length).map((limit) => limit.station);
  return lines({
    id: "utilization",
    title: "Utilization of the stations",
    reading: "The steepest line is the bottleneck. Once that station is made faster, the next one becomes the bottleneck.",
    summary: `Chart: utilization of ${queues.length} stations over ${curve.points.length} loads.`,
    x,
    y: { title: "utilization", format: percent, tick: (y) => `${Math.round(y * 100)}%`, range: [0, 1] },
    lines: queues.map((name, i) => ({
      name,
      values: curve.points.map((p) => p.utilization[curve.stations.indexOf(name)] ?? null),
      colour: COLOURS[i]!,
    })),
    verticalLines: [now],
  });
}

function timeBars(model: Model, solution: Solution): HTMLElement {
  const largest = model.stations
    .map((s, k) => ({ name: s.name, k, largestShare: Math.max(...solution.residence[k]!.map((r, c) => r / (solution.response_time[c] || 1))) }))
    .sort((a, b) => b.largestShare - a.largestShare)
    .slice(0, COLOURS.length - 1);
  const elsewhere = (c: number) => solution.response_time[c]! - sum(largest.map(({ k }) => solution.residence[k]![c]!));
  return bars(
    "time",
    "Shares of the response time",
    "Each bar is one class's whole response time.",
    model.classes.map((modelClass, c) => {
      const whole = solution.response_time[c]! || 1;
      const parts = largest.map(({ name, k }, i) => ({ name, value: solution.residence[k]![c]! / whole, colour: COLOURS[i]! }));
      return { name: modelClass.name, parts: [...parts, { name: "elsewhere", value: Math.max(0, elsewhere(c) / whole), colour: "s6" }], text: seconds(solution.response_time[c]) };
    }),
  );
}

function classes(solved: Solved): HTMLElement {
  const { model, simulation, intervals } = solved;
  const columns: Column<number>[] = [
    textColumn("class", "class", (c) => model.classes[c]!.name),
    textColumn("offered", "offered", (c) => offeredLoad(model.classes[c]!)),
    numberColumn("throughput", "throughput", (c) => solved.throughput?.[c] ?? null, rate),
    numberColumn("response_time", "mean response time", (c) => solved.response_time?.[c] ?? null, seconds),
    numberColumn("p95", "p95", (c) => solved.response_percentiles[c]?.p95 ?? null, seconds),
    numberColumn("p99", "p99", (c) => solved.response_percentiles[c]?.p99 ?? null, seconds),
  ];
  if (intervals) columns.splice(4, 0, textColumn("interval", "90 %", (c) => intervalText(intervals.response_time[c], seconds)));
  if (simulation) {
    const simulated = (c: number) => simulation.response_time[c] ?? null;
    columns.push(
      numberColumn("simulated", "mean", (c) => simulated(c)?.mean.value ?? null, seconds, "simulated response time"),
      numberColumn("simulated_ci95", "±", (c) => simulated(c)?.mean.ci95_half_width ?? null, seconds, "simulated response time"),
      numberColumn("simulated_p95", "p95", (c) => simulated(c)?.p95.value ?? null, seconds, "simulated response time"),
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
    textColumn("station", "station", (k) => model.stations[k]!.name),
    textColumn("kind", "kind", (k) => stationKind(model.stations[k]!)),
    numberColumn("in_use", "in use", (k) => limit(k)?.utilization ?? null, percent),
    numberColumn("present", "requests present", (k) => (solved.queue_length ? sum(solved.queue_length[k]!) : null), number),
    numberColumn("saturates", "saturates at", (k) => limit(k)?.saturation_rate ?? null, rate),
    numberColumn("background", "other work", (k) => model.stations[k]!.background || null, percent),
    numberColumn("interruptions_per_second", "interruptions per second", (k) => model.stations[k]!.interruptions?.per_second, number),
    numberColumn("interruptions_per_call", "interruptions per request", (k) => model.stations[k]!.interruptions?.per_call, number),
    numberColumn("interruption_length", "mean length of interruptions", (k) => model.stations[k]!.interruptions?.mean_length, seconds),
  ];
  if (simulation) {
    columns.push(numberColumn("simulated", "simulated use", (k) => sum(simulation.utilization[k]!.map((e) => e.value)), percent));
  }
  return section(
    "Stations",
    "In use is the share of the station's capacity for these classes that they use. The station saturates at the given rate of all classes together, in their present mix.",
    table("stations", "Stations", columns, model.stations.map((_, k) => k)),
  );
}

function residence(model: Model, solution: Solution): HTMLElement {
  return section(
    "Time at each station",
    "Waiting and service of one request, over all its visits.",
    table("residence", "Residence times", [
      textColumn("station", "station", (k: number) => model.stations[k]!.name),
      ...model.classes.map((modelClass, c) => numberColumn(`class${c}`, modelClass.name, (k: number) => solution.residence[k]![c] || null, seconds)),
    ], model.stations.map((_, k) => k)),
  );
}
