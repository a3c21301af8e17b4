// Code that all pages share: the structure of a page, its sections, and reading the document.
import { h, type Child } from "./dom.ts";

export interface Page {
  title: string;
  content: HTMLElement[];
  /** Draws the charts. Call it once the content is in the page. */
  start: () => void;
}

/** Parses the document inside this file. The message of an error is meant for the reader of the page. */
export function parseDocument<T>(json: string): T {
  try {
    return (JSON.parse(json) ?? {}) as T;
  } catch {
    throw new Error("The document inside this file is missing or damaged: it is not JSON. Write the report again.");
  }
}

/** A section of the page; `reading` explains how to read it. */
export function section(title: string, reading: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), h("p", { class: "reading" }, reading), ...children);
}

/** A paragraph in place of a table that has no rows. */
export function empty(text: string): HTMLElement {
  return h("p", { class: "empty" }, text);
}
