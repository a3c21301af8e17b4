// Tests that the page of a comparison shows both sides and each difference.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows } from "./documents.mjs";

const figure = (name, unit, a, b, rest) => ({
  name, unit, a, b, difference: b / a - 1, interval95: [b / a - 1.02, b / a - 0.98], p: 0.5, differs: false, detectable: 0.04, lower_is_better: unit !== "per_second", ...rest,
});
const side = (name) => ({ name, documents: [1, 2].map((run) => ({ file: `${name}/${run}.json`, started_at: "2026-11-27T10:00:00Z", server_software: "nginx/1.22.1" })), labels: { commit: `</script>${name}` } });
const example = {
  schema: "brimful.comparison/1",
  brimful_version: "0.1.0",
  headline: "B has a 10 % shorter p99 (8 … 12); no other figure differs by more than 2 %.",
  a: side("old"),
  b: side("new"),
  variability: "between_runs",
  figures: [
    figure("throughput", "per_second", 4000, 4010),
    figure("p50", "seconds", 0.001, 0.001),
    figure("p90", "seconds", 0.002, 0.0021),
    figure("p99", "seconds", 0.004, 0.0036, { p: 0.0001, differs: true }),
    { ...figure("errors", "share", 0, 0), difference: 0, interval95: null, p: null, detectable: null },
  ],
  no_other_difference_above: 0.02,
  warnings: ["old/3.json is left out: it is not valid (The generator was late)"],
};

test("the example follows its schema", () => assertFollows(example, "comparison"));

test("its chart and its table show both sides", async () => {
  await withReport(example, {}, async (page) => {
    assert.equal(await page.textContent("h1"), example.headline);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/);
    const drawn = await page.$eval('[data-chart="percentiles"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(drawn.slice(1), [[0.001, 0.002, 0.004], [0.001, 0.0021, 0.0036]]);
    const figures = await rows(page, "figures");
    assert.deepEqual(figures.map((row) => [row.a, row.b]), example.figures.map(({ a, b }) => [a, b]));
    assert.equal(await page.textContent('[data-key="A"]'), "old, commit=</script>old, nginx/1.22.1");
    assert.ok((await page.textContent('[data-key="caveats"]')).includes("old/3.json is left out"));
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));
