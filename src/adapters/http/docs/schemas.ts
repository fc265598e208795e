import type { JsonSchema } from "../../../contract/openapi.ts";
import { type Html, html, prose } from "./html.ts";

/** A schema for readers: a table of fields for objects, a short text for all else. */
export function schemaView(schema: JsonSchema): Html {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (properties.length === 0) return html`<p class="type">${typeOf(schema)}</p>`;
  const required = (schema.required ?? []) as readonly string[];
  return html`<table class="fields">
<thead><tr><th scope="col">field</th><th scope="col">type</th><th scope="col">meaning</th></tr></thead>
<tbody>${properties.map(([name, field]) => fieldRow(name, field, required.includes(name)))}</tbody>
</table>`;
}

export function fieldRow(name: string, field: JsonSchema, required: boolean): Html {
  return html`<tr><td><code>${name}</code>${required ? null : html` <span class="optional">optional</span>`}</td>
<td>${typeOf(field)}</td><td>${meaningOf(field)}</td></tr>`;
}

export function typeOf(schema: JsonSchema): Html {
  if (typeof schema.$ref === "string") return referenceTo(schema.$ref);
  if (Array.isArray(schema.anyOf)) return oneOf(schema.anyOf as readonly JsonSchema[]);
  if (schema.type === "array") return html`array of ${typeOf((schema.items ?? {}) as JsonSchema)}`;
  if (Array.isArray(schema.enum)) return html`${schema.enum.map((word) => html`<code>${String(word)}</code> `)}`;
  if (schema.type === undefined) return html`anything`;
  const types = [schema.type].flat().join(" or ");
  return html`${types}${typeof schema.format === "string" ? ` (${schema.format})` : ""}`;
}

function referenceTo(reference: string): Html {
  const name = reference.split("/").at(-1) ?? reference;
  return html`<a href="#schema-${name}">${name}</a>`;
}

function oneOf(schemas: readonly JsonSchema[]): Html {
  return html`${schemas.map((schema, index) => html`${index === 0 ? "" : " or "}${typeOf(schema)}`)}`;
}

function meaningOf(field: JsonSchema): Html {
  const limits = [
    limit("from", field.minimum),
    limit("to", field.maximum === Number.MAX_SAFE_INTEGER ? undefined : field.maximum),
    limit("at most", field.maxLength, "characters"),
    limit("default", field.default),
  ].filter((text) => text !== null);
  const description = typeof field.description === "string" ? field.description : "";
  return html`${prose(description)}${limits.length === 0 ? null : html` <span class="limits">${limits.join(", ")}</span>`}`;
}

function limit(word: string, value: unknown, unit = ""): string | null {
  return value === undefined ? null : `${word} ${String(value)} ${unit}`.trim();
}
