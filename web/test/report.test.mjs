// Tests that the built page (dist/report.html), in a headless Chromium, shows the values of a survey and loads nothing
// from the network.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, MARKER, near, rows, template, withReport } from "./browser.mjs";

const example = JSON.parse(readFileSync(new URL("../example.survey.json", import.meta.url), "utf8"));

test("the template is one file, with exactly one place for the document", () => {
  assert.equal(template.split(MARKER).length, 2);
  assert.doesNotMatch(template, /<(script|link|img)[^>]*\s(src|href)=/);
  assert.match(template, /Content-Security-Policy" content="default-src 'none'/);
});

test("the page carries the licence of the library that draws its charts", () => {
  const licence = readFileSync(new URL("../node_modules/uplot/LICENSE", import.meta.url), "utf8");
  assert.match(licence, /MIT License[^]*Leon Sorokin[^]*The above copyright notice/);
  assert.ok(template.includes(licence.trim()));
});

test("a survey shows the rate and the length of the server's pauses", async () => {
  const pauses = { per_second: 1.2, per_call: 0.001, mean_s: 0.03, longest_s: 0.05, seen: 20 };
  await withReport({ ...example, pauses }, {}, async (page) => {
    const card = page.locator("dl > div", { has: page.locator('[data-key="pauses.mean"]') });
    assert.equal(await card.locator("dd.big").textContent(), "30.0 ms");
    assert.equal(await card.locator("dd").last().textContent(), "1.20 a second and one in 1,000 calls, up to 50.0 ms; 20 seen between completed calls");
  });
  await withReport(example, {}, async (page) => assert.equal(await page.locator('[data-key="pauses.mean"]').count(), 0));
});

test("a survey says what an overloaded server loses if users open connections of their own", async () => {
  const overload = { offered: 481, pooled: 372, unlimited: 241, connections: 870 };
  await withReport({ ...example, overload }, {}, async (page) => {
    const card = page.locator("dl > div", { has: page.locator('[data-key="overload.unlimited"]') });
    assert.equal(
      await card.textContent(),
      "Overloaded, without a connection pool241/s−35.2 % against 372/s through a pool; 481/s offered, 870 connections opened",
    );
  });
});

test("the head of the page shows the main figures of the survey", async () => {
  await withReport(example, {}, async (page) => {
    assert.equal(await page.textContent("h1"), example.headline);
    assert.equal(await page.textContent('[data-key="url"]'), example.url);
    assert.equal(await page.getAttribute("time", "datetime"), example.started_at);
    assert.equal(await page.textContent("time"), "14 January 2026, 09:30 UTC");
    assert.match(await page.textContent('[data-key="verdict"]'), /valid/);
    const { predicted, measured, error } = example.saturation_rate;
    assert.deepEqual(await values(page, ["saturation.predicted", "saturation.measured", "saturation.error", "client_max_rate"]), [
      predicted,
      measured,
      error,
      example.client_max_rate,
    ]);
    assert.equal(await page.textContent('[data-key="saturation.predicted"]'), "370/s");
    assert.equal(await page.textContent('[data-key="saturation.error"]'), "\u22120.6\u202f%");
    const tested = example.levels.filter((l) => l.role === "held_out");
    const figures = tested.flatMap((l) => [l.response_time_s, l.utilization, ...Object.values(l.response_percentiles_s)]);
    const rates = example.objectives.map((objective) => objective.rate);
    const all = [example.saturation_rate, ...rates, ...figures];
    const hold = all.filter((f) => f.interval90[0] <= f.measured && f.measured <= f.interval90[1]);
    assert.ok(hold.length < all.length, "one measurement must be outside its interval");
    assert.equal(await page.textContent('[data-key="intervals.hold"]'), `${hold.length} of ${all.length}`);
    assert.equal(await page.textContent('[data-key="objective.measured"]'), "361/s");
    assert.equal(await page.textContent('[data-key="law"]'), "idle^1");
    const speeds = example.speed_by_block;
    const [low, high] = [Math.min(...speeds), Math.max(...speeds)].map((x) => x.toFixed(2));
    assert.equal(await page.textContent('[data-key="host.spread"]'), `${low} … ${high}`);
    assert.equal(await page.textContent('[data-key="inflicted.mean_load"]'), "28\u202f% (30\u202f% allowed)");
    assert.equal(await page.textContent('[data-key="elapsed_s"]'), "722\u202fs");
    const busy = example.levels.filter((l) => l.role === "held_out" && [0.7, 0.75, 0.8].includes(l.fraction));
    assert.equal(busy.length, 3);
    const mean = busy.reduce((sum, l) => sum + Math.abs(l.response_time_s.error), 0) / 3;
    const [shown, bottleneck] = await values(page, ["response_time.error_70_80", "bottleneck.demand"]);
    near(shown, mean);
    near(bottleneck, 0.7 * example.demands[0].seconds + 0.3 * example.demands[1].seconds, 1e-4);
    assert.equal(await page.textContent('[data-key="command"]'), example.command.join(" "));
    assert.equal(await page.textContent('[data-key="seed"]'), "42");
    assert.match(await page.textContent('[data-key="wakeup_s"]'), /^42.0.µs$/);
    assert.equal(await page.textContent('[data-key="version"]'), example.brimful_version);
  });
});

test("characters that are invisible or reorder text are shown as escapes", async () => {
  const survey = { ...example, command: ["brimful", "\u001b[2J\u202egnp.\u2066\u009b"], headline: "1\u202e2" };
  await withReport(survey, {}, async (page) => {
    assert.equal(await page.textContent('[data-key="command"]'), "brimful \\u001b[2J\\u202egnp.\\u2066\\u009b");
    assert.equal(await page.textContent("h1"), "1\\u202e2");
  });
});

test("a seed of 64 bits keeps all its digits", async () => {
  const json = JSON.stringify(example).replace('"seed":42', '"seed":18446744073709551615');
  await withReport(json, {}, async (page) => assert.equal(await page.textContent('[data-key="seed"]'), "18446744073709551615"));
});

test("every level, demand and station has a row with its numbers", async () => {
  await withReport(example, {}, async (page) => {
    const of = (role) => example.levels.filter((l) => l.role === role);
    const holds = ({ interval90: [low, high], measured }) => (low <= measured && measured <= high ? "✓ yes" : "✗ no");
    const figure = (name, f) => ({
      [`${name}.predicted`]: f.predicted,
      [`${name}.interval90`]: undefined,
      [`${name}.measured`]: f.measured,
      [`${name}.holds`]: holds(f),
    });
    // The cells of intervals have no numeric value (`data-value`), only text.
    const plain = (all) => all.map((row) => ({ ...row, ...Object.fromEntries(Object.keys(row).filter((k) => k.endsWith("interval90")).map((k) => [k, undefined])) }));
    const health = (l) => ({ error_share: l.error_share, "lateness.p50": l.lateness_p50_s, "lateness.p99": l.lateness_p99_s });
    assert.deepEqual(
      plain(await rows(page, "held_out")),
      of("held_out").map((l) => ({
        workload: l.workload,
        fraction: l.fraction,
        offered: l.offered,
        "response_time.steady": l.steady_response_s,
        ...figure("response_time", l.response_time_s),
        "response_time.ci95": l.response_time_s.measured_ci95_half_width,
        "response_time.error": l.response_time_s.error,
        "response_time.drift": l.response_time_s.error_drift,
        host_speed: l.host_speed,
        verdict: "yes",
      })),
    );
    const named = (l) => ({ workload: l.workload, fraction: l.fraction });
    assert.deepEqual(
      plain(await rows(page, "held_out_percentiles")),
      of("held_out").map((l) => ({ ...named(l), ...figure("p95", l.response_percentiles_s.p95), ...figure("p99", l.response_percentiles_s.p99) })),
    );
    assert.deepEqual(
      plain(await rows(page, "held_out_utilization")),
      of("held_out").map((l) => ({ ...named(l), ...figure("utilization", l.utilization), ...health(l) })),
    );
    assert.deepEqual(
      await rows(page, "calibration"),
      of("calibration").map((l) => ({
        workload: l.workload,
        offered: l.clients === null ? l.offered : null,
        clients: l.clients,
        throughput: l.throughput.measured,
        "throughput.ci95": l.throughput.measured_ci95_half_width,
        response_time: l.response_time_s.measured,
        "response_time.ci95": l.response_time_s.measured_ci95_half_width,
        p95: l.response_percentiles_s.p95.measured,
        utilization: l.utilization.measured,
        ...health(l),
        verdict: "yes",
      })),
    );
    assert.deepEqual(
      await rows(page, "past_saturation"),
      of("past_saturation").map((l) => ({
        workload: l.workload,
        offered: l.clients === null ? l.offered : null,
        clients: l.clients,
        "throughput.predicted": l.throughput.predicted,
        "throughput.measured": l.throughput.measured,
        "throughput.ci95": l.throughput.measured_ci95_half_width,
        "throughput.error": l.throughput.error,
        "throughput.drift": l.throughput.error_drift,
        response_time: l.response_time_s.measured,
        "utilization.predicted": l.utilization.predicted,
        "utilization.measured": l.utilization.measured,
        host_speed: l.host_speed,
        ...health(l),
        verdict: "yes",
      })),
    );
    assert.deepEqual((await rows(page, "laws")).map((row) => [row.name, row.left_out_error]), example.laws.map((l) => [l.name, l.left_out_error]));
    const demands = await rows(page, "demands");
    assert.equal(demands.length, example.demands.length);
    demands.forEach((row, i) => {
      const { station, class: name, seconds, ci95_half_width, truth } = example.demands[i];
      const { error, ...rest } = row;
      assert.deepEqual(rest, { station, class: name, seconds, ci95: ci95_half_width, truth });
      if (truth === null) assert.equal(error, null);
      else near(error, seconds / truth - 1);
    });
    assert.deepEqual((await rows(page, "stations")).map((row) => row.name), example.model.stations.map((s) => s.name));
    const cell = (table, row, key) => page.textContent(`[data-table="${table}"] [data-row="${row}"] [data-key="${key}"]`);
    assert.equal(await cell("demands", 0, "seconds"), "1.20\u202fms");
    assert.equal(await cell("demands", 0, "ci95"), "26.0\u202fµs");
    assert.equal(await cell("demands", 0, "error"), "+1.7\u202f%");
    const seven = of("held_out").findIndex((l) => l.fraction === 0.7);
    assert.equal(await cell("held_out", seven, "response_time.interval90"), "8.58 … 9.89\u202fms");
    assert.equal(await cell("held_out", of("held_out").findIndex((l) => l.workload === "bursts"), "response_time.steady"), "–");
  });
});

// Indices of the data columns of charts that compare predictions with measurements. Column 0 contains x.
const [HIGH, LOW, STEADY, PREDICTED, ROLES] = [1, 2, 3, 4, 5];

test("each chart has and draws one point per level of the mix", async () => {
  const mix = example.levels.filter((l) => l.workload === "mix");
  const others = example.levels.filter((l) => l.role === "held_out" && l.workload !== "mix");
  assert.equal(others.length, 2);
  const below = mix.filter((l) => l.role !== "past_saturation");
  await withReport(example, {}, async (page) => {
    for (const [id, of, levels] of [
      ["throughput", (l) => l.throughput, mix],
      ["response_time", (l) => l.response_time_s, [...below, ...others]],
      ["utilization", (l) => l.utilization, [...mix, ...others]],
    ]) {
      const columns = await data(page, id);
      const count = (column) => column.filter((y) => y !== null && y !== undefined).length;
      assert.equal(count(columns[ROLES]) + count(columns[ROLES + 1]) + count(columns[ROLES + 2]), levels.length, id);
      for (const level of levels) {
        const column = columns[ROLES + ["calibration", "held_out", "past_saturation"].indexOf(level.role)];
        const places = columns[0].flatMap((x, i) => (x === level.offered ? [i] : []));
        assert.ok(places.some((i) => column[i] === of(level).measured), `${id}: ${level.workload} at ${level.offered}`);
      }
      assert.equal(await page.getAttribute(`[data-chart="${id}"]`, "data-points"), String(levels.length));
    }
    const tested = mix.filter((l) => l.role !== "calibration");
    for (const [id, of, levels] of [
      ["throughput", (l) => l.throughput, tested],
      ["response_time", (l) => l.response_time_s, tested.filter((l) => below.includes(l))],
      ["utilization", (l) => l.utilization, tested],
    ]) {
      const { drawn, named } = await pixels(page, id, levels.map((l) => [l.offered, of(l).measured]), levels.map((l) => l.role));
      assert.deepEqual(drawn, named, id);
    }
    const { offered, cpu } = mix[3];
    const middles = [cpu.user / 2, cpu.user + cpu.system / 2, 1 - cpu.idle / 2].map((y) => [offered, y]);
    const areas = await pixels(page, "cpu", middles, ["user", "system", "idle"]);
    assert.deepEqual(areas.drawn, areas.named);

    const shares = await data(page, "cpu");
    assert.deepEqual(shares[0], mix.map((l) => l.offered));
    shares[1].forEach((all) => near(all, 1, 1e-3));
    assert.deepEqual(shares[4], mix.map((l) => l.cpu.user));
    assert.equal(await page.getAttribute('[data-chart="cpu"]', "data-points"), String(mix.length));
  });
});

test("a prediction is a line, a band around it, and a thin line for a steady host", async () => {
  const tested = example.levels.filter((l) => l.role === "held_out" && l.workload === "mix");
  await withReport(example, {}, async (page) => {
    const columns = await data(page, "response_time");
    for (const { offered, steady_response_s: steady, response_time_s: r } of tested) {
      const i = columns[0].findIndex((x, at) => x === offered && columns[PREDICTED][at] === r.predicted);
      assert.deepEqual([HIGH, LOW, STEADY].map((column) => columns[column][i]), [r.interval90[1], r.interval90[0], steady]);
    }
    // Two points inside the predicted intervals, of the busiest level and of the bursts. No line passes through them.
    const near = ([low, high], share) => low + share * (high - low);
    const busiest = tested.at(-1);
    const bursts = example.levels.find((l) => l.workload === "bursts");
    const inside = [
      [busiest.offered - 2, near(busiest.response_time_s.interval90, 0.8)],
      [bursts.offered, near(bursts.response_time_s.interval90, 0.15)],
    ];
    const { drawn, named } = await pixels(page, "response_time", inside, ["band80", "band80"]);
    assert.deepEqual(drawn, named);
    const flat = await data(page, "utilization");
    assert.ok(flat[STEADY].every((y) => y === null));
  });
});

test("throughput by number of clients is drawn, with later measurements beside it", async () => {
  await withReport(example, {}, async (page) => {
    const [clients, throughput] = await data(page, "clients");
    assert.deepEqual(clients, example.throughput_by_clients.map((point) => point.clients));
    assert.deepEqual(throughput, example.throughput_by_clients.map((point) => point.throughput));
    const shown = await rows(page, "chart-clients");
    assert.deepEqual(shown.map((row) => row.utilization), example.throughput_by_clients.map((point) => point.utilization));
    assert.equal(shown.at(-1).later, example.saturation_rate.measured);
    await page.focus('[data-chart="clients"] .plot');
    await page.keyboard.press("ArrowLeft");
    assert.match(await page.textContent('[data-chart="clients"] .readout'), /^32 clientscalibration 372\/s.*measured later 372\/s/);
  });
});

test("the saturated resource is named with the evidence, and each program has its share", async () => {
  await withReport(example, {}, async (page) => {
    const full = page.locator("dl.figures > div", { has: page.locator('[data-key="bottleneck"]') });
    assert.match(await full.textContent(), /server cpu98\.8 % busy with 32 clients at once$/);
    assert.deepEqual((await rows(page, "programs")).map(({ name, share }) => [name, share]), example.programs.map(({ name, share }) => [name, share]));
  });
});

test("a survey of an earlier version is shown without the figures that it lacks", async () => {
  const old = structuredClone(example);
  for (const name of ["laws", "throughput_by_clients", "bottleneck", "bottleneck_evidence", "programs", "speed_by_block", "inflicted", "elapsed_s"]) delete old[name];
  const removeNewFields = (part) => {
    if (part === null || typeof part !== "object") return;
    for (const name of ["interval90", "error_drift", "steady_response_s", "host_speed"]) delete part[name];
    Object.values(part).forEach(removeNewFields);
  };
  removeNewFields(old);
  await withReport(old, {}, async (page) => {
    assert.equal(await page.locator('[data-chart="clients"]').count(), 0);
    assert.equal(await page.locator('[data-key="intervals.hold"]').count(), 0);
    assert.equal(await page.locator('[data-key="bottleneck"], [data-table="programs"]').count(), 0);
    const tested = await rows(page, "held_out");
    assert.deepEqual([...new Set(tested.map((row) => `${row["response_time.interval90"]}${row["response_time.holds"]}${row.host_speed}`))], ["––null"]);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null/);
  });
});

test("hovering and the arrow keys show the readout of a level", async () => {
  await withReport(example, {}, async (page) => {
    const chart = '[data-chart="throughput"]';
    await page.focus(`${chart} .plot`);
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(`${chart} .readout:not([hidden])`);
    assert.match(await page.textContent(`${chart} .readout`), /37\.2\/s offered, calibration.*measured 37\.2\/s/);
    const box = await page.locator(`${chart} .u-over`).boundingBox();
    await page.mouse.move(box.x + box.width - 2, box.y + 20);
    await page.waitForFunction(() => document.querySelector('[data-chart="throughput"] .readout').textContent.startsWith("481/s"));
  });
});

test("the readout of a held-out level has its interval and the host's share of the error", async () => {
  const level = example.levels.find((l) => l.role === "held_out");
  await withReport(example, {}, async (page) => {
    const chart = '[data-chart="response_time"]';
    await page.focus(`${chart} .plot`);
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    const readout = await page.textContent(`${chart} .readout`);
    assert.match(readout, /^111\/s offered, held out.*predicted 4\.07.ms \(3\.92 … 4\.22.ms\).*✓ within.*error −1\.9.%, host’s share −0\.6.%/);
    assert.match(readout, new RegExp(`host speed ${level.host_speed.toFixed(2)}$`));
  });
});

test("the logarithmic axis can be switched off where it is offered", async () => {
  const steep = structuredClone(example);
  steep.levels.find((l) => l.workload === "mix").response_time_s.measured = 1e-4;
  await withReport(steep, {}, async (page) => {
    const scale = () => page.$eval('[data-chart="response_time"] .plot', (host) => host.plot.scales.y.distr);
    assert.equal(await scale(), 3);
    await page.uncheck('[data-key="log"]');
    assert.equal(await scale(), 1);
    assert.equal(await page.locator('[data-chart="response_time"] .uplot').count(), 1);
    assert.equal(await page.locator('[data-key="log"]').count(), 1, "no other chart spans a factor of 50");
  });
});

test("light and dark differ, and text can be read in both", async () => {
  const backgrounds = [];
  const inks = [];
  for (const colorScheme of ["light", "dark"]) {
    await withReport(example, { colorScheme }, async (page) => {
      const { background, worst } = await page.evaluate(contrast);
      assert.ok(worst.ratio >= 4.5, `${colorScheme}: "${worst.text}" has a contrast of ${worst.ratio.toFixed(2)}`);
      backgrounds.push(background);
      inks.push(await page.$eval('[data-chart="cpu"] canvas', (c) => c.toDataURL()));
    });
  }
  assert.notEqual(backgrounds[0], backgrounds[1]);
  assert.notEqual(inks[0], inks[1], "the charts follow the colour scheme");
});

test("a change of scheme redraws the charts", async () => {
  await withReport(example, { colorScheme: "light" }, async (page) => {
    const picture = () => page.$eval('[data-chart="throughput"] canvas', (c) => c.toDataURL());
    const light = await picture();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForFunction((old) => document.querySelector('[data-chart="throughput"] canvas').toDataURL() !== old, light);
  });
});

test("on a phone no table is cut off at the side", async () => {
  await withReport(example, { viewport: { width: 380, height: 740 } }, async (page) => {
    await page.$$eval("details", (all) => all.forEach((one) => (one.open = true)));
    const cut = await page.$$eval(".scroll", (all) =>
      all.filter((box) => box.scrollWidth > box.clientWidth).map((box) => `${box.ariaLabel}: ${box.scrollWidth} > ${box.clientWidth}`),
    );
    assert.deepEqual(cut, []);
    const titled = await page.$eval('[data-table="held_out"] td[data-key="offered"]', (cell) => getComputedStyle(cell, "::before").content);
    assert.equal(titled, '"offered "');
  });
});

test("a phone scrolls the page only vertically", async () => {
  for (const survey of [example, hostile()]) {
    await withReport(survey, { viewport: { width: 360, height: 740 } }, async (page) => {
      const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(content <= width, `${content} ≤ ${width}`);
      const charts = await page.$$eval("canvas", (all) => all.map((c) => c.getBoundingClientRect().right));
      assert.equal(charts.length, 9);
      assert.ok(charts.every((right) => right <= width));
    });
  }
});

const ATTACK = '</script><script>window.hit = true; alert(1)</script><img src=x onerror="window.hit = true"><!--';

/** Hostile text wherever the survey has text. */
function hostile() {
  const survey = structuredClone(example);
  Object.assign(survey, { headline: ATTACK, url: `javascript:${ATTACK}`, started_at: ATTACK, brimful_version: ATTACK });
  survey.command = [ATTACK];
  survey.stopped = { level: ATTACK, reason: ATTACK };
  survey.verdict = { valid: false, reasons: [{ code: "ports", message: ATTACK }] };
  survey.demands[0].station = survey.model.stations[0].name = ATTACK;
  survey.demands[0].class = survey.model.classes[0].name = ATTACK;
  survey.levels[0].workload = survey.levels[1].classes[0].name = survey.laws[0].name = ATTACK;
  survey.bottleneck = survey.bottleneck_evidence = survey.programs[0].name = ATTACK;
  survey.levels[2].verdict = { valid: false, reasons: [{ code: "ports", message: ATTACK }] };
  survey.objectives[0].objective = `${ATTACK}:p99<150ms`;
  return survey;
}

test("text of the survey is never parsed as HTML", async () => {
  await withReport(hostile(), {}, async (page) => {
    assert.equal(await page.textContent("h1"), ATTACK);
    assert.equal(await page.textContent('[data-reason="ports"]'), ATTACK);
    assert.equal((await rows(page, "demands"))[0].station, ATTACK);
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
  });
});

test("a survey that cannot be trusted says why, for the survey and for each level", async () => {
  const survey = structuredClone(example);
  survey.verdict = { valid: false, reasons: [{ code: "generator_late", message: "Calls began late: use fewer." }] };
  survey.levels[3].verdict = survey.verdict;
  await withReport(survey, {}, async (page) => {
    assert.equal(await page.getAttribute('[data-key="verdict"]', "data-value"), "false");
    assert.equal(await page.textContent('[data-key="verdict"] >> nth=0'), "✗ not valid");
    assert.equal(await page.textContent("dd.big >> nth=0"), "not determined");
    assert.equal(await page.textContent('[data-key="saturation.predicted"]'), "370/s");
    assert.ok(await page.isVisible('[data-reason="generator_late"]'));
    const doubted = await rows(page, survey.levels[3].role);
    assert.deepEqual(doubted.map((row) => row.verdict).filter((verdict) => verdict !== "yes"), ["no (1)"]);
    assert.deepEqual(await page.locator('[data-key="doubts"] li').allTextContents(), ["Calls began late: use fewer."]);
  });
});

test("a reason that many levels share is listed once, and does not make the tables long", async () => {
  const reason = (message) => ({ code: "generator_late", message });
  const long = "The generator began calls late, as something else had its CPU. ".repeat(4);
  const survey = structuredClone(example);
  for (const [i, level] of survey.levels.entries()) level.verdict = { valid: false, reasons: [reason(long), reason(`Level ${i}.`)] };
  await withReport(survey, {}, async (page) => {
    const listed = await page.locator('[data-key="doubts"] li').allTextContents();
    assert.deepEqual([...listed].sort(), [long, ...survey.levels.map((_, i) => `Level ${i}.`)].sort());
    for (const role of ["held_out", "calibration", "past_saturation"]) {
      const levels = survey.levels.flatMap((level, i) => (level.role === role ? [i] : []));
      const verdicts = (await rows(page, role)).map((row) => row.verdict);
      assert.deepEqual(verdicts, levels.map((i) => `no (${listed.indexOf(long) + 1}, ${listed.indexOf(`Level ${i}.`) + 1})`));
      const heights = await page.$$eval(`[data-table="${role}"] tbody tr`, (all) => all.map((row) => row.getBoundingClientRect().height));
      assert.ok(Math.max(...heights) < 60, `${role}: rows of ${heights} pixels`);
    }
  });
});

test("predicted throughput is at most what is offered, and at most the capacity", async () => {
  const survey = structuredClone(example);
  const [low, high] = survey.saturation_rate.interval90;
  // Change the survey: the throughput of a closed level is less than predicted, and the offered load of another level
  // is less than planned.
  const closed = survey.levels.find((l) => l.role === "past_saturation" && l.clients !== null);
  closed.offered = closed.throughput.measured = 0.9 * survey.saturation_rate.predicted;
  const short = survey.levels.find((l) => l.role === "held_out" && l.workload === "mix");
  short.throughput.predicted = 1.2 * short.offered;
  await withReport(survey, {}, async (page) => {
    const columns = await data(page, "throughput");
    const capacity = survey.saturation_rate.predicted;
    columns[0].forEach((x, i) => {
      assert.deepEqual([HIGH, LOW, PREDICTED].map((c) => columns[c][i]), [high, low, capacity].map((end) => Math.min(x, end)));
    });
    for (const bend of [0, low, capacity, high]) assert.ok(columns[0].includes(bend), `${bend}`);
    const busy = await data(page, "utilization");
    const at = busy[0].indexOf(closed.offered);
    assert.equal(busy[ROLES + 2][at], closed.utilization.measured);
    assert.equal(busy[PREDICTED][at], null, "the line shows open loads");
  });
});

test("a survey that refutes its model still shows the measured saturation", async () => {
  const survey = structuredClone(example);
  survey.verdict = { valid: false, reasons: [{ code: "model_refuted", message: "The model predicted too little." }] };
  await withReport(survey, {}, async (page) => {
    assert.equal(await page.textContent('[data-key="verdict"] >> nth=0'), "✗ not valid");
    assert.match(await page.textContent(".notice"), /^Do not plan with this model:The model predicted too little\./);
    assert.doesNotMatch(await page.textContent("main"), /not determined/);
  });
});

test("a stopped survey shows the parts it has and names those it lacks", async () => {
  const none = { predicted: null, measured: null, error: null, measured_ci95_half_width: null };
  const survey = structuredClone(example);
  survey.stopped = { level: "calibration at 30 %", reason: "The user ended it." };
  survey.saturation_rate = none;
  survey.client_max_rate = survey.background = survey.wakeup_s = null;
  Object.assign(survey, { laws: [], throughput_by_clients: [], bottleneck: null, speed_by_block: [], inflicted: null, objectives: [] });
  survey.demands = [];
  survey.model = { stations: [], classes: [], demands: [] };
  survey.levels = survey.levels.slice(1, 2).map((level) => ({
    ...level,
    throughput: { ...none, measured: 37 },
    response_time_s: none,
    response_percentiles_s: { p50: none, p95: none, p99: none },
    utilization: none,
    cpu: null,
    lateness_p50_s: null,
    lateness_p99_s: null,
    classes: [],
  }));
  await withReport(survey, {}, async (page) => {
    assert.match(await page.textContent('[data-key="stopped"]'), /stopped at calibration at 30 %: The user ended it\./);
    const missing = await page.textContent('[data-key="missing"]');
    assert.match(missing, /fitted demands, the predicted saturation rate, held-out levels, levels past saturation/);
    assert.doesNotMatch(missing, /calibration levels/);
    const [level] = await rows(page, "calibration");
    assert.equal(level.throughput, 37);
    assert.equal(level.response_time, null);
    assert.equal(await page.textContent('[data-key="saturation.predicted"]'), "–");
    assert.equal(await page.locator('[data-chart="throughput"] canvas').count(), 1);
    assert.match(await page.textContent('[data-chart="cpu"] .empty'), /nothing to draw/);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null/);
  });
  // The verdict contains the reason why the survey stopped, so the page must not repeat it.
  survey.verdict = { valid: false, reasons: [{ code: "incomplete", message: "At the level X: The user ended it." }] };
  await withReport(survey, {}, async (page) => {
    assert.equal((await page.textContent("main")).split("The user ended it.").length, 2);
    assert.match(await page.textContent('[data-key="stopped"]'), /^Missing: fitted demands/);
  });
  survey.levels = [];
  await withReport(survey, {}, async (page) => {
    assert.match(await page.textContent('[data-key="missing"]'), /calibration levels/);
    assert.equal(await page.locator("canvas").count(), 0);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null/);
  });
});

test("a file without a survey shows a message", async () => {
  const cases = [
    [MARKER, /missing or damaged/],
    ["", /missing or damaged/],
    ['{"schema": "brimful.sur', /missing or damaged/],
    ["null", /has no schema/],
    ['{"schema": "brimful.other\\/1"}', /has the schema brimful\.other\/1/],
    ['{"schema": "brimful.survey\\/1"}', /incomplete/],
  ];
  for (const [json, expected] of cases) {
    await withReport(json, {}, async (page) => {
      assert.equal(await page.textContent("h1"), "This report cannot be shown");
      assert.match(await page.textContent('[role="alert"]'), expected);
    });
  }
});

function values(page, keys) {
  return page.evaluate((all) => all.map((key) => Number(document.querySelector(`[data-key="${key}"]`).dataset.value)), keys);
}

function data(page, chart) {
  return page.$eval(`[data-chart="${chart}"] .plot`, (host) => JSON.parse(JSON.stringify(host.plot.data)));
}

/** The colours of the canvas at points in the chart's units, and the colours of the style sheet with these names. */
function pixels(page, chart, points, names) {
  return page.$eval(
    `[data-chart="${chart}"] .plot`,
    ({ plot }, [points, names]) => {
      const { width, height } = plot.ctx.canvas;
      const image = plot.ctx.getImageData(0, 0, width, height).data;
      const drawn = points.map(([x, y]) => {
        const i = 4 * (Math.floor(plot.valToPos(y, "y", true)) * width + Math.floor(plot.valToPos(x, "x", true)));
        return `#${[...image.slice(i, i + 3)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      });
      const style = getComputedStyle(document.documentElement);
      const named = names.map((name) => style.getPropertyValue(`--${name}`).trim());
      // A canvas may round each channel of a colour up or down by one.
      const channels = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
      const same = (a, b) => channels(a).every((value, i) => Math.abs(value - channels(b)[i]) <= 1);
      return { drawn: drawn.map((colour, i) => (same(colour, named[i]) ? named[i] : colour)), named };
    },
    [points, names],
  );
}
