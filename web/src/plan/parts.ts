// Parts of the pages of the planner, of loads and of profiles: header, caveats, bars, and lists of facts.
import type { Machine } from "../documents/common.ts";
import { h } from "../dom.ts";
import { figure, type Chart } from "../plot.ts";
import { type Page } from "../page.ts";

/** Headlines of more characters than this are set in smaller type. */
const LONG_HEADLINE = 120;

/** The page of one document; `command` is the command that wrote the document. */
export function planPage(
  command: string,
  headline: string,
  caveats: string[],
  drawn: Chart[],
  ...content: (HTMLElement | null | undefined)[]
): Page {
  const figures = drawn.map(figure);
  return {
    title: `brimful ${command.split(" ").at(-1)}: ${headline}`,
    content: [
      h("header", {}, h("p", { class: "kicker" }, `brimful ${command}`), h("h1", { "data-key": "headline", class: headline.length > LONG_HEADLINE ? "long" : undefined }, withoutBreaks(headline))),
      ...(caveats.length > 0 ? [notice(caveats)] : []),
      ...(figures.length > 0 ? [h("section", { class: "first" }, ...figures.map(({ element }) => element))] : []),
      ...content.filter((part) => part != null),
    ],
    start: () => figures.forEach(({ start }) => start()),
  };
}

/** Prevents line breaks inside dates and intervals. */
function withoutBreaks(text: string): string {
  return text.replace(/(\d)-(?=\d)/g, "$1\u2011").replaceAll("–", "\u2060–\u2060");
}

function notice(caveats: string[]): HTMLElement {
  const list = h("ul", {}, ...caveats.map((caveat) => h("li", {}, caveat)));
  return h("div", { class: "notice mild", "data-key": "caveats" }, h("strong", {}, "Before relying on these figures:"), list);
}

export interface Bar {
  name: string;
  parts: { name: string; value: number; colour: string }[];
  /** The text at the end of the bar. */
  text: string;
}

/** A figure of horizontal bars of stacked parts, on one scale, with vertical marks across them. */
export function bars(id: string, title: string, reading: string, list: Bar[], marks: { at: number; name: string }[] = []): HTMLElement {
  const lengthOf = (bar: Bar) => bar.parts.reduce((total, part) => total + part.value, 0);
  const longest = Math.max(...list.map(lengthOf), ...marks.map((mark) => mark.at)) || 1;
  const width = (value: number) => `${((100 * value) / longest).toFixed(3)}%`;
  const colours = new Map(list.flatMap((bar) => bar.parts.map((part) => [part.name, part.colour] as const)));
  const rows = list.map((bar) =>
    h(
      "div",
      { class: "bar" },
      h("div", { class: "name" }, bar.name),
      h(
        "div",
        { class: "track" },
        ...bar.parts
          .filter((part) => part.value > 0)
          .map((part) => h("span", { style: `width:${width(part.value)};background:var(--${part.colour})`, title: part.name })),
        ...marks.map((mark, i) => h("i", { class: `mark${i}`, style: `left:${width(mark.at)}`, title: mark.name })),
      ),
      h("div", { class: "end" }, bar.text),
    ),
  );
  const legend = colours.size > 1
    ? [...colours].map(([name, fill]) => h("span", { class: "entry" }, h("b", { style: `background:var(--${fill})` }), name))
    : [];
  const markLegend = marks.map((mark, i) => h("span", { class: "entry" }, h("i", { class: `mark${i}` }), mark.name));
  return h(
    "figure",
    { "data-chart": id, class: "bars" },
    h("figcaption", {}, h("h3", {}, title), h("p", { class: "reading" }, reading)),
    h("div", { class: "legend" }, ...legend, ...markLegend),
    ...rows,
  );
}

/** The labels of a document, if it has any. */
export function labelFacts(labels: Record<string, string> | undefined): [string, string][] {
  const list = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return list.length > 0 ? [["labels", list.join(", ")]] : [];
}

/** The machine that generated a load, if the document names it. */
export function machineFacts(machine: Machine | null | undefined): [string, string][] {
  if (machine == null) return [];
  return [["generated on", [machine.host, `Linux ${machine.kernel}`, machine.cpu_model].filter((part) => part).join(", ")]];
}

/** A list of facts at the end of the page: how the result was computed, and from what. */
export function facts(rows: [string, string][]): HTMLElement {
  return h(
    "footer",
    {},
    h("dl", {}, ...rows.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", { "data-key": name }, text)))),
  );
}
