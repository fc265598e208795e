/**
 * Pools: several signers under one name; each request gets one of them. Pure function of the lanes' current state. The
 * choice becomes final when the nonce is allocated: then a row records which lane has the request (docs/pools.md).
 */
import { type Address, affinity } from "../lane.ts";
import type { Intent } from "../transaction/transaction.ts";

/** Members of a pool by its name, in the order of the configuration. */
export type Pools = ReadonlyMap<string, readonly Address[]>;

export const POOL_NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/**
 * Maximum number of members of a pool. With more members, reading the state of their lanes would cost more than a good
 * choice saves.
 */
export const MOST_MEMBERS = 256;

/** A pool that a caller names instead of a signer. */
export interface PoolAsked {
  readonly pool: string;
  /**
   * Requests with the same sticky key always get the same member. Null: each request gets the best member at that time.
   */
  readonly stickyKey: string | null;
}

/**
 * State of a lane for a transaction that is created now. "open": the transaction would be sent soon. "blocked": it
 * would wait, because the lane's first open transaction is stuck or the signer's key is unavailable. "stopped": it
 * would wait until the lane is resumed or a kill is lifted. "outOfReach": the lane's owner cannot be reached, or the
 * lane waits because the database may have lost commits.
 */
export type Passage = "open" | "blocked" | "stopped" | "outOfReach";

export interface MemberFacts {
  readonly signer: Address;
  readonly passage: Passage;
  /**
   * Number of transactions before a new one on this lane: those in no block yet, plus requests that were assigned to
   * this member and have no nonce yet.
   */
  readonly ahead: number;
  /** Age of the lane's lowest open transaction; 0 if there is none. */
  readonly headAgeMs: number;
  /** True if the member's queue is full. */
  readonly isFull: boolean;
  /** Last known balance of the member; null if unknown: then the member counts as able to pay. */
  readonly balance: bigint | null;
  /** When this member was last chosen, as a sequence number; 0: never. */
  readonly lastChosen: number;
}

export type PoolChoice =
  | { readonly kind: "chosen"; readonly signer: Address }
  /**
   * No member was chosen. `full`: all members with enough funds have full queues. `funds`: no member has enough funds.
   */
  | { readonly kind: "refused"; readonly why: "full" | "funds" };

const PASSAGES: readonly Passage[] = ["open", "blocked", "stopped", "outOfReach"];

/**
 * Chooses the member with the shortest wait among those with space in their queue and funds for `cost`. A lane that is
 * stopped or out of reach is chosen only if no other is left: the transaction is then accepted and waits, as it would
 * for a named signer. Equal members take turns.
 */
export function chooseMember(members: readonly MemberFacts[], cost: bigint): PoolChoice {
  const solvent = members.filter(({ balance }) => balance === null || balance >= cost);
  const [best] = solvent.filter(({ isFull }) => !isFull).sort(byWait);
  if (best !== undefined) return { kind: "chosen", signer: best.signer };
  return { kind: "refused", why: solvent.length > 0 ? "full" : "funds" };
}

function byWait(a: MemberFacts, b: MemberFacts) {
  return (
    PASSAGES.indexOf(a.passage) - PASSAGES.indexOf(b.passage) ||
    a.ahead - b.ahead ||
    a.headAgeMs - b.headAgeMs ||
    a.lastChosen - b.lastChosen
  );
}

/**
 * Chooses the same member for the same sticky key, whatever the state of its lane: related transactions must not
 * overtake each other on different lanes. When members join or leave the pool, some keys get another member.
 */
export function stickyMember(members: readonly Address[], stickyKey: string): Address | null {
  const scored = members.map((signer) => ({ signer, score: affinity(stickyKey, signer) }));
  scored.sort((a, b) => b.score - a.score || (a.signer < b.signer ? -1 : 1));
  return scored[0]?.signer ?? null;
}

/** Key of a request id within a pool of one chain. Pool names contain no line break. */
export function poolKey(pool: string, requestId: string): string {
  return `${pool}\n${requestId}`;
}

/**
 * Key of a request id within its pool. Null if the request has no pool or no request id: then it cannot be a repeat
 * within a pool.
 */
export function poolKeyOf({ pool, requestId }: Pick<Intent, "pool" | "requestId">): string | null {
  return pool === undefined || requestId === null ? null : poolKey(pool, requestId);
}
