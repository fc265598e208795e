/**
 * Detour: a nonce that no create brought gets its transaction. A caller hands in what it signed for a nonce it reserved, or
 * names the hash it sent itself; or a placeholder closes a hole.
 *
 * Reads: nothing. Writes, in one fenced transaction: transaction, attempt with its bytes, TRACKING/PENDING, claim, the end
 * of the reservation or of the hole. Invariants: I3 (the nonce was this holder's alone), I6 (claimed before a byte leaves).
 * A crash before the commit leaves the reservation or the hole; after it, a claimed attempt that the next owner sends.
 */
import { committed, LOOK_DUE, namedOnly } from "../../domain/pace/transaction-pace.ts";
import type { PreparedIntent, SignedAttempt } from "../../domain/transaction.ts";
import type { Failpoints } from "../../ports/failpoints.ts";
import type { SettleFate, Unfenced } from "../../ports/lane-store.ts";
import { happened } from "../lane/happened.ts";
import { type LaneWriterPorts, reportMove } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { signed, type Tracked } from "../lane/tracked.ts";

export interface BindPorts extends LaneWriterPorts {
  readonly failpoint: Failpoints;
}

export type Binding = Omit<Unfenced<"bind">, "kind">;

export async function bind(ports: BindPorts, lane: OwnedLane, binding: Binding): Promise<SettleFate> {
  const outcome = await lane.term.write({ kind: "bind", ...binding });
  if (outcome.fate !== "settled") return outcome.fate;
  await ports.failpoint("bind.committed");
  const { createdAt, requestId } = outcome;
  const tx = trackedOf({ ...binding, intent: { ...binding.intent, requestId } }, createdAt);
  tx.firstSentAt = binding.attempt.rawTransaction === null ? null : ports.clock.now();
  lane.track(tx);
  const txHash = binding.attempt.txHash ?? null;
  reportMove(ports, lane, { txId: tx.txId, nonce: tx.nonce, event: "sign", from: "ALLOCATED", ...tx.status, txHash });
  lane.broadcasting?.kick();
  return outcome.fate;
}

interface Bound {
  readonly nonce: number;
  readonly intent: PreparedIntent;
  readonly attempt: SignedAttempt;
}

/** A hash without bytes is only looked for: it may be mined already. */
function trackedOf({ nonce, intent, attempt }: Bound, createdAt: Date): Tracked {
  const { txId, requestId, payload, gas } = intent;
  const tx = signed({ txId, nonce, requestId, payload, gas, createdAt }, attempt);
  tx.status = { state: "TRACKING", subState: "PENDING" };
  if (attempt.rawTransaction !== null) {
    happened(tx, committed, LOOK_DUE);
    return tx;
  }
  happened(tx, namedOnly);
  tx.submitAttempts = 0;
  return tx;
}
