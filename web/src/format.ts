// Formats numbers for people. An unknown number is shown as an en dash.

export const NONE = "–";
const THIN_SPACE = "\u202f";

export type Format = (value: number | null | undefined) => string;

/** 1234.5 → "1,235"; three significant digits below 100. */
export const number: Format = dashIfUnknown((x) => {
  const size = Math.abs(Number(x.toPrecision(3)));
  const digits = size >= 100 || size === 0 ? 0 : Math.min(20, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return withMinusSign(x.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
});

/** A whole number: "1,235". */
export const count: Format = dashIfUnknown((x) => x.toLocaleString("en-US", { maximumFractionDigits: 0 }));

/** Per second: "1,235/s". */
export const rate: Format = dashIfUnknown((x) => `${number(x)}/s`);

/** Seconds with three significant digits: "1.23 ms". */
export const seconds: Format = dashIfUnknown((x) => {
  const unit = timeUnit(x);
  return `${number(x * unit.per_s)}${THIN_SPACE}${unit.name}`;
});

/** The unit in which to show a time given in seconds. */
export function timeUnit(x: number): { name: string; per_s: number } {
  const size = Math.abs(x);
  if (size >= 0.9995 || size === 0) return { name: "s", per_s: 1 };
  return size >= 0.0009995 ? { name: "ms", per_s: 1e3 } : { name: "µs", per_s: 1e6 };
}

/** A share: "73.2 %". */
export const percent: Format = dashIfUnknown((x) => `${withMinusSign((x * 100).toFixed(1))}${THIN_SPACE}%`);

/** A share with its sign, for errors and changes: "+2.1 %". */
export const signedPercent: Format = dashIfUnknown((x) => `${x >= 0 ? "+" : ""}${percent(x)}`);

/** A share without decimals, for load levels: "75 %". */
export const wholePercent: Format = dashIfUnknown((x) => `${Math.round(x * 100)}${THIN_SPACE}%`);

/** An interval. A unit that both ends share is written once: "8.61 … 9.93 ms". */
export function range([low, high]: readonly [number, number], format: Format): string {
  const [from, to] = [format(low), format(high)];
  const unit = /(\u202f.+|\/s)$/.exec(to)?.[0] ?? "";
  return `${from.endsWith(unit) ? from.slice(0, from.length - unit.length) : from} … ${to}`;
}

/** "14 January 2026, 09:30 UTC", or the text itself if it is not a date. */
export function date(rfc3339: string): string {
  const time = new Date(rfc3339);
  if (Number.isNaN(time.getTime())) return rfc3339;
  const options = { dateStyle: "long", timeStyle: "short", timeZone: "UTC" } as const;
  return `${new Intl.DateTimeFormat("en-GB", options).format(time).replace(" at ", ", ")} UTC`;
}

function dashIfUnknown(format: (x: number) => string): Format {
  return (value) => (value === null || value === undefined ? NONE : format(value));
}

function withMinusSign(text: string): string {
  return text.replace("-", "\u2212");
}
