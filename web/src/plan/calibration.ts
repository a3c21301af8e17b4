// The page of a calibration: the demands with their intervals, and the runs from which they were estimated.
import type { Calibration, InsideDemand, Interval, Model, Station } from "../documents/calibration.ts";
import { count, signedPercent, number, percent, rate, seconds } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { numberColumn, intervalColumn, table, textColumn, type Column } from "../table.ts";
import { lines } from "./lines.ts";
import { stationKind } from "./model.ts";
import { facts, planPage } from "./parts.ts";

/** Names of the sources of a demand. */
const SOURCES: Record<string, string> = {
  direct: "measured inside the server",
  single_class_run: "runs of this class alone",
  regression: "regression over runs of mixes",
  proportional: "proportional rule",
  response_times: "response times",
};

export function calibrationPage(calibration: Calibration): Page {
  const drawn = [
    ...(calibration.knee.measured.length > 1 ? [throughputChart(calibration)] : []),
    ...(calibration.runs.length > 1 ? [demandChart(calibration)] : []),
  ];
  return planPage(
    "plan calibrate",
    calibration.headline,
    calibration.warnings,
    drawn,
    demands(calibration),
    inside(calibration),
    stations(calibration.model),
    records(calibration),
    facts([
      ["CPU use without requests", `${number(calibration.background.value)} CPUs`],
      ["condition number", `${number(calibration.condition_number)}; above 30, the demands of the classes cannot be separated`],
    ]),
  );
}

function throughputChart(calibration: Calibration): Chart {
  const { measured, knee, usl } = calibration.knee;
  const rows = [...measured].sort((a, b) => a.offered - b.offered);
  const end = Math.max(...rows.map((m) => m.offered), calibration.saturation.rate ?? 0);
  const horizontalLines = [
    { y: calibration.saturation.rate, label: `model: ${rate(calibration.saturation.rate)}` },
    { y: usl?.peak?.throughput.value ?? null, label: `USL: ${rate(usl?.peak?.throughput.value)}` },
  ].flatMap(({ y, label }) => (y == null ? [] : [{ y, label }]));
  return lines({
    id: "throughput",
    title: "Throughput of the runs, and predicted saturation",
    reading: "In runs on the diagonal the server kept up. The model's saturation is derived from the demands, the others only from the bend of the points. They should agree.",
    summary: `Chart: throughput of ${rows.length} runs against offered load.`,
    x: { title: "offered load (requests per second)", values: [0, ...rows.map((m) => m.offered), end], format: rate },
    y: { title: "throughput (responses per second)", format: rate },
    lines: [
      { name: "measured", values: [null, ...rows.map((m) => m.completed), null], colour: "s1", points: true },
      { name: "throughput = offered load", values: [0, ...rows.map((m) => m.offered), end], colour: "s6", dash: [2, 3] },
    ],
    horizontalLines,
    ...(knee ? { verticalLines: [{ x: knee.load, labels: ["Kneedle", rate(knee.throughput)], at: "bottom" as const }] } : {}),
  });
}

function demandChart(calibration: Calibration): Chart {
  const runs = [...calibration.runs].sort((a, b) => a.rate - b.rate);
  return lines({
    id: "demand",
    title: "CPU time of the mean request",
    reading: "Each point is the server's CPU time per request in a run. Its ring is the value that the fitted demands predict for the mix of that run. If a point is outside its ring, one law does not fit all runs.",
    summary: `Chart: CPU time per request in ${runs.length} runs.`,
    x: { title: "requests per second", values: runs.map((r) => r.rate), format: rate },
    y: { title: "CPU time per request", format: seconds },
    lines: [
      { name: "fitted", values: runs.map((r) => r.fitted_s), colour: "s2", points: "rings" },
      { name: "measured", values: runs.map((r) => r.measured_s), colour: "s1", points: true },
    ],
  });
}

function demands(calibration: Calibration): HTMLElement {
  const { model, uncertainty } = calibration;
  const rows = model.stations.flatMap((station, k) => model.classes.map((modelClass, c) => ({ station, modelClass, demand: model.demands[k]![c]!, known: uncertainty[k]![c]! })));
  const columns: Column<(typeof rows)[number]>[] = [
    textColumn("station", "station", (row) => row.station.name),
    textColumn("class", "class", (row) => row.modelClass.name),
    numberColumn("demand", "demand", (row) => row.demand, seconds),
    numberColumn("low", "from", (row) => row.known.ci95?.low ?? null, seconds, "95 % interval"),
    numberColumn("high", "to", (row) => row.known.ci95?.high ?? null, seconds, "95 % interval"),
    textColumn("source", "estimated from", (row) => SOURCES[row.known.source] ?? row.known.source),
  ];
  return section(
    "Demands",
    "The time that one request of a class needs at a station, waiting excluded, with its 95\u202f% interval.",
    table("demands", "Demands", columns, rows),
  );
}

/** The demand of each class as measured by the Server Module, and as estimated from the runs without it. */
function inside({ inside: measured }: Calibration): HTMLElement | null {
  if (measured == null) return null;
  const ends = (interval: Interval | null | undefined): [number, number] | null => (interval == null ? null : [interval.low, interval.high]);
  const overall = "inside, over all runs";
  const saturated = "inside, at saturation";
  const regression = "regression, at saturation";
  const columns: Column<InsideDemand>[] = [
    textColumn("class", "class", (demand) => demand.class),
    numberColumn("sampled", "requests measured", (demand) => demand.sampled, count),
    numberColumn("measured", "CPU time", (demand) => demand.measured_s, seconds, overall),
    numberColumn("measured.ci95", "±", (demand) => demand.measured_ci95_half_width, seconds, overall),
    numberColumn("demand", "demand", (demand) => demand.demand_s, seconds, saturated),
    intervalColumn("demand.ci95", "95\u202f% interval", (demand) => ends(demand.ci95), seconds, saturated),
    numberColumn("regression", "demand", (demand) => demand.regression_s, seconds, regression),
    intervalColumn("regression.ci95", "95\u202f% interval", (demand) => ends(demand.regression_ci95), seconds, regression),
    numberColumn("difference", "inside over regression", (demand) => (demand.ratio == null ? null : demand.ratio - 1), signedPercent),
  ];
  const missing = measured.no_regression == null ? "" : ` There is no regression: ${measured.no_regression}.`;
  return section(
    "Measured inside the server",
    `CPU time per request as measured by the Server Module in the server's workers, and as estimated from the runs by the utilization law without it. The two should agree; the model uses the measured one.${missing}`,
    table("inside", "Demands measured inside the server, and by regression", columns, measured.classes),
  );
}

function stations(model: Model): HTMLElement {
  const columns: Column<Station>[] = [
    textColumn("station", "station", (s) => s.name),
    textColumn("kind", "kind", stationKind),
    numberColumn("scv", "variability (SCV)", (s) => (s.type === "queue" ? s.scv : null), number),
    numberColumn("background", "other work", (s) => (s.type === "queue" ? s.background : null), percent),
  ];
  return section(
    "Stations",
    "Other work is the share of a station that is used for anything but these requests.",
    table("stations", "Stations", columns, model.stations),
  );
}

function records(calibration: Calibration): HTMLElement {
  const runOf = (i: number) => calibration.runs.find((r) => r.record === i);
  const useOf = (i: number) =>
    calibration.idle.includes(i) ? "idle server" : calibration.used.includes(i) ? "used" : `left out: ${calibration.left_out.find((l) => l.record === i)?.reason ?? ""}`;
  const columns: Column<number>[] = [
    textColumn("record", "record", (i: number) => calibration.records[i] ?? ""),
    numberColumn("rate", "rate", (i) => runOf(i)?.rate ?? null, rate),
    numberColumn("utilization", "CPU in use", (i) => runOf(i)?.utilization ?? null, percent),
    textColumn("use", "use", useOf),
  ];
  return section(
    "Records",
    "What each run was used for.",
    table("records", "Records", columns, calibration.records.map((_, i) => i)),
  );
}
