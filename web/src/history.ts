// The page of a history: the main result, the changes, and a chart of each metric over the runs.
import type { FigureChange, FigureHistory, History, PastRun } from "./documents/history.ts";
import { date, percent, rate, seconds, signedPercent, type Format } from "./format.ts";
import { empty, section, type Page } from "./page.ts";
import { day, lines } from "./plan/lines.ts";
import { facts, planPage } from "./plan/parts.ts";
import type { Chart } from "./plot.ts";
import { intervalColumn, numberColumn, table, textColumn } from "./table.ts";

const FORMATS: { [unit in FigureHistory["unit"]]: Format } = { per_second: rate, seconds, share: percent };
const DIRECTIONS: { [direction in FigureChange["direction"]]: string } = { better: "better", worse: "WORSE", neither: "scatter" };

export function historyPage(history: History): Page {
  const drawn = history.figures.filter((figure) => figure.values.some((value) => value !== null));
  return planPage(
    "history",
    history.headline,
    (history.notes ?? []).map((note) => `${note}.`),
    drawn.map((figure, i) => chart(history, figure, i)),
    changes(history),
    noise(history),
    facts([
      ["runs", `${history.runs.length}, ${range(history.runs)}`],
      ["new", `a change that began with one of the newest ${history.new_runs} runs`],
      ["version", history.brimful_version],
    ]),
  );
}

function range(runs: PastRun[]): string {
  const [first, last] = [runs[0], runs.at(-1)];
  return first && last ? `${date(first.started_at)} to ${date(last.started_at)}` : "none";
}

/** The labels of a run, or else its file. */
function named(run: PastRun): string {
  const labels = Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return labels.length > 0 ? labels.join(", ") : run.file;
}

/** A change in words: "+12.0 % (+9.0 … +15.0 %), WORSE". */
function described(change: FigureChange): string {
  const interval = change.interval95 ? ` (${signedPercent(change.interval95[0])} … ${signedPercent(change.interval95[1])})` : "";
  return `${signedPercent(change.size)}${interval}, ${DIRECTIONS[change.direction]}`;
}

function chart(history: History, figure: FigureHistory, index: number): Chart {
  const format = FORMATS[figure.unit];
  const times = history.runs.map((run) => Date.parse(run.started_at) / 1000);
  const changes = history.changes.filter((change) => change.figure === figure.name);
  const means: (number | null)[] = figure.values.map(() => null);
  for (const segment of figure.segments) means.fill(segment.mean, segment.first, segment.last + 1);
  const drawn = lines({
    id: `figure-${index}`,
    title: figure.name,
    reading: `Each point is a run. The line is the mean between changes. ${figure.lower_is_better ? "Lower" : "Higher"} is better.`,
    summary: `Chart: ${figure.name} of ${history.runs.length} runs, with ${changes.length} changes.`,
    x: { title: "start of the run", values: times, format: day, time: true },
    y: { title: figure.name, format, range: heights(figure) },
    lines: [
      { name: "run", values: figure.values, colour: "s1", points: true },
      { name: "mean", values: means, colour: "s2" },
    ],
    verticalLines: changes.map((change) => ({ x: times[change.index] ?? 0, labels: [signedPercent(change.size)], at: "top" })),
  });
  const readout = history.runs.map((run, i): [string, ...string[]] => {
    const here = changes.filter((change) => change.index === i);
    const value = figure.values[i];
    return [date(run.started_at), named(run), value == null ? "no value" : format(value), ...here.map((change) => `changed by ${described(change)}`)];
  });
  return { ...drawn, readout };
}

/** The range of the vertical axis: that of the values with a margin, because small changes are of interest. */
function heights({ values }: FigureHistory): [number, number] {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const margin = 0.1 * (high - low) || 0.05 * Math.abs(high) || 1;
  return [low - margin, high + margin];
}

function changes(history: History): HTMLElement {
  const reading = "The newest first, each with its 95 % interval; of shares, in percentage points. A change for which no direction is known is one of the scatter.";
  if (history.changes.length === 0) return section("Changes", reading, empty("No change was found."));
  return section(
    "Changes",
    reading,
    table("changes", "Changes", [
      textColumn("since", "since", (change: FigureChange) => date(change.after.started_at)),
      textColumn("figure", "figure", (change: FigureChange) => change.figure),
      numberColumn("size", "change", (change: FigureChange) => change.size, signedPercent),
      intervalColumn("interval95", "95 % interval", (change: FigureChange) => (change.interval95 ?? null) as [number, number] | null, signedPercent),
      textColumn("direction", "direction", (change: FigureChange) => DIRECTIONS[change.direction]),
      textColumn("new", "new", (change: FigureChange) => (change.is_new ? "new" : "")),
      textColumn("before", "last run before", (change: FigureChange) => named(change.before)),
      textColumn("after", "first run after", (change: FigureChange) => named(change.after)),
      textColumn("also", "also changed", (change: FigureChange) => (change.also_changed ?? []).join("; ")),
    ], history.changes),
  );
}

function noise(history: History): HTMLElement {
  return section(
    "Noise",
    "The standard deviation of the runs between changes, as a share of their mean.",
    table("noise", "Noise", [
      textColumn("figure", "figure", (figure: FigureHistory) => figure.name),
      numberColumn("noise", "noise", (figure: FigureHistory) => figure.noise, percent),
      textColumn("needed", "runs that are needed", (figure: FigureHistory) => (figure.runs_needed ? `${figure.runs_needed} more` : "")),
    ], history.figures),
  );
}
