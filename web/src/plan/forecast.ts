// The page of a forecast: history and what is to come, the limit, and what each configuration would hold.
import type { CostTable, Forecasted, ForecastPoint } from "../documents/forecast.ts";
import { error, number, percent, rate } from "../format.ts";
import { type Chart } from "../plot.ts";
import { section, type Page } from "../page.ts";
import { figures, table, words, type Column } from "../table.ts";
import { day, lines } from "./lines.ts";
import { bars, facts, planPage } from "./parts.ts";

export function forecastPage(found: Forecasted): Page {
  const { backtest } = found;
  return planPage(
    "plan forecast",
    found.headline,
    found.notes,
    [arrivals(found)],
    found.cost && costs(found.cost, found),
    facts([
      ["now", `${rate(found.present_rate)} on average over the last week, ${rate(found.present_peak_rate)} at its peak`],
      ["growth", found.growth_per_month == null ? "not known" : `${error(found.growth_per_month)} a month`],
      ["seasons", found.seasons.length > 0 ? `${found.seasons.join(", ")} steps` : "none"],
      ...(backtest
        ? [["back-test", `from ${backtest.origins} earlier points, up to ${backtest.horizon_steps} steps ahead: ${percent(backtest.coverage80)} of what came was within the 80 % interval, ${percent(backtest.coverage95)} within the 95 % interval${skill(found)}`] as [string, string]]
        : []),
    ]),
  );
}

/** How its error compares with that of repeating the last season, unless that is what is forecast. */
function skill({ backtest, trend, seasons }: Forecasted): string {
  if (trend === "seasonal_naive" || !backtest?.mase || !backtest.naive_mase) return "";
  return `; its mean error was ${percent(backtest.mase / backtest.naive_mase)} of that of repeating the last ${seasons.length > 0 ? "season" : "value"}`;
}

/** What the clocks of its zone show at a time, in seconds: charts write days as those of UTC. */
const clock = (time: string) => Date.parse(`${time.slice(0, 19)}Z`) / 1000;

/** Seasons that a chart must have before each is drawn as its peak alone. */
const MANY_SEASONS = 24;

/** Peaks: history, then what is to come with its intervals. Where there are many seasons, one point for each. */
function arrivals(found: Forecasted): Chart {
  const { history, limit, crossing } = found;
  const season = Math.max(1, ...found.seasons);
  const stretch = history.rates.length + found.points.length >= MANY_SEASONS * season ? season : 1;
  const peak = (rates: number[]) => Math.max(...rates) * found.peak.factor;
  const start = clock(history.start);
  // From the end, so that the stretch that ends now is a whole one.
  const past = chunks([...history.rates].reverse(), stretch).map(peak).reverse();
  const first = history.rates.length - past.length * stretch;
  const points = chunks(found.points, stretch);
  const none = past.map(() => null);
  const tail = points.map(() => null);
  const of = (pick: (p: ForecastPoint) => number) => [...none, ...points.map((chunk) => peak(chunk.map(pick)))];
  const likely = crossing?.likely && !crossing.already ? crossing.likely : null;
  const what = found.peak.factor > 1 || stretch > 1 ? "peak arrivals per second" : "arrivals per second";
  return lines({
    id: "arrivals",
    title: "Arrivals, and what is to come",
    reading:
      (stretch > 1 ? `One point for each ${stretch} steps, the highest of them. ` : "") +
      "The line is as likely to be exceeded as not. Single steps fall into the dark band four times out of five, into the light one nineteen times out of twenty.",
    summary: `Chart: ${history.rates.length} steps of history and ${found.points.length} of forecast.`,
    x: {
      title: "",
      values: [...past.map((_, i) => start + (first + i * stretch) * history.step_s), ...points.map((chunk) => clock(chunk[0]!.time))],
      format: day,
      time: true,
    },
    y: { title: what, format: rate },
    lines: [
      { name: "95 % interval", values: of((p) => p.upper95), colour: "band95", edge: true },
      { name: "from", values: of((p) => p.lower95), colour: "band95", edge: true },
      { name: "80 % interval", values: of((p) => p.upper80), colour: "band80", edge: true },
      { name: "from", values: of((p) => p.lower80), colour: "band80", edge: true },
      { name: "history", values: [...past, ...tail], colour: "s6" },
      { name: "likely", values: of((p) => p.likely), colour: "s1" },
    ],
    bands: [[0, 1, "band95"], [2, 3, "band80"]],
    levels: limit ? [{ y: limit.rate, words: `${rate(limit.rate)}: ${limit.reason}` }] : [],
    uprights: likely ? [{ x: clock(likely), words: ["reached, likely", likely.slice(0, 10)], at: "bottom" }] : [],
  });
}

/** Whole stretches of a list; what is left over at its end is left out. */
function chunks<T>(list: T[], length: number): T[][] {
  return Array.from({ length: Math.floor(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}

function costs(cost: CostTable, found: Forecasted): HTMLElement {
  const end = Math.max(...found.points.map((p) => p.likely)) * found.peak.factor;
  const until = (row: CostTable["rows"][number], time: "likely" | "earliest") =>
    row.crossing == null ? "" : row.crossing.already ? "too small" : (row.crossing[time]?.slice(0, 10) ?? "beyond the horizon");
  const note = (name: string) => (name === cost.cheapest_safe ? "cheapest that surely lasts" : name === cost.cheapest ? "cheapest that likely lasts" : "");
  const columns: Column<CostTable["rows"][number]>[] = [
    words("name", "configuration", (row) => row.name),
    figures("price", "price a month", (row) => row.price_per_month, number),
    figures("capacity", "capacity", (row) => row.capacity, rate),
    figures("headroom", "headroom", (row) => row.headroom, percent),
    figures("months", "months of headroom", (row) => row.months_of_headroom, number),
    words("until", "holds until", (row) => until(row, "likely")),
    words("surely", "surely until", (row) => until(row, "earliest")),
    figures("now", "now", (row) => row.cost_per_million_now, number, "price of a million requests"),
    figures("full", "when full", (row) => row.cost_per_million_at_capacity, number, "price of a million requests"),
    words("note", "", (row) => note(row.name)),
  ];
  return section(
    "Configurations",
    `What each can take, asked to last ${number(cost.months)} months.`,
    bars(
      "cost",
      "Capacity and price",
      "A configuration must reach beyond the peak that is to come.",
      cost.rows.map((row) => ({
        name: row.name,
        parts: [{ name: "capacity", value: row.capacity ?? 0, colour: row.name === cost.cheapest_safe ? "s3" : "s1" }],
        text: `${rate(row.capacity)} · ${number(row.price_per_month)}/month`,
      })),
      [{ at: found.present_peak_rate, name: `peak now: ${rate(found.present_peak_rate)}` }, { at: end, name: `highest to come, likely: ${rate(end)}` }],
    ),
    table("cost", "Configurations", columns, cost.rows),
  );
}
