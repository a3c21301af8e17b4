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
        ? [["back-test", `from ${backtest.origins} earlier points, up to ${backtest.horizon_steps} steps ahead${skill(found)}`] as [string, string]]
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

/** The steps of the forecast that are asked about: the months that a configuration should last, or all. */
function asked({ points, cost }: Forecasted): ForecastPoint[] {
  return cost == null ? points : points.slice(0, Math.ceil((points.length * cost.months) / cost.horizon_months));
}

/** "18 months" */
function months(x: number): string {
  return `${x.toLocaleString("en-US", { maximumFractionDigits: 1 })} months`;
}

/** What such intervals held when they were tried on the history. */
function tried({ backtest }: Forecasted): string {
  if (backtest == null) return "The history is too short to have tried that on it.";
  const { coverage80, coverage95 } = backtest;
  return `Tried on the history, ${percent(coverage80)} and ${percent(coverage95)} of what came fell into them.`;
}

/** Peaks: history, then what is to come with its intervals. Where there are many seasons, one point for each. */
function arrivals(found: Forecasted): Chart {
  const { history, limit, crossing, cost } = found;
  const ahead = asked(found);
  const season = Math.max(1, ...found.seasons);
  const stretch = history.rates.length + ahead.length >= MANY_SEASONS * season ? season : 1;
  const peak = (rates: number[]) => Math.max(...rates) * found.peak.factor;
  const start = clock(history.start);
  // From the end, so that the stretch that ends now is a whole one.
  const past = chunks([...history.rates].reverse(), stretch).map(peak).reverse();
  const first = history.rates.length - past.length * stretch;
  const points = chunks(ahead, stretch);
  const none = past.map(() => null);
  const tail = points.map(() => null);
  const of = (pick: (p: ForecastPoint) => number) => [...none, ...points.map((chunk) => peak(chunk.map(pick)))];
  const end = clock(ahead.at(-1)!.time) + history.step_s;
  const within = (time: string | null | undefined) => (time && crossing?.already === false && clock(time) <= end ? time : null);
  const required = within(crossing?.earliest);
  const what = found.peak.factor > 1 || stretch > 1 ? "peak arrivals per second" : "arrivals per second";
  return lines({
    id: "arrivals",
    title: "Arrivals, and what is to come",
    reading:
      (stretch > 1 ? `One point for each ${stretch} steps, the highest of them. ` : "") +
      `The line is as likely to be exceeded as not. Single steps should fall into the dark band four times out of five, into the light one nineteen times out of twenty. ${tried(found)}`,
    summary: `Chart: ${history.rates.length} steps of history and ${ahead.length} of forecast.`,
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
    uprights: [
      ...(required ? [{ x: clock(required), words: ["more is required by", required.slice(0, 10)], at: "top" as const }] : []),
      ...(cost ? [{ x: end, words: [months(cost.months)], at: "bottom" as const }] : []),
    ],
  });
}

/** Whole stretches of a list; what is left over at its end is left out. */
function chunks<T>(list: T[], length: number): T[][] {
  return Array.from({ length: Math.floor(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}

function costs(cost: CostTable, found: Forecasted): HTMLElement {
  const highest = (of: (p: ForecastPoint) => number) => Math.max(...asked(found).map(of)) * found.peak.factor;
  const [likely, surely] = [highest((p) => p.likely), highest((p) => p.upper95)];
  const whole = months(cost.months);
  const until = (row: CostTable["rows"][number], time: "likely" | "earliest") =>
    row.crossing == null ? "" : row.crossing.already ? "too small" : (row.crossing[time]?.slice(0, 10) ?? "beyond");
  const lasts = ({ name, lasts_safely, lasts: likely }: CostTable["rows"][number]) =>
    name === cost.cheapest_safe ? "surely: the cheapest" : lasts_safely ? "surely" : name === cost.cheapest ? "likely: the cheapest" : likely ? "likely" : "no";
  const columns: Column<CostTable["rows"][number]>[] = [
    words("name", "configuration", (row) => row.name),
    words("lasts", `lasts ${whole}`, lasts),
    figures("price", "price a month", (row) => row.price_per_month, number),
    figures("capacity", "capacity", (row) => row.capacity, rate),
    figures("headroom", "headroom", (row) => row.headroom, percent),
    words("until", "holds until", (row) => until(row, "likely")),
    words("surely", "surely until", (row) => until(row, "earliest")),
    figures("now", "now", (row) => row.cost_per_million_now, number, "price of a million requests"),
    figures("full", "when full", (row) => row.cost_per_million_at_capacity, number, "price of a million requests"),
  ];
  return section(
    "Configurations",
    `What each can take, and for how long: it should last ${whole}. Dates beyond the ${months(cost.horizon_months)} of the forecast are not known.`,
    bars(
      "cost",
      "Capacity and price",
      "A configuration must reach beyond the peak that is to come.",
      cost.rows.map((row) => ({
        name: row.name,
        parts: [{ name: "capacity", value: row.capacity ?? 0, colour: row.name === cost.cheapest_safe ? "s3" : "s1" }],
        text: `${rate(row.capacity)} · ${number(row.price_per_month)}/month`,
      })),
      [
        { at: found.present_peak_rate, name: `peak now: ${rate(found.present_peak_rate)}` },
        { at: likely, name: `in ${whole}, likely: ${rate(likely)}` },
        { at: surely, name: `hardly more than ${rate(surely)}` },
      ],
    ),
    table("cost", "Configurations", columns, cost.rows),
  );
}
