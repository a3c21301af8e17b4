// Tests that the page of a sweep shows all levels of its document.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";

const record = { ...read("./load-example.json"), hdr: {}, account: undefined };
const example = {
  schema: "brimful.sweep/1",
  command: ["brimful", "load", "http://127.0.0.1:8080/", "--sweep", "1000:4000:x2"],
  target: "http://127.0.0.1:8080/",
  headline: "The server completes at most 1,900/s, at 2,000/s offered. It completes only 950/s at 4,000/s offered: 50.0 % less.",
  kind: "rate",
  levels: [[1000, 1000], [2000, 1900], [4000, 950]].map(([level, completed]) => ({
    level,
    record: { ...record, rates: { ...record.rates, offered: level, sent: level, completed } },
  })),
  interrupted: false,
};

test("the example follows its schema", () => assertFollows(JSON.parse(JSON.stringify(example)), "sweep"));

test("its charts and its table show each level", async () => {
  await withReport(example, {}, async (page) => {
    assert.equal(await page.textContent("h1"), example.headline);
    assert.equal(await page.locator("canvas").count(), 2);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/);
    const drawn = await page.$eval('[data-chart="throughput"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(drawn, [[1000, 2000, 4000], [1000, 2000, 4000], [1000, 1900, 950]]);
    const levels = await rows(page, "levels");
    assert.deepEqual(levels.map((row) => [row.level, row.completed]), [[1000, 1000], [2000, 1900], [4000, 950]]);
    assert.equal(await page.textContent('[data-key="command"]'), example.command.join(" "));
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));

test("doubts about a level and an early end are shown first", async () => {
  const reasons = [{ code: "generator_late", message: "The generator began calls late." }];
  const doubtful = example.levels.map((level) => ({ ...level, record: { ...level.record, verdict: { ...record.verdict, valid: false, reasons } } }));
  await withReport({ ...example, levels: doubtful, interrupted: true }, {}, async (page) => {
    const caveats = await page.textContent('[data-key="caveats"]');
    assert.equal(caveats.split("The generator began calls late.").length, 2, "a reason is shown once");
    assert.ok(caveats.includes("At 1,000/s") && caveats.includes("The sweep was interrupted."));
  });
});

test("a sweep of one level has a page as well", async () => {
  await withReport({ ...example, kind: "s_clients", levels: example.levels.slice(0, 1) }, {}, async (page) => {
    assert.equal(await page.locator("canvas").count(), 0);
    assert.equal((await rows(page, "levels")).length, 1);
  });
});
