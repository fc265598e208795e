import {
  type JsonSchema,
  type MediaType,
  type OpenApiDocument,
  openApiDocument,
  type Parameter,
  type ResponseObject,
} from "../../../contract/openapi.ts";
import { ERROR_CATALOGUE, type ErrorCode } from "../../../domain/errors.ts";
import { DOCS_STYLE } from "./style.ts";

/** The node's API reference, for programs and for people. */
export type Reference = ReturnType<typeof writeReference>;

export function writeReference(version: string) {
  const document = openApiDocument(version);
  return { openApi: JSON.stringify(document), page: docsPage(document), style: DOCS_STYLE };
}

/** The API reference as one HTML page without scripts, complete without internet access. */
function docsPage(document: OpenApiDocument) {
  const operations = operationsOf(document);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} ${document.info.version}: API reference</title>
<link rel="stylesheet" href="docs/style.css">
<link rel="icon" href="data:,">
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${navigation(document, operations)}
<main id="main">
${introduction(document)}
${document.tags.map((tag) => tagSection(tag, operations))}
${errorSection()}
${schemaSection(document)}
</main>
</body>
</html>
`.markup;
}

type PlacedOperation = ReturnType<typeof operationsOf>[number];

function operationsOf(document: OpenApiDocument) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
}

function navigation(document: OpenApiDocument, operations: readonly PlacedOperation[]) {
  return html`<nav aria-label="Routes">
<p class="brand"><a href="./">Fencepost</a> <span>${document.info.version}</span></p>
${document.tags.map(
  (tag) =>
    html`<h2>${tag.name}</h2><ul>${operations.filter((placed) => placed.operation.tags.includes(tag.name)).map(navigationEntry)}</ul>`,
)}
<h2>Reference</h2><ul><li><a href="#errors">Errors</a></li><li><a href="#schemas">Schemas</a></li><li><a href="openapi.json">openapi.json</a></li></ul>
</nav>`;
}

function navigationEntry({ method, operation }: PlacedOperation) {
  return html`<li><a href="#${operation.operationId}">${badge(method)} ${operation.summary}</a></li>`;
}

function badge(method: string) {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

function introduction(document: OpenApiDocument) {
  return html`<header>
<h1>API reference</h1>
<p>${document.info.description}</p>
<p>Requests and answers are JSON. Where the node has API keys, send one with each request:</p>
<pre><code>curl -H "Authorization: Bearer $FENCEPOST_API_KEY" http://127.0.0.1:3000/api/v1/signers</code></pre>
<p>Quantities may be decimal strings, 0x hex or safe integers; answers always use decimal strings, in wei. Every failure is a
problem document (RFC 9457) with a stable <a href="#errors">code</a>.</p>
</header>`;
}

function tagSection(tag: OpenApiDocument["tags"][number], operations: readonly PlacedOperation[]) {
  const own = operations.filter(({ operation }) => operation.tags.includes(tag.name));
  return html`<section><h2>${tag.name}</h2><p>${tag.description}</p>${own.map(operationArticle)}</section>`;
}

function operationArticle(placed: PlacedOperation) {
  const { method, path, operation } = placed;
  const open = operation.security === undefined ? null : html`<span class="open">no key needed</span>`;
  return html`<article id="${operation.operationId}">
<h3>${operation.summary}</h3>
<p class="route">${badge(method)} <code>${path}</code> ${open}</p>
${operation.description === undefined ? null : html`<p>${prose(operation.description)}</p>`}
${parametersTable(operation.parameters ?? [])}
${requestView(placed)}
<h4>Answers</h4>
${Object.entries(operation.responses).map(([status, response]) => responseView(status, response))}
</article>`;
}

function parametersTable(parameters: readonly Parameter[]) {
  if (parameters.length === 0) return null;
  const rows = parameters.map((parameter) => {
    const where = parameter.in === "query" ? "" : ` (${parameter.in})`;
    const { description = "" } = parameter;
    return fieldRow(`${parameter.name}${where}`, { ...parameter.schema, description }, parameter.required);
  });
  return html`<h4>Parameters</h4>${table(["name", "type"], rows)}`;
}

function requestView({ path, operation }: PlacedOperation) {
  const media = operation.requestBody?.content["application/json"];
  if (media === undefined) return null;
  const examples = Object.entries(media.examples ?? {});
  return html`<h4>Body: ${typeOf(media.schema ?? {})}</h4>
${examples.map(
  ([
    name,
    example,
  ]) => html`<details${name === examples[0]?.[0] ? html` open` : null}><summary>Example: ${name}</summary>
<pre><code>curl -X POST http://127.0.0.1:3000${path} \\
  -H "content-type: application/json" \\
  -d '${json(example.value)}'</code></pre></details>`,
)}`;
}

function responseView(status: string, response: ResponseObject) {
  const [contentType, media] = Object.entries(response.content ?? {})[0] ?? [];
  const failure = contentType === "application/problem+json";
  return html`<div class="answer"><p><span class="status s${status.slice(0, 1)}">${status}</span> ${
    failure ? errorLinks(media) : response.description
  }${failure || media?.schema === undefined ? null : html` <span class="body">${typeOf(media.schema)}</span>`}</p>
${media?.example === undefined ? null : html`<details><summary>Example</summary><pre><code>${json(media.example)}</code></pre></details>`}</div>`;
}

function errorLinks(media: MediaType | undefined) {
  const codes = Object.keys(media?.examples ?? {});
  return html`${codes.map((code) => html`<a class="code" href="#${code}"><code>${code}</code></a> `)}`;
}

const RETRY_ADVICE = {
  never: "The same request will fail again.",
  later: "Repeat it later, with the same requestId.",
  elsewhere: "Send it to the node named by ownerUrl.",
} as const;

function errorSection() {
  const rows = (Object.keys(ERROR_CATALOGUE) as ErrorCode[]).map((code) => {
    const { status, title, retry } = ERROR_CATALOGUE[code];
    return html`<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${title}. ${RETRY_ADVICE[retry]}</td></tr>`;
  });
  return html`<section id="errors"><h2>Errors</h2>${table(["code", "status"], rows)}</section>`;
}

function schemaSection(document: OpenApiDocument) {
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) => html`<article id="schema-${name}"><h3>${name}</h3>
${typeof schema.description === "string" ? html`<p>${prose(schema.description)}</p>` : null}${schemaView(schema)}</article>`,
  );
  return html`<section id="schemas"><h2>Schemas</h2>${schemas}</section>`;
}

function json(value: unknown) {
  return JSON.stringify(value, null, 2);
}

/** Shows a schema: a table of fields for an object, a short text for anything else. */
function schemaView(schema: JsonSchema) {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (properties.length === 0) return html`<p class="type">${typeOf(schema)}</p>`;
  const required = (schema.required ?? []) as readonly string[];
  return table(
    ["field", "type"],
    properties.map(([name, field]) => fieldRow(name, field, required.includes(name))),
  );
}

function table([first, second]: readonly [string, string], rows: readonly Html[]) {
  return html`<table class="fields">
<thead><tr><th scope="col">${first}</th><th scope="col">${second}</th><th scope="col">meaning</th></tr></thead>
<tbody>${rows}</tbody></table>`;
}

function fieldRow(name: string, field: JsonSchema, required: boolean) {
  return html`<tr><td><code>${name}</code>${required ? null : html` <span class="optional">optional</span>`}</td>
<td>${typeOf(field)}</td><td>${meaningOf(field)}</td></tr>`;
}

function typeOf(schema: JsonSchema): Html {
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (Array.isArray(schema.anyOf)) {
    return html`${(schema.anyOf as JsonSchema[]).map((each, index) => html`${index === 0 ? "" : " or "}${typeOf(each)}`)}`;
  }
  if (schema.type === "array") return html`array of ${typeOf((schema.items ?? {}) as JsonSchema)}`;
  if (Array.isArray(schema.enum)) return html`${schema.enum.map((word) => html`<code>${String(word)}</code> `)}`;
  if (schema.type === undefined) return html`anything`;
  const types = [schema.type].flat().join(" or ");
  return html`${types}${typeof schema.format === "string" ? ` (${schema.format})` : ""}`;
}

function meaningOf(field: JsonSchema) {
  const limits = [
    limit("from", field.minimum),
    limit("to", field.maximum === Number.MAX_SAFE_INTEGER ? undefined : field.maximum),
    limit("at most", field.maxLength, "characters"),
    limit("default", field.default),
  ].filter((text) => text !== null);
  const description = typeof field.description === "string" ? field.description : "";
  return html`${prose(description)}${limits.length === 0 ? null : html` <span class="limits">${limits.join(", ")}</span>`}`;
}

function limit(word: string, value: unknown, unit = "") {
  return value === undefined ? null : `${word} ${String(value)} ${unit}`.trim();
}

/** HTML markup whose text is already escaped. */
interface Html {
  readonly markup: string;
}

type Content = string | number | Html | readonly Html[] | null;

/** Template tag for HTML: values are escaped unless they are markup themselves. */
function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { markup: parts.reduce((text, part, index) => text + contentOf(values[index - 1] ?? null) + part) };
}

/** Formats prose of the API contract: `words` between backticks become code. */
function prose(text: string): Html {
  const parts = text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
  return html`${parts}`;
}

function contentOf(value: Content) {
  if (value === null) return "";
  if (typeof value === "string" || typeof value === "number") return escaped(String(value));
  return "markup" in value ? value.markup : value.map(({ markup }) => markup).join("");
}

function escaped(text: string) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
