// Tests that the page of a load shows the values of its Record.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows, read } from "./documents.mjs";

const example = read("./load-example.json");

test("the example follows its schema", () => assertFollows(example, "record"));

test("its charts and tables show the figures of the Record", async () => {
  await withReport(example, {}, async (page) => {
    assert.ok((await page.textContent("h1")).includes(`${example.counts.scheduled.toLocaleString("en-US")} calls`));
    assert.equal(await page.locator("canvas").count(), 2);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|null|\[object/);
    const drawn = await page.$eval('[data-chart="throughput"] .plot', (host) => JSON.parse(JSON.stringify(host.plot.data)));
    assert.deepEqual(drawn[2], example.intervals.map((interval) => interval.completed / interval.length_s));
    const calls = await rows(page, "calls");
    assert.equal(calls.reduce((sum, row) => sum + row.calls, 0), example.counts.scheduled, "every call is in one row");
    const times = await rows(page, "times");
    assert.deepEqual(times.slice(0, 2).map((row) => row.p90), [example.response_time_us.p90, example.service_time_us.p90]);
    assert.equal(await page.textContent('[data-table="times"] [data-key="p999"]'), "–", "too few calls for this percentile");
    assert.equal(await page.textContent('[data-key="server"]'), example.target);
    assert.equal(await page.textContent('[data-key="command"]'), example.command.join(" "));
  });
});

test("sessions are listed by outcome", async () => {
  const { sessions } = example;
  assert.ok(sessions.completed > 0 && sessions.failed > 0);
  await withReport(example, {}, async (page) => {
    const outcomes = await rows(page, "session-outcomes");
    assert.deepEqual(outcomes.map((row) => row.sessions), [sessions.completed, sessions.failed, sessions.in_progress]);
    const figures = await rows(page, "sessions");
    const expected = [
      ...[sessions.calls, sessions.bursts, sessions.lifetime_s, sessions.connections],
      ...[sessions.failed_calls, sessions.failed_bursts, sessions.failed_lifetime_s, sessions.failed_connections],
    ];
    assert.deepEqual(figures.map((row) => [row.mean, row.p50, row.max]), expected.map((figure) => [figure.mean, figure.p50, figure.max]));
  });
});

test("response times of fast errors are listed apart", async () => {
  const times = (p50) => ({ ...example.response_time_us, count: 1000, p50 });
  const status_classes = {
    "5xx": { count: 1000, response_time_us: times(400), service_time_us: times(390) },
    "2xx": { count: 2000, response_time_us: times(40000), service_time_us: times(39000) },
  };
  await withReport({ ...example, status_classes }, {}, async (page) => {
    const statuses = await rows(page, "statuses");
    assert.deepEqual(statuses.map((row) => [row.status, row.answers, row.p50]), [["2xx", 2000, 40000], ["5xx", 1000, 400]]);
  });
  await withReport({ ...example, status_classes: { "2xx": status_classes["2xx"] } }, {}, async (page) => {
    assert.equal(await page.locator('[data-table="statuses"]').count(), 0, "all responses are of one class");
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));

test("a load without any completed call has a page as well", async () => {
  const nothing = { response_time_us: null, service_time_us: null, connect_time_us: null, first_byte_us: null, lateness_us: null };
  const verdict = { valid: false, failing: true, reasons: [{ code: "ports", message: "this host had no local port left" }] };
  const counts = { ...example.counts, completed: 0, refused: example.counts.completed };
  await withReport({ ...example, ...nothing, verdict, counts, intervals: [], sessions: null, classes: {} }, {}, async (page) => {
    assert.equal(await page.locator("canvas").count(), 0);
    assert.match(await page.textContent('[data-key="caveats"]'), /no local port left/);
    assert.match(await page.textContent('[data-key="verdict"]'), /INVALID/);
    assert.doesNotMatch(await page.textContent("main"), /NaN|Infinity|undefined|\[object/);
  });
});
