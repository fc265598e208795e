import { type Fence, laneKey } from "../../../src/domain/lane.ts";
import type { IntakeFate } from "../../../src/ports/lane-store.ts";
import { insertRow, newRow } from "./allocate.ts";
import type { Work } from "./commit.ts";
import { refuseNul } from "./refusals.ts";
import { type IntakeEntry, type LaneRow, requestKey, sameLane } from "./state.ts";
import { appendCompletion } from "./transition.ts";

/** Settling again what is settled changes nothing: an owner may repeat it after an unknown commit. */
export function settleIntake(work: Work, fence: Fence, fate: IntakeFate): void {
  const entry = work.state.intake.get(fate.intakeId);
  if (entry === undefined || entry.aliasOf !== null || !sameLane(entry.intent.lane, fence.lane)) return;
  if (fate.fate === "alias") work.log.assign(entry, { aliasOf: fate.of });
  else refuse(work, fence, { entry, fate });
}

function refuse(
  work: Work,
  fence: Fence,
  { entry, fate }: { entry: IntakeEntry; fate: Extract<IntakeFate, { fate: "refused" }> },
): void {
  const { state, log, now } = work;
  const { intent, createdAt } = entry;
  refuseNul(fate.reason);
  const subState = fate.event === "refuse" ? "REJECTED" : "REQUEST_ID_REUSED";
  const taken = intent.requestId !== null && state.requests.has(requestKey(intent.lane, intent.requestId));
  const shared = { subState: null, reason: null, nodeId: null, token: null, count: 1, fromState: null } as const;
  const row = newRow(intent, {
    ownsRequest: fate.event === "refuse" && !taken,
    state: "FAILED_FINAL",
    subState,
    live: false,
    lastEvent: fate.event,
    lastError: fate.reason,
    createdAt,
    updatedAt: now,
    history: [
      { ...shared, ordinal: 1, event: "accept", state: "CREATED", firstAt: createdAt, lastAt: createdAt },
      {
        ...shared,
        ordinal: 2,
        event: fate.event,
        fromState: "CREATED",
        state: "FAILED_FINAL",
        subState,
        nodeId: state.instances.get(fence.instanceId)?.nodeId ?? null,
        token: fence.token,
        reason: fate.reason,
        firstAt: now,
        lastAt: now,
      },
    ],
  });
  insertRow(work, row);
  log.delete(state.intake, entry.intakeId);
  const lane = state.lanes.get(laneKey(row.lane)) as LaneRow;
  log.assign(lane, { failed: lane.failed + 1 });
  appendCompletion(work, row, { state: "FAILED_FINAL", subState, settled: true, txHash: null });
}
