// Draws labels inside a plot. A label is placed where it does not overlap other labels or marks, if there is such a
// position.
import type uPlot from "uplot";

/**
 * A place for a label, in CSS pixels of the plot's area. `x` is the left edge, the middle or the right edge of the
 * label, according to `align`. `y` is its middle.
 */
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

/** The height of a line of text, in CSS pixels. */
const LINE_HEIGHT = 16;
/** The boxes of the labels and marks drawn so far. */
const occupied = new WeakMap<uPlot, Box[]>();

/** Forgets all labels and marks of a plot that is about to be redrawn. */
export function clearOccupied(u: uPlot): void {
  occupied.set(u, []);
}

/** Keeps labels away from a mark at this place. */
export function occupy(u: uPlot, x: number, y: number, radius: number): void {
  occupied.get(u)?.push({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
}

/**
 * Writes a label of several lines at the first spot where it is inside the plot and overlaps nothing. If there is no
 * such spot, uses the first one inside the plot, or else the first one.
 */
export function writeLabel(u: uPlot, ctx: CanvasRenderingContext2D, lines: string[], spots: [Spot, ...Spot[]]): void {
  const width = Math.max(...lines.map((line) => ctx.measureText(line).width));
  const boxAt = ({ x, y, align }: Spot): Box => {
    const left = align === "left" ? x : align === "right" ? x - width : x - width / 2;
    const half = (LINE_HEIGHT * lines.length) / 2;
    return { left, right: left + width, top: y - half, bottom: y + half };
  };
  const isInside = ({ left, right, top, bottom }: Box) =>
    left >= 0 && right <= u.over.clientWidth && top >= -2 && bottom <= u.over.clientHeight + 2;
  const others = occupied.get(u) ?? [];
  const overlapsNone = (box: Box) =>
    others.every((other) => box.right < other.left || other.right < box.left || box.bottom < other.top || other.bottom < box.top);
  const insideSpots = spots.filter((spot) => isInside(boxAt(spot)));
  const spot = insideSpots.find((spot) => overlapsNone(boxAt(spot))) ?? insideSpots[0] ?? spots[0];
  others.push(boxAt(spot));
  ctx.textAlign = spot.align;
  ctx.textBaseline = "middle";
  lines.forEach((line, i) => writeOutlined(ctx, line, spot.x, spot.y + LINE_HEIGHT * (i - (lines.length - 1) / 2)));
}

/** Writes text with an outline in the background colour, so that it stays readable on top of lines. */
function writeOutlined(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineJoin = "round";
  ctx.lineWidth = 4;
  ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
  ctx.strokeText(text, x, y);
  ctx.restore();
  ctx.fillText(text, x, y);
}
