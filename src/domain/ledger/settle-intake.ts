/** Settles intents of the intake table that get no nonce. What is settled already is passed over: an owner may repeat it. */
import type { Draft } from "./draft.ts";
import type { WaitingIntent } from "./ledger.ts";
import type { IntakeFate, LedgerOutcome, SettleIntakeWrite } from "./writes.ts";

export function settleIntake(draft: Draft, { fates }: SettleIntakeWrite): LedgerOutcome {
  for (const fate of fates) {
    const intake = draft.ledger.intake.get(fate.intakeId);
    if (intake === null) continue;
    if (fate.fate === "refused") refuse(draft, intake, fate);
    else draft.record({ kind: "aliased", intakeId: fate.intakeId, of: fate.of });
  }
  return { status: "done" };
}

function refuse(draft: Draft, intake: WaitingIntent, fate: Extract<IntakeFate, { fate: "refused" }>): void {
  const { at } = draft;
  draft.record({ kind: "refused", intake, fate, at });
  const { txId, requestId } = intake;
  const subState = draft.ledger.transactions.get(txId)?.subState ?? null;
  const outcome = { state: "FAILED_FINAL", subState, settled: true, txHash: null } as const;
  draft.record({ kind: "completed", completion: { ...outcome, txId, requestId, nonce: null }, at });
}
