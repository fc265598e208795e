/**
 * Beside stage 3: transactions whose hash no node or caller can know yet move down into free nonces below them, all together and in
 * order, before anything above such a nonce is signed.
 *
 * Reads: the lane's holes and what waits to be signed. Writes: the other nonce, under the lane's lock; what was left is
 * free in its turn. Invariant I3, its first exception: only what we sign, was never claimed, and whose hash was given to no one.
 * A crash before the commit leaves everything where it was; after it, everything moved, which the next owner reads.
 */
import { planShiftDown } from "../../../domain/nonces/holes.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, plan } from "../../lane/lane-writer.ts";
import { type OwnedLane, queued } from "../../lane/owned-lane.ts";

export async function shiftDown(ports: LanePorts, lane: OwnedLane): Promise<void> {
  const free = lane.freeNonces();
  if (free.length === 0) return;
  const moves = planShiftDown(free, lane.holders());
  if (moves.length === 0) return;
  const byId = new Map(lane.backlog.atHand.map((record) => [record.txId, record]));
  const planned = moves.flatMap(({ txId, from, to }) => {
    const record = byId.get(txId);
    if (record === undefined) return [];
    return [
      plan(queued({ ...record, nonce: to }), "shiftDown", { nonce: to, reason: `moved from nonce ${from} to ${to}` }),
    ];
  });
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("shiftDown.committed");
  lane.backlog.shifted(moves);
  ports.telemetry.emit({ type: "nonce.recycled", lane: lane.lane, count: free.length });
}
