// Tables: one description of the columns gives head, cells and the hooks that scripts read.
//
// A cell carries `data-key` and, where it holds a number, the number itself in `data-value`. Where the window is narrow, each
// row of a table of many columns is a paragraph, in which `data-title` names what a cell holds.
import { h } from "./dom.ts";
import { NONE, range, type Format } from "./format.ts";

export interface Column<Row> {
  key: string;
  title: string;
  /** Columns of one group stand side by side under its name. */
  group?: string | undefined;
  /** Not known where it is null, or left out. */
  number?: (row: Row) => number | null | undefined;
  text: (row: Row) => string;
  /** Words that are figures stand to the right as those do. */
  right?: boolean;
}

export function words<Row>(key: string, title: string, text: (row: Row) => string, group?: string): Column<Row> {
  return { key, title, group, text: (row) => text(row) || NONE };
}

export function figures<Row>(
  key: string,
  title: string,
  number: (row: Row) => number | null | undefined,
  format: Format,
  group?: string,
): Column<Row> {
  return { key, title, group, number, text: (row) => format(number(row)) };
}

/** From one figure to another. */
export function interval<Row>(
  key: string,
  title: string,
  ends: (row: Row) => [number, number] | null,
  format: Format,
  group?: string,
): Column<Row> {
  const text = (row: Row) => {
    const known = ends(row);
    return known === null ? NONE : range(known, format);
  };
  return { key, title, group, right: true, text };
}

/** More columns than these do not fit beside each other on a phone. */
const FEW = 4;

/** A table in a box of its own that scrolls sideways; `name` is its `data-table`. */
export function table<Row>(name: string, label: string, columns: Column<Row>[], rows: Row[]): HTMLElement {
  const body = rows.map((row, i) => {
    const cells = columns.map((column, j) => {
      const value = column.number?.(row);
      const attributes = {
        "data-key": column.key,
        "data-title": isFirstOfGroup(columns, j) ? `${column.group}: ${column.title}` : column.title,
        "data-value": column.number ? (value ?? "") : undefined,
        class: isFigure(column) ? "number" : undefined,
      };
      return j === 0 ? h("th", { scope: "row", ...attributes }, column.text(row)) : h("td", attributes, column.text(row));
    });
    return h("tr", { "data-row": i }, ...cells);
  });
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", { "data-table": name, class: columns.length > FEW ? "wide" : undefined }, h("thead", {}, ...head(columns)), h("tbody", {}, ...body)),
  );
}

function isFirstOfGroup<Row>(columns: Column<Row>[], j: number): boolean {
  const group = columns[j]?.group;
  return group !== undefined && columns[j - 1]?.group !== group;
}

function isFigure<Row>(column: Column<Row>): boolean {
  return column.number !== undefined || column.right === true;
}

/** One row of titles, under a row of groups if there are any. */
function head<Row>(columns: Column<Row>[]): HTMLElement[] {
  const title = (column: Column<Row>, rows: number) =>
    h("th", { scope: "col", rowspan: rows, class: isFigure(column) ? "number" : undefined }, column.title);
  const groups: HTMLElement[] = [];
  columns.forEach((column, i) => {
    const group = column.group;
    if (group === undefined) groups.push(title(column, 2));
    else if (isFirstOfGroup(columns, i)) {
      const span = columns.filter((other) => other.group === group).length;
      groups.push(h("th", { scope: "colgroup", colspan: span, class: "group" }, group));
    }
  });
  const grouped = columns.filter((column) => column.group !== undefined);
  if (grouped.length === 0) return [h("tr", {}, ...columns.map((column) => title(column, 1)))];
  return [h("tr", {}, ...groups), h("tr", {}, ...grouped.map((column) => title(column, 1)))];
}
