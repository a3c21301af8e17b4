// Words inside a plot. Each finds a place where no other word or mark stands, if there is one.
import type uPlot from "uplot";

/** Where a block of words may stand: beside `x`, its middle at `y`, in CSS pixels of the plot's area. */
export interface Spot {
  x: number;
  y: number;
  align: "left" | "center" | "right";
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const LINE = 16;
const taken = new WeakMap<uPlot, Box[]>();

/** The plot is empty because it is being drawn again. */
export function clear(u: uPlot): void {
  taken.set(u, []);
}

/** A mark stands there. */
export function occupy(u: uPlot, x: number, y: number, radius: number): void {
  taken.get(u)?.push({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
}

/** Writes words, line by line, at the first of the spots where there is room; at the first of all if there is none. */
export function write(u: uPlot, ctx: CanvasRenderingContext2D, words: string[], spots: [Spot, ...Spot[]]): void {
  const width = Math.max(...words.map((word) => ctx.measureText(word).width));
  const box = ({ x, y, align }: Spot): Box => {
    const left = align === "left" ? x : align === "right" ? x - width : x - width / 2;
    const half = (LINE * words.length) / 2;
    return { left, right: left + width, top: y - half, bottom: y + half };
  };
  const inside = ({ left, right, top, bottom }: Box) =>
    left >= 0 && right <= u.over.clientWidth && top >= -2 && bottom <= u.over.clientHeight + 2;
  const others = taken.get(u) ?? [];
  const free = (one: Box) =>
    others.every((other) => one.right < other.left || other.right < one.left || one.bottom < other.top || other.bottom < one.top);
  const spot =
    spots.find((spot) => inside(box(spot)) && free(box(spot))) ?? spots.find((spot) => inside(box(spot))) ?? spots[0];
  others.push(box(spot));
  ctx.textAlign = spot.align;
  ctx.textBaseline = "middle";
  words.forEach((word, i) => readable(ctx, word, spot.x, spot.y + LINE * (i - (words.length - 1) / 2)));
}

/** A word that stays readable on top of lines. */
function readable(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineJoin = "round";
  ctx.lineWidth = 4;
  ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
  ctx.strokeText(text, x, y);
  ctx.restore();
  ctx.fillText(text, x, y);
}
