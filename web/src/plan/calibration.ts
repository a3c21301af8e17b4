// The page of a calibration: the demands and how well they are known, and what the runs say against them.
import type { Calibration, InsideDemand, Interval, Model, Station } from "../documents/calibration.ts";
import { count, error, number, percent, rate, seconds } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { figures, interval, table, words, type Column } from "../table.ts";
import { lines } from "./lines.ts";
import { kind } from "./model.ts";
import { facts, planPage } from "./parts.ts";

const SOURCES: Record<string, string> = {
  direct: "inside the server",
  single_class_run: "runs of it alone",
  regression: "runs of mixes",
  proportional: "a rule of proportion",
  response_times: "response times",
};

export function calibrationPage(found: Calibration): Page {
  const drawn = [
    ...(found.knee.measured.length > 1 ? [throughputChart(found)] : []),
    ...(found.runs.length > 1 ? [demandChart(found)] : []),
  ];
  return planPage(
    "plan calibrate",
    found.headline,
    found.warnings,
    drawn,
    demands(found),
    inside(found),
    stations(found.model),
    records(found),
    facts([
      ["busy without requests", `${number(found.background.value)} CPUs`],
      ["condition number", `${number(found.condition_number)}; above 30 classes could not be told apart`],
    ]),
  );
}

function throughputChart(found: Calibration): Chart {
  const { measured, knee, usl } = found.knee;
  const rows = [...measured].sort((a, b) => a.offered - b.offered);
  const end = Math.max(...rows.map((m) => m.offered), found.saturation.rate ?? 0);
  const levels = [
    { y: found.saturation.rate, words: `model: ${rate(found.saturation.rate)}` },
    { y: usl?.peak?.throughput.value ?? null, words: `USL: ${rate(usl?.peak?.throughput.value)}` },
  ].flatMap(({ y, words: text }) => (y == null ? [] : [{ y, words: text }]));
  return lines({
    id: "throughput",
    title: "Throughput of the runs, and where it must end",
    reading: "Points on the diagonal kept up. The model's saturation comes from demands, the others from the bend of the points alone: they should agree.",
    summary: `Chart: throughput of ${rows.length} runs against offered load.`,
    x: { title: "offered load (requests per second)", values: [0, ...rows.map((m) => m.offered), end], format: rate },
    y: { title: "throughput (responses per second)", format: rate },
    lines: [
      { name: "measured", values: [null, ...rows.map((m) => m.completed), null], colour: "s1", points: true },
      { name: "offered = answered", values: [0, ...rows.map((m) => m.offered), end], colour: "s6", dash: [2, 3] },
    ],
    levels,
    ...(knee ? { uprights: [{ x: knee.load, words: ["Kneedle", rate(knee.throughput)], at: "bottom" as const }] } : {}),
  });
}

function demandChart(found: Calibration): Chart {
  const runs = [...found.runs].sort((a, b) => a.rate - b.rate);
  return lines({
    id: "demand",
    title: "CPU time of the mean request",
    reading: "Measured is the server's CPU time over its requests in each run; the ring is what the demands make of the run's mix, and runs may have different ones. Where a point is outside its ring, one law does not hold for all runs.",
    summary: `Chart: CPU time per request in ${runs.length} runs.`,
    x: { title: "requests per second", values: runs.map((r) => r.rate), format: rate },
    y: { title: "CPU time per request", format: seconds },
    lines: [
      { name: "fitted", values: runs.map((r) => r.fitted_s), colour: "s2", points: "rings" },
      { name: "measured", values: runs.map((r) => r.measured_s), colour: "s1", points: true },
    ],
  });
}

function demands(found: Calibration): HTMLElement {
  const { model, uncertainty } = found;
  const rows = model.stations.flatMap((station, k) => model.classes.map((one, c) => ({ station, one, demand: model.demands[k]![c]!, known: uncertainty[k]![c]! })));
  const columns: Column<(typeof rows)[number]>[] = [
    words("station", "station", (row) => row.station.name),
    words("class", "class", (row) => row.one.name),
    figures("demand", "demand", (row) => row.demand, seconds),
    figures("low", "from", (row) => row.known.ci95?.low ?? null, seconds, "95 % interval"),
    figures("high", "to", (row) => row.known.ci95?.high ?? null, seconds, "95 % interval"),
    words("source", "what it stands on", (row) => SOURCES[row.known.source] ?? row.known.source),
  ];
  return section(
    "Demands",
    "The time that one request of a class needs at a station, waiting excluded, with its 95\u202f% interval.",
    table("demands", "Demands", columns, rows),
  );
}

/** What the Server Module measured of each class, and what the runs say without it. */
function inside({ inside: measured }: Calibration): HTMLElement | null {
  if (measured == null) return null;
  const ends = (of: (one: InsideDemand) => Interval | null | undefined) => (one: InsideDemand) => {
    const known = of(one);
    return known == null ? null : ([known.low, known.high] as [number, number]);
  };
  const [atAll, full, law] = ["inside, over all runs", "inside, at saturation", "regression, at saturation"];
  const columns: Column<InsideDemand>[] = [
    words("class", "class", (one) => one.class),
    figures("sampled", "requests measured", (one) => one.sampled, count),
    figures("measured", "CPU time", (one) => one.measured_s, seconds, atAll),
    figures("measured.ci95", "±", (one) => one.measured_ci95_half_width, seconds, atAll),
    figures("demand", "demand", (one) => one.demand_s, seconds, full),
    interval("demand.ci95", "95\u202f% interval", ends((one) => one.ci95), seconds, full),
    figures("regression", "demand", (one) => one.regression_s, seconds, law),
    interval("regression.ci95", "95\u202f% interval", ends((one) => one.regression_ci95), seconds, law),
    figures("difference", "inside over regression", (one) => (one.ratio == null ? null : one.ratio - 1), error),
  ];
  const without = measured.no_regression == null ? "" : ` There is no regression: ${measured.no_regression}.`;
  return section(
    "Measured inside the server",
    `CPU time of a request as the Server Module measured it in the server's workers, beside what the runs say by the utilization law without that. The two should agree; the model has the first.${without}`,
    table("inside", "Demands measured inside the server, and by regression", columns, measured.classes),
  );
}

function stations(model: Model): HTMLElement {
  const columns: Column<Station>[] = [
    words("station", "station", (s) => s.name),
    words("kind", "kind", kind),
    figures("scv", "variability (SCV)", (s) => (s.type === "queue" ? s.scv : null), number),
    figures("background", "other work", (s) => (s.type === "queue" ? s.background : null), percent),
  ];
  return section(
    "Stations",
    "Other work is the share of a station that is not for these requests.",
    table("stations", "Stations", columns, model.stations),
  );
}

function records(found: Calibration): HTMLElement {
  const run = (i: number) => found.runs.find((r) => r.record === i);
  const use = (i: number) =>
    found.idle.includes(i) ? "idle server" : found.used.includes(i) ? "used" : `left out: ${found.left_out.find((l) => l.record === i)?.reason ?? ""}`;
  const columns: Column<number>[] = [
    words("record", "record", (i: number) => found.records[i] ?? ""),
    figures("rate", "rate", (i) => run(i)?.rate ?? null, rate),
    figures("utilization", "CPU in use", (i) => run(i)?.utilization ?? null, percent),
    words("use", "use", use),
  ];
  return section(
    "Records",
    "What each run was used for.",
    table("records", "Records", columns, found.records.map((_, i) => i)),
  );
}
