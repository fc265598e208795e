/**
 * Validates a call that the API contract declares, by the contract's schemas, and performs it on the application. Used
 * for HTTP and for a process that embeds a node.
 */
import { Type } from "typebox";
import type { FencepostApi } from "../../../application/operations/calls.ts";
import { type Call, methodOf } from "../../../contract/calls/call.ts";
import type { DeclaredCall } from "../../../contract/calls/index.ts";
import { defined } from "../../../domain/defined.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { asObject } from "./json-body.ts";
import { queryReader } from "./query.ts";

export interface Asked {
  /** Path parameters of the request, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** Query parameters as texts, as in a URL. */
  readonly query: unknown;
  readonly body?: unknown;
  /** Actor recorded in the audit: `operator:<name>`. */
  readonly actor: string;
  readonly idempotencyKey?: string;
}

/** A validated call, ready to be performed. */
export interface ReadCall {
  /** Longest time that the response may be delayed until something changes (long poll). */
  readonly waitMs: number;
  /**
   * Performs the call. With a signal, the response may be delayed for up to `waitMs` (long poll); without one, it is
   * returned at once.
   */
  perform(api: FencepostApi, signal?: AbortSignal): Promise<unknown>;
}

type MethodOf<C> = C extends { readonly does: infer D } ? D : C extends { readonly face: infer F } ? F : never;
/** Makes the compiler refuse a declared call that the application does not implement. */
type Performing = Pick<
  FencepostApi,
  MethodOf<Extract<DeclaredCall, { readonly face: string } | { readonly does: string }>>
>;
type Members = Readonly<Record<string, unknown>>;
type Method = (...given: readonly unknown[]) => Promise<unknown>;

export function callReader(call: Call): (asked: Asked) => ReadCall {
  const readQuery = queryReader(call.query ?? Type.Object({}));
  const method = methodOf(call) as keyof Performing;
  const unsaid = defaultsOf(call);
  return (asked) => {
    const request = { ...asked, params: readParams(asked.params), body: readBody(call, asked.body) };
    const { wait = 0, ...query } = { ...unsaid, ...(readQuery(asked.query) as Members) };
    refuseNone(call, query);
    // A call with a `revision` parameter is held only if the caller sends the revision that it has already seen.
    const isHeld = query.revision !== undefined || call.query?.properties.revision === undefined;
    const waitMs = isHeld ? Math.round(Number(wait) * 1000) : 0;
    return {
      waitMs,
      perform: async (api, signal) => {
        const given = argumentsOf(call, request, signal === undefined ? query : { ...query, waitMs, signal });
        // A call without a result is answered with its own parameters.
        return (await (api[method] as Method)(...given)) ?? { ...request.params, ...query };
      },
    };
  };
}

/**
 * Defaults of query parameters that are filled in here: 0 for start positions, false for flags. The application applies
 * all other defaults.
 */
function defaultsOf({ query }: Call): Members {
  const parameters = Object.entries(query?.properties ?? {}) as [string, { readonly default?: unknown }][];
  const always = parameters.filter(([, { default: usual }]) => usual === 0 || usual === "false");
  return Object.fromEntries(always.map(([name, { default: usual }]) => [name, usual === 0 ? 0 : false]));
}

function refuseNone({ needs = [] }: Call, query: Members) {
  const [first, ...others] = needs;
  if (first === undefined || needs.some((name) => query[name] !== undefined)) return;
  throw invalid(first, `is required, unless ${others.join(", ")} is given`);
}

/** A UUID in the database's form: lower case, with hyphens. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Checks path parameters. A text that is not a UUID names no transaction, so the database is not asked to parse it. */
function readParams(params: Asked["params"]) {
  if (params.txId === undefined) return params;
  const txId = params.txId.toLowerCase();
  if (!UUID.test(txId)) throw new FencepostError("NOT_FOUND", "there is no transaction with this id");
  return { ...params, txId };
}

/** Reads the body of a request. An operator's action validates its own body, which may be absent. */
function readBody(call: Call, body: unknown) {
  if (isAction(call)) return body;
  if (call.body !== undefined) return asObject(body);
  const [unknown] = Object.keys(body === undefined ? {} : asObject(body));
  if (unknown !== undefined) throw invalid(unknown, "is not a known field: this request takes no fields");
  return undefined;
}

function isAction({ action, takes }: Call) {
  return action !== undefined || takes?.[0] === "action";
}

function argumentsOf(call: Call, asked: Asked, query: Members): readonly unknown[] {
  const { params, body, actor } = asked;
  if (isAction(call)) return [actionOf(call, asked)];
  if (call.takes !== undefined) return named(call.takes, asked, query);
  return [
    ...Object.values(params),
    ...(call.query === undefined ? [] : [query]),
    ...(call.body === undefined ? [] : [body]),
    ...(call.audited === true ? [actor] : []),
  ];
}

/** Builds an operator's action. If the path names no signer, the action applies to all signers. */
function actionOf({ action }: Call, { params, body, actor, idempotencyKey }: Asked) {
  const subject = Object.keys(params).length === 0 ? { signer: null } : params;
  return defined({ action, ...subject, request: body, actor, idempotencyKey });
}

function named(takes: readonly string[], { params, body, actor }: Asked, query: Members) {
  const members: Members = { ...params, ...query, ...(body as object) };
  const rest = (given: unknown) =>
    Object.fromEntries(Object.entries(given as object).filter(([name]) => !takes.includes(name)));
  return takes.map((name) => {
    if (name === "actor") return actor;
    if (name === "query") return rest(query);
    if (name === "body") return rest(body);
    if (name === "include") return query.include === undefined ? [] : String(query.include).split(",");
    if (body !== undefined && name in Object(body) && typeof members[name] !== "string")
      throw invalid(name, "must be text");
    return members[name];
  });
}
