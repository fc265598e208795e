/** Settles intake rows that get no nonce. What is settled already is passed over: an owner may repeat it. */
import type { IntakeFate } from "../../../ports/lane-store.ts";
import { existingOf, type LanePlan, type Plan, requestKey } from "./plan.ts";

export function planIntakeFate(plan: Plan, lane: LanePlan, fate: IntakeFate): void {
  const row = plan.intake.get(fate.intakeId);
  if (row === undefined || row.chain_id !== lane.row.chain_id || row.signer !== lane.row.signer) return;
  plan.intake.delete(fate.intakeId);
  if (fate.fate === "alias") {
    plan.aliases.push({ intakeId: fate.intakeId, of: fate.of });
    return;
  }
  plan.refusals.push({ fate, lane, row });
  lane.failed++;
  lane.changed = true;
  const { tx_id: txId, request_id: requestId } = row;
  if (fate.event === "refuse" && requestId !== null && !plan.requests.has(requestKey(row))) {
    plan.requests.set(requestKey(row), existingOf({ ...row, nonce: null, state: "FAILED_FINAL" }));
  }
  const subState = subStateOf(fate.event);
  plan.completions.push({
    ...{ txId, lane, requestId, nonce: null },
    ...{ state: "FAILED_FINAL", subState, settled: true, txHash: null },
  });
}

export function subStateOf(event: "refuse" | "refuseReusedRequestId"): "REJECTED" | "REQUEST_ID_REUSED" {
  return event === "refuse" ? "REJECTED" : "REQUEST_ID_REUSED";
}
