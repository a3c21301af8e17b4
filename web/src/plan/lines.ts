// A chart with several lines over one axis, for the pages of the planner, of loads and of profiles.
import type uPlot from "uplot";
import { NONE, type Format } from "../format.ts";
import { axis, colour, logTicks, legendEntry, drawHorizontalLine, tickLabel, drawVerticalLine, type Chart } from "../plot.ts";
import { numberColumn, table } from "../table.ts";

export interface Line {
  name: string;
  values: (number | null)[];
  /** The name of a colour in the style sheet, without the leading dashes. */
  colour: string;
  dash?: number[];
  /** Draws points instead of a line: filled ones, or rings around the points of another line. */
  points?: boolean | "rings";
  /** Draws the line across missing values. */
  bridged?: boolean;
  /** Whether the line is invisible and only the edge of a band. */
  edge?: boolean;
}

export interface Lines {
  id: string;
  title: string;
  reading: string;
  summary: string;
  x: { title: string; values: number[]; format: Format; tick?: (x: number) => string; time?: boolean; log?: boolean };
  y: { title: string; format: Format; tick?: (y: number) => string; range?: [number, number] };
  lines: Line[];
  /** Areas between two lines: the indices of the upper and of the lower line, and the colour. */
  bands?: [number, number, string][];
  /** Dashed vertical lines, each with a label of one or more lines. */
  verticalLines?: { x: number; labels: string[]; at: "top" | "bottom" }[];
  /** Dashed horizontal lines, each with a label. */
  horizontalLines?: { y: number; label: string }[];
  log?: boolean;
}

/** The colours of lines, in the order of use. */
export const COLOURS = ["s1", "s2", "s3", "s4", "s5", "s6"];

export function lines(spec: Lines): Chart {
  const { x, y } = spec;
  const visible = spec.lines.filter((line) => !line.edge);
  const positive = spec.lines.flatMap((line) => line.values).filter((v): v is number => v !== null && v > 0);
  const heights = [...positive, ...(spec.horizontalLines ?? []).map((line) => line.y)];
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const [left, right] = [Math.min(...x.values), Math.max(...x.values, ...(spec.verticalLines ?? []).map((u) => u.x))];
  const margin = (right - left) * 0.03;
  const range: [number, number] = y.range ?? [0, high * 1.08];
  const rows = sample(x.values.length);
  return {
    id: spec.id,
    title: spec.title,
    reading: spec.reading,
    summary: spec.summary,
    legend: [
      ...visible.map((line) => legendEntry(line.points === "rings" ? "ring" : line.points ? "dot" : "line", line.name, line.colour, line.dash)),
      ...(spec.bands ?? []).map(([upper, , fill]) => legendEntry("area", spec.lines[upper]?.name ?? "", fill)),
    ],
    points: positive.length > 0 ? x.values.length : 0,
    readout: x.values.map((_, i) => [
      x.format(x.values[i]),
      ...spec.lines.filter((line) => line.values[i] !== null).map((line) => `${line.name} ${y.format(line.values[i])}`),
    ]),
    table: table(`chart-${spec.id}`, "The chart’s values as a table", [
      numberColumn("x", x.title, (i: number) => x.values[i] ?? null, x.format),
      ...spec.lines.map((line, k) => numberColumn(`y${k}`, line.name, (i: number) => line.values[i] ?? null, y.format)),
    ], rows),
    log: spec.log === true && high > 20 * low,
    data: [x.values, ...spec.lines.map((line) => line.values)] as uPlot.AlignedData,
    options: (log) => {
      const span: [number, number] = log ? [low / 1.5, high * 1.5] : range;
      const yAxis = axis(y.title, (v) => (y.tick ?? y.format)(v), 66);
      const xAxis = axis(x.title, (v) => (x.time ? x.format(v) : (x.tick ?? tickLabel)(Number(v.toPrecision(6)))));
      return {
        scales: {
          x: x.log
            ? { time: false, distr: 3, range: [left / 1.2, right * 1.2] }
            : { time: x.time ?? false, range: [left > 0 && left < 0.2 * right && !x.time ? 0 : left, right + margin] },
          y: { distr: log ? 3 : 1, range: span },
        },
        axes: [
          x.log ? { ...xAxis, splits: (u: uPlot) => logTicks(left, right, u.width / 70) } : x.time ? { ...xAxis, space: 90 } : xAxis,
          log ? { ...yAxis, splits: (u: uPlot) => logTicks(...span, u.height / 22) } : yAxis,
        ],
        series: [{}, ...spec.lines.map(series)],
        bands: (spec.bands ?? []).map(([upper, lower, fill]) => ({
          series: [upper + 1, lower + 1] as [number, number],
          fill: () => colour(fill),
        })),
        hooks: {
          draw: [
            (u) => (spec.horizontalLines ?? []).forEach((line) => drawHorizontalLine(u, line.y, line.label)),
            (u) => (spec.verticalLines ?? []).forEach((line) => drawVerticalLine(u, line.x, line.labels, line.at)),
          ],
        },
      };
    },
  };
}

function series(line: Line): uPlot.Series {
  if (line.edge) return { label: line.name, stroke: "transparent", width: 1, points: { show: false } };
  return {
    label: line.name,
    stroke: () => colour(line.colour),
    width: line.points ? 0 : 2,
    ...(line.dash ? { dash: line.dash } : {}),
    spanGaps: line.bridged === true,
    points:
      line.points === "rings"
        ? { show: true, size: 14, width: 1.5, fill: "transparent", stroke: () => colour(line.colour) }
        : { show: line.points === true, size: 8, fill: () => colour(line.colour), stroke: () => colour(line.colour) },
  };
}

/** The date, in UTC, of a time in seconds since 1970. */
export function day(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? NONE : new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** At most `limit` evenly spread indices of `length` rows: nobody can read a longer table. */
export function sample(length: number, limit = 200): number[] {
  const every = Math.max(1, Math.ceil(length / limit));
  return Array.from({ length: Math.ceil(length / every) }, (_, i) => i * every);
}
