// Tests that the page of a profile shows the values of its document.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";
import { axisLabels, recordTexts } from "./labels.mjs";

const example = read("./profile-example.json");

test("the example follows its schema", () => assertFollows(example, "profile"));

test("its charts and tables show the figures of the document", async () => {
  await withReport(example, {}, async (page) => {
    assert.ok((await page.textContent("h1")).startsWith(`${example.requests.toLocaleString("en-US")} requests from 2 March 2026`));
    assert.equal(await page.locator("canvas").count(), 4);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/);
    const arrivals = await page.$eval('[data-chart="arrivals"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(arrivals[1], example.arrivals.rates);
    const classes = await rows(page, "classes");
    assert.deepEqual(classes.map((row) => row.requests), example.classes.map((c) => c.share_requests));
    assert.deepEqual(classes.map((row) => row.mean), example.classes.map((c) => c.mean_bytes));
    const status = await rows(page, "status");
    assert.deepEqual(status.map((row) => row.requests).sort((a, b) => a - b), Object.values(example.status).sort((a, b) => a - b));
    const hours = page.locator('[data-table="week"] tbody td');
    assert.equal(await hours.count(), 7 * 24);
    const { lines } = example;
    assert.equal(lines.read, lines.parsed + lines.malformed + lines.filtered);
    assert.match(await page.textContent('[data-key="lines"]'), /1 malformed/);
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));

test("axis labels do not overlap on a phone, for long and short logs, and large and small responses", async () => {
  for (const [step_s, steps, largest] of [[1, 120, 1e5], [60, 180, 1e7], [600, 60, 1e8], [600, 288, 1e10], [1800, 200, 1e12], [21600, 160, 5e7], [86400, 1800, 20]]) {
    const document = structuredClone(example);
    document.arrivals = { ...document.arrivals, step_s, rates: Array.from({ length: steps }, (_, i) => 1 + (i % 50) * 1e3) };
    document.sizes.complementary = Array.from({ length: 40 }, (_, i) => [largest ** (i / 39), 0.7 ** i]);
    document.popularity.urls = document.popularity.urls.map((url, i) => ({ ...url, requests: Math.ceil(largest / (i + 1)) }));
    await withReport(document, { viewport: { width: 380, height: 800 }, before: recordTexts }, async (page) => {
      const { bad, atBottom } = await page.evaluate(axisLabels);
      assert.deepEqual(bad, [], `${steps} steps of ${step_s} s, up to ${largest} bytes`);
      // Below each chart, there must be the title of the axis and at least one label.
      for (const chart of ["sizes", "popularity", "dispersion"]) assert.ok(atBottom[chart] >= 2, `${chart}: ${atBottom[chart]}`);
    });
  }
});

test("the profile of a nearly empty log has a page as well", async () => {
  const bare = { ...example, classes: [], dispersion: [], sessions: null, burstiness: null, popularity: { ...example.popularity, urls: [], concentration: [] } };
  bare.arrivals = { ...example.arrivals, by_weekday_and_hour: example.arrivals.by_weekday_and_hour.map((day) => day.map(() => 0)) };
  await withReport(bare, {}, async (page) => {
    assert.equal(await page.locator("canvas").count(), 2);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|\[object/);
  });
});
