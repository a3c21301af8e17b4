// The page of a survey, top to bottom: what the server can take, whether to believe it, the charts, the tables, where it came from.
import { charts } from "./charts.ts";
import { h, type Child } from "./dom.ts";
import { count, date, error, level as share, NONE, number, percent, range, rate, seconds, type Format } from "./format.ts";
import { empty, section, type Page } from "./page.ts";
import type { Comparison, Demand, Law, Level, ProgramDemand, Station } from "./documents/survey.ts";
import { between, bottleneck, busyLevels, holds, intervals, isMeasuredWell, missing, ofRole, read, ROLES, type Survey } from "./survey.ts";
import { figures, interval, table, words, type Column } from "./table.ts";

export function surveyPage(json: string): Page {
  const survey = read(json);
  const drawn = charts(survey);
  return {
    title: `brimful survey of ${survey.url}`,
    content: [
      h("header", {}, h("p", { class: "kicker" }, "brimful survey"), h("h1", { "data-key": "headline" }, survey.headline)),
      facts(survey),
      ...notices(survey),
      keyFigures(survey),
      h("section", {}, h("h2", {}, "Prediction and measurement"), ...drawn.map(({ element }) => element)),
      levels(survey),
      demands(survey),
      ...programs(survey),
      model(survey),
      footer(survey),
    ],
    start: () => drawn.forEach(({ start }) => start()),
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

/** What the reader must know before any number. */
function notices(survey: Survey): HTMLElement[] {
  const boxes: HTMLElement[] = [];
  if (survey.verdict.reasons.length > 0) {
    const reasons = survey.verdict.reasons.map((reason) => h("li", { "data-reason": reason.code }, reason.message));
    boxes.push(h("div", { class: "notice" }, h("strong", {}, isMeasuredWell(survey) ? "Do not plan with this model:" : "Do not trust these numbers:"), h("ul", {}, ...reasons)));
  }
  if (survey.stopped != null) {
    const { level, reason } = survey.stopped;
    // Why it stopped is among the verdict's reasons, as a rule.
    const isTold = survey.verdict.reasons.some(({ message }) => message.includes(reason));
    const lacking = missing(survey);
    const notices = [
      isTold ? null : h("p", {}, h("strong", {}, `The survey stopped at ${level}: `), reason),
      lacking.length > 0 ? h("p", { "data-key": "missing" }, `Missing: ${lacking.join(", ")}.`) : null,
    ].filter((part) => part !== null);
    if (notices.length > 0) boxes.push(h("div", { class: "notice", "data-key": "stopped" }, ...notices));
  }
  return boxes;
}

function keyFigures(survey: Survey): HTMLElement {
  const saturation = survey.saturation_rate;
  const half = saturation.measured_ci95_half_width;
  const predicted = between(saturation);
  const busy = busyLevels(survey);
  const errors = busy.map((l) => l.response_time_s.error ?? 0);
  const off = errors.length > 0 ? errors.reduce((sum, e) => sum + Math.abs(e), 0) / errors.length : null;
  const slowest = bottleneck(survey);
  const times = survey.client_max_rate != null && saturation.predicted ? survey.client_max_rate / saturation.predicted : null;
  return h(
    "dl",
    { class: "figures" },
    saturationCard(isMeasuredWell(survey), value("saturation.predicted", saturation.predicted, rate(saturation.predicted)), [
      predicted === null ? null : `${range(predicted, rate)} in nine of ten cases; `,
      "measured ",
      value("saturation.measured", saturation.measured, rate(saturation.measured)),
      half == null ? null : ` ± ${rate(half)}`,
      ", error ",
      value("saturation.error", saturation.error, error(saturation.error)),
      ...(saturation.error_drift == null ? [] : [", of it host ", value("saturation.error_drift", saturation.error_drift, error(saturation.error_drift))]),
    ]),
    held(survey),
    card("Response-time error at 70–80\u202f% load", "response_time.error_70_80", off, percent(off), [
      busy.length === 0
        ? "no held-out level there was both predicted and measured"
        : busy.map((l) => `${error(l.response_time_s.error)} at ${share(l.fraction)}`).join(", "),
    ]),
    card("Bottleneck demand", "bottleneck.demand", slowest?.seconds ?? null, seconds(slowest?.seconds), [
      slowest == null ? "no demand was fitted" : `per request of the mix at ${slowest.station.name}`,
    ]),
    full(survey),
    card("Client maximum", "client_max_rate", survey.client_max_rate, rate(survey.client_max_rate), [
      times == null ? (survey.url.startsWith("https:") ? "not known by TLS; each level was judged by itself" : "what this client can offer") : `${times < 10 ? number(times) : count(times)} times the predicted saturation`,
    ]),
    law(survey),
    host(survey),
    calibration(survey),
    whatIf(survey),
  );
}

/** What a change did that was predicted, made and undone. */
function whatIf(survey: Survey): HTMLElement | null {
  const tried = survey.what_if;
  if (tried == null) return null;
  const { saturation_rate: capacity, response_time_s: response } = tried;
  return card(`What if ${tried.change}: saturation`, "what_if.saturation.predicted", capacity.predicted, rate(capacity.predicted), [
    `measured ${rate(capacity.measured)}, error ${error(capacity.error)}; a call at ${rate(tried.offered)} takes ${seconds(response.predicted)}, measured ${seconds(response.measured)}`,
    tried.verdict.valid ? "" : "; in doubt",
  ]);
}

function held(survey: Survey): HTMLElement | null {
  const kinds = intervals(survey);
  if (kinds.length === 0) return null;
  const [hold, all] = [kinds.reduce((sum, kind) => sum + kind.hold, 0), kinds.reduce((sum, kind) => sum + kind.all, 0)];
  const note = kinds.map((kind) => `${kind.name} ${kind.hold} of ${kind.all}`).join(", ");
  const without = ofRole(survey, "held_out").every((level) => level.verdict.valid) ? "" : "; levels in doubt are not counted";
  return card("90\u202f% intervals that hold", "intervals.hold", hold, `${hold} of ${all}`, [note + without]);
}

/** What is full, and why that is believed. */
function full(survey: Survey): HTMLElement | null {
  if (survey.bottleneck == null) return null;
  return card("Full at saturation", "bottleneck", null, survey.bottleneck, [survey.bottleneck_evidence ?? "as the model says"]);
}

function law(survey: Survey): HTMLElement | null {
  const [best, next] = survey.laws ?? [];
  if (best === undefined) return null;
  const others = next === undefined ? "" : `; next ${next.name}, ${percent(next.left_out_error)}`;
  return card("Law of a call’s cost", "law", best.left_out_error, best.name, [`off by ${percent(best.left_out_error)} where left out${others}`]);
}

function host(survey: Survey): HTMLElement | null {
  const speeds = survey.speed_by_block ?? [];
  if (speeds.length === 0) return null;
  const [low, high] = [Math.min(...speeds), Math.max(...speeds)];
  const text = `${low.toFixed(2)} … ${high.toFixed(2)}`;
  return card("Host speed between blocks", "host.spread", high - low, text, [`of its mean, over ${count(speeds.length)} blocks of calibration`]);
}

function calibration(survey: Survey): HTMLElement | null {
  const asked = survey.inflicted;
  if (asked == null) return null;
  const clients = asked.most_clients === 1 ? "1 client" : `${count(asked.most_clients)} clients`;
  const of = (allowed: number | null | undefined, written: (value: number) => string): string =>
    allowed == null ? "" : ` (${written(allowed)} allowed)`;
  return card("Mean load of calibration", "inflicted.mean_load", asked.mean_load, share(asked.mean_load) + of(asked.max_load, share), [
    `up to ${clients} at once, waits of up to ${seconds(asked.longest_wait_s)}${of(asked.max_delay_s, seconds)}`,
  ]);
}

/** What is not to be relied on is not shown large. */
function saturationCard(determined: boolean, predicted: HTMLElement, measured: Child[]): HTMLElement {
  return determined
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
  const [calibrated, tested, beyond] = [ofRole(survey, "calibration"), ofRole(survey, "held_out"), ofRole(survey, "past_saturation")];
  const doubts = [...new Set(survey.levels.flatMap(messages))];
  const whole = section(
    "Levels",
    "The model was fitted to the calibration levels alone; held-out levels were predicted before any of them was measured. Error is predicted over measured, less one; the host’s part of it comes of its being faster or slower then than during calibration. Lateness is the load generator’s own: it must be small beside the response times.",
    ...(survey.levels.length > 0 ? [] : [empty("No level was measured.")]),
    ...titled("Held out: mean response time", "held_out", heldOut(doubts), tested),
    ...titled("Held out: percentiles", "held_out_percentiles", heldOutPercentiles(), tested),
    ...titled("Held out: utilization, and how the generator kept up", "held_out_utilization", heldOutUtilization(), tested),
    ...titled("Calibration", "calibration", calibrationColumns(doubts), calibrated),
    ...titled("Past saturation", "past_saturation", pastSaturation(doubts), beyond),
    reasons(doubts),
    perClass(survey),
  );
  whole.classList.add("levels");
  return whole;
}

/** A table under a title of its own; nothing where it has no row. */
function titled(title: string, name: string, columns: Column<Level>[], rows: Level[]): HTMLElement[] {
  return rows.length === 0 ? [] : [h("h3", { class: "over" }, title), table(name, title, columns, rows)];
}

const R = "mean response time";
const U = "utilization";

function heldOut(doubts: string[]): Column<Level>[] {
  return [
    words("workload", "workload", (l) => l.workload),
    figures("fraction", "of capacity", (l) => l.fraction, share),
    figures("offered", "offered", (l) => l.offered, rate),
    figures("response_time.steady", "steady host", (l) => l.steady_response_s, seconds, R),
    ...compared("response_time", (l) => l.response_time_s, seconds, R),
    figures("response_time.ci95", "±", (l) => l.response_time_s.measured_ci95_half_width, seconds, R),
    figures("response_time.error", "error", (l) => l.response_time_s.error, error, R),
    figures("response_time.drift", "of it host", (l) => l.response_time_s.error_drift, error, R),
    figures("host_speed", "host speed", (l) => l.host_speed, (x) => (x == null ? NONE : x.toFixed(3))),
    words("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

function heldOutPercentiles(): Column<Level>[] {
  return [
    words("workload", "workload", (l) => l.workload),
    figures("fraction", "of capacity", (l) => l.fraction, share),
    ...compared("p95", (l) => l.response_percentiles_s.p95, seconds, "95th percentile"),
    ...compared("p99", (l) => l.response_percentiles_s.p99, seconds, "99th percentile"),
  ];
}

function heldOutUtilization(): Column<Level>[] {
  return [
    words("workload", "workload", (l) => l.workload),
    figures("fraction", "of capacity", (l) => l.fraction, share),
    ...compared("utilization", (l) => l.utilization, percent, U),
    ...health(),
  ];
}

function calibrationColumns(doubts: string[]): Column<Level>[] {
  return [
    words("workload", "workload", (l) => l.workload),
    figures("offered", "offered", (l) => (l.clients == null ? l.offered : null), rate),
    figures("clients", "clients", (l) => l.clients, count),
    figures("throughput", "throughput", (l) => l.throughput.measured, rate),
    figures("throughput.ci95", "±", (l) => l.throughput.measured_ci95_half_width, rate),
    figures("response_time", "mean response time", (l) => l.response_time_s.measured, seconds),
    figures("response_time.ci95", "±", (l) => l.response_time_s.measured_ci95_half_width, seconds),
    figures("p95", "p95", (l) => l.response_percentiles_s.p95.measured, seconds),
    figures("utilization", "utilization", (l) => l.utilization.measured, percent),
    ...health(),
    words("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

function pastSaturation(doubts: string[]): Column<Level>[] {
  const X = "throughput";
  return [
    words("workload", "workload", (l) => l.workload),
    figures("offered", "offered", (l) => (l.clients == null ? l.offered : null), rate),
    figures("clients", "clients", (l) => l.clients, count),
    figures("throughput.predicted", "predicted", (l) => l.throughput.predicted, rate, X),
    figures("throughput.measured", "measured", (l) => l.throughput.measured, rate, X),
    figures("throughput.ci95", "±", (l) => l.throughput.measured_ci95_half_width, rate, X),
    figures("throughput.error", "error", (l) => l.throughput.error, error, X),
    figures("throughput.drift", "of it host", (l) => l.throughput.error_drift, error, X),
    figures("response_time", R, (l) => l.response_time_s.measured, seconds),
    figures("utilization.predicted", "predicted", (l) => l.utilization.predicted, percent, U),
    figures("utilization.measured", "measured", (l) => l.utilization.measured, percent, U),
    figures("host_speed", "host speed", (l) => l.host_speed, (x) => (x == null ? NONE : x.toFixed(3))),
    ...health(),
    words("verdict", "valid", (l) => verdict(l, doubts)),
  ];
}

/** Predicted, between which figures, measured, and whether that lies between them. */
function compared(key: string, of: (level: Level) => Comparison, format: Format, group: string): Column<Level>[] {
  return [
    figures(`${key}.predicted`, "predicted", (l) => of(l).predicted, format, group),
    interval(`${key}.interval90`, "90\u202f% interval", (l) => between(of(l)), format, group),
    figures(`${key}.measured`, "measured", (l) => of(l).measured, format, group),
    words(`${key}.holds`, "holds", (l) => ({ true: "✓ yes", false: "✗ no", null: "" })[`${holds(of(l))}`], group),
  ];
}

/** Of the calls and of the generator. */
function health(): Column<Level>[] {
  return [
    figures("error_share", "errors", (l) => l.error_share, percent),
    figures("lateness.p50", "p50", (l) => l.lateness_p50_s, seconds, "lateness"),
    figures("lateness.p99", "p99", (l) => l.lateness_p99_s, seconds, "lateness"),
  ];
}

/** Why a level is in doubt. */
function messages(level: Level): string[] {
  return level.verdict.valid ? [] : level.verdict.reasons.map((reason) => reason.message);
}

/** The reasons are sentences, too long for a column: it has their numbers in the list below the tables. */
function verdict(level: Level, doubts: string[]): string {
  return level.verdict.valid ? "yes" : `no (${messages(level).map((message) => doubts.indexOf(message) + 1).join(", ")})`;
}

function reasons(doubts: string[]): HTMLElement | null {
  if (doubts.length === 0) return null;
  const list = h("ol", { "data-key": "doubts" }, ...doubts.map((message) => h("li", {}, message)));
  return h("div", {}, h("h3", { class: "over" }, "Why levels are not valid"), list);
}

/** The classes of levels that have several, folded away. */
function perClass(survey: Survey): HTMLElement | null {
  const rows = survey.levels.filter((l) => l.classes.length > 1).flatMap((l) => l.classes.map((c) => ({ l, c })));
  if (rows.length === 0) return null;
  const columns: Column<(typeof rows)[number]>[] = [
    figures("offered", "offered (/s)", ({ l }) => l.offered, number),
    words("role", "role", ({ l }) => ROLES[l.role]),
    words("class", "class", ({ c }) => c.name),
    figures("throughput", "throughput (/s)", ({ c }) => c.throughput, number),
    figures("response_time.predicted", "predicted", ({ c }) => c.response_time_s.predicted, seconds, R),
    figures("response_time.measured", "measured", ({ c }) => c.response_time_s.measured, seconds, R),
    figures("response_time.error", "error", ({ c }) => c.response_time_s.error, error, R),
  ];
  return h("details", {}, h("summary", {}, "Class by class"), table("classes", "Levels class by class", columns, rows));
}

function demands(survey: Survey): HTMLElement {
  const columns: Column<Demand>[] = [
    words("station", "station", (d) => d.station),
    words("class", "class", (d) => d.class),
    figures("seconds", "demand", (d) => d.seconds, seconds),
    figures("ci95", "±", (d) => d.ci95_half_width, seconds),
    figures("truth", "truth", (d) => d.truth, seconds),
    figures("error", "error", (d) => (d.truth ? d.seconds / d.truth - 1 : null), error),
  ];
  return section(
    "Demands",
    "The time that one request of a class needs at a station, waiting excluded, with its 95\u202f% interval. The truth is known only for servers that tell it.",
    survey.demands.length > 0 ? table("demands", "Fitted demands", columns, survey.demands) : empty("No demand was fitted."),
  );
}

/** Of one program there is nothing to tell apart. */
function programs(survey: Survey): HTMLElement[] {
  const all = survey.programs ?? [];
  const columns: Column<ProgramDemand>[] = [
    words("name", "program", (p) => p.name),
    figures("demand", "CPU time", (p) => p.demand_s, seconds),
    figures("ci95", "±", (p) => p.ci95_half_width, seconds),
    figures("share", "share", (p) => p.share, percent),
    figures("processes", "processes", (p) => p.processes, count),
  ];
  if (all.length < 2) return [];
  return [
    section(
      "Programs",
      "In which of the server’s programs a request of the mix spends its CPU time while clients leave the server no rest, with its 95\u202f% interval. Programs that share CPUs are one station of the model.",
      table("programs", "CPU time of a request by program", columns, all),
    ),
  ];
}

function model(survey: Survey): HTMLElement {
  const queue = (s: Station) => s.type === "queue";
  const columns: Column<Station>[] = [
    words("name", "station", (s) => s.name),
    words("type", "type", (s) => s.type),
    figures("servers", "servers", (s) => (queue(s) ? s.servers : null), count),
    words("scheduling", "scheduling", (s) => (queue(s) ? (s.scheduling ?? "ps").toUpperCase() : "")),
    figures("scv", "variability (SCV)", (s) => (queue(s) ? s.scv : null), number),
    figures("background", "background", (s) => (queue(s) ? s.background : null), percent),
    figures("idle_cost", "cost when idle", (s) => s.idle_cost?.seconds, seconds),
    figures("idle_power", "fades with idleness to the", (s) => s.idle_cost?.power, count),
  ];
  const laws: Column<Law>[] = [
    words("name", "law", (l) => l.name),
    figures("left_out_error", "error where left out", (l) => l.left_out_error, percent),
  ];
  return section(
    "Model",
    "Requests queue at a queue station and are only delayed at a delay station. PS shares a station among all present, FCFS serves them in turn. Background is the share of the station that other work takes.",
    survey.model.stations.length > 0
      ? table("stations", "The model’s stations", columns, survey.model.stations)
      : empty("The model has no station."),
    ...((survey.laws ?? []).length === 0
      ? []
      : [
          h("h3", { class: "over" }, "Laws that were tried"),
          h("p", { class: "reading" }, "How the cost of a call might depend on the load, and how far off each law is at calibration levels that it was not fitted to. The first is the model’s."),
          table("laws", "Laws that were tried", laws, survey.laws ?? []),
        ]),
  );
}

function footer(survey: Survey): HTMLElement {
  const cpus = (list: number[]) => (list.length > 0 ? list.join(", ") : NONE);
  const rows: [string, string, string][] = [
    ["version", "brimful", survey.brimful_version],
    ["command", "command", survey.command.join(" ")],
    ["seed", "seed", survey.seed],
    ["server_cpus", "server’s CPUs", cpus(survey.server_cpus)],
    ["client_cpus", "client’s CPUs", cpus(survey.client_cpus)],
    ["background", "busy before any load", percent(survey.background)],
    ["elapsed_s", "took", seconds(survey.elapsed_s)],
    ["wakeup_s", "cost of waking an idle server", seconds(survey.wakeup_s)],
  ];
  return h(
    "footer",
    {},
    h("dl", {}, ...rows.map(([key, name, text]) => h("div", {}, h("dt", {}, name), h("dd", { "data-key": key }, text)))),
  );
}
