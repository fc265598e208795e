/**
 * Pools: some signers under one name, of which each request gets one. Pure: which member that is, by what is known of
 * their lanes at this moment. Nothing here is binding. What holds a request to one lane is the row that is written with
 * its nonce (docs/pools.md).
 */
import type { Address } from "./lane.ts";
import { affinity } from "./rendezvous.ts";
import type { Intent } from "./transaction.ts";

/** By name; members in the order of the configuration. */
export type Pools = ReadonlyMap<string, readonly Address[]>;

export const POOL_NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/** More would have the lanes of each choice looked at for longer than the choice saves. */
export const MOST_MEMBERS = 256;

/** What a caller asks for instead of a signer. */
export interface PoolAsked {
  readonly pool: string;
  /** Requests with the same one get the same member, always. Null: each gets the best of the moment. */
  readonly stickyKey: string | null;
}

/** Whether a transaction would be sent soon: it would; something holds the lane up; somebody stopped it; nobody can be asked. */
export type Passage = "open" | "blocked" | "stopped" | "outOfReach";

export interface MemberFacts {
  readonly signer: Address;
  readonly passage: Passage;
  /** Transactions of its lane that are in no block, and choices that have no nonce yet. */
  readonly ahead: number;
  /** Of the one that all others of the lane wait for; 0 where there is none. */
  readonly headAgeMs: number;
  /** Its queue takes no more. */
  readonly isFull: boolean;
  /** As the chain last told it; null: not known, which decides nothing. */
  readonly balance: bigint | null;
  /** The number of the last choice that fell on it; 0: none did. */
  readonly lastChosen: number;
}

export type PoolChoice =
  | { readonly kind: "chosen"; readonly signer: Address }
  /** `full`: one that could pay has no room. `funds`: none can pay. */
  | { readonly kind: "refused"; readonly why: "full" | "funds" };

const PASSAGES: readonly Passage[] = ["open", "blocked", "stopped", "outOfReach"];

/**
 * The member with the shortest wait among those that have room and can pay `cost`. A lane that is stopped is chosen only
 * where no other is left: there the transaction is accepted and waits, as it would for a signer that was named. Equals
 * take turns.
 */
export function chooseMember(members: readonly MemberFacts[], cost: bigint): PoolChoice {
  const solvent = members.filter(({ balance }) => balance === null || balance >= cost);
  const [best] = solvent.filter(({ isFull }) => !isFull).sort(byWait);
  if (best !== undefined) return { kind: "chosen", signer: best.signer };
  return { kind: "refused", why: solvent.length > 0 ? "full" : "funds" };
}

function byWait(a: MemberFacts, b: MemberFacts): number {
  return (
    PASSAGES.indexOf(a.passage) - PASSAGES.indexOf(b.passage) ||
    a.ahead - b.ahead ||
    a.headAgeMs - b.headAgeMs ||
    a.lastChosen - b.lastChosen
  );
}

/**
 * The same member for the same key, whatever becomes of its lane: what belongs together must not overtake itself on another
 * one. Members that join or leave the pool move a part of the keys.
 */
export function stickyMember(members: readonly Address[], stickyKey: string): Address | null {
  const scored = members.map((signer) => ({ signer, score: affinity(stickyKey, signer) }));
  scored.sort((a, b) => b.score - a.score || (a.signer < b.signer ? -1 : 1));
  return scored[0]?.signer ?? null;
}

/** A request id as a pool knows it, on one chain. No pool has a line break in its name. */
export function poolKey(pool: string, requestId: string): string {
  return `${pool}\n${requestId}`;
}

/** Null: no pool was asked, or without a request id, by which it could be a repeat. */
export function poolKeyOf({ pool, requestId }: Pick<Intent, "pool" | "requestId">): string | null {
  return pool === undefined || requestId === null ? null : poolKey(pool, requestId);
}
