// Finds texts in charts that overlap other texts or extend beyond the canvas.

/** Runs before the script of a page. Records in `texts` each text drawn, with its box in pixels of its canvas. */
export function recordTexts() {
  const texts = (window.texts = new Map());
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (x, y, width, height) {
    if (width >= this.canvas.width) texts.set(this.canvas, []);
    return clearRect.call(this, x, y, width, height);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const size = this.measureText(text);
    const corners = [
      new DOMPoint(x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent),
      new DOMPoint(x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent),
    ].map((corner) => this.getTransform().transformPoint(corner));
    const xs = corners.map((corner) => corner.x);
    const ys = corners.map((corner) => corner.y);
    const box = { text, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
    if (!texts.has(this.canvas)) texts.set(this.canvas, []);
    if (text !== "") texts.get(this.canvas).push(box);
    return fillText.call(this, text, x, y);
  };
}

/** Runs in the page. Returns what is wrong with the axis labels, and their number at the bottom of each chart. */
export function axisLabels() {
  const GAP = 3;
  const bad = [];
  const atBottom = {};
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const canvas = figure.querySelector("canvas");
    if (canvas === null) continue;
    const id = figure.dataset.chart;
    const { bbox } = figure.querySelector(".plot").plot;
    const isOutsidePlot = ({ right, top }) => right <= bbox.left || top >= bbox.top + bbox.height;
    const labels = window.texts.get(canvas).filter(isOutsidePlot);
    atBottom[id] = labels.filter(({ top }) => top >= bbox.top + bbox.height).length;
    labels.forEach((one, i) => {
      if (one.left < 0 || one.right > canvas.width || one.bottom > canvas.height) bad.push(`${id}: ${one.text} is cut off`);
      for (const other of labels.slice(0, i)) {
        const apart = one.left >= other.right + GAP || other.left >= one.right + GAP || one.top >= other.bottom || other.top >= one.bottom;
        if (!apart) bad.push(`${id}: ${other.text} overlaps ${one.text}`);
      }
    });
  }
  return { bad, atBottom };
}
