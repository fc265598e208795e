/**
 * Detour: the head of a lane that is not mined in time is reported as STUCK, with the reason in words. Final for the feed
 * only: it is tracked by every hash and sent again at a slower pace, and leaves the state when it is mined or repaired.
 *
 * Reads: nothing but memory. Writes: STUCK and its completion (settled: false), together. Invariant I9: never silent.
 * A crash after the commit leaves STUCK, which every owner loads and follows like the rest.
 */
import { headStuck } from "../../domain/pace/lane-pace.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";

/** May be reported as STUCK: open, without a receipt, and not reported yet. What an operator holds back waits for that operator. */
export function mayStick({ status, receipt, held }: Tracked): boolean {
  return receipt === null && status.state === "TRACKING" && status.subState !== "MINED" && !held;
}

/** Only the head of a lane becomes STUCK: what is behind it waits for it. */
export function canStick(lane: OwnedLane, tx: Tracked): boolean {
  return mayStick(tx) && tx.nonce === lane.headOfLine();
}

/** Called where the head of the line cannot get on by itself; the reason is shown to people as it is. */
export async function stick(ports: LanePorts, lane: OwnedLane, tx: Tracked, reason: string): Promise<void> {
  if (!mayStick(tx) || tx.pace.inHand) return;
  await commitPlanned(ports, lane, [plan(tx, "stick", { reason })]);
  happened(lane, headStuck, tx.nonce);
  ports.feedGrew();
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} holds up its lane: ${reason}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "TX_STUCK", message, lane: lane.lane, txId: tx.txId });
}

/** The reason where age alone is what is known: what was found out on the way is said first. */
export function reasonOf(tx: Tracked, ageMs: number): string {
  const found = [...tx.facts.values()].map(({ text }) => text);
  const age = `not mined ${Math.round(ageMs / 1_000)} s after it came to the head of its lane`;
  const last = tx.lastError === null || found.length > 0 ? [] : [`a node last said: ${tx.lastError}`];
  return [age, ...found, ...last].join("; ");
}
