/**
 * Sends a node valid and almost valid requests for everything in its OpenAPI document. Each response must be
 * documented: its status, its shape, its error code. Any 5xx except 503 is a fault.
 */
import { randomUUID } from "node:crypto";
import fc, { type Arbitrary } from "fast-check";
import { type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { type Dispatcher, Pool } from "undici";
import type { MediaType, OpenApiDocument } from "../../../src/contract/openapi.ts";
import { inlined } from "../openapi-schemas.ts";
import { pricedTransfer } from "../transfers.ts";
import { type Documented, documentedOperations, type FuzzRequest, requestsFor } from "./requests.ts";

export interface FuzzReport {
  /** Faults in readable form: the request, the response, and what is wrong with it. */
  readonly faults: readonly string[];
  /** The number of responses by `operationId status`. */
  readonly answers: ReadonlyMap<string, number>;
  readonly operations: readonly string[];
}

export interface FuzzPlan {
  readonly url: string;
  readonly requests: number;
  /** The same seed gives the same requests; only ids taken from responses differ. */
  readonly seed: number;
  /** The signer of the document's examples. */
  readonly signer: string;
  /** Another signer, of which the prepared reservations and unsent transactions are. */
  readonly other: string;
  /** Policy document of the first request, and the requests for signatures that wait for approval under it. */
  readonly policies: object;
  readonly messages: readonly object[];
  /** Operations that succeed only by design; all others get more requests until each has succeeded once. */
  readonly notByChance: ReadonlySet<string>;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

const AT_ONCE = 8;
/** Matches ids, and names of API keys, in responses. */
const NAMED = /"(txId|reservationId|noticeId|signatureId|subscriberId)":"([^"]{36})"|"(name)":"(stock-\d+)"/g;
const MOST_KNOWN = 100;
const MOST_FAULTS = 20;

export async function fuzz(plan: FuzzPlan): Promise<FuzzReport> {
  const { url, requests, seed, notByChance } = plan;
  const pool = new Pool(url, { connections: AT_ONCE, headersTimeout: 60_000, bodyTimeout: 60_000 });
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  const operations = documentedOperations(document);
  const judge = judgeBy(document, operations);
  const ids = new Ids();
  const learnStock = async () => {
    for (const text of await stock(plan)) ids.learn(text);
  };
  await learnStock();
  const restocked = new Map<number, Promise<void>>();
  /** Prepares the node again for each RESTOCKED_FOR requests: the earlier ones stopped signers and used up the stock. */
  const restockFor = (at: number): Promise<void> => {
    const turn = Math.floor((at - requests) / RESTOCKED_FOR);
    const begun = restocked.get(turn) ?? learnStock();
    restocked.set(turn, begun);
    return begun;
  };
  const [some, valid] = [false, true].map((valid) =>
    operations.map((each) => requestsFor(document, each, ids.known, valid)),
  );
  const answers = new Map<string, number>();
  const faults: string[] = [];
  let next = 0;
  /** Each operation in turn, then valid requests to those that have not succeeded yet, for as many requests again. */
  const chosen = (at: number): Arbitrary<FuzzRequest> | undefined => {
    if (at < requests) return some?.[at % operations.length];
    const failed = operations.flatMap(({ operation: { operationId: id } }, place) =>
      notByChance.has(id) || hasSucceeded(answers, id) ? [] : [place],
    );
    return at < 2 * requests ? valid?.[failed[at % failed.length] ?? -1] : undefined;
  };
  const askInTurn = async (): Promise<void> => {
    while (faults.length < MOST_FAULTS) {
      const at = next++;
      if (at >= requests && chosen(at) !== undefined) await restockFor(at);
      const arbitrary = chosen(at);
      if (arbitrary === undefined) return;
      const [request] = fc.sample(arbitrary, {
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

export function hasSucceeded(answers: FuzzReport["answers"], operationId: string): boolean {
  return [...answers.keys()].some((key) => key.startsWith(`${operationId} 2`));
}

const RESERVED = 8;
const KEYS = 4;
const WEBHOOKS = 6;
const UNSENT = 12;
const RESTOCKED_FOR = 100;

/**
 * Prepares data for the random requests, and ends what earlier ones have stopped. Reservations, unsent transactions, API
 * keys, webhooks and signatures that wait for approval are rarely created by chance, and each can be ended only once, so
 * create many. Returns the responses.
 */
async function stock({ url, signer, other, policies, messages }: FuzzPlan): Promise<readonly string[]> {
  const make = async (path: string, body: object, method = "POST"): Promise<string> => {
    const headers = { "content-type": "application/json" };
    return (await fetch(`${url}/api/v1/${path}`, { method, headers, body: JSON.stringify(body) })).text();
  };
  const reason = { reason: "prepared" };
  await make("policy", { policies, ...reason }, "PUT");
  await make("kill", reason, "DELETE");
  for (const each of [signer, other]) {
    await make(`signers/${each}/kill`, reason, "DELETE");
    await make(`signers/${each}/resume`, reason);
  }
  const prepared = await Promise.all([
    ...messages.map((message) => make("sign", message)),
    ...Array.from({ length: WEBHOOKS }, (_, at) =>
      make("webhooks", { name: `hook-${at}`, url: "https://books.example/outcomes" }),
    ),
    fetch(`${url}/api/v1/notices`).then((response) => response.text()),
    ...Array.from({ length: RESERVED }, () => make("nonces", { signer: other, ttl: "10m" })),
    ...Array.from({ length: KEYS }, (_, at) => make("keys", { name: `stock-${at}`, scopes: ["read"] })),
  ]);
  await make(`signers/${other}/suspend`, reason);
  const unsent = Array.from({ length: UNSENT }, (_, at) =>
    make("tx", { ...pricedTransfer(at), signer: other, requestId: `unsent-${at}-${randomUUID()}` }),
  );
  return [...prepared, ...(await Promise.all(unsent))];
}

/** The newest ids of each kind, taken from responses. */
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
  const text = contentType === "text/event-stream" ? await beginningOf(response.body) : await response.body.text();
  return { status: response.statusCode, contentType, text };
}

/** The first bytes of a response that has no end. */
async function beginningOf(body: Dispatcher.ResponseData["body"]): Promise<string> {
  for await (const bytes of body) return String(bytes);
  return "";
}

function spoken({ method, path, headers, body }: FuzzRequest): string {
  return `${method} ${path.slice(0, 200)} ${JSON.stringify(headers)} ${String(body).slice(0, 400)}`;
}

/**
 * Finds the operation of a request; undefined if the document has no such operation. As in the router, literal names
 * precede patterns.
 */
function operationAt(operations: readonly Documented[], { method, path }: FuzzRequest): Documented | undefined {
  const [pathname = ""] = path.split("?", 1);
  const literal = operations.filter((each) => each.path === pathname);
  const fits = literal.length > 0 ? literal : operations.filter((each) => patternOf(each.path).test(pathname));
  return fits.find((each) => each.method === method);
}

/**
 * As in the router, a path parameter may be empty: `/signers//suspend` matches the suspend route, although it suspends
 * nothing.
 */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]*")}$`);
}

type Judge = (operation: Documented | undefined, request: FuzzRequest, answer: Answer) => string | null;

/** Allowed statuses for requests to undocumented routes or with invalid HTTP. */
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
