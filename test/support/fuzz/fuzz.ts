/**
 * Asks a node for everything that its own OpenAPI document says it serves, and for almost that. What it answers must be
 * documented: the status, the shape, the code of a problem. A 5xx is one fault, but for 503.
 */
import fc from "fast-check";
import { type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { Pool } from "undici";
import type { MediaType, OpenApiDocument } from "../../../src/contract/openapi.ts";
import { inlined } from "../openapi-schemas.ts";
import { type Documented, documentedOperations, type FuzzRequest, requestsFor } from "./requests.ts";

export interface FuzzReport {
  /** Each as one would read it out: which request, what was answered, what is wrong with that. */
  readonly faults: readonly string[];
  /** `operationId status` → how often. */
  readonly answers: ReadonlyMap<string, number>;
  readonly operations: readonly string[];
}

export interface FuzzPlan {
  readonly url: string;
  readonly requests: number;
  /** The same seed makes the same requests; only ids that answers name differ. */
  readonly seed: number;
  /** The signer of nonces that are reserved before the first request, so that there are some to use and to give back. */
  readonly reserveFor: string;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

const AT_ONCE = 8;
/** Ids, and names of API keys. */
const NAMED = /"(txId|reservationId|noticeId)":"([^"]{36})"|"(name)":"(stock-\d+)"/g;
const MOST_KNOWN = 100;
const MOST_FAULTS = 20;

export async function fuzz({ url, requests, seed, reserveFor }: FuzzPlan): Promise<FuzzReport> {
  const pool = new Pool(url, { connections: AT_ONCE, headersTimeout: 60_000, bodyTimeout: 60_000 });
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  const operations = documentedOperations(document);
  const judge = judgeBy(document, operations);
  const ids = new Ids();
  for (const text of await stock(url, reserveFor)) ids.learn(text);
  const arbitraries = operations.map((each) => requestsFor(document, each, ids.known));
  const answers = new Map<string, number>();
  const faults: string[] = [];
  let next = 0;
  const askInTurn = async (): Promise<void> => {
    while (next < requests && faults.length < MOST_FAULTS) {
      const at = next++;
      const [request] = fc.sample(arbitraries[at % operations.length] as (typeof arbitraries)[number], {
        numRuns: 1,
        seed: seed * 1_000_003 + at,
      }) as [FuzzRequest];
      const answer = await ask(pool, request);
      ids.learn(answer.text);
      const operation = operationAt(operations, request);
      const name = `${operation?.operation.operationId ?? "elsewhere"} ${answer.status}`;
      answers.set(name, (answers.get(name) ?? 0) + 1);
      const wrong = judge(operation, request, answer);
      if (wrong !== null)
        faults.push(
          `seed ${seed}, request ${at}: ${spoken(request)} → ${answer.status} ${answer.text.slice(0, 300)}: ${wrong}`,
        );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
  await pool.destroy();
  return { faults, answers, operations: operations.map(({ operation }) => operation.operationId) };
}

const RESERVED = 8;
const KEYS = 4;

/**
 * Things that few requests make by chance, and that can be ended once each: reservations and API keys; and policies that
 * forbid nothing, which can be applied again whatever version is expected. What was answered.
 */
async function stock(url: string, signer: string): Promise<readonly string[]> {
  const make = async (path: string, body: object, method = "POST"): Promise<string> => {
    const headers = { "content-type": "application/json" };
    return (await fetch(`${url}/api/v1/${path}`, { method, headers, body: JSON.stringify(body) })).text();
  };
  return Promise.all([
    make("policy", { policies: {}, reason: "the first" }, "PUT"),
    fetch(`${url}/api/v1/notices`).then((response) => response.text()),
    ...Array.from({ length: RESERVED }, () => make("nonces", { signer, ttl: "10m" })),
    ...Array.from({ length: KEYS }, (_, at) => make("keys", { name: `stock-${at}`, scopes: ["read"] })),
  ]);
}

/** Ids from answers: the newest of each kind. */
class Ids {
  private readonly byName = new Map<string, string[]>();

  readonly known = (name: string, pick: number): string | undefined => {
    const ids = this.byName.get(name) ?? [];
    return ids[pick % Math.max(ids.length, 1)];
  };

  learn(text: string): void {
    for (const [, first, its = "", second = "", other = ""] of text.matchAll(NAMED)) {
      const [name, id] = first === undefined ? [second, other] : [first, its];
      const ids = this.byName.get(name) ?? [];
      if (!ids.includes(id)) this.byName.set(name, [id, ...ids].slice(0, MOST_KNOWN));
    }
  }
}

async function ask(pool: Pool, { method, path, headers, body }: FuzzRequest): Promise<Answer> {
  const hasBody = body !== null && !["GET", "HEAD", "TRACE"].includes(method);
  const sent = { method: method as "GET", path, headers, ...(hasBody ? { body } : {}) };
  const response = await pool.request(sent);
  const contentType = String(response.headers["content-type"] ?? "").split(";", 1)[0] ?? "";
  return { status: response.statusCode, contentType, text: await response.body.text() };
}

function spoken({ method, path, headers, body }: FuzzRequest): string {
  return `${method} ${path.slice(0, 200)} ${JSON.stringify(headers)} ${String(body).slice(0, 400)}`;
}

/** Names in front of patterns, as the router has them. Undefined: the document has no such operation. */
function operationAt(operations: readonly Documented[], { method, path }: FuzzRequest): Documented | undefined {
  const [pathname = ""] = path.split("?", 1);
  const literal = operations.filter((each) => each.path === pathname);
  const fits = literal.length > 0 ? literal : operations.filter((each) => patternOf(each.path).test(pathname));
  return fits.find((each) => each.method === method);
}

/**
 * For the router a parameter may be empty: `/signers//suspend` suspends nothing, and is still checked as that route.
 */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]*")}$`);
}

type Judge = (operation: Documented | undefined, request: FuzzRequest, answer: Answer) => string | null;

/** Answers to requests of undocumented routes, or to invalid HTTP. */
const ELSEWHERE = [204, 400, 403, 404, 405];

function judgeBy(document: OpenApiDocument, operations: readonly Documented[]): Judge {
  const compile = (schema: unknown) => Compile(Type.Unsafe(inlined(document, schema) as TSchema));
  const problem = compile({ $ref: "#/components/schemas/Problem" });
  const validators = new Map<MediaType, ReturnType<typeof compile>>();
  const validatorOf = (media: MediaType) => {
    const validator = validators.get(media) ?? compile(media.schema ?? {});
    validators.set(media, validator);
    return validator;
  };
  const isPattern = new Set(operations.map(({ path }) => path));
  return (operation, { method, path }, { status, contentType, text }) => {
    if (status >= 500 && status !== 503) return "a mistake of the node's";
    if (operation === undefined || method === "HEAD") {
      if (method === "HEAD") return text === "" ? null : "HEAD has a body";
      if (!ELSEWHERE.includes(status) && !isPattern.has(path)) return "nothing like it is documented";
      return status === 204 ? null : violation(problem, text);
    }
    const media = operation.operation.responses[status]?.content?.[contentType];
    if (media === undefined)
      return `${status} with ${contentType} is not documented for ${operation.operation.operationId}`;
    if (contentType === "application/problem+json") {
      const { code } = JSON.parse(text) as { readonly code: string };
      if (media.examples?.[code] === undefined)
        return `${code} is not documented for ${operation.operation.operationId}`;
      return violation(problem, text);
    }
    return contentType === "application/json" ? violation(validatorOf(media), text) : null;
  };
}

function violation(validator: ReturnType<typeof Compile>, text: string): string | null {
  const [first] = [...validator.Errors(JSON.parse(text))];
  return first === undefined ? null : `does not fit its schema: ${JSON.stringify(first).slice(0, 300)}`;
}
