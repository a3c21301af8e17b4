// Opens the built page (dist/report.html) in a headless Chromium, for the tests.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, report } from "./launch.mjs";

export { MARKER, template } from "./launch.mjs";
const scratch = mkdtempSync(join(tmpdir(), "brimful-report-"));
let browser;
let reports = 0;

before(async () => {
  browser = await launch(join(scratch, "profile"));
});

after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

/**
 * Opens the report of a document from a file, with `before` as a script that runs first. Calls `check` with the page,
 * and checks that the page logged and fetched nothing.
 */
export async function withReport(document, { viewport = { width: 1100, height: 900 }, colorScheme = "light", before }, check) {
  const json = typeof document === "string" ? document : JSON.stringify(document);
  const file = join(scratch, `${reports++}.html`);
  writeFileSync(file, report(json));
  const url = pathToFileURL(file).href;
  const page = await browser.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on("dialog", (dialog) => noise.push(dialog.message()) && dialog.dismiss());
  page.on("request", (request) => request.url() === url || noise.push(`request for ${request.url()}`));
  try {
    await page.setViewportSize(viewport);
    if (before) await page.addInitScript(before);
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await check(page);
    assert.deepEqual(noise, []);
  } finally {
    await page.close();
  }
}

/** Checks that a report fits on a phone, and that its text has enough contrast in the light and the dark scheme. */
export async function assertReadable(document, name = "the page", check = async () => {}) {
  for (const colorScheme of ["light", "dark"]) {
    await withReport(document, { viewport: { width: 360, height: 740 }, colorScheme }, async (page) => {
      const wide = await page.evaluate(() => globalThis.document.documentElement.scrollWidth);
      assert.ok(wide <= 360, `${name} is ${wide} pixels wide`);
      await check(page);
      const { worst } = await page.evaluate(contrast);
      assert.ok(worst.ratio >= 4.5, `${name}, ${colorScheme}: ${JSON.stringify(worst)}`);
    });
  }
}

/** The rows of a table: each an object of its cells by their keys, numbers as numbers and texts as texts. */
export function rows(page, table) {
  return page.$$eval(`[data-table="${table}"] tbody tr`, (all) =>
    all.map((row) =>
      Object.fromEntries(
        [...row.cells].map((cell) => {
          const { key, value } = cell.dataset;
          return [key, value === undefined ? cell.textContent : value === "" ? null : Number(value)];
        }),
      ),
    ),
  );
}

/** Runs in the page. Returns its background, and the text with the least contrast to its background (WCAG 2.2). */
export function contrast() {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const backgroundOf = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let worst = { ratio: Infinity, text: "" };
  for (const element of document.querySelectorAll("main *")) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join("");
    if (text === "") continue;
    const [a, b] = [parse(getComputedStyle(element).color).slice(0, 3), backgroundOf(element)].map(luminance);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text };
  }
  return { background: getComputedStyle(document.body).backgroundColor, worst };
}

export function near(actual, expected, tolerance = 1e-9) {
  assert.ok(Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected)), `${actual} is not ${expected}`);
}

/** Runs before the script of a page. Records in `labels` the labels inside its plots, each with its box. */
export function recordLabels() {
  const labels = new Map();
  globalThis.labels = labels;
  const { clearRect, strokeText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    labels.delete(this.canvas);
    return clearRect.apply(this, area);
  };
  // Count a text as a label inside a plot if it has an outline: other texts have none.
  CanvasRenderingContext2D.prototype.strokeText = function (text, x, y) {
    const width = this.measureText(text).width;
    const left = x - { left: 0, center: width / 2, right: width }[this.textAlign];
    const { a, e, f } = this.getTransform();
    const box = { text, left: left + e / a, right: left + width + e / a, top: y - 6 + f / a, bottom: y + 6 + f / a };
    labels.set(this.canvas, [...(labels.get(this.canvas) ?? []), box]);
    return strokeText.call(this, text, x, y);
  };
}

/** Runs in the page. Returns which labels inside its plots are cut off or overlap, and the number of all labels. */
export function badLabels() {
  const bad = [];
  for (const [canvas, list] of globalThis.labels) {
    const { offsetLeft, offsetWidth } = canvas.parentElement.querySelector(".u-over");
    list.forEach((one, i) => {
      if (one.left < offsetLeft || one.right > offsetLeft + offsetWidth) bad.push(`${one.text} is cut off`);
      for (const other of list.slice(i + 1)) {
        const apart = one.right < other.left || other.right < one.left || one.bottom < other.top || other.bottom < one.top;
        if (!apart) bad.push(`${one.text} overlaps ${other.text}`);
      }
    });
  }
  return { bad, written: [...globalThis.labels.values()].flat().length };
}
