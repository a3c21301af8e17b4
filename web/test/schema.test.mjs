// The documents follow the schemas that are published in schema/ at the repository's root.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { DOCUMENTS, place, types } from "../document-types.mjs";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
const example = read("../example.survey.json");
const valid = ajv.compile(read("../../schema/survey.schema.json"));

test("the example survey follows its schema", () => {
  assert.ok(valid(example), JSON.stringify(valid.errors, null, 1));
});

test("a survey without its verdict does not", () => {
  const { verdict: _, ...without } = example;
  assert.ok(!valid(without));
});

test("every schema is one", () => {
  for (const name of ["record", "survey", "workload", "model", "solution", "what-if", "calibration", "forecast"]) {
    const schema = read(`../../schema/${name}.schema.json`);
    assert.ok(ajv.validateSchema(schema), `${name}: ${JSON.stringify(ajv.errors)}`);
  }
});

test("the page's types are those of the schemas", () => {
  for (const name of DOCUMENTS) {
    assert.equal(readFileSync(place(name), "utf8"), types(name), `${name}: \`npm --prefix web run types\` writes it anew`);
  }
});
