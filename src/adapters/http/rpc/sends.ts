/**
 * JSON-RPC calls that send transactions. Each is answered within a time limit. A client that gets no response repeats
 * the send by itself, and without a request id that would create a second transaction.
 */
import { hash } from "node:crypto";
import type { Created, CreateRequest, NamedCreate, TransactionView } from "../../../application/api.ts";
import { SUBMIT } from "../../../contract/calls/call.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { grouped } from "../../../domain/grouped.ts";
import { isAnothers } from "../../../domain/keys/principal.ts";
import type { Hex } from "../../../domain/lane.ts";
import { isSettled } from "../../../domain/transaction/transitions.ts";
import { authorise } from "../exchange/auth.ts";
import { acceptedUnsigned, maybeAccepted, REJECTED, readFailure, sendFailure, UNAUTHORIZED } from "./error-codes.ts";
import { type Answer, listOf, RpcFailure, type RpcItem, result } from "./packet.ts";
import { inTime, leftMs, orNull, type RpcContext, requestIdOf } from "./rpc-context.ts";
import { inParams, readTransaction } from "./transaction-request.ts";

export const SENDS = new Set(["eth_sendTransaction", "eth_sendRawTransaction"]);

interface Send {
  readonly item: RpcItem;
  readonly request: CreateRequest;
}

/**
 * Answers the sends of one JSON-RPC request. Sends of one signer keep their order, and do not wait for other signers.
 */
export async function answerSends(context: RpcContext, items: readonly RpcItem[], answer: Answer): Promise<void> {
  const { principal } = context;
  const sound: Send[] = [];
  for (const item of items) {
    try {
      authorise(principal, SUBMIT);
      const requestId = requestIdOf(context, item);
      sound.push({ item, request: readTransaction(item.params, { ...context, requestId }) });
    } catch (error) {
      answer(item, refused(context, error));
    }
  }
  const bySigner = grouped(sound, ({ request }) => String(request.signer).toLowerCase());
  await Promise.all([...bySigner.values()].map((group) => sendGroup(context, group, answer)));
}

async function sendGroup(context: RpcContext, sends: readonly Send[], answer: Answer) {
  try {
    refuseLate(context);
    const ids = await inTime(context, context.api.newIds(sends.length), () => []);
    if (ids.length < sends.length) throw nothingDone("this node is too busy");
    const named = await nameRepeats(context, sends);
    const creates = named.map((request, at) => ({ request, txId: ids[at] as string }));
    const results = await createInTime(context, creates);
    const answered = sends.map(async ({ item }, at) => {
      answer(item, await outcomeOf(context, ids[at] as string, results[at] ?? null));
    });
    await Promise.all(answered);
  } catch (error) {
    // Errors are thrown only before the first create, so every send of the group can be refused.
    for (const { item } of sends) answer(item, refused(context, error));
  }
}

function refuseLate(context: RpcContext) {
  if (leftMs(context) <= 0) throw nothingDone("the request arrived too late to be answered in time");
}

function nothingDone(why: string) {
  return new FencepostError("UNAVAILABLE", `${why}; nothing was done`);
}

type SendResult = Created | Error | null;

/**
 * Creates transactions within the time limit of the JSON-RPC request. Null if the outcome is not known in time. Even
 * after an error, some may have been accepted.
 */
async function createInTime(context: RpcContext, creates: readonly NamedCreate[]) {
  const all = (value: SendResult): readonly SendResult[] => creates.map(() => value);
  try {
    return await inTime<readonly SendResult[]>(context, context.api.createNamed(creates), () => all(null));
  } catch (error) {
    return all(error instanceof Error ? error : new Error(String(error)));
  }
}

async function outcomeOf(context: RpcContext, txId: string, created: SendResult) {
  if (created === null) return maybeAccepted(txId);
  if (created instanceof Error) return sendFailure(noted(context, created), txId, context.mask);
  try {
    return await hashOf(context, created);
  } catch {
    // The transaction is accepted; only the wait for its hash failed.
    return acceptedUnsigned(created.txId, "its hash is not known here");
  }
}

/** Time for one last read of the transaction after the wait for its hash. */
const LAST_LOOK_MS = 300;

async function hashOf(context: RpcContext, { txId, nonce }: Created) {
  const { api, signal } = context;
  const look = () => inTime<TransactionView | null>(context, api.transaction(txId), () => null);
  // If the create has no nonce, it either waits for approval or is queued for its lane's owner.
  if (nonce === null && (await look())?.subState === "AWAITING_APPROVAL")
    return acceptedUnsigned(txId, "it waits for approval");
  const hash = await api.firstHash(txId, { withinMs: leftMs(context) - LAST_LOOK_MS, signal });
  if (hash !== null) return result(hash);
  const view = await look();
  const first = view?.attempts[0]?.txHash ?? null;
  if (first !== null) return result(first);
  if (view === null || !isSettled(view.state))
    return acceptedUnsigned(txId, "fencepost explains why under GET /api/v1/tx/{txId}/explain");
  return new RpcFailure(REJECTED, `it ended as ${view.state} and was never signed`, { txId });
}

function refused(context: RpcContext, error: unknown) {
  return readFailure(noted(context, error), context.mask);
}

/** Records a refusal for the audit, and names the refused field by its place in the call. */
function noted(context: RpcContext, error: unknown) {
  if (!(error instanceof FencepostError)) return error;
  context.onRefused(error);
  return inParams(error);
}

/** Sends raw transactions in sequence, because each may use the nonce after the one before. */
export async function answerRawSends(context: RpcContext, items: readonly RpcItem[], answer: Answer): Promise<void> {
  for (const item of items) answer(item, await sendRaw(context, item));
}

async function sendRaw(context: RpcContext, item: RpcItem) {
  try {
    authorise(context.principal, SUBMIT);
    const [rawTransaction] = listOf(item.params);
    if (typeof rawTransaction !== "string") throw invalid("params.0", "must be a signed transaction in 0x hex");
    refuseLate(context);
    return await inTime(context, submitRaw(context, rawTransaction), () => RAW_UNKNOWN);
  } catch (error) {
    const isUnknown = !(error instanceof FencepostError) || error.extras.outcome === "unknown";
    return isUnknown ? RAW_UNKNOWN : refused(context, error);
  }
}

/** Response if the outcome of a raw send is unknown. Repeating it is safe: the same bytes are the same transaction. */
const RAW_UNKNOWN = new RpcFailure(
  REJECTED,
  "it may have been accepted: send the same bytes again, or call fencepost_getTransaction with their hash",
  { outcome: "unknown" },
);

async function submitRaw(context: RpcContext, rawTransaction: string) {
  const { api, chainId, foreignRaw } = context;
  const own = await orNull(api.submitSigned({ chainId, rawTransaction }), "UNKNOWN_SIGNER");
  if (own !== null) return result(own.txHash);
  if (foreignRaw === "refuse") {
    return new RpcFailure(
      UNAUTHORIZED,
      "its signer is not managed here, and raw transactions of other signers are not forwarded: see FENCEPOST_RPC_FOREIGN_RAW",
    );
  }
  // The text is valid hex: the signer was recovered from it before.
  const answer = await api.passSigned(chainId, rawTransaction as Hex);
  if (answer.kind === "result") return result(answer.result);
  return new RpcFailure(answer.code === -32000 ? REJECTED : answer.code, answer.message, answer.data);
}

/** Time within which equal sends are merged. viem's plain requests give up after four times ten seconds. */
const WINDOW_MS = 60_000;

/**
 * Assigns request ids for clients that repeat a send after a lost response and cannot set a request id. Equal sends of
 * one API key within a minute of the first become one, on all nodes. Done only if the caller requests it: otherwise two
 * intended equal payments would become one.
 */
async function nameRepeats(context: RpcContext, sends: readonly Send[]): Promise<readonly CreateRequest[]> {
  const alike = new Map<string, number>();
  return Promise.all(
    sends.map(({ request }) => {
      if (!context.mergesRepeats || request.requestId !== undefined || request.nonce !== undefined) return request;
      const contents = contentsOf(request);
      // Equal sends within one batch are intended, not repeats: a client that repeats a send repeats the whole batch.
      const place = alike.get(contents) ?? 0;
      alike.set(contents, place + 1);
      return named(context, request, place);
    }),
  );
}

const contentsOf = (request: CreateRequest) => JSON.stringify(request).toLowerCase();

/**
 * Adds the request id of the current minute of the clock. A repeat in the next minute is found by the previous minute's
 * id.
 */
async function named(context: RpcContext, request: CreateRequest, place: number): Promise<CreateRequest> {
  const { clock, principal } = context;
  const contents = contentsOf(request);
  const window = Math.floor(clock.now().getTime() / WINDOW_MS);
  const nameIn = (window: number, of: string) => `repeat:${hash("sha256", of, "hex")}:${place}:${window}`;
  const own = `${JSON.stringify(principal.name)}${contents}`;
  // Also look up request ids in the form of the previous release, which lack the API key: otherwise a repeat across an
  // upgrade would pay twice.
  const earlier = [nameIn(window - 1, own), nameIn(window, contents), nameIn(window - 1, contents)];
  const found = await Promise.all(earlier.map((requestId) => isRepeatOf(context, request, requestId)));
  return { ...request, requestId: earlier[found.indexOf(true)] ?? nameIn(window, own) };
}

/** True if a transaction with that request id was created less than a minute ago, and not by another API key. */
async function isRepeatOf(context: RpcContext, request: CreateRequest, requestId: string) {
  const { api, clock, principal } = context;
  const lane = { signer: String(request.signer), chainId: Number(request.chainId) };
  const found = await orNull(api.transactionByRequest({ ...lane, requestId }), "NOT_FOUND");
  if (found === null) return false;
  return clock.now().getTime() - found.createdAt.getTime() < WINDOW_MS && !isAnothers(found.owner, principal.name);
}
