/**
 * Gives nonces. The cursor was read behind the lane's lock and nobody can move it before COMMIT, so the numbers are
 * given here; repeats are taken out first, because a repeat must not consume one.
 */
import {
  type AllocateFate,
  type AllocateWrite,
  BatchRefused,
  type ExistingTransaction,
  type NewTransaction,
  type WriteOutcome,
} from "../../../ports/lane-store.ts";
import type { WaitingIntakeRow } from "../statements/intake.ts";
import { giveNonce } from "./nonces.ts";
import { existingOf, type LanePlan, type Plan, requestKey } from "./plan.ts";

export function planAllocation(
  plan: Plan,
  lane: LanePlan,
  { write, now }: { write: AllocateWrite; now: Date },
): WriteOutcome {
  const items = write.items.map((item) => fateOf(plan, lane, { item, write, now }));
  return { status: "allocated", items, cursor: lane.cursor ?? 0 };
}

function fateOf(
  plan: Plan,
  lane: LanePlan,
  { item, write, now }: { item: NewTransaction; write: AllocateWrite; now: Date },
): AllocateFate {
  const { intent } = item;
  const existing = findExisting(plan, lane, item);
  if (existing !== undefined) {
    return { fate: "duplicate", existing, samePayload: existing.fingerprint === intent.fingerprint };
  }
  if (plan.isHeld(lane)) return { fate: "held" };
  const given = giveNonce(plan, lane, write);
  if (given === null) return { fate: "noCursor" };
  const { nonce } = given;
  const intake = item.intakeId === undefined ? null : consume(plan, item.intakeId, intent.txId);
  plan.allocations.push({ intent, nonce, lane, intake });
  if (intent.requestId !== null) {
    const { txId, requestId, fingerprint } = intent;
    const created = { txId, lane: intent.lane, requestId, nonce, state: "ALLOCATED", fingerprint } as const;
    plan.requests.set(keyOf(lane, requestId), created);
  }
  const created = { fate: "created", nonce, createdAt: intake?.created_at ?? now } as const;
  return given.recycled ? { ...created, recycled: true } : created;
}

/** By request id; an intent from the intake table also by its own id, which a repeated allocation would bring again. */
function findExisting(
  plan: Plan,
  lane: LanePlan,
  { intent, intakeId, mayExist }: NewTransaction,
): ExistingTransaction | undefined {
  const { requestId, txId } = intent;
  const byRequest = requestId === null ? undefined : plan.requests.get(keyOf(lane, requestId));
  if (byRequest !== undefined || (intakeId === undefined && mayExist !== true)) return byRequest;
  const itself = plan.moves.get(txId)?.row;
  return itself === undefined ? undefined : existingOf(itself);
}

function consume(plan: Plan, intakeId: number, txId: string): WaitingIntakeRow {
  const row = plan.intake.get(intakeId);
  if (row?.tx_id !== txId) throw new BatchRefused(`intake row ${intakeId} is not waiting for ${txId}`);
  plan.intake.delete(intakeId);
  return row;
}

function keyOf({ row }: LanePlan, requestId: string): string {
  return requestKey({ chain_id: row.chain_id, signer: row.signer, request_id: requestId });
}
