// Tests that the example survey matches its JSON Schema in schema/.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertFollows, documentErrors, read, schemaErrors } from "./documents.mjs";

const example = read("../example.survey.json");

test("the example survey follows its schema", () => assertFollows(example, "survey"));

test("a survey without its verdict is refused", () => {
  const { verdict: _, ...without } = example;
  assert.notEqual(documentErrors(without, "survey"), null);
});

test("every schema is valid", () => {
  for (const name of ["common", "record", "survey", "workload", "model", "solution", "what-if", "calibration", "forecast"]) {
    assert.equal(schemaErrors(name), null, name);
  }
});
