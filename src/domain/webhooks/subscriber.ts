/**
 * Subscribers: receivers of webhooks for outcomes. A subscriber is a durable position in the completion feed. One live
 * instance at a time delivers for it, under a term (instance and token), as for a lane. Every change by a person begins
 * another term, too, so that a delivering node cannot overwrite it.
 */
import { isLimited, type Limits } from "../keys/principal.ts";
import type { Address, Lane } from "../lane.ts";
import type { CompletionState } from "../transaction/transitions.ts";

/** Outcomes that a subscriber gets; null for any. */
export interface OutcomeFilter {
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
  /** API keys whose transactions are meant. */
  readonly keys: readonly string[] | null;
  readonly states: readonly CompletionState[] | null;
}

export const EVERY_OUTCOME: OutcomeFilter = { signers: null, chains: null, keys: null, states: null };

/** Place in the feed. Everything up to `position` is delivered or filtered out; of later outcomes, those in `done`. */
export interface Progress {
  readonly epoch: number;
  readonly position: number;
  readonly done: readonly number[];
}

/** Last response of a receiver. `status`: of HTTP; null if there was no response, with the reason in `reason`. */
export interface LastAnswer {
  readonly status: number | null;
  readonly reason: string | null;
  readonly at: Date;
}

/**
 * Why nothing is delivered. "OPERATOR": somebody paused it. "GONE": the receiver answered 410. "GAVE_UP": it failed for
 * longer than `giveUpAfterMs`.
 */
export const PAUSED_BY = ["OPERATOR", "GONE", "GAVE_UP"] as const;
export type PausedBy = (typeof PAUSED_BY)[number];

export interface Pause {
  readonly by: PausedBy;
  readonly why: string;
  readonly at: Date;
}

export interface Subscriber {
  readonly subscriberId: string;
  readonly name: string;
  readonly url: string;
  readonly filter: OutcomeFilter;
  /** Generation of the secret. The generation before it is valid until `rotatedUntil`. */
  readonly generation: number;
  readonly rotatedUntil: Date | null;
  /** Digest of the secret, which shows whether a node can derive it. */
  readonly secretId: string;
  readonly giveUpAfterMs: number;
  readonly paused: Pause | null;
  readonly position: number;
  readonly epoch: number;
  /** Since when some outcome has failed again and again; null: none has. */
  readonly failingSince: Date | null;
  readonly lastAnswer: LastAnswer | null;
  readonly nextTryAt: Date | null;
  readonly deliveredAt: Date | null;
  /** Name of the API key that made it; null if none was required. */
  readonly createdBy: string | null;
  readonly createdAt: Date;
  readonly changedBy: string;
  readonly changedAt: Date;
}

/** Proof of the right to deliver for a subscriber. A write with an outdated term changes nothing. */
export interface SubscriberTerm {
  readonly subscriberId: string;
  readonly instanceId: string;
  readonly token: number;
}

/** Largest number of subscribers of one database: each node reads all of them every second. */
export const MOST_SUBSCRIBERS = 500;

/** True if the subscriber gets this outcome. `owner`: API key of the transaction; null if unknown or none. */
export function isWanted(
  { signers, chains, keys, states }: OutcomeFilter,
  { lane, state }: { readonly lane: Lane; readonly state: CompletionState },
  owner: string | null,
): boolean {
  return (
    (signers === null || signers.includes(lane.signer)) &&
    (chains === null || chains.includes(lane.chainId)) &&
    (states === null || states.includes(state)) &&
    (keys === null || (owner !== null && keys.includes(owner)))
  );
}

/** True if a key with these limits may see everything that the filter selects. */
export function isInside({ signers, chains }: OutcomeFilter, limits: Limits): boolean {
  const isCovered = <T>(chosen: readonly T[] | null, limit: ReadonlySet<T> | null) =>
    limit === null || chosen?.every((each) => limit.has(each)) === true;
  return !isLimited(limits) || (isCovered(signers, limits.signers) && isCovered(chains, limits.chains));
}

/** The filter, with the key's limits in place of signers and chains that it does not name. */
export function narrowedTo({ signers, chains }: Limits, filter: OutcomeFilter): OutcomeFilter {
  return {
    ...filter,
    signers: filter.signers ?? (signers && [...signers].sort()),
    chains: filter.chains ?? (chains && [...chains].sort((a, b) => a - b)),
  };
}
