// Draws the main results of a survey, one figure for each objective: the throughput, the limited metric as a function
// of the load, and the highest load at which the objective is met.
//
// All plots of a figure have the same axis of offered load.
import type uPlot from "uplot";
import { h, type Child } from "./dom.ts";
import { count, percent, range, rate, timeUnit } from "./format.ts";
import { writeLabel, type Spot } from "./labels.ts";
import { answerSentence, capacityOf, figureFormat, readObjective, safeRate, share, type Objective } from "./objective.ts";
import { axis, colour, drawHorizontalLine, drawMarks, drawIntervalBar, drawSlices, drawVerticalLine, invisibleSeries, legendEntry, logTicks, paintPlot, plotArea, tickLabel } from "./plot.ts";
import type { Mark, Panel, SliceMark } from "./plot.ts";
import type { Level, RateUnderObjective, Role } from "./documents/survey.ts";
import { isMeasuredWell, mixLevels, predictionInterval, ROLES, type Survey } from "./survey.ts";
import { numberColumn, table } from "./table.ts";

/** What all plots of a figure need. */
interface Context {
  survey: Survey;
  result: RateUnderObjective;
  objective: Objective;
  capacity: number | null;
  /** The rates at which the objective is met; null if none is known, or if the survey cannot be trusted. */
  safe: ReturnType<typeof safeRate>;
  /** The right end of the axis of offered load. */
  end: number;
}

/** The section with the answer; null if the survey has no objectives. */
export function answerSection(survey: Survey): { element: HTMLElement; start: () => void } | null {
  const results = (survey.objectives ?? []).filter(({ objective }) => objective !== undefined && objective !== "");
  if (results.length === 0) return null;
  const [first, ...others] = results.map((result, i) => answerFigure(survey, result, i));
  const element = h(
    "section",
    { class: "first answers", "aria-label": "The answer" },
    first?.element,
    others.length > 0 ? h("div", { class: "others" }, ...others.map((other) => other.element)) : null,
  );
  return { element, start: () => [first, ...others].forEach((figure) => figure?.start()) };
}

function answerFigure(survey: Survey, result: RateUnderObjective, index: number): { element: HTMLElement; start: () => void } {
  const objective = readObjective(result);
  const known = safeRate(result);
  const doubt = !isMeasuredWell(survey)
    ? "the survey is not valid"
    : !survey.verdict.valid && known?.kind === "predicted"
      ? "the measurements refute the model, and the rate was only predicted"
      : null;
  const context = { survey, result, objective, capacity: capacityOf(survey), safe: doubt === null ? known : null, end: loadEnd(survey, result) };
  const isFirst = index === 0;
  const above = isFirst ? throughput(context) : null;
  const middle = limitedFigure(context, isFirst);
  const panels = [above, middle, shareBeyond(context), rates(context)].filter((panel) => panel !== null);
  const all = panels.reduce((sum, { points }) => sum + points, 0);
  const areas = all > 0 ? panels.map(({ panel }) => plotArea(panel)) : [];
  const sentence = doubt === null ? answerSentence(result, context.capacity) : `Not determined: ${doubt}.`;
  const explanation = reading(context, isFirst);
  const element = h(
    "figure",
    { "data-chart": `answer-${index}`, "data-points": all },
    h("figcaption", {}, h("h3", {}, `What the server takes with ${objective.name}`)),
    all === 0 ? null : h("div", { class: "legend" }, context.safe === null ? null : legendEntry("area", `${objective.name} is met`, "safe"), ...panels.flatMap(({ legend }) => legend)),
    ...areas.map(({ host }) => host),
    h("p", { class: "answer", "data-key": "answer", "data-value": context.safe?.rate ?? "" }, sentence),
    explanation === "" ? null : h("p", { class: "reading" }, explanation),
    (result.slices ?? []).length === 0 ? null : h("details", {}, h("summary", {}, "Show as a table"), slicesTable(context, index)),
  );
  return { element, start: () => areas.forEach(({ draw }) => draw(true)) };
}

/** The right end of the axis of offered load: a bit beyond the capacity and all that is drawn. */
function loadEnd(survey: Survey, result: RateUnderObjective): number {
  const capacity = survey.saturation_rate;
  const found = [result.rate?.predicted, ...(predictionInterval(result.rate ?? {}) ?? []), ...(result.measured_interval90 ?? [])];
  const offered = [...mixLevels(survey).map((level) => level.offered), ...(result.slices ?? []).map((slice) => slice.rate)];
  return (Math.max(...offered, ...[capacity.predicted, capacity.measured, ...found].map((x) => x ?? 0)) || 1) * 1.06;
}

/** Explains what cannot be seen: the ideal server in the first figure, and how slices become a curve. */
function reading({ objective, result }: Context, isFirst: boolean): string {
  const curve = { percentile: `share of calls beyond ${objective.limit}`, mean: "mean", errors: "share of failed calls" }[objective.measure ?? "mean"];
  return [
    ...(isFirst ? ["An ideal server completes all calls up to its capacity."] : []),
    ...((result.slices ?? []).length > 0
      ? [`A slice is a short load at one rate. The objective counts the calls of all slices together. The curve is their ${curve}; it never falls, because slices out of order are averaged.`]
      : []),
  ].join(" ");
}

interface Part {
  panel: Panel;
  legend: Child[];
  points: number;
}

/** The width of the vertical axis, in pixels. It is the same in all plots of a figure, so that they are aligned. */
const AXIS_SIZE = 76;

/** Scale and axis of the offered load. Only the lowest plot of a figure has labels. */
const loadScale = ({ end }: Context): uPlot.Scale => ({ time: false, range: [0, end] });
const loadAxis = axis("offered load (requests per second)", tickLabel);
const bareLoadAxis: uPlot.Axis = { size: 4, grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, values: (_, splits) => splits.map(() => "") };

/** Completed against offered load. The line is what an ideal server completes: all calls up to its capacity. */
function throughput(context: Context): Part | null {
  const { survey, capacity, end } = context;
  const levels = mixLevels(survey).filter((level) => level.throughput.measured != null);
  if (levels.length === 0) return null;
  const ideal = (x: number) => Math.min(x, capacity ?? x);
  const bends = [0, ...(capacity === null ? [] : [capacity]), end].map((x) => ({ x, level: null }));
  const rows: { x: number; level: Level | null }[] = [...bends, ...levels.map((level) => ({ x: level.offered, level }))].sort((a, b) => a.x - b.x);
  const marks = levels.map((level): Mark => ({ x: level.offered, y: level.throughput.measured ?? 0, role: level.role, half: level.throughput.measured_ci95_half_width }));
  const roles = (Object.keys(ROLES) as Role[]).filter((role) => levels.some((level) => level.role === role));
  const highest = Math.max(ideal(end), ...marks.map(({ y }) => y));
  const isMeasured = survey.saturation_rate.measured != null;
  const panel: Panel = {
    summary: `Chart: completed against offered load at ${count(levels.length)} levels; ${isMeasured ? "" : "predicted "}capacity ${rate(capacity)}.`,
    heights: [180, 160],
    readout: rows.map(({ level }) =>
      level === null ? null : [`${rate(level.offered)} offered, ${ROLES[level.role]}`, `completed ${rate(level.throughput.measured)}`, `errors ${percent(level.error_share)}`],
    ),
    data: [rows.map(({ x }) => x), rows.map(({ x }) => ideal(x)), rows.map(({ level }) => level?.throughput.measured ?? null)],
    options: () => ({
      scales: { x: loadScale(context), y: { range: [0, highest * 1.22] } },
      axes: [bareLoadAxis, axis("completed per second", tickLabel, AXIS_SIZE)],
      series: [{}, { label: "ideal", stroke: () => colour("muted"), width: 1.5, dash: IDEAL_DASH, points: { show: false } }, invisibleSeries("completed")],
      hooks: {
        drawAxes: [(u) => drawSafe(u, context)],
        draw: [
          (u) => drawMarks(u, marks),
          (u) => drawSafeEnd(u, context, true),
          (u) => writeCapacity(u, capacity, `${isMeasured ? "capacity" : "predicted capacity"} ${rate(capacity)}`),
        ],
      },
    }),
  };
  return {
    panel,
    legend: [legendEntry("line", "ideal server", "muted", IDEAL_DASH), ...roles.map((role) => legendEntry(role, ROLES[role]))],
    points: levels.length,
  };
}

const IDEAL_DASH = [5, 3];

function writeCapacity(u: uPlot, capacity: number | null, label: string): void {
  if (capacity === null) return;
  const y = u.valToPos(capacity, "y");
  const right = u.over.clientWidth - 6;
  writeText(u, [label], [
    { x: right, y: y - 14, align: "right" },
    { x: right, y: y - 22, align: "right" },
    { x: right, y: y + 18, align: "right" },
  ]);
}

type Slice = NonNullable<RateUnderObjective["slices"]>[number];

/** A value of the limited measure, of a level or of a slice. */
interface Point {
  x: number;
  /** Null if too many calls of a slice had no expected answer. Such a slice is beyond any limit. */
  y: number | null;
  level: Level | null;
  slice: Slice | null;
}

/** A slice without a value counts as this many times the limit in the curve, as in the search. */
const UNANSWERED = 1000;

/**
 * The limited measure against offered load: levels, and the slices of the search. The curve of a mean or of a share is
 * here. Percentiles cannot be averaged: `shareBeyond` has the curve of a percentile.
 */
function limitedFigure(context: Context, isFirst: boolean): Part | null {
  const { survey, result, objective } = context;
  const limit = result.limit ?? null;
  const format = figureFormat(objective);
  const isTime = objective.measure !== "errors";
  const isDrawable = ({ y }: Point) => y === null || y > 0 || !isTime;
  const points = [...levelPoints(survey, objective), ...slicePoints(result)].filter(isDrawable).sort((a, b) => a.x - b.x);
  const light = lightLoad(context, points);
  if (limit === null || (points.length === 0 && light === null)) return null;
  const pooled = objective.measure === "percentile" ? [] : points.flatMap((point) => (point.slice === null ? [] : [{ point, y: point.y ?? UNANSWERED * limit, calls: point.slice.calls }]));
  const averages = risingAverage(pooled);
  const curve = points.map((point) => averages[pooled.findIndex((one) => one.point === point)] ?? null);
  const values = [...points.flatMap(({ y }) => y ?? []), ...(light === null ? [] : [light.y]), limit];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span: [number, number] = isTime ? [low / 1.8, high * 2.2] : [-0.04 * high, high * 1.3];
  // A slice without a value is drawn at the upper edge of the plot.
  const edge = isTime ? high * 1.9 : high * 1.22;
  const levels = points.flatMap(({ x, y, level }): Mark[] => (level === null || y === null ? [] : [{ x, y, role: level.role, half: null }]));
  const marks = light === null ? levels : [...levels, light];
  const slices = points.flatMap(({ x, y, slice }): SliceMark[] => (slice === null ? [] : [{ x, y: y ?? edge, isMet: y !== null && y < limit }]));
  const roles = (Object.keys(ROLES) as Role[]).filter((role) => marks.some((mark) => mark.role === role));
  const unit = timeUnit(limit);
  const name = objective.measure === "errors" ? "failed calls" : objective.measure === "mean" ? "mean response time" : objective.figure;
  const vertical = isTime
    ? axis(`${name} (${unit.name})`, (y) => tickLabel(Number((y * unit.per_s).toPrecision(6))), AXIS_SIZE)
    : axis(`${name} (%)`, (y) => tickLabel(Number((100 * y).toPrecision(6))), AXIS_SIZE);
  const panel: Panel = {
    summary: `Chart: ${name} at ${count(points.length)} measured loads, from ${format(low)} to ${format(high)}; the limit is ${objective.limit}.`,
    heights: isFirst ? [200, 190] : [180, 180],
    readout: points.map(({ x, y, level, slice }, i) => [
      `${rate(x)} offered, ${level === null ? "slice of the search" : ROLES[level.role]}`,
      y === null ? `✗ no ${name}: too many calls had no expected answer` : `${name} ${format(y)} ${y < limit ? "✓ within the limit" : "✗ beyond the limit"}`,
      ...(slice === null ? [] : [`${count(slice.beyond)} of ${count(slice.calls)} calls ${isTime ? `beyond ${objective.limit}` : "failed"}`]),
      ...(curve[i] == null ? [] : [`curve ${format(curve[i])}`]),
    ]),
    data: [points.map(({ x }) => x), curve, points.map(({ y }) => y)],
    options: () => ({
      scales: { x: loadScale(context), y: { distr: isTime ? 3 : 1, range: span } },
      axes: [bareLoadAxis, isTime ? { ...vertical, splits: (u) => logTicks(...span, u.height / 22), filter: (_, splits) => splits } : vertical],
      series: [{}, curveSeries, invisibleSeries(name)],
      hooks: {
        drawAxes: [(u) => drawSafe(u, context)],
        draw: [
          (u) => drawMarks(u, marks),
          (u) => drawSlices(u, slices),
          (u) => drawHorizontalLine(u, limit, `limit ${objective.limit}`),
          (u) => drawSafeEnd(u, context, !isFirst),
        ],
      },
    }),
  };
  return {
    panel,
    legend: [
      ...(isFirst ? [] : roles.map((role) => legendEntry(role, ROLES[role]))),
      slices.some(({ isMet }) => isMet) ? legendEntry("met", "slice within limit") : null,
      slices.some(({ isMet }) => !isMet) ? legendEntry("missed", "slice beyond limit") : null,
      pooled.length > 1 ? legendEntry("line", "slices together", CURVE) : null,
    ],
    points: points.length + (light === null ? 0 : 1),
  };
}

const CURVE = "s4";
const curveSeries: uPlot.Series = { label: "curve", stroke: () => colour(CURVE), width: 2, spanGaps: true, points: { show: false } };

/** The share of calls beyond the limit of a percentile, in a curve over all slices; null without slices. */
function shareBeyond(context: Context): Part | null {
  const { result, objective } = context;
  const slices = (result.slices ?? []).filter(({ calls }) => calls > 0).sort((a, b) => a.rate - b.rate);
  if (objective.percentile === null || slices.length === 0) return null;
  const permitted = 1 - objective.percentile / 100;
  const shareOf = ({ beyond, calls }: Slice) => beyond / calls;
  const curve = risingAverage(slices.map((slice) => ({ y: shareOf(slice), calls: slice.calls })));
  const top = Math.min(Math.max(3 * permitted, 1.5 * (curve.at(-1) ?? 0)), 1.15);
  // The axis covers shares from zero to one. It is about linear up to the permitted share, and about logarithmic above
  // it.
  const height = (tick: number | undefined) => Math.asinh((tick ?? 0) / permitted);
  const ticks = [0, ...logTicks(permitted * 0.99, top, 99)].filter((tick, i, all) => i < 2 || height(tick) - height(all[i - 1]) > 0.5);
  const panel: Panel = {
    summary: `Chart: share of calls beyond ${objective.limit} in ${count(slices.length)} slices; ${share(permitted)} are permitted.`,
    heights: [116, 116],
    readout: slices.map((slice, i) => [
      `${rate(slice.rate)} offered, slice of the search`,
      `${count(slice.beyond)} of ${count(slice.calls)} calls beyond ${objective.limit}: ${share(shareOf(slice))}`,
      `curve ${share(curve[i] ?? 0)}`,
    ]),
    data: [slices.map((slice) => slice.rate), curve],
    options: () => ({
      scales: { x: loadScale(context), y: { distr: 4, asinh: permitted, range: [-0.15 * permitted, top] } },
      axes: [
        bareLoadAxis,
        { ...axis("calls beyond (%)", (y) => tickLabel(Number((100 * y).toPrecision(6))), AXIS_SIZE), splits: () => ticks, filter: (_, splits) => splits },
      ],
      series: [{}, curveSeries],
      hooks: {
        drawAxes: [(u) => drawSafe(u, context)],
        draw: [(u) => drawHorizontalLine(u, permitted, `permitted ${share(permitted)}`), (u) => drawSafeEnd(u, context, false)],
      },
    }),
  };
  return { panel, legend: [legendEntry("line", "slices together", CURVE)], points: slices.length };
}

/** The limited measure at the levels of the mix, where the document has it. */
function levelPoints(survey: Survey, objective: Objective): Point[] {
  // Leave out closed levels, whose response times depend on the number of clients, and levels past saturation, whose
  // response times grow with the duration of the load.
  const levels = mixLevels(survey).filter((level) => level.clients == null && (objective.measure === "errors" || level.role !== "past_saturation"));
  return levels.flatMap((level) => {
    const y = levelFigure(level, objective);
    return y == null ? [] : [{ x: level.offered, y, level, slice: null }];
  });
}

function levelFigure(level: Level, { class: className, measure, percentile }: Objective): number | null | undefined {
  if (measure === "mean") {
    const comparison = className === null ? level.response_time_s : level.classes.find(({ name }) => name === className)?.response_time_s;
    return comparison?.measured;
  }
  if (className !== null) return null;
  if (measure === "errors") return level.error_share;
  const { p50, p95, p99 } = level.response_percentiles_s;
  return { 50: p50, 95: p95, 99: p99 }[percentile ?? 0]?.measured;
}

function slicePoints({ slices = [] }: RateUnderObjective): Point[] {
  return slices.filter(({ calls }) => calls > 0).map((slice) => ({ x: slice.rate, y: slice.figure ?? null, level: null, slice }));
}

/** The value at light load, at the lowest level, if no level has the measure. */
function lightLoad({ survey, result }: Context, points: Point[]): Mark | null {
  const lowest = mixLevels(survey).find((level) => level.role === "calibration");
  const y = result.light_load;
  if (lowest === undefined || y == null || y <= 0 || points.some(({ level }) => level !== null)) return null;
  return { x: lowest.offered, y, role: "calibration", half: null, name: "light load" };
}

/** Averages that never fall, weighted by calls: neighbours out of order are pooled (isotonic regression). */
function risingAverage(points: { y: number; calls: number }[]): number[] {
  const blocks: { sum: number; calls: number; size: number }[] = [];
  for (const { y, calls } of points) {
    const block = { sum: y * calls, calls, size: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.calls > block.sum / block.calls; last = blocks.at(-1)) {
      block.sum += last.sum;
      block.calls += last.calls;
      block.size += last.size;
      blocks.pop();
    }
    blocks.push(block);
  }
  return blocks.flatMap(({ sum, calls, size }) => Array<number>(size).fill(sum / calls));
}

/** The predicted and the measured rate, each with its interval, along the axis of offered load. */
function rates(context: Context): Part {
  const { result, objective } = context;
  const { rate: found = {}, measured_interval90, outcome } = result;
  const predicted = { value: found.predicted ?? null, interval: predictionInterval(found) };
  const measured = { value: found.measured ?? null, interval: predictionInterval({ interval90: measured_interval90 ?? null }) };
  const missing = { predicted: "not predicted", measured: outcome === "missed_at_light_load" ? "missed at light load" : "not measured" };
  const textOf = (kind: "predicted" | "measured", name: string) => {
    const { value, interval } = kind === "predicted" ? predicted : measured;
    const between = interval === null ? "" : `${name}${range(interval, rate)}`;
    if (value === null) return between === "" ? missing[kind] : between;
    return between === "" ? rate(value) : `${rate(value)} (${between})`;
  };
  const text = (kind: "predicted" | "measured") => textOf(kind, "90\u202f% interval ");
  const middle = ({ value, interval }: typeof predicted) => value ?? (interval === null ? null : (interval[0] + interval[1]) / 2);
  const rows = [{ kind: "predicted" as const, y: 1.5, ...predicted }, { kind: "measured" as const, y: 0.5, ...measured }];
  const drawn = rows.flatMap((row) => (middle(row) === null ? [] : [{ ...row, x: middle(row) ?? 0 }])).sort((a, b) => a.x - b.x);
  const panel: Panel = {
    summary: `Chart: the rate with ${objective.name}: predicted ${text("predicted")}; measured ${text("measured")}.`,
    heights: [152, 152],
    readout: drawn.map(({ kind }) => [`rate with ${objective.name}`, `${kind} ${text(kind)}`]),
    data: [drawn.map(({ x }) => x), drawn.map(({ y }) => y)],
    options: () => ({
      scales: { x: loadScale(context), y: { range: [0, 2] } },
      axes: [
        loadAxis,
        { ...axis("rate", tickLabel, AXIS_SIZE), grid: { show: false }, ticks: { show: false }, splits: () => [0.42, 1.42], values: () => ["measured", "predicted"] },
      ],
      series: [{}, invisibleSeries("rate")],
      hooks: {
        drawAxes: [(u) => drawSafe(u, context)],
        draw: [
          (u) => drawSafeEnd(u, context, false),
          (u) => drawIntervalBar(u, 1.3, predicted.value, predicted.interval, false),
          (u) => drawIntervalBar(u, 0.3, measured.value, measured.interval, true),
          (u) => rows.forEach((row) => writeRate(u, [text(row.kind), textOf(row.kind, "")], middle(row), row.y)),
        ],
      },
    }),
  };
  const legend = [
    predicted.interval === null ? null : legendEntry("area", "predicted, 90\u202f% interval", "band80"),
    measured.interval === null ? null : legendEntry("line", "measured, 90\u202f% interval", "held_out"),
  ];
  return { panel, legend, points: drawn.length };
}

/** Writes a text, or its short form in a narrow plot, above the bar of a rate. Without a bar, it is on the left. */
function writeRate(u: uPlot, [long, short]: [string, string], x: number | null, y: number): void {
  const text = u.over.clientWidth < 320 ? short : long;
  const top = u.valToPos(x === null ? y - 0.08 : y + 0.22, "y");
  const atLeft: Spot = { x: 8, y: top, align: "left" };
  writeText(u, [text], x === null ? [atLeft] : [{ x: u.valToPos(x, "x"), y: top, align: "center" }, { x: u.over.clientWidth - 4, y: top, align: "right" }, atLeft]);
}

function writeText(u: uPlot, lines: string[], spots: [Spot, ...Spot[]]): void {
  paintPlot(u, (ctx) => {
    ctx.fillStyle = colour("ink");
    writeLabel(u, ctx, lines, spots);
  });
}

/** Shades the rates at which the objective is met. */
function drawSafe(u: uPlot, { safe }: Context): void {
  if (safe === null) return;
  paintPlot(u, (ctx) => {
    ctx.fillStyle = colour("safe");
    ctx.fillRect(0, 0, u.valToPos(safe.rate, "x"), u.over.clientHeight);
  });
}

/** Draws the end of these rates, with a label if it has one. */
function drawSafeEnd(u: uPlot, { survey, safe, objective, result }: Context, hasLabel: boolean): void {
  if (safe === null) {
    if (hasLabel && isMeasuredWell(survey) && result.outcome === "missed_at_light_load") writeText(u, [`${objective.label} is missed`, "even at light load"], [{ x: u.over.clientWidth - 8, y: u.over.clientHeight - 22, align: "right" }]);
    return;
  }
  const certainty = { measured: [], "at least": ["at least"], predicted: ["predicted"] }[safe.kind];
  drawVerticalLine(u, safe.rate, hasLabel ? [objective.label, ...certainty, `up to ${rate(safe.rate)}`] : [], "bottom");
}

function slicesTable({ result, objective }: Context, index: number): HTMLElement {
  const slices = [...(result.slices ?? [])].sort((a, b) => a.rate - b.rate);
  return table(`answer-${index}`, `Slices of the search for ${objective.name}`, [
    numberColumn("rate", "offered", (slice: Slice) => slice.rate, rate),
    numberColumn("calls", "calls", (slice: Slice) => slice.calls, count),
    numberColumn("beyond", objective.measure === "errors" ? "failed" : "beyond the limit", (slice: Slice) => slice.beyond, count),
    numberColumn("figure", objective.figure, (slice: Slice) => slice.figure, figureFormat(objective)),
  ], slices);
}

