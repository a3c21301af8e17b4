// The documents follow the schemas that are published in schema/ at the repository's root.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertFollows, read, wrong, wrongSchema } from "./documents.mjs";

const example = read("../example.survey.json");

test("the example survey follows its schema", () => assertFollows(example, "survey"));

test("a survey without its verdict does not", () => {
  const { verdict: _, ...without } = example;
  assert.notEqual(wrong(without, "survey"), null);
});

test("every schema is one", () => {
  for (const name of ["common", "record", "survey", "workload", "model", "solution", "what-if", "calibration", "forecast"]) {
    assert.equal(wrongSchema(name), null, name);
  }
});
