import { ERROR_CATALOGUE, type ErrorCode } from "../domain/errors.ts";
import type { Answer } from "./calls/call.ts";
import { SubscriberId } from "./calls/webhooks.ts";
import { ROUTES, type Route } from "./routes.ts";
import { exampleOf } from "./schemas/example-of.ts";
import { NoticeId } from "./schemas/notice.ts";
import { Problem, problemExamples } from "./schemas/problem.ts";
import { Address, ChainId, TxId } from "./schemas/scalars.ts";

/** The parts of OpenAPI 3.1 that this document uses. */
export type OpenApiDocument = ReturnType<typeof openApiDocument>;
export type Operation = ReturnType<typeof operationOf>;

export type Parameter = ReturnType<typeof parameter>;
type Place = { readonly name: string; readonly in: "path" | "query" | "header"; readonly required: boolean };

export interface MediaType {
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown; readonly $ref?: string }>>;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export type JsonSchema = { readonly [member: string]: unknown };

/** Adds a schema to the document: titled schemas are moved to the components once, and referenced everywhere. */
type Lift = (schema: unknown) => JsonSchema;

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
/** Error codes that every route with an API key may return, besides its own codes. */
const COMMON_ERRORS: readonly ErrorCode[] = ["UNAUTHENTICATED", "FORBIDDEN", "INTERNAL", "UNAVAILABLE"];
const NAME = { type: "string", description: "Of an API key." };
/** Schemas of the path parameters. */
const PATH_PARAMETERS: Readonly<Record<string, object>> = {
  txId: TxId,
  reservationId: TxId,
  signatureId: TxId,
  noticeId: NoticeId,
  subscriberId: SubscriberId,
  signer: Address,
  name: NAME,
  chainId: ChainId,
};
/** JSON Schema keywords whose values are plain data, not schemas. */
const PLAIN_MEMBERS: readonly string[] = ["enum", "examples", "default"];

const TAGS: readonly { readonly name: Route["tag"]; readonly description: string }[] = [
  { name: "Transactions", description: "Hand in an intent, read what became of it." },
  { name: "Nonces", description: "Reserved for callers that sign themselves." },
  { name: "Messages", description: "Logins, permits and orders that a policy allows to sign." },
  { name: "JSON-RPC", description: "As an Ethereum node speaks, for clients that know no other language." },
  { name: "Completions", description: "The ordered feed of final outcomes." },
  { name: "Webhooks", description: "Outcomes posted to receivers, signed." },
  { name: "Signers", description: "Lanes: nonce cursor, owner, balance, what waits." },
  { name: "Keys", description: "Who may call, and for what." },
  { name: "Policies", description: "What signers and API keys may do, up to how much, and what is used." },
  { name: "Cluster", description: "Nodes of the same database, and which of them acts for which lane." },
  { name: "Sight", description: "Everything at once, for people: what needs them, figures, search." },
  { name: "Operations", description: "Liveness, readiness, metrics, this reference." },
];

export function openApiDocument(version: string) {
  const schemas: Record<string, JsonSchema> = {};
  const lift: Lift = (schema) => liftValue(schema, schemas) as JsonSchema;
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of ROUTES) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, lift) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Fencepost",
      version,
      description: "Sends EVM transactions, each exactly once, and follows every one to finality.",
    },
    servers: [{ url: "/" }],
    tags: TAGS,
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "The secret of an API key." } },
      schemas,
      examples: mapValues(problemExamples, (problem) => ({ summary: problem.title, value: problem })),
    },
  };
}

function operationOf(route: Route, lift: Lift) {
  const { operationId, tag, summary, description, open, body, action = operationId } = route;
  const parameters = parametersOf(route, lift);
  const examples = body && (route.examples ?? { [action]: exampleOf(body) });
  const content = body && { schema: lift(body), examples: mapValues(examples ?? {}, (value) => ({ value })) };
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(open ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: true, content: { [JSON_TYPE]: content } } }),
    responses: {
      ...mapValues(route.answers, (answer) => responseOf(answer, lift)),
      ...failures(errorsOf(route), lift(Problem)),
    },
  };
}

/** Every route refuses a URL that it cannot decode; routes of the API also refuse a body that is too large. */
function errorsOf({ path, body, open, errors = [] }: Route): readonly ErrorCode[] {
  const ofBodies: readonly ErrorCode[] = path.startsWith("/api/") && body !== undefined ? ["PAYLOAD_TOO_LARGE"] : [];
  return ["INVALID_REQUEST", ...ofBodies, ...errors, ...(open ? [] : COMMON_ERRORS)];
}

function parametersOf({ path, query, headers = {} }: Pick<Route, "path" | "query" | "headers">, lift: Lift) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) =>
    parameter({ name, in: "path", required: true }, lift(PATH_PARAMETERS[name])),
  );
  const required: readonly string[] = query?.required ?? [];
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) =>
    parameter({ name, in: "query", required: required.includes(name) }, lift(schema)),
  );
  const inHeader = Object.entries(headers).map(([name, description]) =>
    parameter({ name, in: "header", required: false }, { type: "string", description }),
  );
  return [...inPath, ...inQuery, ...inHeader];
}

/**
 * Builds a parameter: moves the description from the schema to the parameter, where readers of the document expect it.
 */
function parameter(place: Place, schema: JsonSchema) {
  const { description, ...rest } = schema;
  return { ...place, ...(typeof description === "string" ? { description } : {}), schema: rest };
}

/** Builds a response; one without a schema is plain JSON or text. */
function responseOf(answer: Answer, lift: Lift): ResponseObject {
  const { description, schema, location, contentType = JSON_TYPE, exampleText: example } = answer;
  const media: MediaType =
    schema === undefined
      ? { schema: { type: contentType === JSON_TYPE ? "object" : "string" }, ...(example !== undefined && { example }) }
      : { schema: lift(schema), example: exampleOf(schema, answer.example) };
  const headers = location && { Location: { description: location.description, schema: { type: "string" } } };
  return { description, ...(headers && { headers }), content: { [contentType]: media } };
}

/** Error responses: codes that share an HTTP status share a response, each with an example of its own. */
function failures(codes: readonly ErrorCode[], schema: JsonSchema): Record<string, ResponseObject> {
  const responses: Record<string, ResponseObject> = {};
  for (const { status } of codes.map((code) => ERROR_CATALOGUE[code])) {
    const sharing = codes.filter((code) => ERROR_CATALOGUE[code].status === status);
    const examples = sharing.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
    responses[status] = {
      description: sharing.map((code) => `\`${code}\` ${ERROR_CATALOGUE[code].title}.`).join(" "),
      content: { [PROBLEM_TYPE]: { schema, examples: Object.fromEntries(examples) } },
    };
  }
  return responses;
}

function liftValue(value: unknown, schemas: Record<string, JsonSchema>): unknown {
  if (Array.isArray(value)) return value.map((entry) => liftValue(entry, schemas));
  if (typeof value !== "object" || value === null) return value;
  const { title, ...schema } = value as { title?: unknown; type?: unknown };
  // A field may itself be named "title"; then its value is a schema, not a string.
  if (typeof title !== "string") return liftMembers(value, schemas);
  const reference = { $ref: `#/components/schemas/${title}` };
  const orNull = Array.isArray(schema.type) && schema.type.includes("null");
  if (schemas[title] === undefined) {
    schemas[title] = {};
    const type = orNull ? "object" : schema.type;
    schemas[title] = { title, ...liftMembers(type === undefined ? schema : { ...schema, type }, schemas) };
  }
  return orNull ? { anyOf: [reference, { type: "null" }] } : reference;
}

function liftMembers(schema: object, schemas: Record<string, JsonSchema>): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([name, member]) => [
      name,
      PLAIN_MEMBERS.includes(name) ? member : liftValue(member, schemas),
    ]),
  );
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
