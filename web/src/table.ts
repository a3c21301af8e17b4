// Makes tables from a list of columns, which defines the titles, the cells, and attributes for scripts.
//
// A cell has the attribute `data-key` and, if it shows a number, the number itself in `data-value`. In a narrow window,
// each row of a wide table becomes a paragraph, in which `data-title` labels each cell.
import { h } from "./dom.ts";
import { NONE, range, type Format } from "./format.ts";

export interface Column<Row> {
  key: string;
  title: string;
  /** The title above this column and its neighbours of the same group. */
  group?: string | undefined;
  /** The number in a row; null or undefined if it is not known. Columns of text have none. */
  number?: (row: Row) => number | null | undefined;
  text: (row: Row) => string;
  /** Aligns text to the right, as numbers are. */
  right?: boolean;
}

export function textColumn<Row>(key: string, title: string, text: (row: Row) => string, group?: string): Column<Row> {
  return { key, title, group, text: (row) => text(row) || NONE };
}

export function numberColumn<Row>(
  key: string,
  title: string,
  number: (row: Row) => number | null | undefined,
  format: Format,
  group?: string,
): Column<Row> {
  return { key, title, group, number, text: (row) => format(number(row)) };
}

/** A column of intervals. */
export function intervalColumn<Row>(
  key: string,
  title: string,
  ends: (row: Row) => [number, number] | null,
  format: Format,
  group?: string,
): Column<Row> {
  const text = (row: Row) => {
    const pair = ends(row);
    return pair === null ? NONE : range(pair, format);
  };
  return { key, title, group, right: true, text };
}

/** Maximum number of columns that fit beside each other on a phone. */
const MAX_NARROW_COLUMNS = 4;

/** A table in a box that scrolls sideways. `name` is the value of the attribute `data-table`. */
export function table<Row>(name: string, label: string, columns: Column<Row>[], rows: Row[]): HTMLElement {
  const body = rows.map((row, i) => {
    const cells = columns.map((column, j) => {
      const value = column.number?.(row);
      const attributes = {
        "data-key": column.key,
        "data-title": isFirstOfGroup(columns, j) ? `${column.group}: ${column.title}` : column.title,
        "data-value": column.number ? (value ?? "") : undefined,
        class: isRightAligned(column) ? "number" : undefined,
      };
      return j === 0 ? h("th", { scope: "row", ...attributes }, column.text(row)) : h("td", attributes, column.text(row));
    });
    return h("tr", { "data-row": i }, ...cells);
  });
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", { "data-table": name, class: columns.length > MAX_NARROW_COLUMNS ? "wide" : undefined }, h("thead", {}, ...head(columns)), h("tbody", {}, ...body)),
  );
}

function isFirstOfGroup<Row>(columns: Column<Row>[], j: number): boolean {
  const group = columns[j]?.group;
  return group !== undefined && columns[j - 1]?.group !== group;
}

function isRightAligned<Row>(column: Column<Row>): boolean {
  return column.number !== undefined || column.right === true;
}

/** A row of titles, below a row of group titles if there are groups. */
function head<Row>(columns: Column<Row>[]): HTMLElement[] {
  const title = (column: Column<Row>, rows: number) =>
    h("th", { scope: "col", rowspan: rows, class: isRightAligned(column) ? "number" : undefined }, column.title);
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
