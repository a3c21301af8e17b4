// The page of a comparison: the main result, the response times of both sides, and each metric with its difference.
import type { Compared, ComparedFigure, ComparedSide } from "./documents/comparison.ts";
import { percent, rate, seconds, signedPercent, type Format } from "./format.ts";
import { section, type Page } from "./page.ts";
import { lines } from "./plan/lines.ts";
import { facts, labelFacts, planPage } from "./plan/parts.ts";
import type { Chart } from "./plot.ts";
import { intervalColumn, numberColumn, table, textColumn } from "./table.ts";

const FORMATS: { [unit in ComparedFigure["unit"]]: Format } = { per_second: rate, seconds, share: percent };

export function comparePage(compared: Compared): Page {
  return planPage(
    "compare",
    compared.headline,
    [...(compared.warnings ?? []).map((warning) => `${warning}.`), ...caveats(compared)],
    [times(compared)].filter((chart) => chart !== null),
    figureTable(compared.figures),
    facts([...sideFacts("A", compared.a), ...sideFacts("B", compared.b), ["version", compared.brimful_version]]),
  );
}

function caveats({ variability }: Compared): string[] {
  return variability === "within_runs"
    ? ["Each side is one run, so differences between runs are not known: another pair of runs may differ more."]
    : [];
}

/** The percentiles of the response times of both sides. On the axis, each further nine has the same width. */
function times({ figures }: Compared): Chart | null {
  const shares = figures.flatMap((figure) => {
    const percentile = /^p([\d.]+)$/.exec(figure.name)?.[1];
    return percentile === undefined ? [] : [{ figure, place: -Math.log10(1 - Number(percentile) / 100) }];
  });
  if (shares.length < 2) return null;
  return lines({
    id: "percentiles",
    title: "Response times",
    reading: "Percentiles of the response time. Where a line is lower, its calls were answered sooner.",
    summary: `Chart: ${shares.length} percentiles of both sides.`,
    x: { title: "share of the calls", values: shares.map(({ place }) => place), format: (place) => percent(place == null ? place : 1 - 10 ** -place) },
    y: { title: "response time", format: seconds },
    lines: [
      { name: "A", values: shares.map(({ figure }) => figure.a ?? null), colour: "s1" },
      { name: "B", values: shares.map(({ figure }) => figure.b ?? null), colour: "s2" },
    ],
    log: true,
  });
}

const MEANING =
  "The difference is that of B from A, for shares in percentage points, with its 95 % interval. The p-values are adjusted for the number of figures. Detectable: the smallest difference that would have been found with a probability of 80 %.";

export function figureTable(figures: ComparedFigure[], id = "figures", title = "Figures", meaning = MEANING): HTMLElement {
  const value = (key: "a" | "b", title: string) => ({
    ...numberColumn(key, title, (figure: ComparedFigure) => figure[key], rate),
    text: (figure: ComparedFigure) => FORMATS[figure.unit](figure[key]),
  });
  return section(
    title,
    meaning,
    table(id, title, [
      textColumn("name", "figure", (figure: ComparedFigure) => (figure.differs ? `${figure.name} (differs)` : figure.name)),
      value("a", "A"),
      value("b", "B"),
      numberColumn("difference", "difference", (figure: ComparedFigure) => figure.difference, signedPercent),
      intervalColumn("interval95", "95 % interval", (figure: ComparedFigure) => (figure.interval95 ?? null) as [number, number] | null, signedPercent),
      numberColumn("p", "p", (figure: ComparedFigure) => figure.p, (p) => (p == null ? "–" : p < 0.001 ? "<0.001" : p.toFixed(3))),
      numberColumn("detectable", "detectable", (figure: ComparedFigure) => figure.detectable, percent),
    ], figures),
  );
}

function sideFacts(name: string, side: ComparedSide): [string, string][] {
  const software = [...new Set(side.documents.flatMap((run) => run.server_software ?? []))];
  const labels = labelFacts(side.labels).map(([, text]) => text);
  return [[name, [side.name, ...labels, ...software].join(", ")], [`runs of ${name}`, side.documents.map((run) => run.file).join(", ")]];
}
