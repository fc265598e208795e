import { ERROR_CATALOGUE, type ErrorCode } from "../domain/errors.ts";
import { Problem, problemExamples } from "./problem.ts";
import { ROUTES, type Route, type RouteResponse } from "./routes.ts";

/** The parts of OpenAPI 3.1 that this document uses. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: object;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly examples: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
  };
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: true; readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

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

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
/** What any route behind a key may answer besides its own errors. */
const COMMON_ERRORS: readonly ErrorCode[] = ["UNAUTHENTICATED", "INTERNAL", "UNAVAILABLE"];
/** Members of a schema that hold plain values, not schemas. */
const PLAIN_MEMBERS: readonly string[] = ["enum", "examples", "default"];

const TAGS = [
  { name: "Transactions", description: "Hand in an intent, read what became of it." },
  { name: "Nonces", description: "Reserved for callers that sign themselves." },
  { name: "Completions", description: "The ordered feed of final outcomes." },
  { name: "Signers", description: "Lanes: nonce cursor, owner, balance, what waits." },
  { name: "Cluster", description: "Nodes of the same database, and which of them acts for which lane." },
  { name: "Operations", description: "Liveness, readiness, metrics, this reference." },
];

export function openApiDocument(version: string): OpenApiDocument {
  const components: Record<string, JsonSchema> = {};
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of ROUTES) {
    const operations = paths[route.path] ?? {};
    operations[route.method] = operationOf(route, components);
    paths[route.path] = operations;
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
      schemas: components,
      examples: errorExamples(),
    },
  };
}

function operationOf(route: Route, components: Record<string, JsonSchema>): Operation {
  const parameters = parametersOf(route, components);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(route.open === true ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: bodyOf(route.body, components) }),
    responses: { ...successes(route, components), ...failures(route, components) },
  };
}

function parametersOf(route: Route, components: Record<string, JsonSchema>): readonly Parameter[] {
  const params = Object.entries(route.params ?? {}).map(([name, schema]) =>
    parameter({ name, in: "path", required: true }, lift(schema, components)),
  );
  const required: readonly string[] = route.query?.required ?? [];
  const query = Object.entries(route.query?.properties ?? {}).map(([name, schema]) =>
    parameter({ name, in: "query", required: required.includes(name) }, lift(schema, components)),
  );
  const headers = Object.entries(route.headers ?? {}).map(([name, description]) =>
    parameter({ name, in: "header", required: false }, { type: "string", description }),
  );
  return [...params, ...query, ...headers];
}

/** A description belongs to the parameter, where readers of the document look for it. */
function parameter(head: Pick<Parameter, "name" | "in" | "required">, schema: JsonSchema): Parameter {
  const { description, ...rest } = schema;
  return { ...head, ...(typeof description === "string" ? { description } : {}), schema: rest };
}

function bodyOf(body: NonNullable<Route["body"]>, components: Record<string, JsonSchema>) {
  const examples = Object.fromEntries(Object.entries(body.examples).map(([name, value]) => [name, { value }]));
  return { required: true as const, content: { [JSON_TYPE]: { schema: lift(body.schema, components), examples } } };
}

function successes(route: Route, components: Record<string, JsonSchema>): Record<string, ResponseObject> {
  const entries = Object.entries(route.responses);
  return Object.fromEntries(entries.map(([status, response]) => [status, responseOf(response, components)]));
}

function responseOf(response: RouteResponse, components: Record<string, JsonSchema>): ResponseObject {
  const media: MediaType = {
    schema: response.schema === undefined ? plainSchema(response) : lift(response.schema, components),
    ...(response.example === undefined ? {} : { example: response.example }),
  };
  const headers = Object.entries(response.headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  return {
    description: response.description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    content: { [response.contentType ?? JSON_TYPE]: media },
  };
}

/** Of an answer that is not described member by member. */
function plainSchema({ contentType }: RouteResponse): JsonSchema {
  return { type: contentType === JSON_TYPE ? "object" : "string" };
}

/** Codes that share a status share a response, each with an example of its own. */
function failures(route: Route, components: Record<string, JsonSchema>): Record<string, ResponseObject> {
  const codes = route.open === true ? route.errors : [...route.errors, ...COMMON_ERRORS];
  const schema = lift(Problem, components);
  const responses: Record<string, ResponseObject> = {};
  for (const status of new Set(codes.map(statusOf))) {
    const sharing = codes.filter((code) => statusOf(code) === status);
    const examples = sharing.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
    responses[status] = {
      description: sharing.map((code) => `\`${code}\` ${ERROR_CATALOGUE[code].title}.`).join(" "),
      content: { [PROBLEM_TYPE]: { schema, examples: Object.fromEntries(examples) } },
    };
  }
  return responses;
}

function statusOf(code: ErrorCode): number {
  return ERROR_CATALOGUE[code].status;
}

function errorExamples() {
  return Object.fromEntries(
    Object.values(problemExamples).map((problem) => [problem.code, { summary: problem.title, value: problem }]),
  );
}

/** Titled schemas move to the components once, and are referred to everywhere. */
function lift(schema: unknown, components: Record<string, JsonSchema>): JsonSchema {
  return liftValue(schema, components) as JsonSchema;
}

function liftValue(value: unknown, components: Record<string, JsonSchema>): unknown {
  if (Array.isArray(value)) return value.map((entry) => liftValue(entry, components));
  if (typeof value !== "object" || value === null) return value;
  const { title, ...schema } = value as { title?: unknown; type?: unknown };
  // A field may itself be called "title"; then its value is a schema, not a word.
  if (typeof title !== "string") return liftMembers(value, components);
  const reference = { $ref: `#/components/schemas/${title}` };
  const orNull = Array.isArray(schema.type) && schema.type.includes("null");
  if (components[title] === undefined) {
    components[title] = {};
    const type = orNull ? "object" : schema.type;
    components[title] = { title, ...liftMembers(type === undefined ? schema : { ...schema, type }, components) };
  }
  return orNull ? { anyOf: [reference, { type: "null" }] } : reference;
}

function liftMembers(schema: object, components: Record<string, JsonSchema>): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([name, member]) => [
      name,
      PLAIN_MEMBERS.includes(name) ? member : liftValue(member, components),
    ]),
  );
}
