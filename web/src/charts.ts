// The charts of a survey. Their lines are of the whole mix; what else was held out stands beside them, and levels of a
// single class are in the tables.
import type uPlot from "uplot";
import { count, error, level as share, number, percent, range, rate, seconds, timeUnit, type Format } from "./format.ts";
import { axis, colour, decades, doubtful, edge, entry, expectations, figure, knee, line, marks, paint, silent, stroke, thin } from "./plot.ts";
import { tick, type Chart, type Expectation, type Mark } from "./plot.ts";
import type { ByClients, Comparison, Level, Role } from "./documents/survey.ts";
import { between, holds, mixLevels, otherLoads, ROLES, type Survey } from "./survey.ts";
import { figures, interval, table, words } from "./table.ts";

const ROLE_NAMES = Object.keys(ROLES) as Role[];
const OFFERED = "offered load (requests per second)";

export function charts(survey: Survey): { element: HTMLElement; start: () => void }[] {
  const clients = (survey.throughput_by_clients ?? []).length > 0 ? [byClients(survey)] : [];
  return [responseTime(survey), utilization(survey), ...clients, throughput(survey), cpu(survey)].map(figure);
}

function throughput(survey: Survey): Chart {
  const levels = mixLevels(survey);
  const of = (level: Level) => level.throughput;
  const saturation = survey.saturation_rate.predicted;
  const ends = between(survey.saturation_rate);
  // What is offered is answered up to the saturation rate: that is known of any load, and turns where no level need lie.
  const answered = (x: number) => ({
    x,
    predicted: saturation == null ? null : Math.min(x, saturation),
    interval: ends && (ends.map((end) => Math.min(x, end)) as [number, number]),
  });
  const turns = saturation == null ? [] : [0, saturation, ...(ends ?? [])].map(answered);
  const { data, points, readout } = compared({ levels, others: [], of, format: rate, line: (level) => answered(level.offered), turns });
  return {
    id: "throughput",
    title: "Throughput against offered load",
    reading:
      "A server that keeps up answers all it is offered and stays on the diagonal. Where the points leave it, the server is full. The band is the 90\u202f% interval of the predicted saturation.",
    summary: `Chart: throughput at ${levels.length} levels of offered load; predicted saturation ${rate(saturation)}.`,
    legend: [...legend(levels, of, undefined, ends !== null), entry("diagonal", "offered = answered")],
    points: levels.length,
    readout,
    table: comparisonTable("throughput", levels, of, rate),
    log: false,
    data,
    options: () => ({
      scales: { x: { time: false, range: [0, right(survey)] }, y: { range: [0, Math.max(highest(levels, of), saturation ?? 0) * 1.12] } },
      axes: [axis(OFFERED, tick), axis("throughput (responses per second)", tick, 58)],
      series: SERIES(),
      bands: BANDS,
      hooks: {
        drawAxes: [diagonal],
        draw: [
          (u) => knee(u, survey.saturation_rate, "bottom"),
          (u) => marks(u, points),
        ],
      },
    }),
  };
}

function responseTime(survey: Survey): Chart {
  // Past saturation a mean response time says how long the load lasted, and would leave no room for the others.
  const levels = mixLevels(survey).filter((level) => level.role !== "past_saturation");
  const others = otherLoads(survey);
  const of = (level: Level) => level.response_time_s;
  const { data, points, expected, readout } = compared({ levels, others, of, format: seconds, steady });
  const all = [...levels, ...others];
  const values = all.flatMap((l) => [of(l).predicted, of(l).measured, ...(between(of(l)) ?? [])]).filter((x) => x != null && x > 0) as number[];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const steep = high > 50 * low;
  return {
    id: "response_time",
    title: "Mean response time against offered load",
    reading:
      "Waiting grows slowly at first and without bound near saturation. The band holds nine in ten measurements on a host as variable as calibration saw it; the thin line is a host that keeps its speed. Bars are 95\u202f% intervals of the measured mean. Past saturation it depends on how long the load lasts, so those levels are in the table only.",
    summary: `Chart: mean response time at ${all.length} levels of offered load, from ${seconds(low)} to ${seconds(high)}.`,
    legend: legend(levels, of, steady),
    points: all.length,
    readout,
    table: comparisonTable("response_time", all, of, seconds),
    log: steep,
    data,
    options: (log) => {
      const unit = timeUnit(log ? Math.sqrt(low * high) : high);
      const span: [number, number] = log ? [low / 2, high * 2] : [0, high * 1.12];
      const times = axis(`mean response time (${unit.name})`, (x) => tick(Number((x * unit.per_s).toPrecision(6))), 58);
      return {
        scales: { x: { time: false, range: [0, right(survey, [...levels, ...others])] }, y: { distr: log ? 3 : 1, range: span } },
        axes: [axis(OFFERED, tick), log ? { ...times, splits: (u) => decades(...span, u.height / 22) } : times],
        series: SERIES(),
        bands: BANDS,
        hooks: {
          drawAxes: [(u) => doubtful(u, between(survey.saturation_rate)), (u) => expectations(u, expected)],
          draw: [
            (u) => knee(u, survey.saturation_rate, "top"),
            (u) => marks(u, points),
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
  // A closed run has no offered load: its prediction, that of saturation, is not on the line.
  const closed = (level: Level) => level.role === "past_saturation" && level.clients != null;
  const levels = mixLevels(survey).filter((level) => !closed(level));
  const others = [...otherLoads(survey), ...mixLevels(survey).filter(closed)];
  const of = (level: Level) => level.utilization;
  const saturation = survey.saturation_rate.predicted;
  const full = others.filter(closed).slice(0, saturation == null ? 0 : 1);
  const turns = full.map((level) => ({ x: saturation ?? 0, predicted: of(level).predicted ?? null, interval: between(of(level)) }));
  const { data, points, expected, readout } = compared({ levels, others, of, format: percent, turns });
  const all = [...levels, ...others];
  return {
    id: "utilization",
    title: "Utilization of the server’s CPUs against offered load",
    reading:
      "What the server’s processes use of its CPUs. It grows with the load until something is full; where that is not the CPUs, it ends below 100\u202f%.",
    summary: `Chart: utilization at ${all.length} levels of offered load.`,
    legend: legend(levels, of),
    points: all.length,
    readout,
    table: comparisonTable("utilization", all, of, percent),
    log: false,
    data,
    options: () => ({
      scales: { x: { time: false, range: [0, right(survey)] }, y: { range: [0, 1.05] } },
      axes: [axis(OFFERED, tick), { ...axis("utilization (%)", (y) => tick(Math.round(y * 100)), 58), splits: () => [0, 0.2, 0.4, 0.6, 0.8, 1] }],
      series: SERIES(),
      bands: BANDS,
      hooks: {
        drawAxes: [(u) => doubtful(u, between(survey.saturation_rate)), (u) => expectations(u, expected)],
        draw: [
          (u) => knee(u, survey.saturation_rate, "bottom"),
          (u) => marks(u, points),
        ],
      },
    }),
  };
}

/** The server seen from outside: the throughput of this many clients, each calling again as soon as it is answered. */
function byClients(survey: Survey): Chart {
  const calibrated = survey.throughput_by_clients ?? [];
  const later = survey.levels.filter((l) => l.role === "past_saturation" && l.clients != null && l.throughput.measured != null);
  const seen = (found: ByClients) => found.throughput + (found.ci95_half_width ?? 0);
  const saturation = survey.saturation_rate.predicted;
  const most = Math.max(...calibrated.map(seen), ...later.map((l) => l.throughput.measured ?? 0), saturation ?? 0) || 1;
  const clients = [...new Set([...calibrated, ...later].map((one) => one.clients ?? 0))].sort((a, b) => a - b);
  const at = (n: number) => calibrated.find((found) => found.clients === n);
  const measured = (n: number) => later.find((level) => level.clients === n);
  const points: Mark[] = [
    ...calibrated.map((found) => ({ x: found.clients, y: found.throughput, role: "calibration" as const, half: found.ci95_half_width })),
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
    title: "Throughput by clients at once",
    reading:
      "Throughput of this many clients, each calling again as soon as it is answered. Where more of them get no more done, the server is full; that level is what the model predicts as saturation. Bars are 95\u202f% intervals by the blocks of calibration.",
    summary: `Chart: throughput of ${clients.map((n) => count(n)).join(", ")} clients at once; predicted saturation ${rate(saturation)}.`,
    legend: [entry("calibration", "measured, calibration"), later.length > 0 ? entry("past_saturation", "measured after the prediction") : null],
    points: clients.length,
    readout: clients.map((n) => {
      const [found, level] = [at(n), measured(n)];
      const half = found?.ci95_half_width;
      return [
        n === 1 ? "1 client" : `${count(n)} clients`,
        ...(found ? [`calibration ${rate(found.throughput)}${half == null ? "" : ` ± ${rate(half)}`}`, `utilization ${percent(found.utilization)}`] : []),
        ...(level ? [`measured later ${rate(level.throughput.measured)}`] : []),
      ];
    }),
    table: table("chart-clients", "Throughput by clients as a table", [
      figures("clients", "clients", (n: number) => n, count),
      figures("throughput", "throughput", (n: number) => at(n)?.throughput, rate),
      figures("ci95", "±", (n: number) => at(n)?.ci95_half_width, rate),
      figures("utilization", "utilization", (n: number) => at(n)?.utilization, percent),
      figures("later", "measured after the prediction", (n: number) => measured(n)?.throughput.measured, rate),
    ], clients),
    log: false,
    data: [clients, clients.map((n) => at(n)?.throughput ?? null)],
    options: () => ({
      scales: { x: { time: false, distr: 3, log: 2, range: ends }, y: { range: [0, most * 1.15] } },
      axes: [
        { ...axis("clients at once", tick), splits: () => clients, filter: (_, splits) => splits },
        axis("throughput (responses per second)", tick, 58),
      ],
      series: [{}, { label: "throughput", stroke: () => colour("calibration"), width: 1, spanGaps: true, points: { show: false } }],
      hooks: {
        draw: [
          (u) => saturation != null && stroke(u, saturation, `predicted saturation ${number(saturation)}/s`),
          (u) => marks(u, points),
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

/** Columns of a chart that compares, after that of x: what is behind comes first, and then one per role. */
const SERIES = (): uPlot.Series[] => [
  {},
  edge("upper end of the 90\u202f% interval"),
  edge("lower end of the 90\u202f% interval"),
  thin("predicted of a host that keeps its speed"),
  line("predicted"),
  ...ROLE_NAMES.map((role) => silent(ROLES[role])),
];
const BANDS: uPlot.Band[] = [{ series: [1, 2], fill: () => colour("band80") }];

interface Comparing {
  /** Of the mix, on the lines. */
  levels: Level[];
  /** Of other loads, beside them. */
  others: Level[];
  of: (level: Level) => Comparison;
  format: Format;
  /** What the model says by itself. */
  steady?: (level: Level) => number | null;
  /** What the line says at a level, where that is not the level's own prediction. */
  line?: (level: Level) => OnLine;
  /** Where the line turns besides. */
  turns?: (OnLine & { x: number })[];
}

interface OnLine {
  predicted: number | null;
  interval: [number, number] | null;
}

/** Measured beside predicted: uPlot's columns as in `SERIES`, what is drawn by hand, and what hovering says. */
function compared({ levels, others, of, format, steady, line: onLine, turns = [] }: Comparing): {
  data: uPlot.AlignedData;
  points: Mark[];
  expected: Expectation[];
  readout: Chart["readout"];
} {
  const own = (level: Level): OnLine => ({ predicted: of(level).predicted ?? null, interval: between(of(level)) });
  const rows: { x: number; line: OnLine; level: Level | null; apart: boolean }[] = [
    ...levels.map((level) => ({ x: level.offered, line: (onLine ?? own)(level), level, apart: false })),
    ...others.map((level) => ({ x: level.offered, line: { predicted: null, interval: null }, level, apart: true })),
    ...turns.map((turn) => ({ x: turn.x, line: turn, level: null, apart: false })),
  ].sort((a, b) => a.x - b.x);
  const measured = (role: Role) => rows.map(({ level }) => (level?.role === role ? of(level).measured : null));
  const end = (i: 0 | 1) => rows.map(({ line }) => line.interval?.[i] ?? null);
  const points = [...levels, ...others].flatMap((level) => {
    const { measured: y, measured_ci95_half_width: half } = of(level);
    const name = others.includes(level) ? { name: level.clients == null ? level.workload : `${count(level.clients)} clients` } : {};
    return y == null ? [] : [{ x: level.offered, y, role: level.role, half, ...name }];
  });
  const expected = others.map((level) => ({ x: level.offered, predicted: of(level).predicted ?? null, between: between(of(level)) }));
  const readout = rows.map(({ level }) => (level == null ? null : said(level, of(level), format)));
  return {
    data: [
      rows.map((row) => row.x),
      end(1),
      end(0),
      rows.map(({ level, apart }) => (level == null || apart ? null : (steady?.(level) ?? null))),
      rows.map(({ line }) => line.predicted),
      ...ROLE_NAMES.map(measured),
    ],
    points,
    expected,
    readout,
  };
}

function said(level: Level, comparison: Comparison, format: Format): [string, ...string[]] {
  const { predicted, measured, error: e, error_drift: drift, measured_ci95_half_width: half } = comparison;
  const interval = between(comparison);
  const held = holds(comparison);
  const name = level.workload === "mix" ? ROLES[level.role] : `${ROLES[level.role]}: ${level.workload}`;
  return [
    `${rate(level.offered)} offered, ${name}`,
    `measured ${format(measured)}${half == null ? "" : ` ± ${format(half)}`}`,
    ...(predicted == null ? [] : [`predicted ${format(predicted)}${interval === null ? "" : ` (${range(interval, format)})`}`]),
    ...(held === null ? [] : [held ? "✓ within the 90\u202f% interval" : "✗ outside the 90\u202f% interval"]),
    ...(e == null ? [] : [`error ${error(e)}${drift == null ? "" : `, of it host ${error(drift)}`}`]),
    ...(level.host_speed == null ? [] : [`host speed ${level.host_speed.toFixed(2)}`]),
  ];
}

function comparisonTable(id: string, levels: Level[], of: (level: Level) => Comparison, format: Format): HTMLElement {
  return table(`chart-${id}`, "The chart’s values as a table", [
    figures("offered", "offered", (l: Level) => l.offered, rate),
    figures("fraction", "of capacity", (l: Level) => l.fraction, share),
    words("role", "role", (l: Level) => ROLES[l.role]),
    words("workload", "workload", (l: Level) => l.workload),
    figures("predicted", "predicted", (l: Level) => of(l).predicted, format),
    interval("interval90", "90\u202f% interval", (l: Level) => between(of(l)), format),
    figures("measured", "measured", (l: Level) => of(l).measured, format),
    figures("ci95", "±", (l: Level) => of(l).measured_ci95_half_width, format),
    figures("error", "error", (l: Level) => of(l).error, error),
    figures("drift", "of it host", (l: Level) => of(l).error_drift, error),
  ], levels);
}

function legend(
  levels: Level[],
  of: (level: Level) => Comparison,
  steady?: (level: Level) => number | null,
  band = levels.some((level) => between(of(level)) !== null),
): (HTMLElement | null)[] {
  const roles = ROLE_NAMES.filter((role) => levels.some((level) => level.role === role));
  return [
    entry("predicted", "predicted"),
    band ? entry("area", "90\u202f% of measurements", "band80") : null,
    levels.some((level) => steady?.(level) != null) ? entry("steady", "predicted, steady host") : null,
    ...roles.map((role) => entry(role, `measured, ${ROLES[role]}`)),
  ];
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
function right(survey: Survey, levels = [...mixLevels(survey), ...otherLoads(survey)]): number {
  return Math.max(...levels.map((l) => l.offered), survey.saturation_rate.predicted ?? 0) * 1.06;
}

function highest(levels: Level[], of: (level: Level) => Comparison): number {
  return Math.max(...levels.flatMap((level) => [of(level).predicted ?? 0, of(level).measured ?? 0])) || 1;
}
