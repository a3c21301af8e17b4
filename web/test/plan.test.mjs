// The planner's pages: what they show is what their documents say.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { assertReadable, badWords, near, noteWords, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";
import { axisLabels, noteTexts } from "./labels.mjs";

const names = readdirSync(new URL("./examples/", import.meta.url)).map((file) => file.replace(".json", ""));
const examples = Object.fromEntries(names.map((name) => [name, read(`./examples/${name}.json`)]));

test("there is an example of every kind, and each follows its schema", () => {
  const kinds = new Set();
  for (const [name, example] of Object.entries(examples)) {
    const kind = /^brimful\.(.*)\/1$/.exec(example.schema)[1];
    kinds.add(kind);
    assertFollows(example, kind, name);
  }
  assert.deepEqual([...kinds].sort(), ["calibration", "forecast", "solution", "what-if"]);
});

test("every page says its headline, draws its charts and shows no hole", async () => {
  const charts = { solution: 2, "what-if": 1, "what-if-curve": 2, calibration: 2, forecast: 1 };
  assert.deepEqual(names.sort(), Object.keys(charts).sort());
  for (const [name, example] of Object.entries(examples)) {
    await withReport(example, {}, async (page) => {
      const headline = (await page.textContent("h1")).replaceAll("\u2011", "-").replaceAll("\u2060", "");
      assert.equal(headline, example.headline, name);
      assert.equal(await page.locator("canvas").count(), charts[name], name);
      assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/, name);
    });
  }
});

test("words in charts are neither cut off nor upon one another", async () => {
  const survey = read("../example.survey.json");
  for (const [name, example] of Object.entries({ ...examples, survey })) {
    for (const width of [380, 1200]) {
      await withReport(example, { viewport: { width, height: 800 }, before: noteWords }, async (page) => {
        const { bad, written } = await page.evaluate(badWords);
        assert.deepEqual(bad, [], `${name} at ${width} px`);
        assert.ok(written > 0, name);
      });
    }
  }
});

test("labels of axes run neither into one another nor out of the chart", async () => {
  const others = { survey: read("../example.survey.json"), load: read("./load-example.json"), profile: read("./profile-example.json") };
  for (const [name, example] of Object.entries({ ...examples, ...others })) {
    for (const width of [380, 1200]) {
      await withReport(example, { viewport: { width, height: 800 }, before: noteTexts }, async (page) => {
        const { bad } = await page.evaluate(axisLabels);
        assert.deepEqual(bad, [], `${name} at ${width} px`);
      });
    }
  }
});

test("the pages can be read on a phone and in the dark", async () => {
  for (const [name, example] of Object.entries(examples)) {
    await assertReadable(example, name, async (page) => {
      await page.$$eval("details", (all) => all.forEach((one) => (one.open = true)));
      const cut = await page.$$eval(".scroll", (all) => all.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel));
      assert.deepEqual(cut, [], `${name}: tables are cut off`);
    });
  }
});

test("a solution's tables and curve are its own figures", async () => {
  const solved = examples.solution;
  await withReport(solved, {}, async (page) => {
    const classes = await rows(page, "classes");
    assert.deepEqual(classes.map((row) => row.response_time), solved.response_time);
    assert.deepEqual(classes.map((row) => row.p95), solved.response_percentiles.map((p) => p.p95));
    const stations = await rows(page, "stations");
    const limit = (name) => solved.limits.find((l) => l.station === name)?.saturation_rate ?? null;
    assert.deepEqual(stations.map((row) => row.saturates), solved.model.stations.map((s) => limit(s.name)));
    const data = await page.$eval('[data-chart="response"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(data[0], solved.curve.points.map((p) => p.x[0]));
    assert.deepEqual(data[1], solved.curve.points.map((p) => p.steady.response_time[0]));
  });
});

test("a what-if stands beside what was before", async () => {
  const changed = examples["what-if"];
  await withReport(changed, {}, async (page) => {
    const classes = await rows(page, "classes");
    assert.deepEqual(classes.map((row) => row.after), changed.after.solution.response_time);
    const known = classes.filter((row) => row.before !== null);
    assert.deepEqual(known.map((row) => row.before), changed.before.solution.response_time);
    for (const row of known) near(row.change, row.after / row.before - 1);
    assert.equal((await rows(page, "objectives")).length, changed.before.headroom.length);
  });
});

test("a curve ends where the server is full", async () => {
  const changed = examples["what-if-curve"];
  await withReport(changed, {}, async (page) => {
    const points = await rows(page, "curve");
    assert.equal(points.length, changed.curve.points.length);
    const full = changed.curve.points.map((p) => p.steady === null);
    assert.ok(full.includes(true) && full.includes(false));
    assert.deepEqual(points.map((row) => row.all === null), full);
  });
});

test("a forecast keeps history, intervals and prices", async () => {
  const found = examples.forecast;
  await withReport(found, {}, async (page) => {
    const data = await page.$eval('[data-chart="arrivals"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    const season = Math.max(...found.seasons);
    const highest = (list) => Math.max(...list.slice(-season)) * found.peak.factor;
    const past = data[5].filter((x) => x !== null);
    near(past.at(-1), highest(found.history.rates));
    const likely = data[6].filter((x) => x !== null);
    near(likely[0], Math.max(...found.points.slice(0, season).map((p) => p.likely)) * found.peak.factor);
    assert.deepEqual((await rows(page, "cost")).map((row) => row.capacity), found.cost.rows.map((row) => row.capacity));
    assert.equal(await page.locator('[data-chart="cost"] .bar').count(), found.cost.rows.length);
  });
});

test("a forecast shows the months asked about, the date by which more is required, and what the back-test held", async () => {
  const found = structuredClone(examples.forecast);
  const { cost, history, backtest, points } = found;
  const end = (at) => Date.parse(`${points[at].time.slice(0, 19)}Z`) / 1000 + history.step_s;
  for (const months of [cost.horizon_months / 2, cost.horizon_months]) {
    cost.months = months;
    await withReport(found, {}, async (page) => {
      const days = await page.$eval('[data-chart="arrivals"] .plot', (host) => [...host.plot.data[0]]);
      const asked = Math.ceil((points.length * months) / cost.horizon_months);
      assert.ok(days.at(-1) < end(asked - 1) && days.at(-1) > end(asked - 1) - 14 * 86400, `${days.at(-1)} within two weeks of ${end(asked - 1)}`);
      const reading = await page.textContent('[data-chart="arrivals"] .reading');
      assert.ok(reading.includes(`${(100 * backtest.coverage80).toFixed(1)}\u202f%`) && reading.includes(`${(100 * backtest.coverage95).toFixed(1)}\u202f%`), reading);
      const lasts = (row) => (row.name === cost.cheapest_safe ? "surely: the cheapest" : row.lasts_safely ? "surely" : row.name === cost.cheapest ? "likely: the cheapest" : row.lasts ? "likely" : "no");
      assert.deepEqual((await rows(page, "cost")).map((row) => row.lasts), cost.rows.map(lasts));
    });
  }
});

test("a calibration has what was measured inside beside the regression", async () => {
  const found = structuredClone(examples.calibration);
  assert.equal(found.inside ?? null, null);
  const [one, other] = found.model.classes;
  const ci = (x) => ({ low: 0.9 * x, high: 1.1 * x });
  found.inside = {
    classes: [
      { class: one.name, sampled: 1200, measured_s: 4e-3, measured_ci95_half_width: 1e-4, demand_s: 4.2e-3, ci95: ci(4.2e-3), regression_s: 4e-3, regression_ci95: ci(4e-3), ratio: 1.05 },
      { class: other.name, sampled: 3, measured_s: null, measured_ci95_half_width: null, demand_s: 1e-3, ci95: null, regression_s: null, regression_ci95: null, ratio: null },
    ],
    no_regression: "the classes always came in the same proportions",
  };
  await withReport(found, {}, async (page) => {
    const inside = await rows(page, "inside");
    assert.deepEqual(inside.map((row) => [row.class, row.sampled, row.measured, row.demand, row.regression]), found.inside.classes.map((c) => [c.class, c.sampled, c.measured_s, c.demand_s, c.regression_s]));
    near(inside[0].difference, 0.05);
    assert.equal(inside[1].difference, null);
    assert.match(await page.textContent("main"), /There is no regression: the classes always came in the same proportions\./);
    assert.doesNotMatch(await page.textContent("main"), /NaN|undefined|null/);
  });
});

test("the demands of runs of different mixes are points, with no line through them", async () => {
  await withReport(examples.calibration, {}, async (page) => {
    const drawn = await page.$eval('[data-chart="demand"] .plot', ({ plot }) => plot.series.slice(1).map(({ label, width }) => [label, width]));
    assert.deepEqual(drawn, [["fitted", 0], ["measured", 0]]);
  });
});

test("a calibration names its records and what they were for", async () => {
  const found = examples.calibration;
  await withReport(found, {}, async (page) => {
    const records = await rows(page, "records");
    assert.deepEqual(records.map((row) => row.record), found.records);
    for (const { record, reason } of found.left_out) assert.ok(records[record].use.includes(reason));
    const demands = await rows(page, "demands");
    assert.deepEqual(demands.map((row) => row.demand), found.model.demands.flat());
  });
});
