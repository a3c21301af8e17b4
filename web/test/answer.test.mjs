// Tests the main results at the top of the page of a survey: one figure for each objective.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, badLabels, near, recordLabels, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";

const example = read("../example.survey.json");
const CAPACITY = example.saturation_rate.measured;
const UNMEASURED = { measured: null, error: null };

/** The example with a change to its objective, and with `rate` merged into the objective's rate. */
function withObjective({ rate = {}, ...fields }, survey = example) {
  const changed = structuredClone(survey);
  Object.assign(changed.objectives[0], fields);
  Object.assign(changed.objectives[0].rate, rate);
  return changed;
}

/** A survey of each outcome: the sentence, the end of the shaded rates, and the texts in the plots. */
const OUTCOMES = {
  met: {
    survey: example,
    sentence: "Keep the load below 361/s if 99 % of calls are to take less than 150 ms: that is 97 % of its capacity.",
    end: 361.4,
    texts: ["capacity 372/s", "p99 < 150 ms", "up to 361/s", "limit 150 ms", "permitted 1 %", "358/s (90 % interval 347 … 366/s)", "361/s (90 % interval 355 … 367/s)"],
  },
  met_up_to_capacity: {
    survey: withObjective({ objective: "p99<2s", limit: 2, outcome: "met_up_to_capacity", rate: { measured: CAPACITY }, measured_interval90: [364, CAPACITY] }),
    sentence: "Even at the capacity of 372/s, 99 % of calls take less than 2 s.",
    end: CAPACITY,
    texts: ["p99 < 2 s", "up to 372/s", "limit 2 s", "372/s (90 % interval 364 … 372/s)"],
  },
  missed: {
    survey: withObjective({
      objective: "p99<5ms",
      limit: 0.005,
      outcome: "missed_at_light_load",
      rate: { ...UNMEASURED, predicted: null, interval90: null },
      measured_interval90: null,
      slices: [],
    }),
    sentence: "Even at light load, more than 1 % of calls take longer than 5 ms: there, p99 is 15.0 ms.",
    end: null,
    texts: ["p99 < 5 ms is missed", "even at light load", "limit 5 ms", "not predicted", "missed at light load"],
  },
  undecided: {
    survey: withObjective({ outcome: "undecided", rate: UNMEASURED, measured_interval90: [250, 340] }),
    sentence: "The rate below which 99 % of calls take less than 150 ms is between 250/s and 340/s: this host was too unsteady to measure it more precisely.",
    end: 250,
    texts: ["at least", "up to 250/s", "90 % interval 250 … 340/s"],
  },
  predicted: {
    survey: withObjective({ outcome: "undecided", rate: UNMEASURED, measured_interval90: null, slices: [] }),
    sentence: "By the model, keep the load below 358/s if 99 % of calls are to take less than 150 ms; that was not measured.",
    end: 357.9,
    texts: ["predicted", "up to 358/s", "not measured"],
  },
  unknown: {
    survey: withObjective({ objective: "errors<0.01", limit: 0.01, outcome: "undecided", rate: { ...UNMEASURED, predicted: null, interval90: null }, measured_interval90: null, slices: [] }),
    sentence: "The rate below which less than 1 % of calls fail was neither predicted nor measured.",
    end: null,
    texts: ["limit 1 %", "not predicted", "not measured"],
  },
  invalid: {
    survey: { ...example, verdict: { valid: false, reasons: [{ code: "generator_late", message: "Calls began late." }] } },
    sentence: "Not determined: the survey is not valid.",
    end: null,
    texts: ["361/s (90 % interval 355 … 367/s)"],
  },
};

OUTCOMES.refuted = {
  survey: { ...OUTCOMES.predicted.survey, verdict: { valid: false, reasons: [{ code: "model_refuted", message: "Far off." }] } },
  sentence: "Not determined: the measurements refute the model, and the rate was only predicted.",
  end: null,
  texts: ["358/s (90 % interval 347 … 366/s)"],
};

for (const [name, { survey, sentence, end, texts }] of Object.entries(OUTCOMES)) {
  test(`the picture of an objective, ${name.replaceAll("_", " ")}: sentence, shaded rates and labels`, async () => {
    assertFollows(survey, "survey", name);
    await withReport(survey, { before: recordLabels }, async (page) => {
      assert.equal(plain(await page.textContent('[data-chart="answer-0"] [data-key="answer"]')), sentence);
      const plots = await page.locator('[data-chart="answer-0"] .plot').count();
      for (let i = 0; i < plots; i++) {
        const { shaded, pixel } = await shadedEnd(page, i);
        if (end === null) assert.equal(shaded, null, `plot ${i}`);
        else assert.ok(Math.abs(shaded - end) <= 2 * pixel, `plot ${i}: shaded up to ${shaded}, not ${end}`);
      }
      const written = await page.evaluate(() => [...globalThis.labels.values()].flat().map(({ text }) => text));
      for (const text of texts) assert.ok(written.map(plain).includes(text), `"${text}" is not among ${written.join(" | ")}`);
      assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null/);
    });
  });
}

test("the picture is before the key figures, and its sentence agrees with the headline", async () => {
  await withReport(example, {}, async (page) => {
    const isBefore = await page.evaluate(() => {
      const [answer, cards] = ["section.answers", "dl.figures"].map((selector) => document.querySelector(selector));
      return (answer.compareDocumentPosition(cards) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    });
    assert.ok(isBefore);
    const { sentence } = OUTCOMES.met;
    assert.ok(example.headline.includes(sentence.replace("Keep the load below ", "").replace(/: that is.*/, "")));
  });
});

test("a survey without objectives has no such picture", async () => {
  const { objectives: _, ...old } = example;
  for (const survey of [old, { ...example, objectives: [] }]) {
    await withReport(survey, {}, async (page) => {
      assert.equal(await page.locator(".answers, [data-chart^=answer]").count(), 0);
      assert.equal(await page.locator('[data-chart="throughput"] canvas').count(), 1);
    });
  }
});

test("the throughput is drawn with the line of an ideal server", async () => {
  await withReport(example, {}, async (page) => {
    const [x, ideal, completed] = await data(page, 0);
    assert.deepEqual(ideal, x.map((offered) => Math.min(offered, CAPACITY)));
    for (const bend of [0, CAPACITY]) assert.ok(x.includes(bend), `${bend}`);
    assert.ok(x.at(-1) > CAPACITY);
    const mix = example.levels.filter((level) => level.workload === "mix");
    assert.equal(completed.filter((y) => y !== null).length, mix.length);
    for (const level of mix) assert.ok(completed.some((y, i) => x[i] === level.offered && y === level.throughput.measured), `${level.offered}`);
  });
});

test("each slice is a point, and the curve is the share of all calls beyond the limit", async () => {
  const { slices } = example.objectives[0];
  const sorted = [...slices].sort((a, b) => a.rate - b.rate);
  await withReport(example, {}, async (page) => {
    const [x, , figures] = await data(page, 1);
    for (const slice of slices) assert.equal(figures[x.indexOf(slice.rate)], slice.figure);
    const levels = example.levels.filter((level) => level.workload === "mix" && level.role !== "past_saturation");
    for (const level of levels) assert.equal(figures[x.indexOf(level.offered)], level.response_percentiles_s.p99.measured);
    const [rates, curve] = await data(page, 2);
    assert.deepEqual(rates, sorted.map((slice) => slice.rate));
    curve.forEach((share, i) => assert.ok(i === 0 || share >= curve[i - 1], `${curve}`));
    near(sum(curve.map((share, i) => share * sorted[i].calls)), sum(slices.map((slice) => slice.beyond)));
    // The measured shares at 357.7, 358.2 and 359.0/s do not increase with the rate. The curve must never decrease, so
    // it shows their average at all three rates.
    for (const share of curve.slice(1, 4)) near(share, 8 / (425 + 429 + 428));
    const table = await rows(page, "answer-0");
    assert.deepEqual(table, sorted.map(({ rate, calls, beyond, figure }) => ({ rate, calls, beyond, figure })));
  });
});

test("the curve of a mean averages the slices by their calls, and light load is drawn for a class", async () => {
  const slices = [
    { rate: 200, calls: 100, beyond: 60, figure: 0.02 },
    { rate: 250, calls: 300, beyond: 40, figure: 0.01 },
    { rate: 300, calls: 100, beyond: 90, figure: 0.05 },
  ];
  const survey = withObjective({ objective: "mean<15ms", limit: 0.015, slices });
  await withReport(survey, {}, async (page) => {
    const [x, curve] = await data(page, 1);
    assert.deepEqual(slices.map(({ rate }) => curve[x.indexOf(rate)]), [0.0125, 0.0125, 0.05]);
    assert.match(plain(await page.textContent('[data-chart="answer-0"] [data-key="answer"]')), /if calls are to take less than 15 ms on average/);
  });
  const rare = withObjective({ objective: "search:p90<5ms" }, OUTCOMES.missed.survey);
  await withReport(rare, { before: recordLabels }, async (page) => {
    assert.match(plain(await page.textContent('[data-chart="answer-0"] h3')), /search: p90 < 5 ms$/);
    assert.match(plain(await page.textContent('[data-chart="answer-0"] [data-key="answer"]')), /more than 10 % of calls of class search take longer than 5 ms/);
    assert.ok(await page.evaluate(() => [...globalThis.labels.values()].flat().some(({ text }) => text === "light load")));
  });
});

test("a slice without a value is a cross at the upper edge", async () => {
  const slices = [...example.objectives[0].slices, { rate: 300, calls: 400, beyond: 90, figure: null }];
  await withReport(withObjective({ slices }), {}, async (page) => {
    const plot = page.locator('[data-chart="answer-0"] .plot').nth(1);
    const [top, red, colour] = await plot.evaluate((host) => {
      const { plot } = host;
      const edge = Math.floor(plot.valToPos(300, "x", true));
      const height = Math.floor(0.15 * plot.bbox.height);
      const image = plot.ctx.getImageData(edge - 1, plot.bbox.top, 3, height).data;
      const name = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
      const pixels = Array.from({ length: image.length / 4 }, (_, i) => `#${[...image.slice(4 * i, 4 * i + 3)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`);
      return [height, pixels.filter((pixel) => pixel === name).length, name];
    });
    assert.ok(red > 0, `no pixel of ${colour} within ${top} pixels of the edge`);
    await plot.focus();
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press("ArrowRight");
      const text = plain(await plot.locator(".readout").textContent());
      if (text.startsWith("300/s")) return assert.equal(text, "300/s offered, slice of the search✗ no p99: too many calls had no expected answer90 of 400 calls beyond 150 ms");
    }
    assert.fail("the arrow keys do not reach the slice");
  });
});

test("the intervals of the rate are bars: a band for the prediction, a line for the measurement", async () => {
  const [low, high] = example.objectives[0].rate.interval90;
  const [from, to] = example.objectives[0].measured_interval90;
  await withReport(example, {}, async (page) => {
    const [band, line] = await page.evaluate(() => ["band80", "held_out"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()));
    const [predicted, measured] = [1.3, 0.3];
    const inside = [[low + 3, predicted], [high - 2, predicted], [from + 2, measured], [to - 2, measured]];
    const beside = [[low - 3, predicted], [high + 3, predicted], [from - 3, measured], [to + 3, measured]];
    const drawn = await colours(page, 3, [...inside, ...beside]);
    assert.deepEqual(drawn.slice(0, 4), [band, band, line, line]);
    for (const colour of drawn.slice(4)) assert.ok(colour !== band && colour !== line, colour);
  });
});

test("the pointer and the arrow keys show a slice in words", async () => {
  await withReport(example, {}, async (page) => {
    const plot = page.locator('[data-chart="answer-0"] .plot').nth(1);
    await plot.focus();
    await page.keyboard.press("ArrowLeft");
    assert.equal(plain(await plot.locator(".readout").textContent()), "366/s offered, slice of the searchp99 187 ms ✗ beyond the limit11 of 444 calls beyond 150 ms");
    await page.locator('[data-chart="answer-0"] .plot').nth(3).focus();
    await page.keyboard.press("ArrowLeft");
    assert.match(plain(await page.locator('[data-chart="answer-0"] .readout').last().textContent()), /^rate with p99 < 150 msmeasured 361\/s \(90 % interval 355 … 367\/s\)$/);
  });
});

test("further objectives have smaller figures below the first", async () => {
  const survey = structuredClone(example);
  const [objective] = survey.objectives;
  survey.objectives.push({ ...objective, objective: "search:p95<1s", limit: 1 }, { ...objective, objective: "errors<0.01", limit: 0.01, slices: objective.slices.map((slice) => ({ ...slice, figure: 0, beyond: 0 })) });
  await withReport(survey, {}, async (page) => {
    const boxes = await page.$$eval("[data-chart^=answer]", (all) => all.map((figure) => figure.getBoundingClientRect()).map(({ top, bottom, width }) => ({ top, bottom, width })));
    assert.equal(boxes.length, 3);
    assert.ok(boxes[1].top >= boxes[0].bottom && boxes[1].width < boxes[0].width, "smaller, and below");
    assert.equal(boxes[1].top, boxes[2].top, "beside each other");
    const plots = await page.$$eval("[data-chart^=answer]", (all) => all.map((figure) => figure.querySelectorAll(".plot").length));
    assert.deepEqual(plots, [4, 3, 2]);
    assert.equal(plain(await page.textContent('[data-chart="answer-2"] [data-key="answer"]')), "Keep the load below 361/s if less than 1 % of calls are to fail: that is 97 % of its capacity.");
  });
});

test("the plots of a figure are aligned, and no label is cut off or overlaps another", async () => {
  for (const [name, { survey }] of Object.entries(OUTCOMES)) {
    for (const width of [1100, 360]) {
      await withReport(survey, { before: recordLabels, viewport: { width, height: 900 } }, async (page) => {
        const { bad } = await page.evaluate(badLabels);
        assert.deepEqual(bad, [], `${name} at ${width} pixels`);
        const lefts = await page.$$eval('[data-chart="answer-0"] .u-over', (all) => all.map((over) => [over.offsetLeft, over.offsetWidth].join()));
        assert.equal(new Set(lefts).size, 1, `${name} at ${width} pixels: ${lefts.join(" | ")}`);
      });
    }
  }
});

test("the picture fits on a phone, and its text can be read in light and dark", async () => {
  for (const name of ["met", "missed", "undecided"]) await assertReadable(OUTCOMES[name].survey, name);
});

test("the picture is printed", async () => {
  await withReport(example, { viewport: { width: 718, height: 1047 } }, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.isVisible('[data-chart="answer-0"] [data-key="answer"]'));
    assert.ok(await page.isVisible('[data-chart="answer-0"] canvas >> nth=3'));
    const { height } = await page.locator('[data-chart="answer-0"]').boundingBox();
    assert.ok(height < 1047, `${height} pixels do not fit on a page`);
  });
});

/** The text with plain spaces. */
function plain(text) {
  return text.replace(/[\u202f\u00a0]/g, " ");
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** The data of a plot of the first figure. */
function data(page, plot) {
  return page.$$eval('[data-chart="answer-0"] .plot', (hosts, i) => JSON.parse(JSON.stringify(hosts[i].plot.data)), plot);
}

/** The colours of a plot of the first figure at points in its units. */
function colours(page, plot, points) {
  return page.$$eval(
    '[data-chart="answer-0"] .plot',
    (hosts, [i, points]) => {
      const { plot } = hosts[i];
      const { width, height } = plot.ctx.canvas;
      const image = plot.ctx.getImageData(0, 0, width, height).data;
      return points.map(([x, y]) => {
        const at = 4 * (Math.floor(plot.valToPos(y, "y", true)) * width + Math.floor(plot.valToPos(x, "x", true)));
        return `#${[...image.slice(at, at + 3)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      });
    },
    [plot, points],
  );
}

/** The rate at which the shaded area of a plot ends, null if nothing is shaded, and the width of a pixel as a rate. */
function shadedEnd(page, plot) {
  return page.$$eval(
    '[data-chart="answer-0"] .plot',
    (hosts, i) => {
      const { plot } = hosts[i];
      const { left, top, width, height } = plot.bbox;
      const image = plot.ctx.getImageData(left, top, width, height).data;
      // The background of a column of pixels is its most frequent colour.
      const background = (x) => {
        const counts = new Map();
        for (let y = 0; y < height; y++) {
          const at = 4 * (y * width + x);
          const colour = image.slice(at, at + 3).join();
          counts.set(colour, (counts.get(colour) ?? 0) + 1);
        }
        return [...counts].sort((a, b) => b[1] - a[1])[0][0];
      };
      const shade = background(3);
      const surface = background(width - 3);
      let x = width - 3;
      while (x > 0 && background(x) !== shade) x -= 1;
      return { shaded: shade === surface ? null : plot.posToVal(left + x, "x", true), pixel: plot.scales.x.max / width };
    },
    plot,
  );
}
