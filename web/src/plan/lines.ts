// A chart of lines over one axis: what the planner's curves have in common.
import type uPlot from "uplot";
import { NONE, type Format } from "../format.ts";
import { axis, colour, decades, entry, stroke, tick, upright, type Chart } from "../plot.ts";
import { figures, table } from "../table.ts";

export interface Line {
  name: string;
  values: (number | null)[];
  /** A colour of the style sheet, without its dashes. */
  colour: string;
  dash?: number[];
  /** Points instead of a line: filled, or rings to stand around others. */
  points?: boolean | "rings";
  /** Drawn over values that are missing. */
  bridged?: boolean;
  /** Drawn only as the edge of a band. */
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
  /** Areas between two lines, by their places in the list: upper, lower, colour. */
  bands?: [number, number, string][];
  /** Dashed upright lines, each with words beside it. */
  uprights?: { x: number; words: string[]; at: "top" | "bottom" }[];
  /** Dashed lines across, with words above them. */
  levels?: { y: number; words: string }[];
  log?: boolean;
}

/** Colours of lines in their order; there are no more than these. */
export const COLOURS = ["s1", "s2", "s3", "s4", "s5", "s6"];

export function lines(spec: Lines): Chart {
  const { x, y } = spec;
  const shown = spec.lines.filter((line) => !line.edge);
  const seen = spec.lines.flatMap((line) => line.values).filter((v): v is number => v !== null && v > 0);
  const marks = [...seen, ...(spec.levels ?? []).map((level) => level.y)];
  const [low, high] = [Math.min(...marks), Math.max(...marks)];
  const [left, right] = [Math.min(...x.values), Math.max(...x.values, ...(spec.uprights ?? []).map((u) => u.x))];
  const margin = (right - left) * 0.03;
  const range: [number, number] = y.range ?? [0, high * 1.08];
  const rows = sample(x.values.length);
  return {
    id: spec.id,
    title: spec.title,
    reading: spec.reading,
    summary: spec.summary,
    legend: [
      ...shown.map((line) => entry(line.points === "rings" ? "ring" : line.points ? "dot" : "line", line.name, line.colour, line.dash)),
      ...(spec.bands ?? []).map(([upper, , fill]) => entry("area", spec.lines[upper]?.name ?? "", fill)),
    ],
    points: seen.length > 0 ? x.values.length : 0,
    readout: x.values.map((_, i) => [
      x.format(x.values[i]),
      ...spec.lines.filter((line) => line.values[i] !== null).map((line) => `${line.name} ${y.format(line.values[i])}`),
    ]),
    table: table(`chart-${spec.id}`, "The chart’s values as a table", [
      figures("x", x.title, (i: number) => x.values[i] ?? null, x.format),
      ...spec.lines.map((line, k) => figures(`y${k}`, line.name, (i: number) => line.values[i] ?? null, y.format)),
    ], rows),
    log: spec.log === true && high > 20 * low,
    data: [x.values, ...spec.lines.map((line) => line.values)] as uPlot.AlignedData,
    options: (log) => {
      const span: [number, number] = log ? [low / 1.5, high * 1.5] : range;
      const up = axis(y.title, (v) => (y.tick ?? y.format)(v), 66);
      const along = axis(x.title, (v) => (x.time ? x.format(v) : (x.tick ?? tick)(Number(v.toPrecision(6)))));
      return {
        scales: {
          x: x.log
            ? { time: false, distr: 3, range: [left / 1.2, right * 1.2] }
            : { time: x.time ?? false, range: [left > 0 && left < 0.2 * right && !x.time ? 0 : left, right + margin] },
          y: { distr: log ? 3 : 1, range: span },
        },
        axes: [x.log ? { ...along, splits: (u: uPlot) => decades(left, right, u.width / 70) } : x.time ? { ...along, space: 90 } : along, log ? { ...up, splits: (u: uPlot) => decades(...span, u.height / 22) } : up],
        series: [{}, ...spec.lines.map(series)],
        bands: (spec.bands ?? []).map(([upper, lower, fill]) => ({
          series: [upper + 1, lower + 1] as [number, number],
          fill: () => colour(fill),
        })),
        hooks: {
          draw: [
            (u) => (spec.levels ?? []).forEach((level) => stroke(u, level.y, level.words)),
            (u) => (spec.uprights ?? []).forEach((line) => upright(u, line.x, line.words, line.at)),
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

/** The day of a time in seconds since 1970, UTC. */
export function day(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? NONE : new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** The indices of evenly spread rows: a table with more than this many cannot be read. */
export function sample(length: number, most = 200): number[] {
  const every = Math.max(1, Math.ceil(length / most));
  return Array.from({ length: Math.ceil(length / every) }, (_, i) => i * every);
}
