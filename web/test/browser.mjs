// The built page (dist/report.html) in a headless Chromium of its own, for the tests.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const MARKER = "<!--__BRIMFUL_DOCUMENT__-->";
export const template = readFileSync(new URL("../dist/report.html", import.meta.url), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "brimful-report-"));
let browser;
let reports = 0;

before(async () => {
  // A profile of its own, and flags that keep the browser itself off the network.
  browser = await chromium.launchPersistentContext(join(scratch, "profile"), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});

after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** Opens a report from a file, runs `check`, and sees to it that the page was silent and fetched nothing. */
export async function withReport(survey, { viewport = { width: 1100, height: 900 }, colorScheme = "light" }, check) {
  const json = typeof survey === "string" ? survey : JSON.stringify(survey).replaceAll("<", "\\u003c");
  const file = join(scratch, `${reports++}.html`);
  writeFileSync(file, template.replace(MARKER, () => `<script type="application/json" id="survey">${json}</script>`));
  const url = pathToFileURL(file).href;
  const page = await browser.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on("dialog", (dialog) => noise.push(dialog.message()) && dialog.dismiss());
  page.on("request", (request) => request.url() === url || noise.push(`request for ${request.url()}`));
  try {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await check(page);
    assert.deepEqual(noise, []);
  } finally {
    await page.close();
  }
}

/** A table's rows: numbers as numbers, words as words. */
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

/** Runs in the page: its background, and the text with the least contrast (WCAG 2.2) to what is behind it. */
export function contrast() {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const behind = (element) => {
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
    const [a, b] = [parse(getComputedStyle(element).color).slice(0, 3), behind(element)].map(luminance);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text };
  }
  return { background: getComputedStyle(document.body).backgroundColor, worst };
}

export function near(actual, expected, tolerance = 1e-9) {
  assert.ok(Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected)), `${actual} is not ${expected}`);
}
