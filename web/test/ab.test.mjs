// Tests that the page of `brimful ab` shows both servers, each difference, and the control runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertReadable, rows, withReport } from "./browser.mjs";
import { assertFollows } from "./documents.mjs";

const figure = (name, unit, a, b, rest) => ({
  name, unit, a, b, difference: b / a - 1, interval95: [b / a - 1.01, b / a - 0.99], p: 0.5, differs: false, detectable: 0.02, lower_is_better: unit !== "per_second", ...rest,
});
const side = (name, rest) => ({ name, url: `http://127.0.0.1/${name}`, slices: 24, left_out: 0, ...rest });
const example = {
  schema: "brimful.ab/1",
  headline: "B uses 10 % less CPU time per request (9 … 11 %).",
  run: { brimful_version: "0.1.0", started_at: "2026-11-28T10:00:00Z", command: ["brimful", "ab"], labels: { commit: "</script>abc" } },
  a: side("./old --port {port}"),
  b: side("./new --port {port}", { left_out: 2, server_software: "nginx/1.22.1" }),
  design: { method: "interleaved", method_reason: "as requested", workload: { class: [{ name: "all", weight: 1, method: "GET", path: "/" }], load: { rate: 700, arrivals: "constant" } }, slice_s: 1, seed: 7, control_is_second_process: true },
  stopping: { figure: "cpu", until: 0.01, half_width: 0.009, reason: "narrow", rounds: 12, elapsed_s: 70.5 },
  figures: [figure("throughput", "per_second", 700, 700), figure("cpu", "seconds", 0.0005, 0.00045, { p: 0.0001, differs: true })],
  control: { figures: [figure("throughput", "per_second", 700, 700), figure("cpu", "seconds", 0.0005, 0.000501)], outcome: "equal" },
  verdict: { valid: true, reasons: [] },
  warnings: ["the responses differ in length"],
};

test("the example follows its schema", () => assertFollows(example, "ab"));

test("the page shows the differences, the control and the method", async () => {
  await withReport(example, {}, async (page) => {
    assert.equal(await page.textContent("h1"), example.headline);
    const text = await page.textContent("main");
    assert.doesNotMatch(text, /NaN|Infinity|undefined|null|\[object/);
    for (const [name, figures] of [["figures", example.figures], ["control", example.control.figures]]) {
      assert.deepEqual((await rows(page, name)).map((row) => [row.a, row.b]), figures.map(({ a, b }) => [a, b]), name);
    }
    assert.equal(await page.textContent('[data-key="B"]'), "./new --port {port}, http://127.0.0.1/./new --port {port}, nginx/1.22.1, 24 slices, 2 left out");
    assert.equal(await page.textContent('[data-key="method"]'), "in turn (as requested)");
    assert.ok(text.includes("A compared with a second process of A") && text.includes("the responses differ in length."));
    assert.ok(text.includes("</script>abc"));
  });
});

test("it can be read on a phone and in the dark", () => assertReadable(example));
