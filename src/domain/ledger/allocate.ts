/** Gives nonces to new transactions. Repeats are taken out first, because a repeat must not consume one. */
import { BatchRefused } from "./batch-refused.ts";
import type { Draft } from "./draft.ts";
import { Giver } from "./give-nonce.ts";
import { judgeFirst } from "./guard.ts";
import { existingOf, isHeld, type Ledger, type WaitingIntent } from "./ledger.ts";
import type { AllocateFate, AllocateWrite, ExistingTransaction, LedgerOutcome, NewTransaction } from "./writes.ts";

export function allocate(draft: Draft, write: AllocateWrite): LedgerOutcome {
  const giver = new Giver(draft.ledger, write);
  const items = write.items.map((item) => fateOf(draft, giver, item));
  return { status: "allocated", items, cursor: draft.ledger.cursor ?? 0 };
}

function fateOf(draft: Draft, giver: Giver, item: NewTransaction): AllocateFate {
  const { intent, intakeId } = item;
  const existing = findExisting(draft.ledger, item);
  if (existing !== null) {
    return { fate: "duplicate", existing, samePayload: existing.fingerprint === intent.fingerprint };
  }
  if (isHeld(draft.ledger)) return { fate: "held" };
  const verdict = judgeFirst(draft, intent);
  if ("forbidden" in verdict) return { fate: "forbidden", ...verdict.forbidden };
  const given = giver.next(draft);
  if (given === null) return { fate: "noCursor" };
  const { nonce, recycled } = given;
  const intake = intakeId === undefined ? null : waiting(draft.ledger, intakeId, intent.txId);
  draft.record({ kind: "allocated", intent, nonce, intake, at: draft.at });
  for (const charge of verdict.charges) draft.record(charge);
  return { fate: "created", nonce, createdAt: intake?.acceptedAt ?? draft.at, ...(recycled ? { recycled } : {}) };
}

/** By request id; an intent that may have been allocated before also by its own id. */
function findExisting(ledger: Ledger, { intent, intakeId, mayExist }: NewTransaction): ExistingTransaction | null {
  const { requestId, txId } = intent;
  const owner = requestId === null ? null : ledger.requests.get(requestId);
  if (owner !== null || (intakeId === undefined && mayExist !== true)) return owner;
  const itself = ledger.transactions.get(txId);
  return itself === null ? null : existingOf(ledger, itself);
}

function waiting({ intake }: Ledger, intakeId: number, txId: string): WaitingIntent {
  const row = intake.get(intakeId);
  if (row?.txId !== txId) throw new BatchRefused(`intake row ${intakeId} is not waiting for ${txId}`);
  return row;
}
