// The page of a survey, top to bottom: what the server can take, whether to believe it, the charts, the tables, where it came from.
import { charts } from "./charts.ts";
import { h, type Child } from "./dom.ts";
import { count, date, error, level as share, NONE, number, percent, rate, seconds } from "./format.ts";
import { empty, section, type Page } from "./page.ts";
import type { Demand, Level, Station } from "./documents/survey.ts";
import { bottleneck, busyLevels, isMeasuredWell, missing, read, ROLES, type Survey } from "./survey.ts";
import { figures, table, words, type Column } from "./table.ts";

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
      stations(survey),
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
    const lacking = missing(survey);
    boxes.push(
      h(
        "div",
        { class: "notice", "data-key": "stopped" },
        h("p", {}, h("strong", {}, `The survey stopped at ${survey.stopped.level}: `), survey.stopped.reason),
        lacking.length > 0 ? h("p", { "data-key": "missing" }, `Missing: ${lacking.join(", ")}.`) : null,
      ),
    );
  }
  return boxes;
}

function keyFigures(survey: Survey): HTMLElement {
  const saturation = survey.saturation_rate;
  const interval = saturation.measured_ci95_half_width;
  const busy = busyLevels(survey);
  const errors = busy.map((l) => l.response_time_s.error ?? 0);
  const off = errors.length > 0 ? errors.reduce((sum, e) => sum + Math.abs(e), 0) / errors.length : null;
  const slowest = bottleneck(survey);
  const times = survey.client_max_rate != null && saturation.predicted ? survey.client_max_rate / saturation.predicted : null;
  return h(
    "dl",
    { class: "figures" },
    saturationCard(isMeasuredWell(survey), value("saturation.predicted", saturation.predicted, rate(saturation.predicted)), [
      "measured ",
      value("saturation.measured", saturation.measured, rate(saturation.measured)),
      interval == null ? null : ` ± ${rate(interval)}`,
      ", error ",
      value("saturation.error", saturation.error, error(saturation.error)),
    ]),
    card("Response-time error at 70–80\u202f% load", "response_time.error_70_80", off, percent(off), [
      busy.length === 0
        ? "no held-out level there was both predicted and measured"
        : busy.map((l) => `${error(l.response_time_s.error)} at ${share(l.fraction)}`).join(", "),
    ]),
    card("Bottleneck demand", "bottleneck.demand", slowest?.seconds ?? null, seconds(slowest?.seconds), [
      slowest == null ? "no demand was fitted" : `per request of the mix at ${slowest.station.name}`,
    ]),
    card("Client maximum", "client_max_rate", survey.client_max_rate, rate(survey.client_max_rate), [
      times == null ? "what this client can offer" : `${times < 10 ? number(times) : count(times)} times the predicted saturation`,
    ]),
  );
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
  const [X, R, U, L] = ["throughput (/s)", "mean response time", "utilization", "lateness"];
  const columns: Column<Level>[] = [
    figures("offered", "offered (/s)", (l) => l.offered, number),
    figures("fraction", "of capacity", (l) => l.fraction, share),
    words("role", "role", (l) => ROLES[l.role]),
    words("workload", "workload", (l) => l.workload),
    figures("throughput.predicted", "predicted", (l) => l.throughput.predicted, number, X),
    figures("throughput.measured", "measured", (l) => l.throughput.measured, number, X),
    figures("throughput.error", "error", (l) => l.throughput.error, error, X),
    figures("response_time.predicted", "predicted", (l) => l.response_time_s.predicted, seconds, R),
    figures("response_time.measured", "measured", (l) => l.response_time_s.measured, seconds, R),
    figures("response_time.ci95", "±", (l) => l.response_time_s.measured_ci95_half_width, seconds, R),
    figures("response_time.error", "error", (l) => l.response_time_s.error, error, R),
    figures("p95", "p95", (l) => l.response_percentiles_s.p95, seconds),
    figures("p99", "p99", (l) => l.response_percentiles_s.p99, seconds),
    figures("utilization.predicted", "predicted", (l) => l.utilization.predicted, percent, U),
    figures("utilization.measured", "measured", (l) => l.utilization.measured, percent, U),
    figures("error_share", "errors", (l) => l.error_share, percent),
    figures("lateness.p50", "p50", (l) => l.lateness_p50_s, seconds, L),
    figures("lateness.p99", "p99", (l) => l.lateness_p99_s, seconds, L),
    words("verdict", "valid", (l) => (l.verdict.valid ? "yes" : `no: ${l.verdict.reasons.map((r) => r.message).join(" ")}`)),
  ];
  const closed = figures<Level>("clients", "clients", (l) => l.clients, count);
  if (survey.levels.some((l) => l.clients != null)) columns.splice(4, 0, closed);
  return section(
    "Levels",
    "Every level, in the order of its load. The model was fitted to the calibration levels alone; held-out levels were predicted before any of them was measured. Error is predicted over measured, less one. Lateness is the load generator’s own: it must be small beside the response times.",
    survey.levels.length > 0 ? table("levels", "All levels", columns, survey.levels) : empty("No level was measured."),
    perClass(survey),
  );
}

/** The classes of levels that have several, folded away. */
function perClass(survey: Survey): HTMLElement | null {
  const rows = survey.levels.filter((l) => l.classes.length > 1).flatMap((l) => l.classes.map((c) => ({ l, c })));
  if (rows.length === 0) return null;
  const R = "mean response time";
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

function stations(survey: Survey): HTMLElement {
  const queue = (s: Station) => s.type === "queue";
  const columns: Column<Station>[] = [
    words("name", "station", (s) => s.name),
    words("type", "type", (s) => s.type),
    figures("servers", "servers", (s) => (queue(s) ? s.servers : null), count),
    words("scheduling", "scheduling", (s) => (queue(s) ? (s.scheduling ?? "ps").toUpperCase() : "")),
    figures("scv", "variability (SCV)", (s) => (queue(s) ? s.scv : null), number),
    figures("background", "background", (s) => (queue(s) ? s.background : null), percent),
  ];
  return section(
    "Model",
    "Requests queue at a queue station and are only delayed at a delay station. PS shares a station among all present, FCFS serves them in turn. Background is the share of the station that other work takes.",
    survey.model.stations.length > 0
      ? table("stations", "The model’s stations", columns, survey.model.stations)
      : empty("The model has no station."),
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
    ["wakeup_s", "cost of waking an idle server", seconds(survey.wakeup_s)],
  ];
  return h(
    "footer",
    {},
    h("dl", {}, ...rows.map(([key, name, text]) => h("div", {}, h("dt", {}, name), h("dd", { "data-key": key }, text)))),
  );
}
