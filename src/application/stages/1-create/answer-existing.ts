/**
 * Stage 1: answers creates whose request id is known already (I5).
 * Reads: request ids. Writes: nothing; a crash here leaves nothing behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import { anothersRequestId, isAnothers, spentRequestId } from "../../../domain/principal.ts";
import type { Intent } from "../../../domain/transaction.ts";
import type { ExistingTransaction, Spent } from "../../../ports/lane-store.ts";
import type { Created } from "../../api.ts";
import type { RequestIds } from "./request-ids.ts";

export type Fate = Created | FencepostError;

export interface Item {
  readonly index: number;
  readonly intent: Intent;
}

/** Answers what is known by request id, and returns the rest. */
export async function answerExisting(
  { requestIds }: { readonly requestIds: RequestIds },
  items: readonly Item[],
  fates: Fate[],
): Promise<readonly Item[]> {
  const named = items.filter(({ intent }) => intent.requestId !== null);
  if (named.length === 0) return items;
  const ids = named.map(({ intent }) => intent.requestId as string);
  const existing = await requestIds.find((named[0] as Item).intent.lane, ids);
  return items.filter(({ index, intent }) => {
    const found = intent.requestId === null ? undefined : existing.get(intent.requestId);
    if (found !== undefined) fates[index] = answerOwned(found, intent);
    return found === undefined;
  });
}

/** By whom its request id belongs to. */
export function answerOwned(owner: ExistingTransaction | Spent, asked: Intent): Fate {
  if (isSpent(owner)) return spentRequestId(asked.requestId);
  return answerWith(owner, asked, owner.fingerprint === asked.fingerprint);
}

export function answerWith(existing: ExistingTransaction, asked: Intent, samePayload: boolean): Fate {
  const { txId, lane, requestId, nonce, state } = existing;
  if (isAnothers(existing.owner, asked.owner)) return anothersRequestId(requestId);
  return samePayload ? { outcome: "existing", txId, lane, requestId, nonce, state } : reusedRequestId(existing);
}

export function reusedRequestId({ txId, requestId }: Pick<ExistingTransaction, "txId" | "requestId">): FencepostError {
  const detail = `request id ${requestId} belongs to ${txId}, whose payload differs`;
  return new FencepostError("REQUEST_ID_REUSED", detail, { txId });
}
