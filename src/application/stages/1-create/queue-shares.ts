/**
 * Stage 1: no API key fills a lane's queue for all others. The lane's owner alone judges this, by the creates of the key that
 * are under way, or have a nonce and are in no block.
 * Reads: the key's open transactions, once under a term. Writes: nothing. A crash here leaves nothing behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { LaneStore } from "../../../ports/lane-store.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import type { QueueShare } from "../../lane/queue-shares.ts";
import type { Item, Result } from "./answer-existing.ts";

/** A create at the lane's door. */
export interface Entering {
  readonly intent: Intent;
  /** Part of the queue that its key may fill; null: all of it. */
  readonly queueShare: number | null;
}

export interface SharePorts {
  readonly store: Pick<LaneStore, "openOf">;
  /** How much a lane's queue holds. */
  readonly admission: { readonly perLane: number };
}

/** Creates in their keys' parts of the queue. */
export interface Share<I> {
  /** The key's part is full. */
  readonly refused: readonly I[];
  /** Takes creates out of the queue that got no nonce. */
  leave(): void;
}

export const NO_SHARE = { refused: [], leave: () => undefined };

/** In order, each key up to its part. Refuses those beyond it. */
export async function enterShares<I extends Item & Entering>(
  { store, admission }: SharePorts,
  lane: OwnedLane,
  items: readonly I[],
): Promise<Share<I>> {
  const owners = new Set(items.flatMap(({ queueShare, intent }) => (queueShare === null ? [] : (intent.owner ?? []))));
  const read = async (owner: string): Promise<readonly [string, QueueShare]> => {
    return [owner, await lane.queueShares.of(owner, () => store.openOf(lane.lane, owner))];
  };
  const shares = new Map(await Promise.all([...owners].map(read)));
  // Nothing is awaited from here on: two creates that come at once cannot both take the last place.
  const refused = items.filter((item) => {
    const { intent, queueShare } = item;
    const share = queueShare === null ? undefined : shares.get(intent.owner ?? "");
    if (share === undefined || queueShare === null) return false;
    const most = Math.max(1, Math.floor(queueShare * admission.perLane));
    if (share.size >= most) item.result = shareFull(most);
    else share.enter(intent.txId);
    return item.result !== null;
  });
  const within = refused.length === 0 ? items : items.filter(({ result }) => result === null);
  const leave = () => {
    for (const { intent, result } of within)
      if (!hasNonce(result, intent)) shares.get(intent.owner ?? "")?.leave(intent.txId);
  };
  return { refused, leave };
}

/** A create that waits for approval is in no queue: it enters one with its nonce. */
function hasNonce(result: Result | null, { txId }: Intent) {
  return result !== null && !(result instanceof FencepostError) && result.txId === txId && result.nonce !== null;
}

function shareFull(limit: number) {
  const detail = `this API key has ${limit} transactions of this signer waiting, as many as it may; nothing was accepted`;
  return new FencepostError("QUOTA_EXCEEDED", detail, { rule: "queueShare", limit, retryAfterSeconds: 1 });
}
