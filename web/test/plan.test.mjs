// Tests that the pages of the planner show the values of their documents.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { assertReadable, badLabels, near, recordLabels, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";
import { axisLabels, recordTexts } from "./labels.mjs";

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

test("every page has its headline and its charts, and no undefined value", async () => {
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

test("labels inside plots are neither cut off nor overlap", async () => {
  const survey = read("../example.survey.json");
  for (const [name, example] of Object.entries({ ...examples, survey })) {
    for (const width of [380, 1200]) {
      await withReport(example, { viewport: { width, height: 800 }, before: recordLabels }, async (page) => {
        const { bad, written } = await page.evaluate(badLabels);
        assert.deepEqual(bad, [], `${name} at ${width} px`);
        assert.ok(written > 0, name);
      });
    }
  }
});

test("axis labels are neither cut off nor overlap", async () => {
  const others = { survey: read("../example.survey.json"), load: read("./load-example.json"), profile: read("./profile-example.json") };
  for (const [name, example] of Object.entries({ ...examples, ...others })) {
    for (const width of [380, 1200]) {
      await withReport(example, { viewport: { width, height: 800 }, before: recordTexts }, async (page) => {
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

test("the tables and the curve of a solution show its figures", async () => {
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

test("a what-if shows response times before and after", async () => {
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

test("a curve ends where the server is saturated", async () => {
  const changed = examples["what-if-curve"];
  await withReport(changed, {}, async (page) => {
    const points = await rows(page, "curve");
    assert.equal(points.length, changed.curve.points.length);
    const isSaturated = changed.curve.points.map((p) => p.steady === null);
    assert.ok(isSaturated.includes(true) && isSaturated.includes(false));
    assert.deepEqual(points.map((row) => row.all === null), isSaturated);
  });
});

test("a forecast shows history, intervals and prices", async () => {
  const forecast = examples.forecast;
  await withReport(forecast, {}, async (page) => {
    const data = await page.$eval('[data-chart="arrivals"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    const season = Math.max(...forecast.seasons);
    const highest = (list) => Math.max(...list.slice(-season)) * forecast.peak.factor;
    const past = data[5].filter((x) => x !== null);
    near(past.at(-1), highest(forecast.history.rates));
    const likely = data[6].filter((x) => x !== null);
    near(likely[0], Math.max(...forecast.points.slice(0, season).map((p) => p.likely)) * forecast.peak.factor);
    assert.deepEqual((await rows(page, "cost")).map((row) => row.capacity), forecast.cost.rows.map((row) => row.capacity));
    assert.equal(await page.locator('[data-chart="cost"] .bar').count(), forecast.cost.rows.length);
  });
});

test("a forecast shows the months asked for, and the coverage of its intervals in the back-test", async () => {
  const forecast = structuredClone(examples.forecast);
  const { cost, history, backtest, points } = forecast;
  const endOfStep = (i) => Date.parse(`${points[i].time.slice(0, 19)}Z`) / 1000 + history.step_s;
  for (const months of [cost.horizon_months / 2, cost.horizon_months]) {
    cost.months = months;
    await withReport(forecast, {}, async (page) => {
      const days = await page.$eval('[data-chart="arrivals"] .plot', (host) => [...host.plot.data[0]]);
      const asked = Math.ceil((points.length * months) / cost.horizon_months);
      assert.ok(days.at(-1) < endOfStep(asked - 1) && days.at(-1) > endOfStep(asked - 1) - 14 * 86400, `${days.at(-1)} within two weeks of ${endOfStep(asked - 1)}`);
      const reading = await page.textContent('[data-chart="arrivals"] .reading');
      assert.ok(reading.includes(`${(100 * backtest.coverage80).toFixed(1)}\u202f%`) && reading.includes(`${(100 * backtest.coverage95).toFixed(1)}\u202f%`), reading);
      const lasts = (row) => (row.name === cost.cheapest_safe ? "surely (cheapest)" : row.lasts_safely ? "surely" : row.name === cost.cheapest ? "likely (cheapest)" : row.lasts ? "likely" : "no");
      assert.deepEqual((await rows(page, "cost")).map((row) => row.lasts), cost.rows.map(lasts));
    });
  }
});

test("a calibration shows demands measured inside the server beside those of the regression", async () => {
  const calibration = structuredClone(examples.calibration);
  assert.equal(calibration.inside ?? null, null);
  const [one, other] = calibration.model.classes;
  const ci = (x) => ({ low: 0.9 * x, high: 1.1 * x });
  calibration.inside = {
    classes: [
      { class: one.name, sampled: 1200, measured_s: 4e-3, measured_ci95_half_width: 1e-4, demand_s: 4.2e-3, ci95: ci(4.2e-3), regression_s: 4e-3, regression_ci95: ci(4e-3), ratio: 1.05 },
      { class: other.name, sampled: 3, measured_s: null, measured_ci95_half_width: null, demand_s: 1e-3, ci95: null, regression_s: null, regression_ci95: null, ratio: null },
    ],
    no_regression: "the classes always came in the same proportions",
  };
  await withReport(calibration, {}, async (page) => {
    const inside = await rows(page, "inside");
    assert.deepEqual(inside.map((row) => [row.class, row.sampled, row.measured, row.demand, row.regression]), calibration.inside.classes.map((c) => [c.class, c.sampled, c.measured_s, c.demand_s, c.regression_s]));
    near(inside[0].difference, 0.05);
    assert.equal(inside[1].difference, null);
    assert.match(await page.textContent("main"), /There is no regression: the classes always came in the same proportions\./);
    assert.doesNotMatch(await page.textContent("main"), /NaN|undefined|null/);
  });
});

test("demands of runs are points without a line, because their mixes may differ", async () => {
  await withReport(examples.calibration, {}, async (page) => {
    const drawn = await page.$eval('[data-chart="demand"] .plot', ({ plot }) => plot.series.slice(1).map(({ label, width }) => [label, width]));
    assert.deepEqual(drawn, [["fitted", 0], ["measured", 0]]);
  });
});

test("a calibration names its records and their use", async () => {
  const calibration = examples.calibration;
  await withReport(calibration, {}, async (page) => {
    const records = await rows(page, "records");
    assert.deepEqual(records.map((row) => row.record), calibration.records);
    for (const { record, reason } of calibration.left_out) assert.ok(records[record].use.includes(reason));
    const demands = await rows(page, "demands");
    assert.deepEqual(demands.map((row) => row.demand), calibration.model.demands.flat());
  });
});
