// The documents that tests read, and the schemas that are published in schema/ at the repository's root.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
ajv.addSchema(schemaOf("common"), "common.schema.json");

/** A JSON file, by its path from this directory. */
export function read(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
}

/** What is wrong with a schema; null if it is one. */
export const wrongSchema = (kind) => (ajv.validateSchema(schemaOf(kind)) ? null : ajv.errors);

/** What of a document is not as its schema has it; null if all is. */
export function wrong(document, kind) {
  const valid = ajv.getSchema(kind) ?? ajv.addSchema(schemaOf(kind), kind).getSchema(kind);
  return valid(document) ? null : valid.errors;
}

export function assertFollows(document, kind, name = "the example") {
  const errors = wrong(document, kind);
  assert.equal(errors, null, `${name}: ${JSON.stringify(errors, null, 1)}`);
}

function schemaOf(kind) {
  return read(`../../schema/${kind}.schema.json`);
}
