/**
 * Detour: a nonce that no create brought gets its transaction. A caller hands in what it signed for a nonce it reserved, or
 * names the hash it sent itself; or a placeholder closes a hole.
 *
 * Reads: nothing. Writes, in one fenced transaction: transaction, attempt with its bytes, TRACKING/PENDING, claim, the end
 * of the reservation or of the hole. Invariants: I3 (the nonce was this holder's alone), I6 (claimed before a byte leaves).
 * A crash before the commit leaves the reservation or the hole; after it, a claimed attempt that the next owner sends.
 */
import { boundTransaction } from "../../domain/ledger/index.ts";
import {
  committed,
  LOOK_DUE,
  namedOnly,
  signedPace,
  type TransactionPace,
} from "../../domain/pace/transaction-pace.ts";
import type { OutcomeOf, Unfenced } from "../../ports/lane-store.ts";
import { type LaneWriterPorts, reportMove } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { Tracked } from "../lane/tracked.ts";

export type Binding = Omit<Unfenced<"bind">, "kind">;

export async function bind(ports: LaneWriterPorts, lane: OwnedLane, binding: Binding): Promise<OutcomeOf<"bind">> {
  const outcome = await lane.term.write({ kind: "bind", ...binding });
  if (outcome.fate !== "settled") return outcome;
  await ports.failpoint("bind.committed");
  const { createdAt, requestId } = outcome;
  const { nonce, intent } = binding;
  const tx = new Tracked(
    { txId: intent.txId, nonce, requestId, createdAt, firstSentAt: createdAt },
    boundTransaction(binding),
    paceOf(binding),
  );
  lane.track(tx);
  const txHash = binding.attempt.txHash ?? null;
  reportMove(ports, lane, { txId: tx.txId, nonce: tx.nonce, event: "sign", from: "ALLOCATED", ...tx.status, txHash });
  lane.broadcasting?.kick();
  return outcome;
}

/** A hash without bytes is only looked for: it may be mined already. */
function paceOf({ attempt: { ordinal, rawTransaction } }: Binding): TransactionPace {
  const pace = signedPace(ordinal, rawTransaction);
  return rawTransaction === null ? namedOnly(pace) : committed(pace, LOOK_DUE);
}
