/**
 * Calls that send. Each answer comes within the packet's time: a client that hears nothing sends again by itself, and a
 * send without a request id would then be another one.
 */
import type { Created, CreateRequest, NamedCreate } from "../../../application/api.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { grouped } from "../../../domain/grouped.ts";
import type { Hex } from "../../../domain/lane.ts";
import { isSettled } from "../../../domain/transitions.ts";
import { within } from "../../../ports/clock.ts";
import { type Asking, leftMs, requireScope } from "./asking.ts";
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
import { inParams, readTransaction } from "./transaction-request.ts";

export const SENDS = new Set(["eth_sendTransaction", "eth_sendRawTransaction"]);

type Answer = (item: RpcItem, outcome: RpcOutcome) => void;

/** Sends of one signer keep their order, and wait for no other's. */
export async function answerSends(asking: Asking, items: readonly RpcItem[], answer: Answer): Promise<void> {
  const sound: { readonly item: RpcItem; readonly request: CreateRequest }[] = [];
  for (const item of items) {
    try {
      requireScope(asking.principal, "submit");
      sound.push({ item, request: readTransaction(item.params, contextOf(asking, item)) });
    } catch (error) {
      answer(item, refused(asking, error));
    }
  }
  const bySigner = grouped(sound, ({ request }) => String(request.signer).toLowerCase());
  await Promise.all([...bySigner.values()].map((group) => sendGroup(asking, group, answer)));
}

function contextOf({ chainId, requestId, ignoresNonce, allowsNoCode }: Asking, { index }: RpcItem) {
  const own = requestId === null || index === null ? requestId : `${requestId}:${index}`;
  return { chainId, requestId: own, ignoresNonce, allowsNoCode };
}

interface Send {
  readonly item: RpcItem;
  readonly request: CreateRequest;
}

async function sendGroup(asking: Asking, sends: readonly Send[], answer: Answer): Promise<void> {
  const { api, clock } = asking;
  try {
    if (leftMs(asking) <= 0)
      throw new FencepostError("UNAVAILABLE", "it came too late to be answered; nothing was done");
    const ids = await within(clock, api.newIds(sends.length), { ms: leftMs(asking), late: () => [] });
    if (ids.length < sends.length) throw new FencepostError("UNAVAILABLE", "this node is too busy; nothing was done");
    const named = asking.mergesRepeats
      ? await nameRepeats(
          asking,
          sends.map(({ request }) => request),
        )
      : null;
    const creates = sends.map(({ request }, at) => ({ request: named?.[at] ?? request, txId: ids[at] as string }));
    const fates = await createInTime(asking, creates);
    const told = creates.map(async ({ txId }, at) => {
      answer((sends[at] as Send).item, await outcomeOf(asking, txId, fates[at] ?? null));
    });
    await Promise.all(told);
  } catch (error) {
    // Before the first of them was asked for: from then on nothing throws.
    for (const { item } of sends) answer(item, refused(asking, error));
  }
}

type Fate = Created | Error | null;

/** Null: not known in time. Whatever it throws may have come after something was accepted. */
async function createInTime(asking: Asking, creates: readonly NamedCreate[]): Promise<readonly Fate[]> {
  const { api, clock } = asking;
  const all = (fate: Fate): readonly Fate[] => creates.map(() => fate);
  const creating: Promise<readonly Fate[]> = api.createNamed(creates);
  try {
    return await within(clock, creating, { ms: leftMs(asking), late: () => all(null) });
  } catch (error) {
    return all(error instanceof Error ? error : new Error(String(error)));
  }
}

async function outcomeOf(asking: Asking, txId: string, fate: Fate): Promise<RpcOutcome> {
  if (fate === null) return maybeAccepted(txId);
  if (fate instanceof Error) return sendRefused(asking, fate, txId);
  try {
    return await hashOf(asking, fate);
  } catch {
    // It is accepted, whatever went wrong while its hash was waited for.
    return acceptedUnsigned(fate.txId, "its hash is not known here");
  }
}

function sendRefused(asking: Asking, error: Error, txId: string): RpcFailure {
  if (!(error instanceof FencepostError)) return sendFailure(error, txId, asking.mask);
  asking.onRefused(error);
  return sendFailure(inParams(error), txId, asking.mask);
}

/** What is left for a last look, once the wait is over. */
const LAST_LOOK_MS = 300;

async function hashOf(asking: Asking, { txId, nonce }: Created): Promise<RpcOutcome> {
  const { api, clock, signal } = asking;
  if (nonce === null && (await awaitsApproval(asking, txId))) return acceptedUnsigned(txId, "it waits for approval");
  const hash = await api.firstHash(txId, { withinMs: leftMs(asking) - LAST_LOOK_MS, signal });
  if (hash !== null) return result(hash);
  const view = await within(clock, api.transaction(txId), { ms: Math.max(0, leftMs(asking)), late: () => null });
  const first = view?.attempts[0]?.txHash ?? null;
  if (first !== null) return result(first);
  if (view === null || !isSettled(view.state))
    return acceptedUnsigned(txId, "fencepost explains why under GET /api/v1/tx/{txId}/explain");
  return new RpcFailure(REJECTED, `it ended as ${view.state} and was never signed`, { txId });
}

/** Else it has no nonce because it was left for a process that has not taken it up yet. */
async function awaitsApproval(asking: Asking, txId: string): Promise<boolean> {
  const looking = asking.api.transaction(txId);
  const view = await within(asking.clock, looking, { ms: Math.max(0, leftMs(asking)), late: () => null });
  return view?.subState === "AWAITING_APPROVAL";
}

function refused(asking: Asking, error: unknown): RpcFailure {
  if (!(error instanceof FencepostError)) return readFailure(error, asking.mask);
  asking.onRefused(error);
  return failureOf(inParams(error), asking.mask);
}

/** One after the other: each may be at the nonce behind the one before. */
export async function answerRawSends(asking: Asking, items: readonly RpcItem[], answer: Answer): Promise<void> {
  for (const item of items) answer(item, await sendRaw(asking, item));
}

async function sendRaw(asking: Asking, item: RpcItem): Promise<RpcOutcome> {
  const { clock } = asking;
  try {
    requireScope(asking.principal, "submit");
    const [rawTransaction] = Array.isArray(item.params) ? item.params : [];
    if (typeof rawTransaction !== "string") throw invalid("params.0", "must be a signed transaction in 0x hex");
    if (leftMs(asking) <= 0)
      throw new FencepostError("UNAVAILABLE", "it came too late to be answered; nothing was done");
    const ms = leftMs(asking);
    return await within(clock, submitRaw(asking, rawTransaction), { ms, late: () => RAW_UNKNOWN });
  } catch (error) {
    if (!(error instanceof FencepostError)) return RAW_UNKNOWN;
    if (error.extras.outcome === "unknown") return RAW_UNKNOWN;
    return refused(asking, error);
  }
}

/** The same bytes can only be the same transaction. */
const RAW_UNKNOWN = new RpcFailure(
  REJECTED,
  "it may have been accepted: send the very same bytes again, or ask fencepost_getTransaction for their hash",
  { outcome: "unknown" },
);

async function submitRaw(asking: Asking, rawTransaction: string): Promise<RpcOutcome> {
  const { api, chainId } = asking;
  try {
    const { txHash } = await api.submitSigned({ chainId, rawTransaction });
    return result(txHash);
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "UNKNOWN_SIGNER") throw error;
    return foreign(asking, rawTransaction);
  }
}

async function foreign({ api, chainId, foreignRaw }: Asking, rawTransaction: string): Promise<RpcOutcome> {
  if (foreignRaw === "refuse") {
    return new RpcFailure(
      UNAUTHORIZED,
      "its signer is not managed here, and transactions of others are not passed on: see FENCEPOST_RPC_FOREIGN_RAW",
    );
  }
  // It is hex that could be decoded: whose it is was known before it came here.
  const answer = await api.passSigned(chainId, rawTransaction as Hex);
  if (answer.kind === "result") return result(answer.result);
  return new RpcFailure(answer.code === -32000 ? REJECTED : answer.code, answer.message, answer.data);
}
