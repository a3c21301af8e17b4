// Tests that the page of a history shows each metric with its changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows } from "./documents.mjs";

const HOSTILE = "</script><img src=x>";
const run = (number) => ({
  file: `history.jsonl:${number + 1}`,
  started_at: `2026-11-${String(number + 1).padStart(2, "0")}T02:00:00Z`,
  labels: { commit: `${HOSTILE}${number}` },
});
const runs = Array.from({ length: 20 }, (_, number) => run(number));
const level = (number) => (number < 12 ? 0.004 : 0.0044);
const example = {
  schema: "brimful.history/1",
  brimful_version: "0.1.0",
  headline: `Since 2026-11-13 (commit=${HOSTILE}12), the server has a 10 % longer p99 (9 … 11 %).`,
  new_runs: 10,
  runs,
  figures: [
    {
      name: "p99",
      unit: "seconds",
      lower_is_better: true,
      values: runs.map((_, number) => (number === 5 ? null : level(number) * (1 + 0.002 * (number % 3)))),
      segments: [{ first: 0, last: 11, runs: 11, mean: 0.004 }, { first: 12, last: 19, runs: 8, mean: 0.0044 }],
      noise: 0.002,
    },
    { name: "cpu", unit: "seconds", lower_is_better: true, values: runs.map((_, number) => (number < 2 ? 0.0002 : null)), segments: [{ first: 0, last: 1, runs: 2, mean: 0.0002 }], noise: null, runs_needed: 4 },
  ],
  changes: [
    { figure: "p99", index: 12, before: runs[11], after: runs[12], from: 0.004, to: 0.0044, size: 0.1, interval95: [0.09, 0.11], direction: "worse", is_new: true, also_changed: ["software of the server: nginx/1.22, then nginx/1.26"] },
  ],
  notes: ["1 run left out, not valid: history.jsonl:21 (The generator was late)"],
};

test("the example follows its schema", () => assertFollows(example, "history"));

test("its charts and its tables show the runs, the means and the changes", async () => {
  await withReport(example, {}, async (page) => {
    assert.equal(await page.textContent("h1"), example.headline.replace("2026-11-13", "2026\u201111\u201113"));
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/);
    assert.equal(await page.$$eval("img", (images) => images.length), 0);
    const drawn = await page.$eval('[data-chart="figure-0"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(drawn[1], example.figures[0].values);
    assert.deepEqual(drawn[2], runs.map((_, number) => level(number)));
    const [change] = await rows(page, "changes");
    assert.equal(change.size, 0.1);
    const noise = await rows(page, "noise");
    assert.deepEqual(noise.map((row) => row.noise), [0.002, null]);
    assert.ok((await page.textContent('[data-key="caveats"]')).includes("history.jsonl:21"));
  });
});

test("the tooltip of the first run after a change describes the change", async () => {
  await withReport(example, {}, async (page) => {
    const plot = page.locator('[data-chart="figure-0"] .plot');
    await plot.focus();
    for (let i = 0; i < 13; i += 1) await page.keyboard.press("ArrowRight");
    const text = await plot.locator(".readout").textContent();
    assert.ok(text.includes("+10.0") && text.includes("WORSE") && text.includes(`commit=${HOSTILE}12`), text);
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));
