/**
 * Stage 1: answers creates that are repeats, by their request id or by the nonce that they name (I5).
 * Reads: request ids, transactions. Writes: nothing; a crash here leaves nothing behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import { anothersRequestId, isAnothers, spentRequestId } from "../../../domain/keys/principal.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import { fingerprint } from "../../../domain/transaction/fingerprint.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { ExistingTransaction, Spent } from "../../../ports/lane-store.ts";
import type { QueryStore } from "../../../ports/query-store.ts";
import type { Created } from "../../api.ts";
import type { RequestIds } from "./request-ids.ts";

export type Result = Created | FencepostError;

/** One create on its way through the stage; null: it has no result yet. */
export interface Item {
  readonly intent: Intent;
  result: Result | null;
}

export function isOpen({ result }: Item): boolean {
  return result === null;
}

/** Answers creates of one lane that are known by request id, and returns the others. */
export async function answerExisting<I extends Item>(
  { requestIds }: { readonly requestIds: RequestIds },
  items: readonly I[],
): Promise<readonly I[]> {
  const named = items.filter(({ intent }) => intent.requestId !== null);
  const [first] = named;
  if (first === undefined) return items;
  const ids = named.map(({ intent }) => intent.requestId as string);
  const existing = await requestIds.find(first.intent.lane, ids);
  return items.filter((item) => {
    const { intent } = item;
    const found = intent.requestId === null ? undefined : existing.get(intent.requestId);
    if (found !== undefined) item.result = answerOwned(found, intent);
    return found === undefined;
  });
}

/** The answer to a create whose request id belongs to `owner`. */
export function answerOwned(owner: ExistingTransaction | Spent, asked: Intent): Result {
  if (isSpent(owner)) return spentRequestId(asked.requestId);
  return answerWith(owner, asked, owner.fingerprint === asked.fingerprint);
}

export function answerWith(existing: ExistingTransaction, asked: Intent, samePayload: boolean): Result {
  if (isAnothers(existing.owner, asked.owner)) return anothersRequestId(existing.requestId);
  return samePayload ? existingAs(existing) : reusedRequestId(existing);
}

export function existingAs({ txId, lane, requestId, nonce, state }: Omit<Created, "outcome">): Created {
  return { outcome: "existing", txId, lane, requestId, nonce, state };
}

export function reusedRequestId({ txId, requestId }: Pick<ExistingTransaction, "txId" | "requestId">): FencepostError {
  const detail = `request id ${requestId} belongs to ${txId}, whose payload differs`;
  return new FencepostError("REQUEST_ID_REUSED", detail, { txId });
}

/**
 * A create that names a nonce other than the next one: if the same payload has that nonce already, this is its repeat. The
 * refusal was decided under the lane's lock; the transaction of a nonce does not change afterwards.
 */
export async function answerHeldNonces(
  { store }: { readonly store: Pick<QueryStore, "transactionAt"> },
  items: readonly Item[],
): Promise<void> {
  const refused = items.filter(
    ({ result }) => result instanceof FencepostError && result.extras.nextNonce !== undefined,
  );
  const look = async (item: Item): Promise<void> => {
    const { lane, exactNonce, owner } = item.intent;
    const found = exactNonce === undefined ? null : await store.transactionAt(lane, exactNonce);
    if (found === null || isAnothers(found.owner, owner)) return;
    if (fingerprint(found.payload, found) === item.intent.fingerprint) item.result = existingAs(found);
  };
  await Promise.all(refused.map(look));
}
