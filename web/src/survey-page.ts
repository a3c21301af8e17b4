// The page of a survey: capacity, verdict, charts, tables, and facts about the measurement, in this order.
import { answerSection } from "./answer.ts";
import { charts } from "./charts.ts";
import { h, type Child } from "./dom.ts";
import { count, date, signedPercent, wholePercent, NONE, number, percent, range, rate, seconds, type Format } from "./format.ts";
import { readObjective } from "./objective.ts";
import { empty, section, type Page } from "./page.ts";
import { labelFacts, machineFacts } from "./plan/parts.ts";
import type { Comparison, Demand, Law, Level, ProgramDemand, RateUnderObjective, Station } from "./documents/survey.ts";
import { predictionInterval, bottleneck, busyLevels, isWithinInterval, intervalCoverage, isMeasuredWell, missingParts, levelsOfRole, readSurvey, ROLES, type Survey } from "./survey.ts";
import { numberColumn, intervalColumn, table, textColumn, type Column } from "./table.ts";

export function surveyPage(json: string): Page {
  const survey = readSurvey(json);
  const answer = answerSection(survey);
  const drawn = charts(survey);
  return {
    title: `brimful survey of ${survey.url}`,
    content: [
      h("header", {}, h("p", { class: "kicker" }, "brimful survey"), h("h1", { "data-key": "headline" }, survey.headline)),
      facts(survey),
      ...notices(survey),
      ...(answer === null ? [] : [answer.element]),
      keyFigures(survey),
      h("section", {}, h("h2", {}, "Prediction and measurement"), ...drawn.map(({ element }) => element)),
      levels(survey),
      demands(survey),
      ...programs(survey),
      model(survey),
      footer(survey),
    ],
    start: () => {
      answer?.start();
      drawn.forEach(({ start }) => start());
    },
  };
}

function facts(survey: Survey): HTMLElement {
  const { valid } = survey.verdict;
  return h(
    "p",
    { class: "facts" },
    h("span", { class: "url", "data-key": "url" }, survey.url),
    h("time", { datetime: survey.started_at }, date(survey.started_at)),
    h(
      "span",
      { class: valid ? "verdict" : "verdict bad", "data-key": "verdict", "data-value": String(valid) },
      valid ? "✓ valid" : "✗ not valid",
    ),
  );
}

/** Boxes at the top of the page: the reasons not to trust the numbers, and the parts that are missing. */
function notices(survey: Survey): HTMLElement[] {
  const boxes: HTMLElement[] = [];
  if (survey.verdict.reasons.length > 0) {
    const reasons = survey.verdict.reasons.map((reason) => h("li", { "data-reason": reason.code }, reason.message));
    boxes.push(h("div", { class: "notice" }, h("strong", {}, isMeasuredWell(survey) ? "Do not plan with this model:" : "Do not trust these numbers:"), h("ul", {}, ...reasons)));
  }
  if (survey.stopped != null) {
    const { level, reason } = survey.stopped;
    // Usually, the verdict already contains the reason why the survey stopped. Then do not repeat it.
    const isInVerdict = survey.verdict.reasons.some(({ message }) => message.includes(reason));
    const absent = missingParts(survey);
    const notices = [
      isInVerdict ? null : h("p", {}, h("strong", {}, `The survey stopped at ${level}: `), reason),
      absent.length > 0 ? h("p", { "data-key": "missing" }, `Missing: ${absent.join(", ")}.`) : null,
    ].filter((part) => part !== null);
    if (notices.length > 0) boxes.push(h("div", { class: "notice", "data-key": "stopped" }, ...notices));
  }
  return boxes;
}

function keyFigures(survey: Survey): HTMLElement {
  const saturation = survey.saturation_rate;
  const half = saturation.measured_ci95_half_width;
  const predicted = predictionInterval(saturation);
  const busy = busyLevels(survey);
  const errors = busy.map((l) => l.response_time_s.error ?? 0);
  const meanError = errors.length > 0 ? errors.reduce((sum, e) => sum + Math.abs(e), 0) / errors.length : null;
  const first = bottleneck(survey);
  const ratio = survey.client_max_rate != null && saturation.predicted ? survey.client_max_rate / saturation.predicted : null;
  return h(
    "dl",
    { class: "figures" },
    saturationCard(isMeasuredWell(survey), value("saturation.predicted", saturation.predicted, rate(saturation.predicted)), [
      predicted === null ? null : `${range(predicted, rate)} in nine of ten cases; `,
      "measured ",
      value("saturation.measured", saturation.measured, rate(saturation.measured)),
      half == null ? null : ` ± ${rate(half)}`,
      ", error ",
      value("saturation.error", saturation.error, signedPercent(saturation.error)),
      ...(saturation.error_drift == null ? [] : [", host’s share ", value("saturation.error_drift", saturation.error_drift, signedPercent(saturation.error_drift))]),
    ]),
    ...(survey.objectives ?? []).map((objective) => objectiveCard(objective)),
    coverage(survey),
    card("Response-time error at 70–80\u202f% load", "response_time.error_70_80", meanError, percent(meanError), [
      busy.length === 0
        ? "no held-out level there was both predicted and measured"
        : busy.map((l) => `${signedPercent(l.response_time_s.error)} at ${wholePercent(l.fraction)}`).join(", "),
    ]),
    card("Bottleneck demand", "bottleneck.demand", first?.seconds ?? null, seconds(first?.seconds), [
      first == null ? "no demand was fitted" : `per request of the mix at ${first.station.name}`,
    ]),
    saturatedResource(survey),
    overloaded(survey),
    pauses(survey),
    card("Client maximum", "client_max_rate", survey.client_max_rate, rate(survey.client_max_rate), [
      ratio != null
        ? `${ratio < 10 ? number(ratio) : count(ratio)} times the predicted saturation`
        : survey.url.startsWith("https:")
          ? "not measured over TLS; the client was checked at each level"
          : "the most that this client can offer",
    ]),
    law(survey),
    hostSpeed(survey),
    calibrationImpact(survey),
    whatIf(survey),
  );
}

/** The highest rate at which an objective is met. */
function objectiveCard(result: RateUnderObjective): HTMLElement {
  const { rate: rates = {}, measured_interval90, outcome, slices } = result;
  const predicted = predictionInterval(rates);
  const interval = predictionInterval({ interval90: measured_interval90 ?? null });
  const answers = {
    met_up_to_rate: rate(rates.measured),
    met_up_to_capacity: `${rate(rates.measured)}, the capacity`,
    missed_at_light_load: "missed at light load",
    undecided: NONE,
  };
  return card(`Rate with ${readObjective(result).name}`, "objective.measured", rates.measured, answers[outcome ?? "undecided"], [
    interval === null ? null : `${range(interval, rate)}, from ${count(slices?.length ?? 0)} slices of load; `,
    `predicted ${rate(rates.predicted)}`,
    predicted === null ? null : ` (${range(predicted, rate)})`,
    rates.error == null ? null : `, error ${signedPercent(rates.error)}`,
  ]);
}

/** The effect of a change to the server, predicted and measured. */
function whatIf(survey: Survey): HTMLElement | null {
  const whatIf = survey.what_if;
  if (whatIf == null) return null;
  const { saturation_rate: capacity, response_time_s: response } = whatIf;
  return card(`What if ${whatIf.change}: saturation`, "what_if.saturation.predicted", capacity.predicted, rate(capacity.predicted), [
    `measured ${rate(capacity.measured)}, error ${signedPercent(capacity.error)}; mean response time at ${rate(whatIf.offered)}: predicted ${seconds(response.predicted)}, measured ${seconds(response.measured)}`,
    whatIf.verdict.valid ? "" : "; not valid",
  ]);
}

function coverage(survey: Survey): HTMLElement | null {
  const kinds = intervalCoverage(survey);
  if (kinds.length === 0) return null;
  const within = kinds.reduce((sum, kind) => sum + kind.within, 0);
  const all = kinds.reduce((sum, kind) => sum + kind.all, 0);
  const note = kinds.map((kind) => `${kind.name} ${kind.within} of ${kind.all}`).join(", ");
  const exception = levelsOfRole(survey, "held_out").every((level) => level.verdict.valid) ? "" : "; levels that are not valid are not counted";
  return card("Measured within 90\u202f% intervals", "intervals.hold", within, `${within} of ${all}`, [note + exception]);
}

/** The resource that is saturated first, with the evidence. */
function saturatedResource(survey: Survey): HTMLElement | null {
  if (survey.bottleneck == null) return null;
  return card("Saturated resource", "bottleneck", null, survey.bottleneck, [survey.bottleneck_evidence ?? "according to the model"]);
}

/** The throughput of the overloaded server if users open connections of their own. */
function overloaded(survey: Survey): HTMLElement | null {
  if (survey.overload == null) return null;
  const { offered, pooled, unlimited, connections } = survey.overload;
  return card("Overloaded, without a connection pool", "overload.unlimited", unlimited, rate(unlimited), [
    `${signedPercent(unlimited / pooled - 1)} against ${rate(pooled)} through a pool; ${rate(offered)} offered, ${count(connections)} connections opened`,
  ]);
}

/** Pauses of the server, for example because of garbage collection. */
function pauses(survey: Survey): HTMLElement | null {
  if (survey.pauses == null) return null;
  const { per_second, per_call, mean_s, longest_s, seen } = survey.pauses;
  const rates = [
    per_second > 0 ? `${number(per_second)} a second` : null,
    per_call > 0 ? `one in ${count(Math.round(1 / per_call))} calls` : null,
  ].filter((text) => text !== null);
  return card("Mean pause of the server", "pauses.mean", mean_s, seconds(mean_s), [
    `${rates.join(" and ")}, up to ${seconds(longest_s)}; ${count(seen)} seen between completed calls`,
  ]);
}

function law(survey: Survey): HTMLElement | null {
  const [best, next] = survey.laws ?? [];
  if (best === undefined) return null;
  const others = next === undefined ? "" : `; next best: ${next.name}, ${percent(next.left_out_error)}`;
  return card("Law of the cost per request", "law", best.left_out_error, best.name, [`cross-validation error ${percent(best.left_out_error)}${others}`]);
}

function hostSpeed(survey: Survey): HTMLElement | null {
  const speeds = survey.speed_by_block ?? [];
  if (speeds.length === 0) return null;
  const [low, high] = [Math.min(...speeds), Math.max(...speeds)];
  const text = `${low.toFixed(2)} … ${high.toFixed(2)}`;
  return card("Host speed between blocks", "host.spread", high - low, text, [`relative to its mean, in ${count(speeds.length)} blocks of calibration`]);
}

function calibrationImpact(survey: Survey): HTMLElement | null {
  const impact = survey.inflicted;
  if (impact == null) return null;
  const clients = impact.most_clients === 1 ? "1 client" : `${count(impact.most_clients)} clients`;
  const allowance = (limit: number | null | undefined, format: Format): string =>
    limit == null ? "" : ` (${format(limit)} allowed)`;
  return card("Mean load of calibration", "inflicted.mean_load", impact.mean_load, wholePercent(impact.mean_load) + allowance(impact.max_load, wholePercent), [
    `up to ${clients} at the same time, longest wait ${seconds(impact.longest_wait_s)}${allowance(impact.max_delay_s, seconds)}`,
  ]);
}

/** The saturation rate. If it cannot be trusted, it is not shown in large type. */
function saturationCard(isDetermined: boolean, predicted: HTMLElement, measured: Child[]): HTMLElement {
  return isDetermined
    ? h("div", {}, h("dt", {}, "Saturation, predicted"), h("dd", { class: "big" }, predicted), h("dd", {}, ...measured))
    : h("div", {}, h("dt", {}, "Saturation"), h("dd", { class: "big" }, "not determined"), h("dd", {}, "predicted ", predicted, ", ", ...measured));
}

function card(title: string, key: string, raw: number | null | undefined, text: string, note: Child[]): HTMLElement {
  return h("div", {}, h("dt", {}, title), h("dd", { class: "big" }, value(key, raw, text)), h("dd", {}, ...note));
}

function value(key: string, raw: number | null | undefined, text: string): HTMLElement {
  return h("span", { "data-key": key, "data-value": raw ?? "" }, text);
}

function levels(survey: Survey): HTMLElement {
  const [calibrated, tested, beyond] = [levelsOfRole(survey, "calibration"), levelsOfRole(survey, "held_out"), levelsOfRole(survey, "past_saturation")];
  const doubts = [...new Set(survey.levels.flatMap(doubtsOf))];
  const whole = section(
    "Levels",
    "The model was fitted to the calibration levels alone. Held-out levels were predicted before any of them was measured. Error is predicted / measured − 1. The host’s share of it arises because the host was faster or slower than during calibration. Lateness is the delay of the load generator itself: it must be small compared with the response times.",
    ...(survey.levels.length > 0 ? [] : [empty("No level was measured.")]),
    ...titled("Held out: mean response time", "held_out", heldOut(doubts), tested),
    ...titled("Held out: percentiles", "held_out_percentiles", heldOutPercentiles(), tested),
    ...titled("Held out: utilization, errors and lateness", "held_out_utilization", heldOutUtilization(), tested),
    ...titled("Calibration", "calibration", calibrationColumns(doubts), calibrated),
    ...titled("Past saturation", "past_saturation", pastSaturation(doubts), beyond),
    reasons(doubts),
    perClass(survey),
  );
  whole.classList.add("levels");
  return whole;
}

/** A table under its own title; nothing if it has no rows. */
function titled(title: string, name: string, columns: Column<Level>[], rows: Level[]): HTMLElement[] {
  return rows.length === 0 ? [] : [h("h3", { class: "over" }, title), table(name, title, columns, rows)];
}

const R = "mean response time";
const U = "utilization";

function heldOut(doubts: string[]): Column<Level>[] {
  return [
    textColumn("workload", "workload", (l) => l.workload),
    numberColumn("fraction", "of capacity", (l) => l.fraction, wholePercent),
    numberColumn("offered", "offered", (l) => l.offered, rate),
    numberColumn("response_time.steady", "steady host", (l) => l.steady_response_s, seconds, R),
    ...compared("response_time", (l) => l.response_time_s, seconds, R),
    numberColumn("response_time.ci95", "±", (l) => l.response_time_s.measured_ci95_half_width, seconds, R),
    numberColumn("response_time.error", "error", (l) => l.response_time_s.error, signedPercent, R),
    numberColumn("response_time.drift", "host’s share", (l) => l.response_time_s.error_drift, signedPercent, R),
    numberColumn("host_speed", "host speed", (l) => l.host_speed, (x) => (x == null ? NONE : x.toFixed(3))),
    textColumn("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

function heldOutPercentiles(): Column<Level>[] {
  return [
    textColumn("workload", "workload", (l) => l.workload),
    numberColumn("fraction", "of capacity", (l) => l.fraction, wholePercent),
    ...compared("p95", (l) => l.response_percentiles_s.p95, seconds, "95th percentile"),
    ...compared("p99", (l) => l.response_percentiles_s.p99, seconds, "99th percentile"),
  ];
}

function heldOutUtilization(): Column<Level>[] {
  return [
    textColumn("workload", "workload", (l) => l.workload),
    numberColumn("fraction", "of capacity", (l) => l.fraction, wholePercent),
    ...compared("utilization", (l) => l.utilization, percent, U),
    ...health(),
  ];
}

function calibrationColumns(doubts: string[]): Column<Level>[] {
  return [
    textColumn("workload", "workload", (l) => l.workload),
    numberColumn("offered", "offered", (l) => (l.clients == null ? l.offered : null), rate),
    numberColumn("clients", "clients", (l) => l.clients, count),
    numberColumn("throughput", "throughput", (l) => l.throughput.measured, rate),
    numberColumn("throughput.ci95", "±", (l) => l.throughput.measured_ci95_half_width, rate),
    numberColumn("response_time", "mean response time", (l) => l.response_time_s.measured, seconds),
    numberColumn("response_time.ci95", "±", (l) => l.response_time_s.measured_ci95_half_width, seconds),
    numberColumn("p95", "p95", (l) => l.response_percentiles_s.p95.measured, seconds),
    numberColumn("utilization", "utilization", (l) => l.utilization.measured, percent),
    ...health(),
    textColumn("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

function pastSaturation(doubts: string[]): Column<Level>[] {
  const X = "throughput";
  return [
    textColumn("workload", "workload", (l) => l.workload),
    numberColumn("offered", "offered", (l) => (l.clients == null ? l.offered : null), rate),
    numberColumn("clients", "clients", (l) => l.clients, count),
    numberColumn("throughput.predicted", "predicted", (l) => l.throughput.predicted, rate, X),
    numberColumn("throughput.measured", "measured", (l) => l.throughput.measured, rate, X),
    numberColumn("throughput.ci95", "±", (l) => l.throughput.measured_ci95_half_width, rate, X),
    numberColumn("throughput.error", "error", (l) => l.throughput.error, signedPercent, X),
    numberColumn("throughput.drift", "host’s share", (l) => l.throughput.error_drift, signedPercent, X),
    numberColumn("response_time", R, (l) => l.response_time_s.measured, seconds),
    numberColumn("utilization.predicted", "predicted", (l) => l.utilization.predicted, percent, U),
    numberColumn("utilization.measured", "measured", (l) => l.utilization.measured, percent, U),
    numberColumn("host_speed", "host speed", (l) => l.host_speed, (x) => (x == null ? NONE : x.toFixed(3))),
    ...health(),
    textColumn("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

/** Columns of one quantity: predicted, its interval, measured, and whether the measurement is within the interval. */
function compared(key: string, comparisonOf: (level: Level) => Comparison, format: Format, group: string): Column<Level>[] {
  return [
    numberColumn(`${key}.predicted`, "predicted", (l) => comparisonOf(l).predicted, format, group),
    intervalColumn(`${key}.interval90`, "90\u202f% interval", (l) => predictionInterval(comparisonOf(l)), format, group),
    numberColumn(`${key}.measured`, "measured", (l) => comparisonOf(l).measured, format, group),
    textColumn(`${key}.holds`, "within", (l) => ({ true: "✓ yes", false: "✗ no", null: "" })[`${isWithinInterval(comparisonOf(l))}`], group),
  ];
}

/** Columns that show whether a measurement can be trusted: failed calls, and lateness of the generator. */
function health(): Column<Level>[] {
  return [
    numberColumn("error_share", "errors", (l) => l.error_share, percent),
    numberColumn("lateness.p50", "p50", (l) => l.lateness_p50_s, seconds, "lateness"),
    numberColumn("lateness.p99", "p99", (l) => l.lateness_p99_s, seconds, "lateness"),
  ];
}

/** The reasons why a level is not valid. */
function doubtsOf(level: Level): string[] {
  return level.verdict.valid ? [] : level.verdict.reasons.map((reason) => reason.message);
}

/**
 * Whether a level is valid. The reasons are too long for a column, so the text has their numbers in the list below the
 * tables.
 */
function verdict(level: Level, doubts: string[]): string {
  return level.verdict.valid ? "yes" : `no (${doubtsOf(level).map((message) => doubts.indexOf(message) + 1).join(", ")})`;
}

function reasons(doubts: string[]): HTMLElement | null {
  if (doubts.length === 0) return null;
  const list = h("ol", { "data-key": "doubts" }, ...doubts.map((message) => h("li", {}, message)));
  return h("div", {}, h("h3", { class: "over" }, "Why levels are not valid"), list);
}

/** The levels that have several classes, class by class, in an element that the reader can open. */
function perClass(survey: Survey): HTMLElement | null {
  const rows = survey.levels.filter((l) => l.classes.length > 1).flatMap((l) => l.classes.map((c) => ({ l, c })));
  if (rows.length === 0) return null;
  const columns: Column<(typeof rows)[number]>[] = [
    numberColumn("offered", "offered (/s)", ({ l }) => l.offered, number),
    textColumn("role", "role", ({ l }) => ROLES[l.role]),
    textColumn("class", "class", ({ c }) => c.name),
    numberColumn("throughput", "throughput (/s)", ({ c }) => c.throughput, number),
    numberColumn("response_time.predicted", "predicted", ({ c }) => c.response_time_s.predicted, seconds, R),
    numberColumn("response_time.measured", "measured", ({ c }) => c.response_time_s.measured, seconds, R),
    numberColumn("response_time.error", "error", ({ c }) => c.response_time_s.error, signedPercent, R),
  ];
  return h("details", {}, h("summary", {}, "Class by class"), table("classes", "Levels class by class", columns, rows));
}

function demands(survey: Survey): HTMLElement {
  const columns: Column<Demand>[] = [
    textColumn("station", "station", (d) => d.station),
    textColumn("class", "class", (d) => d.class),
    numberColumn("seconds", "demand", (d) => d.seconds, seconds),
    numberColumn("ci95", "±", (d) => d.ci95_half_width, seconds),
    numberColumn("truth", "true demand", (d) => d.truth, seconds),
    numberColumn("error", "error", (d) => (d.truth ? d.seconds / d.truth - 1 : null), signedPercent),
  ];
  return section(
    "Demands",
    "The time that one request of a class needs at a station, waiting excluded, with its 95\u202f% interval. The true demand is known only if the server reports it.",
    survey.demands.length > 0 ? table("demands", "Fitted demands", columns, survey.demands) : empty("No demand was fitted."),
  );
}

/** CPU time by program, if the server has several. */
function programs(survey: Survey): HTMLElement[] {
  const all = survey.programs ?? [];
  const columns: Column<ProgramDemand>[] = [
    textColumn("name", "program", (p) => p.name),
    numberColumn("demand", "CPU time", (p) => p.demand_s, seconds),
    numberColumn("ci95", "±", (p) => p.ci95_half_width, seconds),
    numberColumn("share", "share", (p) => p.share, percent),
    numberColumn("processes", "processes", (p) => p.processes, count),
  ];
  if (all.length < 2) return [];
  return [
    section(
      "Programs",
      "CPU time per request of the mix in each of the server’s programs under full load, with its 95\u202f% interval. Programs that share CPUs form one station of the model.",
      table("programs", "CPU time of a request by program", columns, all),
    ),
  ];
}

function model(survey: Survey): HTMLElement {
  const isQueue = (s: Station) => s.type === "queue";
  const columns: Column<Station>[] = [
    textColumn("name", "station", (s) => s.name),
    textColumn("type", "type", (s) => s.type),
    numberColumn("servers", "servers", (s) => (isQueue(s) ? s.servers : null), count),
    textColumn("scheduling", "scheduling", (s) => (isQueue(s) ? (s.scheduling ?? "ps").toUpperCase() : "")),
    numberColumn("scv", "variability (SCV)", (s) => (isQueue(s) ? s.scv : null), number),
    numberColumn("background", "background", (s) => (isQueue(s) ? s.background : null), percent),
    numberColumn("idle_cost", "extra cost when idle", (s) => s.idle_cost?.seconds, seconds),
    numberColumn("idle_power", "exponent of the idle share", (s) => s.idle_cost?.power, count),
    numberColumn("interruptions_per_second", "interruptions per second", (s) => s.interruptions?.per_second, number),
    numberColumn("interruptions_per_call", "interruptions per request", (s) => s.interruptions?.per_call, number),
    numberColumn("interruption_length", "mean length of interruptions", (s) => s.interruptions?.mean_length, seconds),
  ];
  const laws: Column<Law>[] = [
    textColumn("name", "law", (l) => l.name),
    numberColumn("left_out_error", "cross-validation error", (l) => l.left_out_error, percent),
  ];
  return section(
    "Model",
    "Requests queue at a queue station and are only delayed at a delay station. PS shares a station among all requests present, FCFS serves them one after another. Background is the share of the station that other work uses.",
    survey.model.stations.length > 0
      ? table("stations", "The model’s stations", columns, survey.model.stations)
      : empty("The model has no station."),
    ...((survey.laws ?? []).length === 0
      ? []
      : [
          h("h3", { class: "over" }, "Laws that were tried"),
          h("p", { class: "reading" }, "Each law describes how the cost per request depends on the load. The error is that at calibration levels to which the law was not fitted. The model uses the first law."),
          table("laws", "Laws that were tried", laws, survey.laws ?? []),
        ]),
  );
}

function footer(survey: Survey): HTMLElement {
  const cpus = (list: number[]) => (list.length > 0 ? list.join(", ") : NONE);
  const rows: [string, string, string][] = [
    ["version", "brimful", survey.brimful_version],
    ["command", "command", survey.command.join(" ")],
    ...[...labelFacts(survey.labels), ...machineFacts(survey.machine)].map(([name, text]): [string, string, string] => [name, name, text]),
    ["seed", "seed", survey.seed],
    ["server_cpus", "server’s CPUs", cpus(survey.server_cpus)],
    ["client_cpus", "client’s CPUs", cpus(survey.client_cpus)],
    ["background", "CPU use before any load", percent(survey.background)],
    ["elapsed_s", "duration", seconds(survey.elapsed_s)],
    ["wakeup_s", "cost of waking an idle server", seconds(survey.wakeup_s)],
  ];
  return h(
    "footer",
    {},
    h("dl", {}, ...rows.map(([key, name, text]) => h("div", {}, h("dt", {}, name), h("dd", { "data-key": key }, text)))),
  );
}
