// Writes src/api/types.ts from the server's OpenAPI document, so that page and server cannot drift apart.
//
//   npm run types            writes the file
//   npm run types -- --check exits 1 if the file is not what the document says
//
// Written out here because the generators that exist drag in more than they do: the document uses objects, arrays,
// enums, `$ref`, `oneOf`/`anyOf`/`allOf`, nullable types and maps, and nothing else.

import { readFileSync, writeFileSync } from "node:fs";

const source = new URL("../../server/openapi.json", import.meta.url);
const target = new URL("../src/api/types.ts", import.meta.url);
const { components } = JSON.parse(readFileSync(source, "utf8"));

const comment = (text, indent) =>
  text ? `${indent}/** ${text.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n` : "";

function typeOf(schema, indent) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  for (const [key, joint] of [
    ["oneOf", " | "],
    ["anyOf", " | "],
    ["allOf", " & "],
  ]) {
    if (schema[key]) return [...new Set(schema[key].map((one) => typeOf(one, indent)))].join(joint);
  }
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const kinds = Array.isArray(schema.type) ? schema.type : [schema.type];
  const types = kinds.map((kind) => plainType(kind, schema, indent));
  if (schema.nullable) types.push("null");
  return types.join(" | ");
}

function plainType(kind, schema, indent) {
  switch (kind) {
    case "integer":
    case "number":
      return "number";
    case "string":
      return "string";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      if (schema.prefixItems) return `readonly [${schema.prefixItems.map((one) => typeOf(one, indent)).join(", ")}]`;
      const inner = typeOf(schema.items, indent);
      return /[|&]|^readonly /.test(inner) ? `readonly (${inner})[]` : `readonly ${inner}[]`;
    }
    case "object":
    case undefined:
      return objectType(schema, indent);
    default:
      throw new Error(`openapi.json has a type that this script does not know: ${kind}`);
  }
}

function objectType(schema, indent) {
  if (!schema.properties) {
    return schema.additionalProperties
      ? `Readonly<Record<string, ${typeOf(schema.additionalProperties, indent)}>>`
      : "unknown";
  }
  return `{\n${fields(schema, `${indent}  `)}${indent}}`;
}

function fields(schema, indent) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties)
    .map(([name, one]) => {
      // What may be null is always there: the server writes null, and the document does not call it required.
      const type = typeOf(one, indent);
      const mark = required.has(name) || /\bnull\b/.test(type) ? "" : "?";
      return `${comment(one.description, indent)}${indent}readonly ${name}${mark}: ${type};\n`;
    })
    .join("");
}

const parts = Object.entries(components?.schemas ?? {})
  .sort(([left], [right]) => (left < right ? -1 : 1))
  .map(([name, schema]) => {
    const head = comment(schema.description, "");
    const isObject = schema.properties !== undefined && !schema.oneOf && !schema.anyOf && !schema.allOf;
    return isObject
      ? `${head}export interface ${name} {\n${fields(schema, "  ")}}\n`
      : `${head}export type ${name} = ${typeOf(schema, "")};\n`;
  });
const text = `// Generated from server/openapi.json by \`npm run types\`.\n\n${parts.join("\n")}`;

if (process.argv.includes("--check")) {
  const same = readFileSync(target, "utf8") === text;
  if (!same) console.error("src/api/types.ts is not what server/openapi.json says; write it anew with: npm run types");
  process.exit(same ? 0 : 1);
}
writeFileSync(target, text);
