// Code that all charts share: the figure with title, legend, plot and table, and drawings in addition to uPlot's lines.
//
// Each drawing reads the colours from the style sheet. So if the colour scheme changes, the charts are only drawn
// again.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { h, svg, type Child } from "./dom.ts";
import { number } from "./format.ts";
import { clearOccupied, occupy, writeLabel } from "./labels.ts";
import type { Comparison, Role } from "./documents/survey.ts";

/** A plot with its axes. */
export interface Panel {
  /** The content in one sentence, for screen readers. */
  summary: string;
  /** The text shown for each x value when the pointer is there; null for none. */
  readout: (readonly [title: string, ...lines: string[]] | null)[];
  options: (log: boolean) => Pick<uPlot.Options, "scales" | "axes" | "series" | "hooks" | "bands">;
  data: uPlot.AlignedData;
  /** Height in a wide and in a narrow window, in pixels. */
  heights?: [wide: number, narrow: number];
}

/** A figure with one plot. */
export interface Chart extends Panel {
  /** The `data-chart` attribute of the figure. */
  id: string;
  title: string;
  /** Explains how to read the chart. */
  reading: string;
  legend: Child[];
  /** The number of points; with 0 there is nothing to draw. */
  points: number;
  table: HTMLElement;
  /** Whether the y axis can be logarithmic. If so, it is logarithmic at first. */
  log: boolean;
}

export interface Mark {
  x: number;
  y: number;
  role: Role;
  /** Half the length of the interval bar. */
  half: number | null | undefined;
  /** The label beside the mark. */
  name?: string;
}

/** A prediction that is not on the chart's line. */
export interface Prediction {
  x: number;
  predicted: number | null;
  between: [number, number] | null;
}

/** One shape per role, in a box of −6…6: distinguishable without colour. */
const SHAPES: Record<Role, string> = {
  calibration: "M-4.2,0a4.2,4.2 0 1,0 8.4,0a4.2,4.2 0 1,0 -8.4,0Z",
  held_out: "M0,-5.8L5.8,0L0,5.8L-5.8,0Z",
  past_saturation: "M0,-5.2L5.4,4.4L-5.4,4.4Z",
};

const FONT = "12px system-ui, sans-serif";
const charts: { plot: uPlot; host: HTMLElement }[] = [];

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The figure of a chart. `start` draws its plot; call it once the element is in the page. */
export function figure(chart: Chart): { element: HTMLElement; start: () => void } {
  const { host, draw } = plotArea(chart);
  const toggle = h("input", { type: "checkbox", "data-key": "log" });
  toggle.checked = chart.log;
  const element = h(
    "figure",
    { "data-chart": chart.id, "data-points": chart.points },
    h("figcaption", {}, h("h3", {}, chart.title), h("p", { class: "reading" }, chart.reading)),
    h("div", { class: "legend" }, ...chart.legend, chart.log ? h("label", { class: "toggle" }, toggle, "log scale") : null),
    chart.points > 0 ? host : h("p", { class: "empty" }, "No level was measured, so there is nothing to draw."),
    h("details", {}, h("summary", {}, "Show as a table"), chart.table),
  );
  const start = () => {
    if (chart.points === 0) return;
    draw(toggle.checked);
    toggle.addEventListener("change", () => draw(toggle.checked));
  };
  return { element, start };
}

/** The element of a plot. `draw` draws it, also again; call it once the element is in the page. */
export function plotArea(panel: Panel): { host: HTMLElement; draw: (log: boolean) => void } {
  const host = h("div", { class: "plot", role: "img", tabindex: 0, "aria-label": panel.summary });
  let plot: uPlot | undefined;
  const draw = (log: boolean) => {
    plot?.destroy();
    plot = drawPlot(panel, host, log);
  };
  return { host, draw };
}

/** Redraws all charts whenever the colour scheme or the width changes. */
export function redrawOnChange(): void {
  const paper = matchMedia("print");
  const redrawAll = () => {
    for (const { plot, host } of charts) {
      const width = paper.matches ? Math.min(host.clientWidth, 640) : host.clientWidth;
      if (width !== plot.width && width > 0) plot.setSize({ width, height: plot.height });
      plot.redraw();
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  paper.addEventListener("change", redrawAll);
  new ResizeObserver(redrawAll).observe(document.documentElement);
}

/** The height of a plot in a wide and in a narrow window, in pixels. */
const HEIGHTS = [340, 280] as const;

function drawPlot(panel: Panel, host: HTMLElement, log: boolean): uPlot {
  const options = panel.options(log);
  const [wide, narrow] = panel.heights ?? HEIGHTS;
  const box = h("div", { class: "readout", "aria-live": "polite", hidden: "" });
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height: host.clientWidth < 480 ? narrow : wide,
      padding: [14, RIGHT_PADDING, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      ...options,
      hooks: { ...options.hooks, drawClear: [clearOccupied, ...(options.hooks?.drawClear ?? [])], setCursor: [(u) => showReadout(u, panel, box)] },
    },
    panel.data,
    host,
  );
  plot.over.append(box);
  host.onkeydown = (event) => moveCursor(plot, panel, event);
  charts.splice(0, charts.length, ...charts.filter((other) => other.host !== host), { plot, host });
  Object.assign(host, { plot });
  return plot;
}

/** Moves the cursor to the next or the previous x value when an arrow key is pressed. */
function moveCursor(u: uPlot, panel: Panel, event: KeyboardEvent): void {
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (direction === undefined) return;
  event.preventDefault();
  let i = u.cursor.idx ?? (direction > 0 ? -1 : panel.readout.length);
  do i += direction;
  while (panel.readout[i] === null);
  const x = u.data[0]?.[i];
  if (x !== undefined) u.setCursor({ left: u.valToPos(x, "x"), top: u.over.clientHeight / 2 });
}

function showReadout(u: uPlot, panel: Panel, box: HTMLElement): void {
  const i = u.cursor.idx;
  const lines = typeof i === "number" && (u.cursor.left ?? -1) >= 0 ? panel.readout[i] : null;
  box.hidden = !lines;
  if (!lines) return;
  const [title, ...rest] = lines;
  box.replaceChildren(h("strong", {}, title), ...rest.map((line) => h("div", {}, line)));
  const x = u.valToPos(u.data[0]?.[i as number] ?? 0, "x");
  const room = u.over.clientWidth - box.offsetWidth;
  const beside = x + 12 <= room ? x + 12 : x - 12 - box.offsetWidth;
  box.style.left = `${Math.max(0, Math.min(beside, room))}px`;
}

/** An axis with a title, in the page's colours. A vertical axis has a `size`: its least width, in pixels. */
export function axis(label: string, format: (x: number) => string, size?: number): uPlot.Axis {
  return {
    label,
    labelFont: FONT,
    labelSize: 26,
    labelGap: 4,
    font: FONT,
    size: size === undefined ? 30 : (_, values) => Math.max(size, LABEL_MARGIN + Math.ceil(Math.max(...(values ?? []).map(textWidth)))),
    stroke: () => colour("muted"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    values: (u, splits, index) => {
      const texts = splits.map((x) => (x === null ? "" : format(x)));
      return size === undefined ? fittingLabels(u, splits, texts, u.axes[index]?.scale ?? "x") : texts;
    },
  };
}

/** Pixels between the labels of a vertical axis and the plot: the tick and the gap. */
const LABEL_MARGIN = 14;
/** Least distance between two labels of a horizontal axis, in pixels. */
const LABEL_SPACING = 8;
/** Pixels to the right of the plot, into which the last label of the axis may reach. */
const RIGHT_PADDING = 30;

const measuring = document.createElement("canvas").getContext("2d");

function textWidth(text: string): number {
  if (measuring === null) return 7 * text.length;
  measuring.font = FONT;
  return measuring.measureText(text).width;
}

/** The labels of a horizontal axis, of which only every second, third and so on is kept if not all fit. */
function fittingLabels(u: uPlot, splits: number[], texts: string[], scale: string): string[] {
  const ends = splits.map((x, i) => {
    const middle = u.valToPos(x, scale);
    const half = textWidth(texts[i] ?? "") / 2;
    return { left: middle - half, right: middle + half, middle };
  });
  // `u.over.clientWidth` is not the width yet: the axes are laid out before the plot has a size.
  const width = u.valToPos(u.scales[scale]?.max ?? 0, scale);
  const shown = texts.map((text, i) => {
    const { middle, right } = ends[i]!;
    return text !== "" && middle >= -1 && middle <= width + 1 && right <= width + RIGHT_PADDING;
  });
  const doFit = (every: number) => {
    const kept = ends.filter((_, i) => shown[i] && i % every === 0);
    return kept.every(({ left }, k) => k === 0 || left >= (kept[k - 1]?.right ?? 0) + LABEL_SPACING);
  };
  let every = 1;
  while (every < texts.length && !doFit(every)) every += 1;
  return texts.map((text, i) => (shown[i] && i % every === 0 ? text : ""));
}

/** The ticks of a logarithmic axis with room for `room` labels: 1, 2 and 5 times powers of ten, or only the powers. */
export function logTicks(low: number, high: number, room: number): number[] {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const steps = last - first > 4 || 3 * Math.log10(high / low) > room ? [1] : [1, 2, 5];
  const all = Array.from({ length: last - first + 1 }, (_, i) => steps.map((step) => Number(`${step}e${first + i}`))).flat();
  return all.filter((x) => x >= low && x <= high);
}

export function tickLabel(x: number): string {
  return x === 0 ? "0" : x.toLocaleString("en-US", { maximumSignificantDigits: 6 });
}

/** A series that uPlot does not draw, because `drawMarks` draws it. */
export function invisibleSeries(label: string): uPlot.Series {
  return { label, paths: () => null, points: { show: false } };
}

export function predictionSeries(label: string): uPlot.Series {
  return { label, stroke: () => colour("predicted"), width: 2, spanGaps: true, points: { show: false } };
}

/** A second prediction, drawn thin and dashed. Measurements are not compared with it. */
export function thinPredictionSeries(label: string): uPlot.Series {
  return { ...predictionSeries(label), width: 1, dash: THIN_DASH };
}

const THIN_DASH = [4, 3];

/** The upper or the lower edge of a band, which is itself invisible. */
export function bandEdge(label: string): uPlot.Series {
  return { label, stroke: "transparent", width: 1, spanGaps: true, points: { show: false } };
}

/** Calls `job` to draw inside the plot's area, in CSS pixels. */
export function paintPlot(u: uPlot, job: (context: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.translate(bbox.left, bbox.top);
  ctx.scale(uPlot.pxRatio, uPlot.pxRatio);
  ctx.font = FONT;
  // uPlot leaves the dash pattern of its last line set, so set it to solid.
  ctx.setLineDash([]);
  job(ctx);
  ctx.restore();
}

/** Draws measured levels: for each the bar of its interval and the shape of its role. */
export function drawMarks(u: uPlot, list: Mark[]): void {
  paintPlot(u, (ctx) => {
    for (const { x, y, role, half } of list) {
      const left = u.valToPos(x, "x");
      ctx.strokeStyle = colour(role);
      ctx.lineWidth = 1.5;
      if (half != null) {
        const low = y - half > (u.scales["y"]?.min ?? 0) ? u.valToPos(y - half, "y") : u.over.clientHeight;
        const high = u.valToPos(y + half, "y");
        ctx.beginPath();
        for (const [dx, top] of [[-3, high], [3, high], [0, high], [0, low], [-3, low], [3, low]] as const) {
          if (dx === -3 || (dx === 0 && top === high)) ctx.moveTo(left + dx, top);
          else ctx.lineTo(left + dx, top);
        }
        ctx.stroke();
      }
      ctx.save();
      ctx.translate(left, u.valToPos(y, "y"));
      ctx.fillStyle = colour(role === "calibration" ? "surface" : role);
      const shape = new Path2D(SHAPES[role]);
      ctx.fill(shape);
      ctx.stroke(shape);
      ctx.restore();
      occupy(u, left, u.valToPos(y, "y"), 6);
    }
    ctx.fillStyle = colour("ink");
    for (const { x, y, name } of list) {
      if (name === undefined) continue;
      const left = u.valToPos(x, "x");
      const top = u.valToPos(y, "y");
      writeLabel(u, ctx, [name], [
        { x: left + 10, y: top, align: "left" },
        { x: left - 10, y: top, align: "right" },
        { x: left, y: top - 16, align: "center" },
        { x: left, y: top + 16, align: "center" },
      ]);
    }
  });
}

/** A measured slice of load. */
export interface SliceMark {
  x: number;
  y: number;
  isMet: boolean;
}

/** The shapes of slices, in a box of −6…6. */
const SLICE_SHAPES = { met: "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z", missed: "M-4,-4L4,4M-4,4L4,-4" };

/** Draws slices of load: dots where the objective was met, crosses where it was missed. */
export function drawSlices(u: uPlot, list: SliceMark[]): void {
  paintPlot(u, (ctx) => {
    for (const { x, y, isMet } of list) {
      const [left, top] = [u.valToPos(x, "x"), u.valToPos(y, "y")];
      ctx.save();
      ctx.translate(left, top);
      ctx.fillStyle = colour("good");
      ctx.strokeStyle = colour(isMet ? "surface" : "bad");
      ctx.lineWidth = isMet ? 1 : 2;
      const shape = new Path2D(SLICE_SHAPES[isMet ? "met" : "missed"]);
      if (isMet) ctx.fill(shape);
      ctx.stroke(shape);
      ctx.restore();
      occupy(u, left, top, 4);
    }
  });
}

/** Draws a rate and its interval as a bar along the x axis: a band for a prediction, a line with caps if measured. */
export function drawIntervalBar(u: uPlot, y: number, value: number | null, interval: [number, number] | null, isMeasured: boolean): void {
  paintPlot(u, (ctx) => {
    const middle = u.valToPos(y, "y");
    ctx.strokeStyle = ctx.fillStyle = colour(isMeasured ? "held_out" : "predicted");
    ctx.lineWidth = 2;
    ctx.beginPath();
    if (interval !== null) {
      const [low, high] = interval.map((x) => u.valToPos(x, "x")) as [number, number];
      if (isMeasured) {
        ctx.moveTo(low, middle);
        ctx.lineTo(high, middle);
      } else {
        ctx.fillStyle = colour("band80");
        ctx.fillRect(low, middle - 6, high - low, 12);
      }
      for (const end of [low, high]) {
        ctx.moveTo(end, middle - 6);
        ctx.lineTo(end, middle + 6);
      }
    }
    ctx.stroke();
    if (value === null) return;
    const left = u.valToPos(value, "x");
    ctx.fillStyle = ctx.strokeStyle;
    if (isMeasured) {
      ctx.translate(left, middle);
      ctx.fill(new Path2D(SHAPES.held_out));
    } else ctx.fillRect(left - 1.5, middle - 8, 3, 16);
  });
}

/** Draws predictions that are not on the line: for each a bar over its interval, and a line at its value. */
export function drawPredictions(u: uPlot, list: Prediction[]): void {
  paintPlot(u, (ctx) => {
    for (const { x, predicted, between } of list) {
      const left = u.valToPos(x, "x");
      if (between !== null) {
        const [low, high] = between.map((y) => u.valToPos(y, "y")) as [number, number];
        ctx.fillStyle = colour("band80");
        ctx.fillRect(left - 8, high, 16, low - high);
      }
      if (predicted === null) continue;
      ctx.strokeStyle = colour("predicted");
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(left - 8, u.valToPos(predicted, "y"));
      ctx.lineTo(left + 8, u.valToPos(predicted, "y"));
      ctx.stroke();
    }
  });
}

/** Draws the predicted saturation rate: a dashed vertical line with a label at the top or the bottom of the plot. */
export function drawSaturation(u: uPlot, { predicted }: Comparison, at: "top" | "bottom"): void {
  if (predicted != null) drawVerticalLine(u, predicted, ["predicted saturation", `${number(predicted)}/s`], at);
}

/** Draws the interval of the predicted saturation rate: an area of full height, behind everything else. */
export function drawSaturationInterval(u: uPlot, ends: [number, number] | null): void {
  if (ends === null) return;
  paintPlot(u, (ctx) => {
    const [low, high] = ends.map((x) => u.valToPos(x, "x")) as [number, number];
    ctx.fillStyle = colour("band95");
    ctx.fillRect(low, 0, high - low, u.over.clientHeight);
  });
}

/** Draws a dashed vertical line at `value` with a label beside one of its ends, if it has lines. */
export function drawVerticalLine(u: uPlot, value: number, label: string[], place: "top" | "bottom"): void {
  paintPlot(u, (ctx) => {
    const x = Math.round(u.valToPos(value, "x")) + 0.5;
    const height = u.over.clientHeight;
    drawDashedLine(ctx, [x, 0], [x, height]);
    if (label.length === 0) return;
    const high = 6 + 8 * label.length;
    const low = height - high;
    const [first, second] = place === "top" ? [high, low] : [low, high];
    writeLabel(u, ctx, label, [
      { x: x - 8, y: first, align: "right" },
      { x: x + 8, y: first, align: "left" },
      { x: x - 8, y: second, align: "right" },
      { x: x + 8, y: second, align: "left" },
    ]);
  });
}

/** Draws a dashed horizontal line at `value` with a label above or below one of its ends. */
export function drawHorizontalLine(u: uPlot, value: number, label: string): void {
  paintPlot(u, (ctx) => {
    const y = Math.round(u.valToPos(value, "y")) + 0.5;
    drawDashedLine(ctx, [0, y], [u.over.clientWidth, y]);
    const right = u.over.clientWidth - 8;
    writeLabel(u, ctx, [label], [
      { x: 8, y: y - 10, align: "left" },
      { x: 8, y: y + 10, align: "left" },
      { x: right, y: y - 10, align: "right" },
      { x: right, y: y + 10, align: "right" },
    ]);
  });
}

function drawDashedLine(ctx: CanvasRenderingContext2D, from: [number, number], to: [number, number]): void {
  ctx.strokeStyle = colour("ink");
  ctx.fillStyle = colour("ink");
  ctx.lineWidth = 1;
  ctx.setLineDash([5, 4]);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}

/** An entry of a legend: the chart's shape or line, and its name. */
export function legendEntry(
  kind: Role | "predicted" | "steady" | "diagonal" | "area" | "line" | "dot" | "ring" | "met" | "missed",
  text: string,
  fill?: string,
  dash?: number[],
): HTMLElement {
  const shape =
    kind === "line"
      ? svg("path", { d: "M-9,0L9,0", class: "mark", style: `stroke:var(--${fill});stroke-width:2`, "stroke-dasharray": dash?.join(" ") ?? "" })
      : kind === "dot"
        ? svg("circle", { r: 4, class: "mark", style: `fill:var(--${fill})` })
      : kind === "ring"
        ? svg("circle", { r: 5.5, class: "mark", style: `fill:none;stroke:var(--${fill})` })
      : kind === "met"
        ? svg("path", { d: SLICE_SHAPES.met, style: "fill:var(--good)" })
      : kind === "missed"
        ? svg("path", { d: SLICE_SHAPES.missed, class: "mark", style: "fill:none;stroke:var(--bad);stroke-width:2" })
      : kind === "predicted" || kind === "steady" || kind === "diagonal"
        ? svg("path", { d: "M-9,0L9,0", class: `mark ${kind}` })
        : kind === "area"
          ? svg("rect", { x: -6, y: -6, width: 12, height: 12, rx: 2, class: "mark", style: `fill:var(--${fill})` })
          : svg("path", { d: SHAPES[kind], class: `mark ${kind}` });
  const icon = svg("svg", { viewBox: "-10 -7 20 14", width: 20, height: 14, "aria-hidden": "true" }, shape);
  return h("span", { class: "entry" }, icon, text);
}
