// What the pages share: their shape, sections, and reading the document.
import { h, type Child } from "./dom.ts";

export interface Page {
  title: string;
  content: HTMLElement[];
  /** Draws the charts, once the content is in the document. */
  start: () => void;
}

/** The document inside this file; what it throws is a sentence for the reader. */
export function documentOf<T>(json: string): T {
  try {
    return (JSON.parse(json) ?? {}) as T;
  } catch {
    throw new Error("The document inside this file is missing or damaged: it is not JSON. Write the report again.");
  }
}

export function section(title: string, reading: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), h("p", { class: "reading" }, reading), ...children);
}

export function empty(text: string): HTMLElement {
  return h("p", { class: "empty" }, text);
}
