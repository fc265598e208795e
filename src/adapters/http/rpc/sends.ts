/**
 * Calls that send. Each is answered within the packet's time: a client without an answer repeats by itself, and
 * without a request id that would be a second send.
 */
import type { Created, CreateRequest, NamedCreate } from "../../../application/api.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { grouped } from "../../../domain/grouped.ts";
import type { Hex } from "../../../domain/lane.ts";
import { isSettled } from "../../../domain/transaction/transitions.ts";
import { within } from "../../../ports/clock.ts";
import {
  acceptedUnsigned,
  failureOf,
  maybeAccepted,
  REJECTED,
  readFailure,
  sendFailure,
  UNAUTHORIZED,
} from "./error-codes.ts";
import { nameRepeats } from "./name-repeats.ts";
import { RpcFailure, type RpcItem, type RpcOutcome, result } from "./packet.ts";
import { leftMs, type RpcContext, requireScope } from "./rpc-context.ts";
import { inParams, readTransaction } from "./transaction-request.ts";

export const SENDS = new Set(["eth_sendTransaction", "eth_sendRawTransaction"]);

type Answer = (item: RpcItem, outcome: RpcOutcome) => void;

/** Sends of one signer keep their order, and do not wait for other signers. */
export async function answerSends(context: RpcContext, items: readonly RpcItem[], answer: Answer): Promise<void> {
  const sound: { readonly item: RpcItem; readonly request: CreateRequest }[] = [];
  for (const item of items) {
    try {
      requireScope(context.principal, "submit");
      sound.push({ item, request: readTransaction(item.params, contextOf(context, item)) });
    } catch (error) {
      answer(item, refused(context, error));
    }
  }
  const bySigner = grouped(sound, ({ request }) => String(request.signer).toLowerCase());
  await Promise.all([...bySigner.values()].map((group) => sendGroup(context, group, answer)));
}

function contextOf({ chainId, requestId, ignoresNonce, allowsNoCode }: RpcContext, { index }: RpcItem) {
  const own = requestId === null || index === null ? requestId : `${requestId}:${index}`;
  return { chainId, requestId: own, ignoresNonce, allowsNoCode };
}

interface Send {
  readonly item: RpcItem;
  readonly request: CreateRequest;
}

async function sendGroup(context: RpcContext, sends: readonly Send[], answer: Answer): Promise<void> {
  const { api, clock } = context;
  try {
    if (leftMs(context) <= 0)
      throw new FencepostError("UNAVAILABLE", "it arrived too late to be answered in time; nothing was done");
    const ids = await within(clock, api.newIds(sends.length), { ms: leftMs(context), late: () => [] });
    if (ids.length < sends.length) throw new FencepostError("UNAVAILABLE", "this node is too busy; nothing was done");
    const named = context.mergesRepeats
      ? await nameRepeats(
          context,
          sends.map(({ request }) => request),
        )
      : null;
    const creates = sends.map(({ request }, at) => ({ request: named?.[at] ?? request, txId: ids[at] as string }));
    const results = await createInTime(context, creates);
    const answered = creates.map(async ({ txId }, at) => {
      answer((sends[at] as Send).item, await outcomeOf(context, txId, results[at] ?? null));
    });
    await Promise.all(answered);
  } catch (error) {
    // Thrown before the first create; later code does not throw.
    for (const { item } of sends) answer(item, refused(context, error));
  }
}

type SendResult = Created | Error | null;

/** Null: unknown in time. An error may come after something was accepted. */
async function createInTime(context: RpcContext, creates: readonly NamedCreate[]): Promise<readonly SendResult[]> {
  const { api, clock } = context;
  const all = (value: SendResult): readonly SendResult[] => creates.map(() => value);
  const creating: Promise<readonly SendResult[]> = api.createNamed(creates);
  try {
    return await within(clock, creating, { ms: leftMs(context), late: () => all(null) });
  } catch (error) {
    return all(error instanceof Error ? error : new Error(String(error)));
  }
}

async function outcomeOf(context: RpcContext, txId: string, created: SendResult): Promise<RpcOutcome> {
  if (created === null) return maybeAccepted(txId);
  if (created instanceof Error) return sendRefused(context, created, txId);
  try {
    return await hashOf(context, created);
  } catch {
    // It is accepted; only waiting for its hash failed.
    return acceptedUnsigned(created.txId, "its hash is not known here");
  }
}

function sendRefused(context: RpcContext, error: Error, txId: string): RpcFailure {
  if (!(error instanceof FencepostError)) return sendFailure(error, txId, context.mask);
  context.onRefused(error);
  return sendFailure(inParams(error), txId, context.mask);
}

/** Time for a last read after the wait. */
const LAST_LOOK_MS = 300;

async function hashOf(context: RpcContext, { txId, nonce }: Created): Promise<RpcOutcome> {
  const { api, clock, signal } = context;
  if (nonce === null && (await awaitsApproval(context, txId))) return acceptedUnsigned(txId, "it waits for approval");
  const hash = await api.firstHash(txId, { withinMs: leftMs(context) - LAST_LOOK_MS, signal });
  if (hash !== null) return result(hash);
  const view = await within(clock, api.transaction(txId), { ms: Math.max(0, leftMs(context)), late: () => null });
  const first = view?.attempts[0]?.txHash ?? null;
  if (first !== null) return result(first);
  if (view === null || !isSettled(view.state))
    return acceptedUnsigned(txId, "fencepost explains why under GET /api/v1/tx/{txId}/explain");
  return new RpcFailure(REJECTED, `it ended as ${view.state} and was never signed`, { txId });
}

/** Otherwise it has no nonce because it is queued for its owner. */
async function awaitsApproval(context: RpcContext, txId: string): Promise<boolean> {
  const looking = context.api.transaction(txId);
  const view = await within(context.clock, looking, { ms: Math.max(0, leftMs(context)), late: () => null });
  return view?.subState === "AWAITING_APPROVAL";
}

function refused(context: RpcContext, error: unknown): RpcFailure {
  if (!(error instanceof FencepostError)) return readFailure(error, context.mask);
  context.onRefused(error);
  return failureOf(inParams(error), context.mask);
}

/** In sequence: each may use the next nonce. */
export async function answerRawSends(context: RpcContext, items: readonly RpcItem[], answer: Answer): Promise<void> {
  for (const item of items) answer(item, await sendRaw(context, item));
}

async function sendRaw(context: RpcContext, item: RpcItem): Promise<RpcOutcome> {
  const { clock } = context;
  try {
    requireScope(context.principal, "submit");
    const [rawTransaction] = Array.isArray(item.params) ? item.params : [];
    if (typeof rawTransaction !== "string") throw invalid("params.0", "must be a signed transaction in 0x hex");
    if (leftMs(context) <= 0)
      throw new FencepostError("UNAVAILABLE", "it arrived too late to be answered in time; nothing was done");
    const ms = leftMs(context);
    return await within(clock, submitRaw(context, rawTransaction), { ms, late: () => RAW_UNKNOWN });
  } catch (error) {
    if (!(error instanceof FencepostError)) return RAW_UNKNOWN;
    if (error.extras.outcome === "unknown") return RAW_UNKNOWN;
    return refused(context, error);
  }
}

/** The same bytes are the same transaction, so repeating them is safe. */
const RAW_UNKNOWN = new RpcFailure(
  REJECTED,
  "it may have been accepted: send the same bytes again, or call fencepost_getTransaction with their hash",
  { outcome: "unknown" },
);

async function submitRaw(context: RpcContext, rawTransaction: string): Promise<RpcOutcome> {
  const { api, chainId } = context;
  try {
    const { txHash } = await api.submitSigned({ chainId, rawTransaction });
    return result(txHash);
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "UNKNOWN_SIGNER") throw error;
    return foreign(context, rawTransaction);
  }
}

async function foreign({ api, chainId, foreignRaw }: RpcContext, rawTransaction: string): Promise<RpcOutcome> {
  if (foreignRaw === "refuse") {
    return new RpcFailure(
      UNAUTHORIZED,
      "its signer is not managed here, and raw transactions of other signers are not forwarded: see FENCEPOST_RPC_FOREIGN_RAW",
    );
  }
  // Valid hex: the signer was recovered from it before.
  const answer = await api.passSigned(chainId, rawTransaction as Hex);
  if (answer.kind === "result") return result(answer.result);
  return new RpcFailure(answer.code === -32000 ? REJECTED : answer.code, answer.message, answer.data);
}
