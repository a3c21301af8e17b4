// The page of a forecast: past and predicted arrivals, the limit, and how long the capacity of each configuration
// suffices.
import type { CostTable, Forecasted, ForecastPoint } from "../documents/forecast.ts";
import { signedPercent, number, percent, rate } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { numberColumn, table, textColumn, type Column } from "../table.ts";
import { day, lines } from "./lines.ts";
import { bars, facts, planPage } from "./parts.ts";

export function forecastPage(forecast: Forecasted): Page {
  const { backtest } = forecast;
  return planPage(
    "plan forecast",
    forecast.headline,
    forecast.notes,
    [arrivals(forecast)],
    forecast.cost && costs(forecast.cost, forecast),
    facts([
      ["now", `${rate(forecast.present_rate)} on average over the last week, ${rate(forecast.present_peak_rate)} at its peak`],
      ["growth", forecast.growth_per_month == null ? "not known" : `${signedPercent(forecast.growth_per_month)} per month`],
      ["seasons", forecast.seasons.length > 0 ? `${forecast.seasons.join(", ")} steps` : "none"],
      ...(backtest
        ? [["back-test", `from ${backtest.origins} earlier points, up to ${backtest.horizon_steps} steps ahead${skill(forecast)}`] as [string, string]]
        : []),
    ]),
  );
}

/**
 * The error of the forecast compared with repeating the last season; empty if the forecast itself repeats the last
 * season.
 */
function skill({ backtest, trend, seasons }: Forecasted): string {
  if (trend === "seasonal_naive" || !backtest?.mase || !backtest.naive_mase) return "";
  return `; its mean error was ${percent(backtest.mase / backtest.naive_mase)} of that of repeating the last ${seasons.length > 0 ? "season" : "value"}`;
}

/** The local time in seconds, as if it were UTC: charts show dates in UTC. */
const localSeconds = (time: string) => Date.parse(`${time.slice(0, 19)}Z`) / 1000;

/** From this number of seasons on, a chart shows only the peak of each season. */
const MANY_SEASONS = 24;

/** The steps of the forecast to show: the months for which a configuration should be enough, or all. */
function shownSteps({ points, cost }: Forecasted): ForecastPoint[] {
  return cost == null ? points : points.slice(0, Math.ceil((points.length * cost.months) / cost.horizon_months));
}

/** "18 months" */
function months(x: number): string {
  return `${x.toLocaleString("en-US", { maximumFractionDigits: 1 })} months`;
}

/** A sentence on the shares of the steps that were within their predicted intervals in the back-test. */
function coverage({ backtest }: Forecasted): string {
  if (backtest == null) return "The history is too short for a back-test of these bands.";
  const { coverage80, coverage95 } = backtest;
  return `In the back-test on the history, ${percent(coverage80)} and ${percent(coverage95)} of the steps did.`;
}

/**
 * The chart of peak arrivals: history, then forecast with intervals. With many seasons, it has one point per season.
 */
function arrivals(forecast: Forecasted): Chart {
  const { history, limit, crossing, cost } = forecast;
  const ahead = shownSteps(forecast);
  const season = Math.max(1, ...forecast.seasons);
  const stretch = history.rates.length + ahead.length >= MANY_SEASONS * season ? season : 1;
  const peak = (rates: number[]) => Math.max(...rates) * forecast.peak.factor;
  const start = localSeconds(history.start);
  // The past rates are split into seasons from their end, so that the latest season is complete.
  const past = chunks([...history.rates].reverse(), stretch).map(peak).reverse();
  const first = history.rates.length - past.length * stretch;
  const points = chunks(ahead, stretch);
  const noForecast = past.map(() => null);
  const noHistory = points.map(() => null);
  const peaksOf = (pick: (p: ForecastPoint) => number) => [...noForecast, ...points.map((chunk) => peak(chunk.map(pick)))];
  const end = localSeconds(ahead.at(-1)!.time) + history.step_s;
  const earliest = crossing?.already === false ? crossing.earliest : null;
  const required = earliest && localSeconds(earliest) <= end ? earliest : null;
  const title = forecast.peak.factor > 1 || stretch > 1 ? "peak arrivals per second" : "arrivals per second";
  return lines({
    id: "arrivals",
    title: "Past and predicted arrivals",
    reading:
      (stretch > 1 ? `Each point is the highest of ${stretch} steps. ` : "") +
      `Arrivals are as likely to exceed the line as not. 80\u202f% of single steps should be within the dark band, and 95\u202f% within the light one. ${coverage(forecast)}`,
    summary: `Chart: ${history.rates.length} steps of history and ${ahead.length} of forecast.`,
    x: {
      title: "",
      values: [...past.map((_, i) => start + (first + i * stretch) * history.step_s), ...points.map((chunk) => localSeconds(chunk[0]!.time))],
      format: day,
      time: true,
    },
    y: { title, format: rate },
    lines: [
      { name: "95 % interval", values: peaksOf((p) => p.upper95), colour: "band95", edge: true },
      { name: "95 % interval, lower end", values: peaksOf((p) => p.lower95), colour: "band95", edge: true },
      { name: "80 % interval", values: peaksOf((p) => p.upper80), colour: "band80", edge: true },
      { name: "80 % interval, lower end", values: peaksOf((p) => p.lower80), colour: "band80", edge: true },
      { name: "history", values: [...past, ...noHistory], colour: "s6" },
      { name: "likely", values: peaksOf((p) => p.likely), colour: "s1" },
    ],
    bands: [[0, 1, "band95"], [2, 3, "band80"]],
    horizontalLines: limit ? [{ y: limit.rate, label: `${rate(limit.rate)}: ${limit.reason}` }] : [],
    verticalLines: [
      ...(required ? [{ x: localSeconds(required), labels: ["more capacity needed by", required.slice(0, 10)], at: "top" as const }] : []),
      ...(cost ? [{ x: end, labels: [months(cost.months)], at: "bottom" as const }] : []),
    ],
  });
}

/** Splits a list into chunks of this length. A shorter rest at the end is left out. */
function chunks<T>(list: T[], length: number): T[][] {
  return Array.from({ length: Math.floor(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}

function costs(cost: CostTable, forecast: Forecasted): HTMLElement {
  const highest = (rateOf: (p: ForecastPoint) => number) => Math.max(...shownSteps(forecast).map(rateOf)) * forecast.peak.factor;
  const likely = highest((p) => p.likely);
  const upper95 = highest((p) => p.upper95);
  const period = months(cost.months);
  const until = (row: CostTable["rows"][number], time: "likely" | "earliest") =>
    row.crossing == null ? "" : row.crossing.already ? "too small" : (row.crossing[time]?.slice(0, 10) ?? "beyond");
  const lasts = ({ name, lasts_safely, lasts: likely }: CostTable["rows"][number]) =>
    name === cost.cheapest_safe ? "surely (cheapest)" : lasts_safely ? "surely" : name === cost.cheapest ? "likely (cheapest)" : likely ? "likely" : "no";
  const columns: Column<CostTable["rows"][number]>[] = [
    textColumn("name", "configuration", (row) => row.name),
    textColumn("lasts", `enough for ${period}`, lasts),
    numberColumn("price", "price per month", (row) => row.price_per_month, number),
    numberColumn("capacity", "capacity", (row) => row.capacity, rate),
    numberColumn("headroom", "headroom", (row) => row.headroom, percent),
    textColumn("until", "likely enough until", (row) => until(row, "likely")),
    textColumn("surely", "surely enough until", (row) => until(row, "earliest")),
    numberColumn("now", "now", (row) => row.cost_per_million_now, number, "price per million requests"),
    numberColumn("full", "when full", (row) => row.cost_per_million_at_capacity, number, "price per million requests"),
  ];
  return section(
    "Configurations",
    `The capacity of each configuration, and how long it is enough. It should last ${period}. Dates beyond the ${months(cost.horizon_months)} of the forecast are not known.`,
    bars(
      "cost",
      "Capacity and price",
      "The capacity of a configuration must exceed the predicted peak.",
      cost.rows.map((row) => ({
        name: row.name,
        parts: [{ name: "capacity", value: row.capacity ?? 0, colour: row.name === cost.cheapest_safe ? "s3" : "s1" }],
        text: `${rate(row.capacity)} · ${number(row.price_per_month)}/month`,
      })),
      [
        { at: forecast.present_peak_rate, name: `peak now: ${rate(forecast.present_peak_rate)}` },
        { at: likely, name: `within ${period}, likely: ${rate(likely)}` },
        { at: upper95, name: `upper end of the 95 % interval: ${rate(upper95)}` },
      ],
    ),
    table("cost", "Configurations", columns, cost.rows),
  );
}
