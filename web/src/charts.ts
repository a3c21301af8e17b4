// The charts of a survey. The lines show the levels that request the mix of all classes. Other held-out loads are
// single points beside the lines. Levels of a single class are not in the charts, only in the tables.
import type uPlot from "uplot";
import { count, signedPercent, wholePercent, number, percent, range, rate, seconds, timeUnit, type Format } from "./format.ts";
import { axis, colour, logTicks, drawSaturationInterval, bandEdge, legendEntry, drawPredictions, figure, drawSaturation, predictionSeries, drawMarks, paintPlot, invisibleSeries, drawHorizontalLine, thinPredictionSeries } from "./plot.ts";
import { tickLabel, type Chart, type Prediction, type Mark } from "./plot.ts";
import type { ByClients, Comparison, Level, Role } from "./documents/survey.ts";
import { predictionInterval, isWithinInterval, mixLevels, otherLoads, ROLES, type Survey } from "./survey.ts";
import { numberColumn, intervalColumn, table, textColumn } from "./table.ts";

const ROLE_NAMES = Object.keys(ROLES) as Role[];
const OFFERED = "offered load (requests per second)";

export function charts(survey: Survey): { element: HTMLElement; start: () => void }[] {
  const clients = (survey.throughput_by_clients ?? []).length > 0 ? [throughputByClients(survey)] : [];
  return [responseTime(survey), utilization(survey), ...clients, throughput(survey), cpu(survey)].map(figure);
}

function throughput(survey: Survey): Chart {
  const levels = mixLevels(survey);
  const comparisonOf = (level: Level) => level.throughput;
  const saturation = survey.saturation_rate.predicted;
  const ends = predictionInterval(survey.saturation_rate);
  // The predicted throughput equals the offered load up to the saturation rate, and is constant above it. The line
  // needs a point where it bends, even if there is no level at that load.
  const predictionAt = (x: number) => ({
    x,
    predicted: saturation == null ? null : Math.min(x, saturation),
    interval: ends && (ends.map((end) => Math.min(x, end)) as [number, number]),
  });
  const bends = saturation == null ? [] : [0, saturation, ...(ends ?? [])].map(predictionAt);
  const { data, points, readout } = compared({ levels, others: [], comparisonOf, format: rate, line: (level) => predictionAt(level.offered), bends });
  return {
    id: "throughput",
    title: "Throughput against offered load",
    reading:
      "While the server keeps up, the points are on the diagonal. Where they leave it, the server is saturated. The band is the 90\u202f% interval of the predicted saturation rate.",
    summary: `Chart: throughput at ${levels.length} levels of offered load; predicted saturation ${rate(saturation)}.`,
    legend: [...legend(levels, comparisonOf, undefined, ends !== null), legendEntry("diagonal", "throughput = offered load")],
    points: levels.length,
    readout,
    table: comparisonTable("throughput", levels, comparisonOf, rate),
    log: false,
    data,
    options: () => ({
      scales: { x: { time: false, range: [0, loadAxisEnd(survey)] }, y: { range: [0, Math.max(highestThroughput(levels, comparisonOf), saturation ?? 0) * 1.12] } },
      axes: [axis(OFFERED, tickLabel), axis("throughput (responses per second)", tickLabel, 58)],
      series: comparisonSeries(),
      bands: BANDS,
      hooks: {
        drawAxes: [drawDiagonal],
        draw: [
          (u) => drawSaturation(u, survey.saturation_rate, "bottom"),
          (u) => drawMarks(u, points),
        ],
      },
    }),
  };
}

function responseTime(survey: Survey): Chart {
  // Leave out levels past saturation: their mean response times grow with the duration of the load, and the scale that
  // they need would make the other points hard to distinguish.
  const levels = mixLevels(survey).filter((level) => level.role !== "past_saturation");
  const others = otherLoads(survey);
  const comparisonOf = (level: Level) => level.response_time_s;
  const { data, points, expected, readout } = compared({ levels, others, comparisonOf, format: seconds, steady });
  const all = [...levels, ...others];
  const values = all.flatMap((l) => [comparisonOf(l).predicted, comparisonOf(l).measured, ...(predictionInterval(comparisonOf(l)) ?? [])]).filter((x) => x != null && x > 0) as number[];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const steep = high > 50 * low;
  return {
    id: "response_time",
    title: "Mean response time against offered load",
    reading:
      "Response time grows slowly at first and without bound near saturation. The band should contain nine of ten measurements if the speed of the host varies as it did during calibration; the thin line is the prediction for a host of constant speed. Bars are 95\u202f% intervals of the measured mean. Levels past saturation are only in their table: their response time depends on how long the load lasts.",
    summary: `Chart: mean response time at ${all.length} levels of offered load, from ${seconds(low)} to ${seconds(high)}.`,
    legend: legend(levels, comparisonOf, steady),
    points: all.length,
    readout,
    table: comparisonTable("response_time", all, comparisonOf, seconds),
    log: steep,
    data,
    options: (log) => {
      const unit = timeUnit(log ? Math.sqrt(low * high) : high);
      const span: [number, number] = log ? [low / 2, high * 2] : [0, high * 1.12];
      const times = axis(`mean response time (${unit.name})`, (x) => tickLabel(Number((x * unit.per_s).toPrecision(6))), 58);
      return {
        scales: { x: { time: false, range: [0, loadAxisEnd(survey, [...levels, ...others])] }, y: { distr: log ? 3 : 1, range: span } },
        axes: [axis(OFFERED, tickLabel), log ? { ...times, splits: (u) => logTicks(...span, u.height / 22) } : times],
        series: comparisonSeries(),
        bands: BANDS,
        hooks: {
          drawAxes: [(u) => drawSaturationInterval(u, predictionInterval(survey.saturation_rate)), (u) => drawPredictions(u, expected)],
          draw: [
            (u) => drawSaturation(u, survey.saturation_rate, "top"),
            (u) => drawMarks(u, points),
          ],
        },
      };
    },
  };
}

function steady(level: Level): number | null {
  return level.steady_response_s ?? null;
}

function utilization(survey: Survey): Chart {
  // A closed level has no offered load. Its utilization is predicted for saturation, so it is a single point beside the
  // line.
  const isClosed = (level: Level) => level.role === "past_saturation" && level.clients != null;
  const levels = mixLevels(survey).filter((level) => !isClosed(level));
  const others = [...otherLoads(survey), ...mixLevels(survey).filter(isClosed)];
  const comparisonOf = (level: Level) => level.utilization;
  const saturation = survey.saturation_rate.predicted;
  const saturated = others.filter(isClosed).slice(0, saturation == null ? 0 : 1);
  const bends = saturated.map((level) => ({ x: saturation ?? 0, predicted: comparisonOf(level).predicted ?? null, interval: predictionInterval(comparisonOf(level)) }));
  const { data, points, expected, readout } = compared({ levels, others, comparisonOf, format: percent, bends });
  const all = [...levels, ...others];
  return {
    id: "utilization",
    title: "Utilization of the server’s CPUs against offered load",
    reading:
      "The share of the server’s CPU time that its processes use. It grows with the load until some resource is saturated. If that is not the CPUs, it stays below 100\u202f%.",
    summary: `Chart: utilization at ${all.length} levels of offered load.`,
    legend: legend(levels, comparisonOf),
    points: all.length,
    readout,
    table: comparisonTable("utilization", all, comparisonOf, percent),
    log: false,
    data,
    options: () => ({
      scales: { x: { time: false, range: [0, loadAxisEnd(survey)] }, y: { range: [0, 1.05] } },
      axes: [axis(OFFERED, tickLabel), { ...axis("utilization (%)", (y) => tickLabel(Math.round(y * 100)), 58), splits: () => [0, 0.2, 0.4, 0.6, 0.8, 1] }],
      series: comparisonSeries(),
      bands: BANDS,
      hooks: {
        drawAxes: [(u) => drawSaturationInterval(u, predictionInterval(survey.saturation_rate)), (u) => drawPredictions(u, expected)],
        draw: [
          (u) => drawSaturation(u, survey.saturation_rate, "bottom"),
          (u) => drawMarks(u, points),
        ],
      },
    }),
  };
}

/** Throughput against the number of concurrent clients, which send a request as soon as they have a response. */
function throughputByClients(survey: Survey): Chart {
  const calibrated = survey.throughput_by_clients ?? [];
  const later = survey.levels.filter((l) => l.role === "past_saturation" && l.clients != null && l.throughput.measured != null);
  const upperEnd = (point: ByClients) => point.throughput + (point.ci95_half_width ?? 0);
  const saturation = survey.saturation_rate.predicted;
  const highestRate = Math.max(...calibrated.map(upperEnd), ...later.map((l) => l.throughput.measured ?? 0), saturation ?? 0) || 1;
  const clients = [...new Set([...calibrated, ...later].map((point) => point.clients ?? 0))].sort((a, b) => a - b);
  const calibratedAt = (n: number) => calibrated.find((point) => point.clients === n);
  const laterAt = (n: number) => later.find((level) => level.clients === n);
  const points: Mark[] = [
    ...calibrated.map((point) => ({ x: point.clients, y: point.throughput, role: "calibration" as const, half: point.ci95_half_width })),
    ...later.map((level) => ({
      x: level.clients ?? 0,
      y: level.throughput.measured ?? 0,
      role: "past_saturation" as const,
      half: level.throughput.measured_ci95_half_width,
    })),
  ];
  const ends: [number, number] = [(clients[0] ?? 1) / 1.3, (clients.at(-1) ?? 1) * 1.3];
  return {
    id: "clients",
    title: "Throughput by number of clients",
    reading:
      "Each client sends its next request as soon as it has a response. Where more clients do not raise the throughput, the server is saturated. The model predicts that rate. Bars are 95\u202f% intervals over the blocks of calibration.",
    summary: `Chart: throughput of ${clients.map((n) => count(n)).join(", ")} concurrent clients; predicted saturation ${rate(saturation)}.`,
    legend: [legendEntry("calibration", "measured, calibration"), later.length > 0 ? legendEntry("past_saturation", "measured after the prediction") : null],
    points: clients.length,
    readout: clients.map((n) => {
      const point = calibratedAt(n);
      const level = laterAt(n);
      const half = point?.ci95_half_width;
      return [
        n === 1 ? "1 client" : `${count(n)} clients`,
        ...(point ? [`calibration ${rate(point.throughput)}${half == null ? "" : ` ± ${rate(half)}`}`, `utilization ${percent(point.utilization)}`] : []),
        ...(level ? [`measured later ${rate(level.throughput.measured)}`] : []),
      ];
    }),
    table: table("chart-clients", "Throughput by clients as a table", [
      numberColumn("clients", "clients", (n: number) => n, count),
      numberColumn("throughput", "throughput", (n: number) => calibratedAt(n)?.throughput, rate),
      numberColumn("ci95", "±", (n: number) => calibratedAt(n)?.ci95_half_width, rate),
      numberColumn("utilization", "utilization", (n: number) => calibratedAt(n)?.utilization, percent),
      numberColumn("later", "measured after the prediction", (n: number) => laterAt(n)?.throughput.measured, rate),
    ], clients),
    log: false,
    data: [clients, clients.map((n) => calibratedAt(n)?.throughput ?? null)],
    options: () => ({
      scales: { x: { time: false, distr: 3, log: 2, range: ends }, y: { range: [0, highestRate * 1.15] } },
      axes: [
        { ...axis("concurrent clients", tickLabel), splits: () => clients, filter: (_, splits) => splits },
        axis("throughput (responses per second)", tickLabel, 58),
      ],
      series: [{}, { label: "throughput", stroke: () => colour("calibration"), width: 1, spanGaps: true, points: { show: false } }],
      hooks: {
        draw: [
          (u) => saturation != null && drawHorizontalLine(u, saturation, `predicted saturation ${number(saturation)}/s`),
          (u) => drawMarks(u, points),
        ],
      },
    }),
  };
}

const PARTS = ["user", "system", "steal", "idle"] as const;
const PART_NAMES = { user: "user", system: "system", steal: "stolen by the hypervisor", idle: "idle" };

function cpu(survey: Survey): Chart {
  const levels = mixLevels(survey).filter((level) => level.cpu != null);
  const part = (level: Level, name: (typeof PARTS)[number]) => level.cpu?.[name] ?? 0;
  const upTo = (level: Level, i: number) => PARTS.slice(0, i + 1).reduce((sum, name) => sum + part(level, name), 0);
  // Later series are drawn over earlier series, so the highest series must be the first.
  const stacks = PARTS.map((_, i) => levels.map((level) => upTo(level, i))).reverse();
  const single = levels.length === 1;
  return {
    id: "cpu",
    title: "Where the time of the server’s CPUs goes",
    reading:
      "Shares of all CPU time at each level. If no idle time is left at saturation, the CPUs are the limit; if much is left, something else is.",
    summary: `Chart: user, system, stolen and idle share of the server’s CPUs at ${levels.length} levels of offered load.`,
    legend: PARTS.map((name) => legendEntry("area", PART_NAMES[name], name)),
    points: levels.length,
    readout: levels.map((level) => [
      `${rate(level.offered)} offered`,
      ...PARTS.map((name) => `${name} ${percent(part(level, name))}`),
    ]),
    table: table("chart-cpu", "Shares of CPU time as a table", [
      numberColumn("offered", "offered", (l: Level) => l.offered, rate),
      ...PARTS.map((name) => numberColumn(name, name, (l: Level) => l.cpu?.[name] ?? null, percent)),
    ], levels),
    log: false,
    data: [levels.map((level) => level.offered), ...stacks],
    options: () => ({
      scales: { x: { time: false, range: [0, loadAxisEnd(survey)] }, y: { range: [0, 1] } },
      axes: [axis(OFFERED, tickLabel), axis("share of CPU time (%)", (y) => tickLabel(Math.round(y * 100)), 58)],
      series: [
        {},
        ...[...PARTS].reverse().map((name) => ({
          label: name,
          stroke: () => colour("surface"),
          width: single ? 0 : 1.5,
          fill: () => colour(name),
          points: { show: single, size: 10, fill: () => colour(name) },
        })),
      ],
      hooks: { draw: [(u) => writeAreaNames(u, levels, part, upTo)] },
    }),
  };
}

/** Writes the name of each area where it is thickest, if there is room. */
function writeAreaNames(
  u: uPlot,
  levels: Level[],
  part: (level: Level, name: (typeof PARTS)[number]) => number,
  upTo: (level: Level, i: number) => number,
): void {
  paintPlot(u, (ctx) => {
    ctx.fillStyle = colour("ink");
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    PARTS.forEach((name, i) => {
      const thickest = levels.slice(1, -1).reduce((a, b) => (part(b, name) > part(a, name) ? b : a), levels[1] ?? levels[0]!);
      if (part(thickest, name) * u.over.clientHeight < 22) return;
      ctx.fillText(name, u.valToPos(thickest.offered, "x"), u.valToPos(upTo(thickest, i) - part(thickest, name) / 2, "y"));
    });
  });
}

/** Series of the data that `compared` returns, the rearmost first. */
const comparisonSeries = (): uPlot.Series[] => [
  {},
  bandEdge("upper end of the 90\u202f% interval"),
  bandEdge("lower end of the 90\u202f% interval"),
  thinPredictionSeries("predicted of a host that keeps its speed"),
  predictionSeries("predicted"),
  ...ROLE_NAMES.map((role) => invisibleSeries(ROLES[role])),
];
const BANDS: uPlot.Band[] = [{ series: [1, 2], fill: () => colour("band80") }];

interface ComparisonSpec {
  /** Levels of the mix, which are on the lines. */
  levels: Level[];
  /** Levels of other loads, drawn beside the lines. */
  others: Level[];
  comparisonOf: (level: Level) => Comparison;
  format: Format;
  /** The prediction for a host of constant speed. */
  steady?: (level: Level) => number | null;
  /** The value of the line at a level, if the line does not show the prediction for that level. */
  line?: (level: Level) => LinePoint;
  /** Further points of the line, at which it bends. */
  bends?: (LinePoint & { x: number })[];
}

interface LinePoint {
  predicted: number | null;
  interval: [number, number] | null;
}

/** Measurements and predictions: uPlot's data as in `comparisonSeries`, the marks beside it, and the readouts. */
function compared({ levels, others, comparisonOf, format, steady, line, bends = [] }: ComparisonSpec): {
  data: uPlot.AlignedData;
  points: Mark[];
  expected: Prediction[];
  readout: Chart["readout"];
} {
  const ownPrediction = (level: Level): LinePoint => ({ predicted: comparisonOf(level).predicted ?? null, interval: predictionInterval(comparisonOf(level)) });
  const rows: { x: number; line: LinePoint; level: Level | null; isBesideLine: boolean }[] = [
    ...levels.map((level) => ({ x: level.offered, line: (line ?? ownPrediction)(level), level, isBesideLine: false })),
    ...others.map((level) => ({ x: level.offered, line: { predicted: null, interval: null }, level, isBesideLine: true })),
    ...bends.map((bend) => ({ x: bend.x, line: bend, level: null, isBesideLine: false })),
  ].sort((a, b) => a.x - b.x);
  const measuredOfRole = (role: Role) => rows.map(({ level }) => (level?.role === role ? comparisonOf(level).measured : null));
  const intervalEnd = (i: 0 | 1) => rows.map(({ line }) => line.interval?.[i] ?? null);
  const points = [...levels, ...others].flatMap((level) => {
    const { measured: y, measured_ci95_half_width: half } = comparisonOf(level);
    const label = others.includes(level) ? { name: level.clients == null ? level.workload : `${count(level.clients)} clients` } : {};
    return y == null ? [] : [{ x: level.offered, y, role: level.role, half, ...label }];
  });
  const expected = others.map((level) => ({ x: level.offered, predicted: comparisonOf(level).predicted ?? null, between: predictionInterval(comparisonOf(level)) }));
  const readout = rows.map(({ level }) => (level == null ? null : readoutOf(level, comparisonOf(level), format)));
  return {
    data: [
      rows.map((row) => row.x),
      intervalEnd(1),
      intervalEnd(0),
      rows.map(({ level, isBesideLine }) => (level == null || isBesideLine ? null : (steady?.(level) ?? null))),
      rows.map(({ line }) => line.predicted),
      ...ROLE_NAMES.map(measuredOfRole),
    ],
    points,
    expected,
    readout,
  };
}

function readoutOf(level: Level, comparison: Comparison, format: Format): [string, ...string[]] {
  const { predicted, measured, error: e, error_drift: drift, measured_ci95_half_width: half } = comparison;
  const interval = predictionInterval(comparison);
  const isWithin = isWithinInterval(comparison);
  const name = level.workload === "mix" ? ROLES[level.role] : `${ROLES[level.role]}: ${level.workload}`;
  return [
    `${rate(level.offered)} offered, ${name}`,
    `measured ${format(measured)}${half == null ? "" : ` ± ${format(half)}`}`,
    ...(predicted == null ? [] : [`predicted ${format(predicted)}${interval === null ? "" : ` (${range(interval, format)})`}`]),
    ...(isWithin === null ? [] : [isWithin ? "✓ within the 90\u202f% interval" : "✗ outside the 90\u202f% interval"]),
    ...(e == null ? [] : [`error ${signedPercent(e)}${drift == null ? "" : `, host’s share ${signedPercent(drift)}`}`]),
    ...(level.host_speed == null ? [] : [`host speed ${level.host_speed.toFixed(2)}`]),
  ];
}

function comparisonTable(id: string, levels: Level[], comparisonOf: (level: Level) => Comparison, format: Format): HTMLElement {
  return table(`chart-${id}`, "The chart’s values as a table", [
    numberColumn("offered", "offered", (l: Level) => l.offered, rate),
    numberColumn("fraction", "of capacity", (l: Level) => l.fraction, wholePercent),
    textColumn("role", "role", (l: Level) => ROLES[l.role]),
    textColumn("workload", "workload", (l: Level) => l.workload),
    numberColumn("predicted", "predicted", (l: Level) => comparisonOf(l).predicted, format),
    intervalColumn("interval90", "90\u202f% interval", (l: Level) => predictionInterval(comparisonOf(l)), format),
    numberColumn("measured", "measured", (l: Level) => comparisonOf(l).measured, format),
    numberColumn("ci95", "±", (l: Level) => comparisonOf(l).measured_ci95_half_width, format),
    numberColumn("error", "error", (l: Level) => comparisonOf(l).error, signedPercent),
    numberColumn("drift", "host’s share", (l: Level) => comparisonOf(l).error_drift, signedPercent),
  ], levels);
}

function legend(
  levels: Level[],
  comparisonOf: (level: Level) => Comparison,
  steady?: (level: Level) => number | null,
  hasBand = levels.some((level) => predictionInterval(comparisonOf(level)) !== null),
): (HTMLElement | null)[] {
  const roles = ROLE_NAMES.filter((role) => levels.some((level) => level.role === role));
  return [
    legendEntry("predicted", "predicted"),
    hasBand ? legendEntry("area", "90\u202f% of measurements", "band80") : null,
    levels.some((level) => steady?.(level) != null) ? legendEntry("steady", "predicted, steady host") : null,
    ...roles.map((role) => legendEntry(role, `measured, ${ROLES[role]}`)),
  ];
}

function drawDiagonal(u: uPlot): void {
  paintPlot(u, (ctx) => {
    const end = u.scales["x"]?.max ?? 0;
    ctx.strokeStyle = colour("muted");
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(u.valToPos(0, "x"), u.valToPos(0, "y"));
    ctx.lineTo(u.valToPos(end, "x"), u.valToPos(end, "y"));
    ctx.stroke();
  });
}

/** The right end of the axis of offered load. */
function loadAxisEnd(survey: Survey, levels = [...mixLevels(survey), ...otherLoads(survey)]): number {
  return Math.max(...levels.map((l) => l.offered), survey.saturation_rate.predicted ?? 0) * 1.06;
}

function highestThroughput(levels: Level[], comparisonOf: (level: Level) => Comparison): number {
  return Math.max(...levels.flatMap((level) => [comparisonOf(level).predicted ?? 0, comparisonOf(level).measured ?? 0])) || 1;
}
