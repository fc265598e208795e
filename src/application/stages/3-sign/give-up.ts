/**
 * Beside stage 3: a transaction that can never be signed gives its nonce up before anything of it was claimed. It is
 * final at once, its nonce is free, and what waits above moves down.
 *
 * Reads: nothing. Writes: FAILED_FINAL/REJECTED without a nonce, the hole, the completion, in one fenced transaction;
 * the history keeps which nonce it was. Invariant I9: no hole left behind. A crash before the commit leaves ALLOCATED,
 * which the next owner tries to sign; after it, a free nonce that every owner knows.
 */
import type { AllocatedRecord } from "../../../ports/lane-store.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, plan } from "../../lane/lane-writer.ts";
import { type OwnedLane, queued } from "../../lane/owned-lane.ts";

export async function giveUp(ports: LanePorts, lane: OwnedLane, record: AllocatedRecord, why: string): Promise<void> {
  const { txId, nonce } = record;
  const reason = `nonce ${nonce} is given up: ${why}`;
  const planned = plan(queued(record), "giveUp", { reason, lastError: why });
  await commitPlanned(ports, lane, [planned]);
  await ports.failpoint("giveUp.committed");
  lane.backlog.drop(record);
  ports.feedGrew();
  const message = `${txId} will never be signed and gave nonce ${nonce} of ${lane.lane.signer} up: ${why}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "NONCE_GIVEN_UP", message, lane: lane.lane, txId });
}
