/**
 * Beside stage 6: a receipt whose block left the canonical chain is withdrawn, and its attempt is sent again at once.
 * Where the outcome had been reported already, a REORGED completion says so; nothing that was said is rewritten.
 *
 * Reads: settled rows of the blocks that are gone. Writes: TRACKING/PENDING without receipt; the REORGED completion. A
 * crash after the commit leaves TRACKING/PENDING, which every owner looks for by hash and sends again.
 */

import type { Hash } from "../../../domain/lane.ts";
import { withdrawn } from "../../../domain/pace/transaction-pace.ts";
import { attemptToSend } from "../../../domain/transaction/attempts.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, noteTime, plan } from "../../lane/lane-writer.ts";
import { type OwnedLane, resumed, type Tracked } from "../../lane/owned-lane.ts";
import { happened } from "../../lane/tracked.ts";

/** `because`: what speaks against the block that their receipts name. */
export async function withdraw(
  ports: LanePorts,
  lane: OwnedLane,
  transactions: readonly Tracked[],
  because: "left the canonical chain" | "does not hold it",
): Promise<void> {
  const nowMs = ports.clock.monotonicMs();
  const planned = transactions.map((tx) => {
    const reason = `block ${tx.receipt?.blockNumber} ${tx.receipt?.blockHash} ${because}`;
    sendAgain(tx, nowMs);
    const withdrawal = plan(tx, "withdraw", { receipt: null, reason });
    lane.unmine(tx);
    return withdrawal;
  });
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("withdraw.committed");
}

/** Outcomes that were final and watched: a reorg deeper than finality. */
export async function reviseWatched(ports: LanePorts, lane: OwnedLane, gone: readonly Hash[]): Promise<void> {
  await lane.term.during(lane.outcomes.written());
  const records = await lane.term.during(ports.store.loadWatched(lane.lane, gone));
  for (const hash of gone) lane.watched.delete(hash);
  const nowMs = ports.clock.monotonicMs();
  const planned = records.map((record) => {
    const tx = resumed(record);
    sendAgain(tx, nowMs);
    const reason = `block ${record.receipt?.blockHash} left the canonical chain`;
    return plan(tx, "reorg", { receipt: null, reason });
  });
  const message = `${records.length} settled transactions were reorganised away; each is tracked and sent again`;
  ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code: "DEEP_REORG", message, lane: lane.lane });
  await commitPlanned(ports, lane, planned);
  for (const { tx } of planned) {
    lane.track(tx);
    noteTime(lane, tx, ports.clock);
  }
  ports.feedGrew();
  await ports.failpoint("withdraw.committed");
}

function sendAgain(tx: Tracked, nowMs: number): void {
  const attempt = attemptToSend(tx.attempts, tx.receipt?.txHash);
  happened(tx, withdrawn, attempt?.ordinal ?? null, nowMs);
}
