// Reads documents for the tests, and validates them against the JSON Schemas in schema/.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema(schemaOf("common"), "common.schema.json");

/** Reads a JSON file. The path is relative to this directory. */
export function read(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
}

/** The errors of a schema; null if it is valid. */
export const schemaErrors = (kind) => (ajv.validateSchema(schemaOf(kind)) ? null : ajv.errors);

/** The errors of a document by its schema; null if it is valid. */
export function documentErrors(document, kind) {
  const validate = ajv.getSchema(kind) ?? ajv.addSchema(schemaOf(kind), kind).getSchema(kind);
  return validate(document) ? null : validate.errors;
}

/** Fails unless the document is valid by its schema. */
export function assertFollows(document, kind, name = "the example") {
  const errors = documentErrors(document, kind);
  assert.equal(errors, null, `${name}: ${JSON.stringify(errors, null, 1)}`);
}

function schemaOf(kind) {
  return read(`../../schema/${kind}.schema.json`);
}
