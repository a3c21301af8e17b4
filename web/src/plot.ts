// What the charts share: a figure with title, legend, plot and table, and the drawing that uPlot leaves to its user.
//
// Colours come from the style sheet when something is drawn, so that a change of scheme (or printing) needs a redraw only.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { h, svg, type Child } from "./dom.ts";
import { number } from "./format.ts";
import { clear, occupy, write } from "./words.ts";
import type { Comparison, Role } from "./documents/survey.ts";

export interface Chart {
  /** The figure's `data-chart`. */
  id: string;
  title: string;
  /** How to read it. */
  reading: string;
  /** What it shows, for those who do not see it. */
  summary: string;
  legend: Child[];
  /** How many levels it shows. */
  points: number;
  /** Per x value, what hovering shows; null where there is nothing to say. */
  readout: (readonly [title: string, ...lines: string[]] | null)[];
  table: HTMLElement;
  /** Whether a logarithmic axis is offered (and shown first). */
  log: boolean;
  options: (log: boolean) => Pick<uPlot.Options, "scales" | "axes" | "series" | "hooks" | "bands">;
  data: uPlot.AlignedData;
}

export interface Mark {
  x: number;
  y: number;
  role: Role;
  /** Half the length of the interval bar. */
  half: number | null | undefined;
  /** What is written beside it. */
  name?: string;
}

/** A prediction that is on no line of its chart. */
export interface Expectation {
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

/** The whole figure; `start` draws it once it is in the page. */
export function figure(chart: Chart): { element: HTMLElement; start: () => void } {
  const host = h("div", { class: "plot", role: "img", tabindex: 0, "aria-label": chart.summary });
  const toggle = h("input", { type: "checkbox", "data-key": "log" });
  toggle.checked = chart.log;
  const element = h(
    "figure",
    { "data-chart": chart.id, "data-points": chart.points },
    h("figcaption", {}, h("h3", {}, chart.title), h("p", { class: "reading" }, chart.reading)),
    h("div", { class: "legend" }, ...chart.legend, chart.log ? h("label", { class: "toggle" }, toggle, "log scale") : null),
    chart.points > 0 ? host : h("p", { class: "empty" }, "No level was measured, so there is nothing to draw."),
    h("details", {}, h("summary", {}, "The same as a table"), chart.table),
  );
  const start = () => {
    if (chart.points === 0) return;
    let plot = draw(chart, host, toggle.checked);
    toggle.addEventListener("change", () => {
      plot.destroy();
      plot = draw(chart, host, toggle.checked);
    });
  };
  return { element, start };
}

/** Redraws every chart when the colours or the width change. */
export function follow(): void {
  const paper = matchMedia("print");
  const all = () => {
    for (const { plot, host } of charts) {
      const width = paper.matches ? Math.min(host.clientWidth, 640) : host.clientWidth;
      if (width !== plot.width && width > 0) plot.setSize({ width, height: plot.height });
      plot.redraw();
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  paper.addEventListener("change", all);
  new ResizeObserver(all).observe(document.documentElement);
}

function draw(chart: Chart, host: HTMLElement, log: boolean): uPlot {
  const options = chart.options(log);
  const box = h("div", { class: "readout", "aria-live": "polite", hidden: "" });
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height: host.clientWidth < 480 ? 280 : 340,
      padding: [14, RIGHT, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      ...options,
      hooks: { ...options.hooks, drawClear: [clear, ...(options.hooks?.drawClear ?? [])], setCursor: [(u) => readout(u, chart, box)] },
    },
    chart.data,
    host,
  );
  plot.over.append(box);
  host.onkeydown = (event) => step(plot, chart, event);
  charts.splice(0, charts.length, ...charts.filter((other) => other.host !== host), { plot, host });
  Object.assign(host, { plot });
  return plot;
}

/** The left and right arrows move from level to level. */
function step(u: uPlot, chart: Chart, event: KeyboardEvent): void {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  let i = u.cursor.idx ?? (by > 0 ? -1 : chart.readout.length);
  do i += by;
  while (chart.readout[i] === null);
  const x = u.data[0]?.[i];
  if (x !== undefined) u.setCursor({ left: u.valToPos(x, "x"), top: u.over.clientHeight / 2 });
}

function readout(u: uPlot, chart: Chart, box: HTMLElement): void {
  const i = u.cursor.idx;
  const lines = typeof i === "number" && (u.cursor.left ?? -1) >= 0 ? chart.readout[i] : null;
  box.hidden = !lines;
  if (!lines) return;
  const [title, ...rest] = lines;
  box.replaceChildren(h("strong", {}, title), ...rest.map((line) => h("div", {}, line)));
  const x = u.valToPos(u.data[0]?.[i as number] ?? 0, "x");
  const room = u.over.clientWidth - box.offsetWidth;
  const beside = x + 12 <= room ? x + 12 : x - 12 - box.offsetWidth;
  box.style.left = `${Math.max(0, Math.min(beside, room))}px`;
}

/** An axis with title, in the page's colours. An upright one has a `size`, and more where its labels are wider. */
export function axis(label: string, format: (x: number) => string, size?: number): uPlot.Axis {
  return {
    label,
    labelFont: FONT,
    labelSize: 26,
    labelGap: 4,
    font: FONT,
    size: size === undefined ? 30 : (_, values) => Math.max(size, BESIDE_LABEL + Math.ceil(Math.max(...(values ?? []).map(textWidth)))),
    stroke: () => colour("muted"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    values: (u, splits, index) => {
      const texts = splits.map((x) => (x === null ? "" : format(x)));
      return size === undefined ? withRoom(u, splits, texts, u.axes[index]?.scale ?? "x") : texts;
    },
  };
}

/** Between the end of a label of an upright axis and the plot: the tick and the gap beside it. */
const BESIDE_LABEL = 14;
/** Between two labels that stand side by side. */
const BETWEEN_LABELS = 8;
/** Beside the plot, on its right, there is room for the end of a label. */
const RIGHT = 30;

const measuring = document.createElement("canvas").getContext("2d");

function textWidth(text: string): number {
  if (measuring === null) return 7 * text.length;
  measuring.font = FONT;
  return measuring.measureText(text).width;
}

/** The labels of an axis along the bottom for which there is room: all, every second, every third, and so on. */
function withRoom(u: uPlot, splits: number[], texts: string[], scale: string): string[] {
  const ends = splits.map((x, i) => {
    const [middle, half] = [u.valToPos(x, scale), textWidth(texts[i] ?? "") / 2];
    return { left: middle - half, right: middle + half, middle };
  });
  // The plot has no size in the page yet when its axes are laid out.
  const width = u.valToPos(u.scales[scale]?.max ?? 0, scale);
  const shown = texts.map((text, i) => {
    const { middle, right } = ends[i]!;
    return text !== "" && middle >= -1 && middle <= width + 1 && right <= width + RIGHT;
  });
  const fits = (every: number) => {
    const kept = ends.filter((_, i) => shown[i] && i % every === 0);
    return kept.every(({ left }, k) => k === 0 || left >= (kept[k - 1]?.right ?? 0) + BETWEEN_LABELS);
  };
  let every = 1;
  while (every < texts.length && !fits(every)) every += 1;
  return texts.map((text, i) => (shown[i] && i % every === 0 ? text : ""));
}

/** The labels of a logarithmic axis with room for this many: at the powers of ten, and at 2 and 5 where those are few. */
export function decades(low: number, high: number, room: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const steps = last - first > 4 || 3 * Math.log10(high / low) > room ? [1] : [1, 2, 5];
  const all = Array.from({ length: last - first + 1 }, (_, i) => steps.map((step) => Number(`${step}e${first + i}`))).flat();
  return all.filter((x) => x >= low && x <= high);
}

export function tick(x: number): string {
  return x === 0 ? "0" : x.toLocaleString("en-US", { maximumSignificantDigits: 6 });
}

/** A series that is drawn by `marks`: uPlot needs it for nothing but its values. */
export function silent(label: string): uPlot.Series {
  return { label, paths: () => null, points: { show: false } };
}

export function line(label: string): uPlot.Series {
  return { label, stroke: () => colour("predicted"), width: 2, spanGaps: true, points: { show: false } };
}

/** A prediction that is not the one to compare with: thin and dashed. */
export function thin(label: string): uPlot.Series {
  return { ...line(label), width: 1, dash: THIN };
}

const THIN = [4, 3];

/** The upper or the lower edge of a band. */
export function edge(label: string): uPlot.Series {
  return { label, stroke: "transparent", width: 1, spanGaps: true, points: { show: false } };
}

/** Draws in CSS pixels inside the plot's area. */
export function paint(u: uPlot, job: (context: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.translate(bbox.left, bbox.top);
  ctx.scale(uPlot.pxRatio, uPlot.pxRatio);
  ctx.font = FONT;
  job(ctx);
  ctx.restore();
}

/** The measured levels: an interval bar and the role's shape. */
export function marks(u: uPlot, list: Mark[]): void {
  paint(u, (ctx) => {
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
      const [left, top] = [u.valToPos(x, "x"), u.valToPos(y, "y")];
      write(u, ctx, [name], [
        { x: left + 10, y: top, align: "left" },
        { x: left - 10, y: top, align: "right" },
        { x: left, y: top - 16, align: "center" },
        { x: left, y: top + 16, align: "center" },
      ]);
    }
  });
}

/** Predictions by themselves: a bar from one end of the interval to the other, and the figure across it. */
export function expectations(u: uPlot, list: Expectation[]): void {
  paint(u, (ctx) => {
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

/** The predicted saturation rate: a dashed upright line with its name beside it, at the top or the bottom of the plot. */
export function knee(u: uPlot, { predicted }: Comparison, at: "top" | "bottom"): void {
  if (predicted != null) upright(u, predicted, ["predicted saturation", `${number(predicted)}/s`], at);
}

/** Between which loads the server is predicted to saturate: an area from top to bottom, behind everything else. */
export function doubtful(u: uPlot, ends: [number, number] | null): void {
  if (ends === null) return;
  paint(u, (ctx) => {
    const [low, high] = ends.map((x) => u.valToPos(x, "x")) as [number, number];
    ctx.fillStyle = colour("band95");
    ctx.fillRect(low, 0, high - low, u.over.clientHeight);
  });
}

/** A dashed upright line with words beside one of its ends. */
export function upright(u: uPlot, at: number, words: string[], place: "top" | "bottom"): void {
  paint(u, (ctx) => {
    const x = Math.round(u.valToPos(at, "x")) + 0.5;
    const height = u.over.clientHeight;
    dashes(ctx, [x, 0], [x, height]);
    const [high, low] = [6 + 8 * words.length, height - 6 - 8 * words.length];
    const [first, second] = place === "top" ? [high, low] : [low, high];
    write(u, ctx, words, [
      { x: x - 8, y: first, align: "right" },
      { x: x + 8, y: first, align: "left" },
      { x: x - 8, y: second, align: "right" },
      { x: x + 8, y: second, align: "left" },
    ]);
  });
}

/** A dashed line across, with words above or below one of its ends. */
export function stroke(u: uPlot, at: number, words: string): void {
  paint(u, (ctx) => {
    const y = Math.round(u.valToPos(at, "y")) + 0.5;
    dashes(ctx, [0, y], [u.over.clientWidth, y]);
    const right = u.over.clientWidth - 8;
    write(u, ctx, [words], [
      { x: 8, y: y - 10, align: "left" },
      { x: 8, y: y + 10, align: "left" },
      { x: right, y: y - 10, align: "right" },
      { x: right, y: y + 10, align: "right" },
    ]);
  });
}

function dashes(ctx: CanvasRenderingContext2D, from: [number, number], to: [number, number]): void {
  ctx.strokeStyle = colour("ink");
  ctx.fillStyle = colour("ink");
  ctx.lineWidth = 1;
  ctx.setLineDash([5, 4]);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}

/** An entry of a legend: the shape or the line that the chart uses, and its name. */
export function entry(
  kind: Role | "predicted" | "steady" | "diagonal" | "area" | "line" | "dot" | "ring",
  text: string,
  fill?: string,
  dash?: number[],
): HTMLElement {
  const look =
    kind === "line"
      ? svg("path", { d: "M-9,0L9,0", class: "mark", style: `stroke:var(--${fill});stroke-width:2`, "stroke-dasharray": dash?.join(" ") ?? "" })
      : kind === "dot"
        ? svg("circle", { r: 4, class: "mark", style: `fill:var(--${fill})` })
      : kind === "ring"
        ? svg("circle", { r: 5.5, class: "mark", style: `fill:none;stroke:var(--${fill})` })
      : kind === "predicted" || kind === "steady" || kind === "diagonal"
        ? svg("path", { d: "M-9,0L9,0", class: `mark ${kind}` })
        : kind === "area"
          ? svg("rect", { x: -6, y: -6, width: 12, height: 12, rx: 2, class: "mark", style: `fill:var(--${fill})` })
          : svg("path", { d: SHAPES[kind], class: `mark ${kind}` });
  const icon = svg("svg", { viewBox: "-10 -7 20 14", width: 20, height: 14, "aria-hidden": "true" }, look);
  return h("span", { class: "entry" }, icon, text);
}
