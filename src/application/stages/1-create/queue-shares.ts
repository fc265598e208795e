/**
 * Stage 1: no API key fills a lane's queue for all others. The lane's owner alone judges this, by what the key has waiting
 * on the lane: what is let in, or has a nonce and is in no block.
 * Reads: what the key has open, once under a term. Writes: nothing. A crash here leaves nothing behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Intent } from "../../../domain/transaction.ts";
import type { LaneStore } from "../../../ports/lane-store.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import type { QueueShare } from "../../lane/queue-shares.ts";

/** A create at the lane's door. */
export interface Entering {
  readonly intent: Intent;
  /** The part of the queue that its key may fill; null: all of it. */
  readonly queueShare: number | null;
}

export interface SharePorts {
  readonly store: Pick<LaneStore, "openOf">;
  /** How much a lane's queue holds. */
  readonly admission: { readonly perLane: number };
}

/** Creates that were let in, and those that were not, by their places. */
export interface Visit {
  readonly refused: ReadonlyMap<number, FencepostError>;
  /** Takes out of the queue what nothing was made of. */
  leave(isMade: (intent: Intent, place: number) => boolean): void;
}

export function hasShares(entering: readonly Entering[]): boolean {
  return entering.some(({ queueShare, intent }) => queueShare !== null && intent.owner !== null);
}

/** In order, each key up to its part. */
export async function enterShares(
  { store, admission }: SharePorts,
  lane: OwnedLane,
  entering: readonly Entering[],
): Promise<Visit> {
  const owners = new Set(
    entering.flatMap(({ queueShare, intent }) => (queueShare === null ? [] : (intent.owner ?? []))),
  );
  const read = async (owner: string): Promise<readonly [string, QueueShare]> => {
    return [owner, await lane.queueShares.of(owner, () => store.openOf(lane.lane, owner))];
  };
  const shares = new Map(await Promise.all([...owners].map(read)));
  const refused = new Map<number, FencepostError>();
  // Nothing is waited for from here on: two that come at once cannot both take the last place.
  entering.forEach(({ intent, queueShare }, place) => {
    const share = queueShare === null ? undefined : shares.get(intent.owner ?? "");
    if (share === undefined || queueShare === null) return;
    const most = Math.max(1, Math.floor(queueShare * admission.perLane));
    if (share.size >= most) refused.set(place, shareFull(most));
    else share.enter(intent.txId);
  });
  return {
    refused,
    leave: (isMade) => {
      entering.forEach(({ intent }, place) => {
        if (!refused.has(place) && !isMade(intent, place)) shares.get(intent.owner ?? "")?.leave(intent.txId);
      });
    },
  };
}

/**
 * Creates that are left for an owner that cannot be asked, and does not know of shares: those of a key that would have more
 * waiting than its part are refused here, by their places. `leaving`: what of a key is on its way there from this process.
 */
export async function refuseOverShare(
  { store, admission }: SharePorts,
  entering: readonly Entering[],
  leaving: (intent: Intent) => number,
): Promise<ReadonlyMap<number, FencepostError>> {
  const sharing = entering.filter(({ queueShare, intent }) => queueShare !== null && intent.owner !== null);
  const owners = new Map(sharing.map(({ intent }) => [intent.owner as string, intent]));
  const counted = [...owners].map(async ([owner, { lane }]) => {
    const open = (await store.openOf(lane, owner)).filter(({ isMined }) => !isMined).length;
    return [owner, open] as const;
  });
  const open = new Map(await Promise.all(counted));
  const refused = new Map<number, FencepostError>();
  // Nothing is waited for from here on, until they are counted among those that leave.
  const taken = new Map([...owners].map(([owner, intent]) => [owner, (open.get(owner) ?? 0) + leaving(intent)]));
  entering.forEach(({ intent, queueShare }, place) => {
    const waiting = queueShare === null ? undefined : taken.get(intent.owner ?? "");
    if (waiting === undefined || queueShare === null) return;
    const most = Math.max(1, Math.floor(queueShare * admission.perLane));
    if (waiting >= most) refused.set(place, shareFull(most));
    else taken.set(intent.owner ?? "", waiting + 1);
  });
  return refused;
}

function shareFull(limit: number): FencepostError {
  const detail = `this API key has ${limit} transactions of this signer waiting, as many as it may; nothing was accepted`;
  return new FencepostError("QUOTA_EXCEEDED", detail, { rule: "queueShare", limit, retryAfterSeconds: 1 });
}
