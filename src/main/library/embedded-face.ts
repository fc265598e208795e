/** The embedded node's API: the calls, responses and errors of the HTTP API, without HTTP. */
import { callReader } from "../../adapters/http/exchange/declared-call.ts";
import { present } from "../../adapters/http/exchange/present-answer.ts";
import { createdView } from "../../adapters/http/exchange/views.ts";
import type { Created, CreateRequest } from "../../application/api.ts";
import type { FencepostApi } from "../../application/operations/calls.ts";
import { ordinaryCalls, withRequestId } from "../../client/calls.ts";
import { type CallOptions, underDeadline } from "../../client/deadline.ts";
import { FencepostError as FaceError, ofRequest } from "../../client/error-classes.ts";
import type { FencepostFace } from "../../client/face.ts";
import { isSettled, lookUntil } from "../../client/follow.ts";
import { SentTransaction } from "../../client/sent-transaction.ts";
import { asParameters, type Call as Request, type Transport } from "../../client/transport.ts";
import { withNonce } from "../../client/with-nonce.ts";
import { type Call, methodOf } from "../../contract/calls/call.ts";
import { GROUPS } from "../../contract/calls/index.ts";
import type { CreatedTransaction } from "../../contract/schemas/create.ts";
import { defined } from "../../domain/defined.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Checksum } from "../../domain/text/checksum.ts";
import type { Mask } from "../../domain/text/mask.ts";
import type { Clock } from "../../ports/clock.ts";
import { asFaceError } from "./library-errors.ts";

/** Parts of the embedded node that its API calls use. */
interface Inside<SendOptions = CallOptions> {
  readonly api: FencepostApi;
  readonly checksum: Checksum;
  readonly mask: Mask;
  readonly clock: Pick<Clock, "now">;
  /** Signal that is aborted, with a reason, when the node is closed. */
  readonly closing: AbortSignal;
  /** Creates one transaction, inside or outside of a database transaction of the caller. */
  take(intent: CreateRequest, options: SendOptions): Promise<Created>;
}

type Limits = Pick<Inside, "mask"> & Partial<Pick<Inside, "closing">>;

/** Actor of calls without an API key: the process that embeds the node. */
const ACTOR = "operator:embedded";

/**
 * Interval at which a call that waits for a transaction reads its state. It is short, because each read only queries a
 * nearby database.
 */
const LOOK_EVERY_MS = 100;

export function createFace<SendOptions extends CallOptions>(inside: Inside<SendOptions>): FencepostFace<SendOptions> {
  const { closing } = inside;
  const calls = ordinaryCalls(inProcess(inside));
  const handle = (created: CreatedTransaction) => new SentTransaction(calls, created, LOOK_EVERY_MS);
  return {
    ...calls,
    ...sendingCalls(inside, handle),
    completions: endingAtClose(closing, calls.completions),
    outcomes: endingAtClose(closing, calls.outcomes),
    handle: async (txId, options) => handle(await calls.get(txId, options)),
    waitFor: (txId, options = {}) =>
      lookUntil(calls.get, txId, untilClosed(closing, { pollIntervalMs: LOOK_EVERY_MS, ...options }), isSettled),
    withNonce: (lane, callback) => withNonce(calls, lane, callback),
  };
}

/** Runs a call with its time limit, and converts its errors to those of the HTTP client. */
async function ask<T>({ mask, closing }: Limits, options: CallOptions | undefined, work: () => Promise<T>) {
  closing?.throwIfAborted();
  try {
    // Skip the deadline if there are no options: most calls have no limit, and a process may make thousands a second.
    return await (options === undefined ? work() : underDeadline("no answer", options, work));
  } catch (error) {
    // The caller's own abort rejects with the caller's own reason.
    options?.signal?.throwIfAborted();
    throw asFaceError(error, mask);
  }
}

type Follow<Query, Item> = (query?: Query, options?: CallOptions) => AsyncGenerator<Item, void, undefined>;

/** The feed of completions ends without an error when the node is closed. */
function endingAtClose<Query, Item>(closing: AbortSignal, follow: Follow<Query, Item>): Follow<Query, Item> {
  return async function* (query, options = {}) {
    try {
      yield* follow(query, untilClosed(closing, options));
    } catch (error) {
      if (!closing.aborted) throw error;
    }
  };
}

function untilClosed<T extends CallOptions>(closing: AbortSignal, options: T): T & { readonly signal: AbortSignal } {
  const { signal } = options;
  return { ...options, signal: signal === undefined ? closing : AbortSignal.any([closing, signal]) };
}

const DECLARED = GROUPS.flatMap(([, each]) => Object.values<Call>(each)).filter(methodOf);

/** Calls of the HTTP API, by the client's method and path. */
const CALLS = new Map(
  DECLARED.map((call) => {
    const names = [...call.at.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const [{ schema = {} } = {}] = Object.values(call.answers);
    return [call.at.replace("/api/v1", ""), { names, schema, read: callReader(call) }] as const;
  }),
);

/**
 * Passes the client's calls to the node in this process: each request is parsed, performed and formatted as over HTTP.
 */
function inProcess(inside: Pick<Inside, Exclude<keyof Inside, "take">>): Transport {
  const { api, checksum, clock, closing } = inside;
  const answerTo = async (request: Request, options: CallOptions): Promise<unknown> => {
    const call = CALLS.get(request.at);
    if (call === undefined) throw new Error(`no call is declared at ${request.at}`);
    const { params = [], query = {}, body, idempotencyKey } = request;
    const asked = call.read({
      params: Object.fromEntries(call.names.map((name, at) => [name, String(params[at])])),
      query: asParameters(query),
      body,
      actor: ACTOR,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
    const { signal } = untilClosed(closing, options);
    const result = await (asked.waitMs === 0 ? asked.perform(api) : asked.perform(api, signal));
    return shaped(call.schema as ShapeSchema, present(call.schema, result, { checksum, now: clock.now() }));
  };
  return async <T>(request: Request) => {
    const { signal, timeoutMs } = request;
    const options = defined({ signal, timeoutMs });
    const limits = Object.keys(options).length === 0 ? undefined : options;
    try {
      return (await ask(inside, limits, () => answerTo(request, options))) as T;
    } catch (error) {
      // If closing the node interrupted a read, the read fails with the reason of closing, not with an error of the
      // database.
      if (request.at.startsWith("get ")) closing.throwIfAborted();
      throw error;
    }
  };
}

interface ShapeSchema {
  readonly properties?: Readonly<Record<string, ShapeSchema>>;
  readonly additionalProperties?: unknown;
  readonly items?: ShapeSchema;
}

/**
 * Removes fields of a response that the API contract does not name. Over HTTP, the route's schema does this when the
 * response is serialised.
 */
function shaped({ properties, additionalProperties, items }: ShapeSchema, value: unknown): unknown {
  if (Array.isArray(value)) return items === undefined ? value : value.map((each) => shaped(items, each));
  if (typeof value !== "object" || value === null || properties === undefined) return value;
  if (additionalProperties === true) return value;
  const record = value as Readonly<Record<string, unknown>>;
  const picked: Record<string, unknown> = {};
  for (const name of Object.keys(properties)) {
    if (record[name] !== undefined) picked[name] = shaped(properties[name] as ShapeSchema, record[name]);
  }
  return picked;
}

interface Named {
  readonly requestId: string;
}

type Result = SentTransaction | FaceError;

function sendingCalls<SendOptions extends CallOptions>(
  { api, checksum, mask, closing, take }: Inside<SendOptions>,
  handle: (created: CreatedTransaction) => SentTransaction,
) {
  const limits = { mask, closing };
  const sent = (created: Created) => handle(createdView(created, checksum));
  const sendOne = async (intent: Named, options: SendOptions | undefined) => {
    try {
      // A send in the caller's own database transaction only writes a row: it needs no node, and works while one closes.
      const own = options !== undefined && "client" in options ? { mask } : limits;
      return sent(await ask(own, options, () => take(intent, options ?? ({} as SendOptions))));
    } catch (error) {
      throw withIdOf(intent, error);
    }
  };
  /** Sends one intent after the other, so that their order is preserved in the caller's database transaction. */
  const oneByOne = async (intents: readonly Named[], options: SendOptions) => {
    const results: Result[] = [];
    for (const intent of intents) results.push(await sendOne(intent, options).catch(orRefusal));
    return results;
  };
  /**
   * Sends the intents in one batch, so that their nonces are in order. Intents of lanes that another node owns are sent
   * separately.
   */
  const atOnce = async (intents: readonly Named[], options: SendOptions | undefined) => {
    const outcomes = await ask(limits, options, () => api.createBatch(intents));
    return Promise.all(
      outcomes.map((outcome, at): Promise<Result> | Result => {
        const intent = intents[at] as Named;
        if (!(outcome instanceof FencepostError)) return sent(outcome);
        if (outcome.code === "NOT_LEADER") return sendOne(intent, options).catch(orError);
        return withIdOf(intent, asFaceError(outcome, mask)) as FaceError;
      }),
    );
  };
  return {
    send: (intent, options) => sendOne(withRequestId(intent), options),
    sendMany: (intents, options) => {
      const named = intents.map(withRequestId);
      return options !== undefined && "client" in options ? oneByOne(named, options) : atOnce(named, options);
    },
  } satisfies Partial<FencepostFace<SendOptions>>;
}

/** Adds the request id to the error: a caller who gave none needs the generated one. */
function withIdOf(asked: Named, error: unknown) {
  return error instanceof FaceError ? ofRequest(error, asked?.requestId) : error;
}

/** Returns an error that concerns one intent as its result. The caller's own abort is thrown and fails all intents. */
function orError(error: unknown) {
  if (error instanceof FaceError) return error;
  throw error;
}

/** Like `orError`, in the caller's database transaction: if that is broken, the error fails all intents. */
function orRefusal(error: unknown) {
  const { code } = orError(error);
  if (code === "INVALID_REQUEST" || code === "UNKNOWN_CHAIN") return error as FaceError;
  throw error;
}
