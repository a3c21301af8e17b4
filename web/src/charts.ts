// The three charts of a survey. Their levels are those of the whole mix; levels of a single class are in the tables.
import type uPlot from "uplot";
import { error, level as share, percent, rate, seconds, timeUnit, type Format } from "./format.ts";
import { axis, colour, decades, entry, figure, knee, line, marks, paint, silent, tick, type Chart, type Mark } from "./plot.ts";
import type { Comparison, Level, Role } from "./documents/survey.ts";
import { mixLevels, ROLES, type Survey } from "./survey.ts";
import { figures, table, words } from "./table.ts";

const OFFERED = "offered load (requests per second)";

export function charts(survey: Survey): { element: HTMLElement; start: () => void }[] {
  return [throughput(survey), responseTime(survey), cpu(survey)].map(figure);
}

function throughput(survey: Survey): Chart {
  const levels = mixLevels(survey);
  const of = (level: Level) => level.throughput;
  const saturation = survey.saturation_rate.predicted;
  // The predicted line turns at the saturation rate, where no level need lie.
  const corner = saturation == null ? [] : [{ x: saturation, predicted: saturation }];
  const { data, points, readout } = compared(levels, of, rate, corner);
  return {
    id: "throughput",
    title: "Throughput against offered load",
    reading:
      "A server that keeps up answers all it is offered and stays on the diagonal. Where the points leave it, the server is full.",
    summary: `Chart: throughput at ${levels.length} levels of offered load; predicted saturation ${rate(saturation)}.`,
    legend: [...legend(levels), entry("diagonal", "offered = answered")],
    points: levels.length,
    readout,
    table: comparisonTable("throughput", levels, of, rate),
    log: false,
    data,
    options: () => ({
      scales: { x: { time: false, range: [0, right(survey)] }, y: { range: [0, highest(levels, of) * 1.12] } },
      axes: [axis(OFFERED, tick), axis("throughput (responses per second)", tick, 58)],
      series: [{}, line("predicted"), ...ROLE_NAMES.map((role) => silent(ROLES[role]))],
      hooks: {
        drawAxes: [diagonal],
        draw: [
          (u) => knee(u, saturation, "bottom"),
          (u) => marks(u, points),
        ],
      },
    }),
  };
}

function responseTime(survey: Survey): Chart {
  const levels = mixLevels(survey);
  const of = (level: Level) => level.response_time_s;
  const { data, points, readout } = compared(levels, of, seconds, []);
  const values = levels.flatMap((l) => [of(l).predicted, of(l).measured].filter((x) => x != null && x > 0)) as number[];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const steep = high > 50 * low;
  return {
    id: "response_time",
    title: "Mean response time against offered load",
    reading:
      "Waiting grows slowly at first and without bound near saturation. Bars are 95\u202f% intervals of the measured mean; a good prediction passes through those of the held-out levels.",
    summary: `Chart: mean response time at ${levels.length} levels of offered load, from ${seconds(low)} to ${seconds(high)}.`,
    legend: legend(levels),
    points: levels.length,
    readout,
    table: comparisonTable("response_time", levels, of, seconds),
    log: steep,
    data,
    options: (log) => {
      const unit = timeUnit(log ? Math.sqrt(low * high) : high);
      const range: [number, number] = log ? [low / 2, high * 2] : [0, high * 1.12];
      const times = axis(`mean response time (${unit.name})`, (x) => tick(Number((x * unit.per_s).toPrecision(6))), 58);
      return {
        scales: { x: { time: false, range: [0, right(survey)] }, y: { distr: log ? 3 : 1, range } },
        axes: [axis(OFFERED, tick), log ? { ...times, splits: () => decades(...range) } : times],
        series: [{}, line("predicted"), ...ROLE_NAMES.map((role) => silent(ROLES[role]))],
        hooks: {
          draw: [
            (u) => knee(u, survey.saturation_rate.predicted, "top"),
            (u) => marks(u, points),
          ],
        },
      };
    },
  };
}

const PARTS = ["user", "system", "steal", "idle"] as const;
const PART_NAMES = { user: "user", system: "system", steal: "stolen by the hypervisor", idle: "idle" };

function cpu(survey: Survey): Chart {
  const levels = mixLevels(survey).filter((level) => level.cpu != null);
  const part = (level: Level, name: (typeof PARTS)[number]) => level.cpu?.[name] ?? 0;
  const upTo = (level: Level, i: number) => PARTS.slice(0, i + 1).reduce((sum, name) => sum + part(level, name), 0);
  // Later series paint over earlier ones, so the tallest comes first.
  const stacks = PARTS.map((_, i) => levels.map((level) => upTo(level, i))).reverse();
  const single = levels.length === 1;
  return {
    id: "cpu",
    title: "Where the time of the server’s CPUs goes",
    reading:
      "Shares of all CPU time at each level. When idle is used up, the CPUs are the limit; if much idle is left at saturation, look elsewhere.",
    summary: `Chart: user, system, stolen and idle share of the server’s CPUs at ${levels.length} levels of offered load.`,
    legend: PARTS.map((name) => entry("area", PART_NAMES[name], name)),
    points: levels.length,
    readout: levels.map((level) => [
      `${rate(level.offered)} offered`,
      ...PARTS.map((name) => `${name} ${percent(part(level, name))}`),
    ]),
    table: table("chart-cpu", "Shares of CPU time as a table", [
      figures("offered", "offered", (l: Level) => l.offered, rate),
      ...PARTS.map((name) => figures(name, name, (l: Level) => l.cpu?.[name] ?? null, percent)),
    ], levels),
    log: false,
    data: [levels.map((level) => level.offered), ...stacks],
    options: () => ({
      scales: { x: { time: false, range: [0, right(survey)] }, y: { range: [0, 1] } },
      axes: [axis(OFFERED, tick), axis("share of CPU time (%)", (y) => tick(Math.round(y * 100)), 58)],
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
      hooks: { draw: [(u) => nameAreas(u, levels, part, upTo)] },
    }),
  };
}

/** Writes each part's name where its area is thickest, if there is room. */
function nameAreas(
  u: uPlot,
  levels: Level[],
  part: (level: Level, name: (typeof PARTS)[number]) => number,
  upTo: (level: Level, i: number) => number,
): void {
  paint(u, (ctx) => {
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

const ROLE_NAMES = Object.keys(ROLES) as Role[];

/** Measured beside predicted: uPlot's columns (offered, predicted, one per role), the marks and what hovering says. */
function compared(
  levels: Level[],
  of: (level: Level) => Comparison,
  format: Format,
  extra: { x: number; predicted: number }[],
): { data: uPlot.AlignedData; points: Mark[]; readout: Chart["readout"] } {
  const rows: { x: number; predicted: number | null; level: Level | null }[] = [
    ...levels.map((level) => ({ x: level.offered, predicted: of(level).predicted ?? null, level })),
    ...extra.map(({ x, predicted }) => ({ x, predicted, level: null })),
  ].sort((a, b) => a.x - b.x);
  const measured = (role: Role) => rows.map(({ level }) => (level?.role === role ? of(level).measured : null));
  const points = levels.flatMap((level) => {
    const { measured: y, measured_ci95_half_width: half } = of(level);
    return y == null ? [] : [{ x: level.offered, y, role: level.role, half }];
  });
  const readout = rows.map(({ level }) => {
    if (level == null) return null;
    const { predicted, measured, error: e, measured_ci95_half_width: half } = of(level);
    return [
      `${rate(level.offered)} offered, ${ROLES[level.role]}`,
      `measured ${format(measured)}${half == null ? "" : ` ± ${format(half)}`}`,
      `predicted ${format(predicted)}`,
      `error ${error(e)}`,
    ] as const;
  });
  return { data: [rows.map((row) => row.x), rows.map((row) => row.predicted), ...ROLE_NAMES.map(measured)], points, readout };
}

function comparisonTable(id: string, levels: Level[], of: (level: Level) => Comparison, format: typeof rate): HTMLElement {
  return table(`chart-${id}`, "The chart’s values as a table", [
    figures("offered", "offered", (l: Level) => l.offered, rate),
    figures("fraction", "of capacity", (l: Level) => l.fraction, share),
    words("role", "role", (l: Level) => ROLES[l.role]),
    figures("predicted", "predicted", (l: Level) => of(l).predicted, format),
    figures("measured", "measured", (l: Level) => of(l).measured, format),
    figures("ci95", "±", (l: Level) => of(l).measured_ci95_half_width, format),
    figures("error", "error", (l: Level) => of(l).error, error),
  ], levels);
}

function legend(levels: Level[]): HTMLElement[] {
  const roles = ROLE_NAMES.filter((role) => levels.some((level) => level.role === role));
  return [entry("predicted", "predicted"), ...roles.map((role) => entry(role, `measured, ${ROLES[role]}`))];
}

function diagonal(u: uPlot): void {
  paint(u, (ctx) => {
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

/** The right end of the load axis. */
function right(survey: Survey): number {
  return Math.max(...mixLevels(survey).map((l) => l.offered), survey.saturation_rate.predicted ?? 0) * 1.06;
}

function highest(levels: Level[], of: (level: Level) => Comparison): number {
  return Math.max(...levels.flatMap((level) => [of(level).predicted ?? 0, of(level).measured ?? 0])) || 1;
}
