/** Generates requests for the operations of an OpenAPI document: valid ones, almost valid ones, and nonsense. */
import fc, { type Arbitrary } from "fast-check";
import type { OpenApiDocument, Operation } from "../../../src/contract/openapi.ts";
import { inlined } from "../openapi-schemas.ts";
import { almost, fitting, stumbling } from "./values.ts";

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
}

/** Returns an id from earlier responses by its member's name; `pick` chooses one of them. */
export type Known = (name: string, pick: number) => string | undefined;

export interface Documented {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function documentedOperations(document: OpenApiDocument): readonly Documented[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

const JSON_TYPE = "application/json";
const OTHER_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "QUERY", "TRACE"];
/** Values for `wait`: zero or invalid, because a long poll ends only when something happens, which may be never. */
const WAITS = fc.constantFrom("0", "-1", "31", "1e1", "x", "", "0x1");
const BAD_SEGMENTS = [
  "%",
  "%ff",
  "%00",
  "..",
  ".",
  "a%2fb",
  "",
  "0",
  "completions",
  "batch",
  "x".repeat(300),
  "%F0%9F%92%A5",
];
const BAD_BODIES: readonly (string | Buffer)[] = [
  ...["", "{", "[1", "null", "7", '"x"', "{}{}", "\ufeff{}", '{"a":1e999}', '{"a":1,"a":2}', "{'a':1}", "[]", "true"],
  Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
  `${'{"a":'.repeat(200)}1${"}".repeat(200)}`,
  JSON.stringify({ signer: "x".repeat(300 * 1024) }),
];

/**
 * Generates requests of which at most one part is usually invalid, so that most of them pass the first checks; with
 * `valid`, requests of which no part is invalid.
 */
export function requestsFor(
  document: OpenApiDocument,
  { method, path, operation }: Documented,
  known: Known,
  valid = false,
): Arbitrary<FuzzRequest> {
  const usually = valid ? <T>(value: T) => fc.constant(value) : mostly;
  const parameters = operation.parameters ?? [];
  const named = (place: string) => parameters.filter((parameter) => parameter.in === place);
  const schemaOf = (schema: unknown) => inlined(document, schema) as object;
  const segments = fc.record(
    Object.fromEntries(named("path").map(({ name, schema }) => [name, segment(name, schemaOf(schema), known, valid)])),
  );
  const query = queryOf(
    named("query").map(({ name, required = false, schema }) => ({
      ...{ name, required },
      text: name === "wait" ? WAITS : valid ? fitting(schemaOf(schema)) : queryText(schemaOf(schema)),
    })),
  );
  const content = operation.requestBody?.content["application/json"];
  const schema =
    content === undefined ? undefined : { ...schemaOf(content.schema), examples: examplesOf(content.examples) };
  const body =
    schema === undefined
      ? usually<string | Buffer | null>(null, fc.constant("{}"))
      : valid
        ? fitting(schema).map(encodeBody)
        : bodyOf(schema);
  return fc
    .record({
      method: usually(method, fc.constantFrom(...OTHER_METHODS)),
      segments,
      query,
      extra: usually<readonly string[]>([], EXTRA_QUERY),
      headers: usually<Record<string, string>>({}, oddHeaders()).map((own) => ({ "content-type": JSON_TYPE, ...own })),
      body,
    })
    .map(({ segments, query, extra, headers, ...rest }) => {
      // A request without a body gets no content type, because a type without a body is an error by itself.
      const { "content-type": type = "", ...others } = headers;
      const isBare = schema === undefined && rest.body === null && type === JSON_TYPE;
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segments[name] ?? "");
      const pairs = [...Object.entries(query).map(([name, text]) => `${name}=${encodeText(text)}`), ...extra];
      return {
        ...rest,
        headers: isBare ? others : headers,
        path: pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`,
      };
    });
}

interface QueryField {
  readonly name: string;
  readonly required: boolean;
  readonly text: Arbitrary<unknown>;
}

/**
 * Either any of the query fields, or only the required ones, because many fields would make almost every request
 * invalid.
 */
function queryOf(fields: readonly QueryField[]): Arbitrary<Readonly<Record<string, unknown>>> {
  const requiredKeys = fields.filter(({ required }) => required).map(({ name }) => name);
  const recordOf = (some: readonly QueryField[]) =>
    fc.record(Object.fromEntries(some.map(({ name, text }) => [name, text])), { requiredKeys });
  return fc.oneof(
    { weight: 3, arbitrary: recordOf(fields) },
    { weight: 1, arbitrary: recordOf(fields.filter(({ required }) => required)) },
  );
}

function examplesOf(examples: Readonly<Record<string, { readonly value?: unknown }>> = {}): readonly unknown[] {
  return Object.values(examples).map(({ value }) => value);
}

function mostly<T>(value: T, other: Arbitrary<T>): Arbitrary<T> {
  return fc.oneof({ weight: 12, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: other });
}

/** A path segment: an id from a response, if there is one yet. */
function segment(name: string, schema: object, known: Known, valid: boolean): Arbitrary<string> {
  const sound = fc.tuple(fitting(schema), fc.nat()).map(([value, pick]) => known(name, pick) ?? encodeText(value));
  if (valid) return sound;
  return fc.oneof(
    { weight: 8, arbitrary: sound },
    { weight: 2, arbitrary: fitting(schema).map((value) => encodeText(value)) },
    { weight: 1, arbitrary: fc.constantFrom(...BAD_SEGMENTS) },
    { weight: 1, arbitrary: stumbling.map((value) => encodeText(value).slice(0, 300)) },
  );
}

function queryText(schema: object): Arbitrary<unknown> {
  return fc.oneof({ weight: 5, arbitrary: fitting(schema) }, { weight: 1, arbitrary: stumbling });
}

const EXTRA_QUERY = fc.constantFrom(
  ...[["x=1"], ["limit=1", "limit=2"], ["%ff=1"], ["__proto__=1"], ["=", "&"], ["a[b]=c"]],
);

function oddHeaders(): Arbitrary<Record<string, string>> {
  const latin = fc.stringMatching(/^[\x21-\x7e\xa0-\xff]{0,30}$/);
  return fc.oneof(
    fc.constantFrom<Record<string, string>>(
      { "content-type": "text/plain" },
      { "content-type": "application/json; charset=latin1" },
    ),
    fc.constantFrom<Record<string, string>>(
      { "content-type": "" },
      { "content-encoding": "gzip" },
      { accept: "text/html" },
    ),
    fc.constantFrom<Record<string, string>>(
      { origin: "https://evil.example" },
      { origin: "null" },
      { host: "evil.example" },
    ),
    fc.constantFrom<Record<string, string>>({ "if-none-match": "*" }, { range: "bytes=0-1" }),
    latin.map((text) => ({ "idempotency-key": text })),
    latin.map((text) => ({ authorization: `Bearer ${text}` })),
  );
}

function bodyOf(schema: object): Arbitrary<string | Buffer | null> {
  return fc.oneof(
    { weight: 8, arbitrary: fitting(schema).map(encodeBody) },
    { weight: 8, arbitrary: almost(schema).map(encodeBody) },
    { weight: 1, arbitrary: stumbling.map(encodeBody) },
    { weight: 1, arbitrary: fc.constantFrom(...BAD_BODIES, null) },
  );
}

function encodeBody(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

function encodeText(value: unknown): string {
  const text = typeof value === "string" ? value : encodeBody(value);
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
