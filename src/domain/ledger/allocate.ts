/**
 * Gives nonces to new transactions. Repeated requests are filtered out first, because a repeat must not consume a
 * nonce.
 */

import { isFree } from "../nonces/holes.ts";
import { poolKeyOf } from "../nonces/pool.ts";
import type { Awaited } from "../policy/policy.ts";
import type { PreparedIntent } from "../transaction/transaction.ts";
import type { Draft } from "./draft.ts";
import { judgeFirst, unapproved } from "./guard.ts";
import {
  existingOf,
  givesNoNonce,
  isHeld,
  isSpent,
  type Ledger,
  type LedgerTransaction,
  type WaitingIntent,
} from "./ledger.ts";
import { BatchRefused } from "./part.ts";
import type {
  AllocateResult,
  AllocateWrite,
  LedgerOutcome,
  NewTransaction,
  RequestOwner,
  WantedNonces,
} from "./writes.ts";

export function allocate(draft: Draft, write: AllocateWrite): LedgerOutcome {
  const giver = new Giver(draft.ledger, write);
  const items = write.items.map((item) => resultOf(draft, giver, item));
  return { status: "allocated", items, cursor: draft.ledger.cursor ?? 0 };
}

function resultOf(draft: Draft, giver: Giver, item: NewTransaction): AllocateResult {
  const { intent } = item;
  const existing = findExisting(draft.ledger, item);
  if (isSpent(existing)) return { result: "spent" };
  if (existing !== null) {
    return { result: "duplicate", existing, samePayload: existing.fingerprint === intent.fingerprint };
  }
  if (isHeld(draft.ledger)) return { result: "held" };
  if (givesNoNonce(draft.ledger)) return { result: "held", unreadable: true };
  const intake = waiting(draft.ledger, item);
  if (intake?.held === true) return { result: "held" };
  if (isOver(intent.validUntil, draft.at)) return { result: "expired" };
  const approval = intake?.approval ?? null;
  if (intake !== null && approval?.approved === false) return awaiting(approval.rule, intake.acceptedAt);
  const { exactNonce } = intent;
  const judged = judgeFirst(draft, intent, { approved: approval !== null });
  // An intent that names its nonce cannot wait for approval: no nonce is reserved for waiting intents, so another
  // transaction could get it first.
  const verdict = exactNonce === undefined ? judged : unapproved(judged);
  if ("forbidden" in verdict) return { result: "forbidden", ...verdict.forbidden };
  if ("awaited" in verdict) return keepWaiting(draft, intent, intake, verdict.awaited);
  const given = exactNonce === undefined ? giver.next(draft) : giver.exactly(draft, exactNonce);
  if (given === null) return { result: "noCursor" };
  if ("next" in given) return { result: "otherNonce", next: given.next };
  const { nonce, recycled } = given;
  draft.record({ kind: "allocated", intent, nonce, intake, at: draft.at });
  for (const charge of verdict.charges) draft.record(charge);
  return { result: "created", nonce, createdAt: intake?.acceptedAt ?? draft.at, ...(recycled ? { recycled } : {}) };
}

/**
 * True if the intent's `validUntil` has passed. Checked under the lane's lock, by the database's clock: an expired
 * intent gets no nonce.
 */
export function isOver(validUntil: Date | null | undefined, at: Date): boolean {
  return validUntil !== null && validUntil !== undefined && validUntil <= at;
}

function keepWaiting(
  draft: Draft,
  intent: PreparedIntent,
  intake: WaitingIntent | null,
  { rule, detail, expiresAfterMs }: Awaited,
): AllocateResult {
  const { at } = draft;
  const approval = { rule, expiresAt: new Date(at.getTime() + expiresAfterMs), approved: false };
  draft.record({ kind: "awaits", intent, intake, approval, detail, at });
  return awaiting(rule, intake?.acceptedAt ?? at);
}

function awaiting(rule: string, createdAt: Date): AllocateResult {
  return { result: "awaiting", rule, createdAt };
}

/**
 * Finds the transaction that already owns this request id. For an intent that may have been allocated before, it also
 * searches by transaction id.
 */
function findExisting(ledger: Ledger, { intent, intakeId, mayExist }: NewTransaction): RequestOwner | null {
  const { requestId, txId } = intent;
  // An intent that waited for approval already owns its request id. It must not count as a repeat of itself when it
  // gets its nonce.
  const isBefore = (found: RequestOwner | LedgerTransaction | null) =>
    found !== null && !("state" in found && found.state === "CREATED" && found.txId === txId && intakeId !== undefined);
  const owner = requestId === null ? null : (ledger.requests.get(requestId) ?? ownerInPool(ledger, intent));
  if (isBefore(owner) || (intakeId === undefined && mayExist !== true)) return owner;
  const itself = ledger.transactions.get(txId);
  return itself === null || !isBefore(itself) ? null : existingOf(ledger, itself);
}

/**
 * Finds the transaction that owns a request id within a pool. The first lane of the pool that used the id owns it; no
 * other lane gives the request a nonce.
 */
function ownerInPool({ pooled }: Ledger, intent: PreparedIntent): RequestOwner | null {
  const key = poolKeyOf(intent);
  return key === null ? null : pooled.get(key);
}

function waiting({ intake }: Ledger, { intakeId, intent: { txId } }: NewTransaction): WaitingIntent | null {
  if (intakeId === undefined) return null;
  const row = intake.get(intakeId);
  if (row?.txId !== txId) throw new BatchRefused(`intake row ${intakeId} is missing or is not of transaction ${txId}`);
  return row;
}

interface Given {
  readonly nonce: number;
  /**
   * True if the nonce was a free nonce gap ("hole"): it lies below the lane's next nonce, and a transaction or
   * reservation gave it up, or the lane skipped it.
   */
  readonly recycled: boolean;
}

/**
 * The lane's next nonce: the lowest one above all nonces that were given or mined. Null if the lane is new and the
 * chain's transaction count is not known.
 */
export function nextNonce({ cursor }: Pick<Ledger, "cursor">, floor: number | null): number | null {
  return cursor === null && floor === null ? null : Math.max(cursor ?? 0, floor ?? 0);
}

/**
 * Gives out nonces one by one: first the free nonce gaps that the write offers (`fill`), lowest first, then new ones in
 * ascending order.
 */
export class Giver {
  private readonly floor: number | null;
  private readonly free: number[];

  constructor({ holes }: Ledger, { floor, fill = [] }: WantedNonces) {
    this.floor = floor;
    const offered = [...new Set(fill)].filter((nonce) => nonce >= (floor ?? 0)).sort((a, b) => a - b);
    this.free = offered.filter((nonce) => {
      const hole = holes.get(nonce);
      return hole !== null && isFree(hole);
    });
  }

  /**
   * Returns the next nonce to give; null if the lane is new and the chain's transaction count is not known. A free
   * nonce gap is used first; the lane's next nonce (`cursor`) then stays unchanged.
   */
  next(draft: Draft): Given | null {
    const next = nextNonce(draft.ledger, this.floor);
    if (next === null) return null;
    const hole = this.free.shift();
    if (hole === undefined) return { nonce: next, recycled: false };
    draft.record({ kind: "holeClosed", nonce: hole });
    return { nonce: hole, recycled: true };
  }

  /**
   * Gives the nonce that a caller named, but only if it is the next one above all given nonces. A lower nonce is
   * refused even if it is free: its former transaction may have moved to another nonce, and a repeat of that
   * transaction at its old nonce would then run twice.
   */
  exactly({ ledger }: Draft, nonce: number): Given | { readonly next: number } | null {
    const next = nextNonce(ledger, this.floor);
    if (next === null) return null;
    return nonce === next ? { nonce, recycled: false } : { next };
  }
}
