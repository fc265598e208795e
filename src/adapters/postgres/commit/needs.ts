import type { Fence } from "../../../domain/lane.ts";
import { concernsLimits } from "../../../domain/ledger/index.ts";
import { isLimited, type Policies } from "../../../domain/policy/policy.ts";
import { range } from "../../../domain/range.ts";
import type { PreparedIntent } from "../../../domain/transaction/transaction.ts";
import type { ActionKey, LaneWrite, NewTransaction, TransitionItem } from "../../../ports/lane-store.ts";

/**
 * The rows of its lane that a write concerns. They are read after the lane is locked, and loaded into its ledger,
 * before the write is decided.
 */
export interface Needs {
  readonly fence: Fence;
  readonly transactions?: readonly string[];
  /**
   * `compared`: those of `transactions` whose payload may be compared with another payload. `attempts`: those of
   * `transactions` of which the write names an attempt.
   */
  readonly compared?: readonly string[];
  readonly attempts?: readonly string[];
  readonly requests?: readonly string[];
  /** Request ids of pools, which may belong to any lane of the pool. */
  readonly pooled?: readonly PooledRequest[];
  /** Set if intents that wait for approval must be read too, by the request ids and transaction ids listed here. */
  readonly awaited?: true;
  readonly intake?: readonly number[];
  readonly reservations?: readonly string[];
  /** Request ids under which callers made reservations. */
  readonly reservedAs?: readonly string[];
  /** Nonces for which it must be known whether a transaction has them. */
  readonly nonces?: readonly number[];
  /** Block number. Settled transactions of the lane that were mined at or below it are read. */
  readonly watchedThrough?: number;
  readonly holes?: boolean;
  readonly openReservations?: boolean;
  /** Set if the write needs to know which transactions must keep their nonce. */
  readonly fixed?: boolean;
  readonly epochFloor?: boolean;
  /** Set if the repairs of expired reservations in the last hour are needed. */
  readonly repairs?: boolean;
  /** Set if the highest nonce of any transaction or unreleased reservation is needed. */
  readonly boundNonce?: boolean;
  readonly mayHaveLost?: boolean;
  /** Idempotency keys of operator actions that may have been carried out already. */
  readonly actionKeys?: readonly ActionKey[];
  /** Request ids of messages that were, or may have been, asked to be signed. */
  readonly messages?: readonly string[];
  /** Set if the use of the rules about messages is needed. */
  readonly messageUse?: boolean;
  /** Height from which the stored blocks of the chain are needed. */
  readonly blocksFrom?: number;
  /**
   * Set if used amounts of the policies' limits are needed: the lane's own, those of `owners`, and the charges of the
   * transactions in `charged`.
   */
  readonly limits?: { readonly charged: readonly string[]; readonly owners: readonly string[] };
}

/** A request id that was used for a create on a pool. */
export interface PooledRequest {
  readonly pool: string;
  readonly requestId: string;
}

type Kind = LaneWrite["kind"];
type Beside = Omit<Needs, "fence">;

/** Rows that each kind of write needs besides the lane's own row. A kind that is not listed needs no other rows. */
const BESIDE_THE_LANE: { readonly [K in Kind]?: (write: Extract<LaneWrite, { readonly kind: K }>) => Beside } = {
  allocate(write) {
    // Items that may repeat an earlier allocation: those from the intake table, and repeats of a forwarded create.
    const repeated = write.items.filter(({ intakeId, mayExist }) => intakeId !== undefined || mayExist === true);
    const ids = repeated.map(({ intent }) => intent.txId);
    const requests = write.items.flatMap(({ intent }) => intent.requestId ?? []);
    const intake = repeated.flatMap(({ intakeId }) => intakeId ?? []);
    return { transactions: ids, compared: ids, requests, pooled: pooledOf(write.items), intake, holes: fills(write) };
  },
  transition: ({ items }) => ({
    transactions: items.map(({ txId }) => txId),
    attempts: items.flatMap(({ txId, identified }) => (identified === undefined ? [] : txId)),
    holes: items.some(({ nonce }) => nonce !== undefined),
    fixed: items.some(givesUp),
    openReservations: items.some(givesUp),
    epochFloor: items.some((item) => item.nonce !== undefined || givesUp(item)),
    actionKeys: items.flatMap(({ decision }) => decision?.actionKey ?? []),
  }),
  settleIntake: ({ results }) => ({
    intake: results.map(({ intakeId }) => intakeId),
    requests: results.flatMap((result) => (result.result === "decided" ? (result.requestId ?? []) : [])),
    actionKeys: results.flatMap((result) => (result.result === "decided" ? (result.decision?.actionKey ?? []) : [])),
  }),
  signMessage: ({ asked }) => ({ messages: [asked.requestId], messageUse: true }),
  settleMessage: ({ requestId }) => ({ messages: [requestId], messageUse: true }),
  unwatch: ({ throughBlock }) => ({ watchedThrough: throughBlock }),
  reconcile: () => ({ mayHaveLost: true }),
  suspend: ({ decision }) => ({ actionKeys: actionKeysIn(decision) }),
  realign: ({ decision }) => ({ holes: true, boundNonce: true, actionKeys: actionKeysIn(decision) }),
  reserve(write) {
    const named = write.requestId === null ? [] : [write.requestId];
    return { requests: named, reservedAs: named, holes: true, openReservations: true };
  },
  release: ({ reservationId }) => ({ reservations: [reservationId] }),
  expire: () => ({ openReservations: true }),
  bind: ({ intent: { requestId }, reservation, decision, chosen }) => ({
    actionKeys: actionKeysIn(decision),
    requests: requestId === null ? [] : [requestId],
    openReservations: chosen !== undefined,
    reservations: reservation === undefined ? [] : [reservation.reservationId],
    holes: true,
    repairs: reservation?.becomes === "EXPIRED" && reservation.mostPerHour !== undefined,
  }),
  closeHoles: () => ({ holes: true }),
  findSkipped: ({ from, below }) => ({ nonces: range(from, below - 1), holes: true, openReservations: true }),
  confirmations: ({ blocks }) => ({ blocksFrom: blocks[0]?.number ?? Number.MAX_SAFE_INTEGER }),
};

export function needsOf(write: LaneWrite, policies: Policies | null): Needs {
  const beside = BESIDE_THE_LANE[write.kind] as ((write: LaneWrite) => Beside) | undefined;
  const needs = { fence: write.fence, ...beside?.(write) };
  if (policies === null) return needs;
  const limits = limitsOf(write, policies);
  // If a nonce is allocated under a request id, another intent with that id may be waiting for approval without a
  // nonce.
  const awaited = policies.asksApproval && beside !== undefined && "requests" in needs;
  return { ...needs, ...(limits && { limits }), ...(awaited && { awaited }) };
}

/** Policy limits that a write concerns: the owners and charged transactions to read. Null if no limit applies. */
export function limitsOf(write: LaneWrite, policies: Policies): NonNullable<Needs["limits"]> | null {
  const { signer } = write.fence.lane;
  const isLimitedFor = (intent: PreparedIntent) => isLimited(policies, signer, intent.owner);
  switch (write.kind) {
    case "allocate":
      return limitsFor(write.items.map(({ intent }) => intent).filter(isLimitedFor));
    case "bind":
      return limitsFor([write.intent].filter(isLimitedFor));
    case "transition": {
      // The owners of changed transactions are unknown until the transactions are read, so `owners` is empty.
      const mayBe = policies.keys.size > 0 || isLimited(policies, signer, null);
      const charged = mayBe ? write.items.filter(concernsLimits).map(({ txId }) => txId) : [];
      return charged.length === 0 ? null : { charged, owners: [] };
    }
    default:
      return null;
  }
}

function limitsFor(limited: readonly PreparedIntent[]): NonNullable<Needs["limits"]> | null {
  if (limited.length === 0) return null;
  return { charged: [], owners: [...new Set(limited.flatMap(({ owner }) => owner ?? []))] };
}

function pooledOf(items: readonly NewTransaction[]): readonly PooledRequest[] {
  return items.flatMap(({ intent: { pool, requestId } }) =>
    pool === undefined || requestId === null ? [] : { pool, requestId },
  );
}

function fills({ fill = [] }: { readonly fill?: readonly number[] }) {
  return fill.length > 0;
}

function givesUp({ event }: TransitionItem) {
  return event === "expire";
}

function actionKeysIn(decision: { readonly actionKey?: ActionKey } | undefined): readonly ActionKey[] {
  return decision?.actionKey === undefined ? [] : [decision.actionKey];
}
