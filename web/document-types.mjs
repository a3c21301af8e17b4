// The documents' types, from the schemas that the Rust types are written to: `npm run types` writes src/documents/, and a
// test holds them against schema/. A schema is what may be read: a field that may be left out is optional.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The documents that the pages show. */
export const DOCUMENTS = ["calibration", "forecast", "profile", "record", "solution", "survey", "what-if"];

/** Where a document's types are. */
export const place = (name) => new URL(`src/documents/${name}.ts`, import.meta.url);

/** The text of a document's types. */
export function types(name) {
  const schema = JSON.parse(readFileSync(new URL(`../schema/${name}.schema.json`, import.meta.url), "utf8"));
  const definitions = { [schema.title]: schema, ...schema.$defs };
  const parts = Object.entries(definitions).map(([title, definition]) => declaration(title, definition));
  return `// Written by document-types.mjs from schema/${name}.schema.json.\n\n${parts.join("\n\n")}\n`;
}

function declaration(title, definition) {
  const head = comment(definition.description, "");
  if (definition.properties && !definition.oneOf && !definition.anyOf) {
    return `${head}export interface ${title} ${object(definition, "")}`;
  }
  return `${head}export type ${title} = ${type(definition, "")};`;
}

function type(schema, indent) {
  if (schema === true || Object.keys(schema).every((key) => key === "description")) return "unknown";
  if (schema.$ref) return schema.$ref.replace("#/$defs/", "");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const any = [...new Set(choices.map((choice) => type(choice, indent)))].join(" | ");
    return schema.properties ? `${object(schema, indent)} & (${any})` : any;
  }
  return [schema.type].flat().map((kind) => simple(kind, schema, indent)).join(" | ");
}

function simple(kind, schema, indent) {
  switch (kind) {
    case "integer":
      return "number";
    case "array":
      return list(schema, indent);
    case "object":
      return schema.properties ? object(schema, indent) : `{ [key: string]: ${type(schema.additionalProperties ?? true, indent)} }`;
    default:
      return kind;
  }
}

function list(schema, indent) {
  if (schema.prefixItems) return `[${schema.prefixItems.map((item) => type(item, indent)).join(", ")}]`;
  const item = type(schema.items ?? true, indent);
  return /[ |&]/.test(item) ? `(${item})[]` : `${item}[]`;
}

function object(schema, indent) {
  const inner = `${indent}  `;
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const mark = schema.required?.includes(name) ? "" : "?";
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    return `${comment(field.description, inner)}${inner}${key}${mark}: ${type(field, inner)};`;
  });
  return `{\n${fields.join("\n")}\n${indent}}`;
}

function comment(text, indent) {
  return text ? `${indent}/** ${text.replace(/\s+/g, " ").replaceAll("*/", "* /")} */\n` : "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(new URL("src/documents/", import.meta.url), { recursive: true });
  DOCUMENTS.forEach((name) => writeFileSync(place(name), types(name)));
}
