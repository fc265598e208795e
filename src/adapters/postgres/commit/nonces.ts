/**
 * Plans the writes about reserved nonces and holes. Everything here was read behind the lane's lock, so a nonce is given
 * to one of: a transaction, an open reservation, the holes, or nobody yet.
 */
import { type Hole, skippedHole } from "../../../domain/holes.ts";
import { laneKey } from "../../../domain/lane.ts";
import type { Reservation } from "../../../domain/reservations.ts";
import type { PreparedIntent } from "../../../domain/transaction.ts";
import type { TransitionItem, WriteOutcome } from "../../../ports/lane-store.ts";
import type {
  BindWrite,
  FindSkippedWrite,
  NonceWrite,
  ReleaseWrite,
  ReserveFate,
  ReserveWrite,
  SettleFate,
} from "../../../ports/nonce-writes.ts";
import { bare, laneOf } from "../columns.ts";
import { type LanePlan, type Move, type Plan, requestKey, standing } from "./plan.ts";
import { planTransition } from "./transitions.ts";

interface Nonce {
  readonly nonce: number;
  readonly recycled: boolean;
}

/** A free hole first, else the cursor; null where the lane has neither cursor nor floor. */
export function giveNonce(
  plan: Plan,
  lane: LanePlan,
  { floor, fill = [] }: { readonly floor: number | null; readonly fill?: readonly number[] },
): Nonce | null {
  if (lane.cursor === null && floor === null) return null;
  const hole = plan.holes.takeFree(lane, fill, floor ?? 0);
  if (hole !== null) return { nonce: gave(lane, hole.nonce), recycled: true };
  const nonce = Math.max(lane.cursor ?? 0, floor ?? 0);
  lane.cursor = nonce + 1;
  lane.changed = true;
  return { nonce: gave(lane, nonce), recycled: false };
}

function gave(lane: LanePlan, nonce: number): number {
  lane.givenBelow = Math.max(lane.givenBelow, nonce + 1);
  return nonce;
}

export function planNonces(plan: Plan, lane: LanePlan, { write, now }: { write: NonceWrite; now: Date }): WriteOutcome {
  switch (write.kind) {
    case "reserve":
      return { status: "reserved", fate: reserve(plan, lane, { write, now }), cursor: lane.cursor ?? 0 };
    case "release":
      return release(plan, lane, { write, now });
    case "expire":
      return { status: "expired", holes: expire(plan, lane, now) };
    case "bind":
      return bind(plan, lane, { write, now });
    case "closeHoles":
      for (const nonce of write.nonces) plan.holes.take(lane, nonce);
      return { status: "done" };
    case "findSkipped":
      return { status: "skipped", holes: findSkipped(plan, lane, { write, now }) };
  }
}

/** Behind the lane's lock nobody can take one of them meanwhile. */
function findSkipped(
  plan: Plan,
  lane: LanePlan,
  { write, now }: { write: FindSkippedWrite; now: Date },
): readonly Hole[] {
  const held = plan.heldNonces.get(laneKey(laneOf(lane.row)));
  const holes: Hole[] = [];
  for (let nonce = write.from; nonce < Math.min(write.below, lane.cursor ?? 0); nonce++) {
    const isHeld = held?.has(nonce) === true || plan.reservations.knew(lane, nonce) || plan.holes.knew(lane, nonce);
    if (!isHeld) holes.push(skippedHole(nonce, now));
  }
  for (const hole of holes) plan.holes.leave(lane, hole);
  return holes;
}

function reserve(plan: Plan, lane: LanePlan, { write, now }: { write: ReserveWrite; now: Date }): ReserveFate {
  const { requestId, reservationId } = write;
  if (requestId !== null) {
    const reservation = plan.reservations.byRequest(lane, requestId);
    if (reservation !== null) return { fate: "existing", reservation };
    const existing = plan.requests.get(keyOf(lane, requestId));
    if (existing !== undefined) return { fate: "requestTaken", txId: existing.txId };
  }
  const given = plan.isHeld(lane) ? null : giveNonce(plan, lane, write);
  if (given === null) return { fate: "noCursor" };
  const expiresAt = new Date(now.getTime() + write.ttlMs);
  const reservation: Reservation = {
    ...{ reservationId, lane: laneOf(lane.row), nonce: given.nonce, requestId },
    ...{ state: "RESERVED", expiresAt, txId: null },
  };
  plan.reservations.open(reservation);
  return { fate: "created", reservation, recycled: given.recycled };
}

function release(plan: Plan, lane: LanePlan, { write, now }: { write: ReleaseWrite; now: Date }): WriteOutcome {
  const reservation = plan.reservations.of(lane, write.reservationId);
  const fate = settleFate(reservation);
  if (fate !== "settled" || reservation === null) return { status: "released", fate, hole: null };
  plan.reservations.settle(write.reservationId, "RELEASED", null);
  const hole = holeAfter(reservation, "released", now);
  plan.holes.leave(lane, hole);
  return { status: "released", fate, hole };
}

function expire(plan: Plan, lane: LanePlan, now: Date): readonly Hole[] {
  return plan.reservations.past(lane).map((reservation) => {
    plan.reservations.settle(reservation.reservationId, "EXPIRED", null);
    const hole = holeAfter(reservation, "expired", now);
    plan.holes.leave(lane, hole);
    return hole;
  });
}

function holeAfter({ nonce, reservationId }: Reservation, why: "released" | "expired", since: Date): Hole {
  const detail = why === "released" ? "its reservation was released" : "its reservation expired unused";
  return { nonce, why, detail: `${detail} (${reservationId})`, since, reservationId };
}

function bind(plan: Plan, lane: LanePlan, { write, now }: { write: BindWrite; now: Date }): WriteOutcome {
  const { intent } = write;
  const taken = intent.requestId !== null && plan.requests.has(keyOf(lane, intent.requestId));
  const requestId = taken ? null : intent.requestId;
  const fate = plan.isHeld(lane) ? "held" : takeNonce(plan, lane, write);
  if (fate === "settled") insertSigned(plan, lane, { write, intent: { ...intent, requestId } });
  return { status: "bound", fate, createdAt: now, requestId };
}

/** The nonce is the reservation's, still open; or a hole. */
function takeNonce(plan: Plan, lane: LanePlan, { reservation, nonce, intent }: BindWrite): SettleFate {
  if (reservation === undefined || reservation.becomes === "EXPIRED") {
    if (plan.holes.take(lane, nonce) === null) return "conflict";
    const expired = reservation === undefined ? null : plan.reservations.of(lane, reservation.reservationId);
    if (expired?.state === "EXPIRED" && expired.nonce === nonce) {
      plan.reservations.settle(expired.reservationId, "EXPIRED", intent.txId);
    }
    return "settled";
  }
  const found = plan.reservations.of(lane, reservation.reservationId);
  const fate = found?.nonce === nonce ? settleFate(found) : "conflict";
  if (fate === "settled") plan.reservations.settle(reservation.reservationId, reservation.becomes, intent.txId);
  return fate;
}

function settleFate(reservation: Reservation | null): SettleFate {
  if (reservation?.state === "RESERVED") return "settled";
  return reservation?.state === "EXPIRED" ? "late" : "conflict";
}

/** Allocated and signed within one commit: nobody ever sees it between the two. */
function insertSigned(
  plan: Plan,
  lane: LanePlan,
  { write, intent }: { write: BindWrite; intent: PreparedIntent },
): void {
  const { nonce, attempt, reason, decision } = write;
  plan.allocations.push({ intent, nonce: gave(lane, nonce), lane, intake: null });
  plan.moves.set(intent.txId, standing(allocatedRow(lane, intent, nonce)));
  if (intent.requestId !== null) {
    const { txId, requestId, fingerprint } = intent;
    const created = { txId, lane: intent.lane, requestId, nonce, state: "TRACKING", fingerprint } as const;
    plan.requests.set(keyOf(lane, requestId), created);
  }
  const item: TransitionItem = {
    ...{ txId: intent.txId, event: "sign", from: "ALLOCATED", to: "TRACKING", subState: "PENDING" },
    ...{ reason, attempt },
    ...(attempt.rawTransaction === null ? {} : { claim: { ordinal: attempt.ordinal } }),
    ...(decision === undefined ? {} : { decision }),
  };
  planTransition(plan, lane, item);
}

function allocatedRow(lane: LanePlan, intent: PreparedIntent, nonce: number): Move["row"] {
  const { chain_id, signer } = lane.row;
  return {
    ...{ tx_id: intent.txId, chain_id, signer, request_id: intent.requestId, nonce },
    ...{ state: "ALLOCATED", sub_state: null, live: true, history_count: 1, last_event: "allocate" },
    ...{ attempt_count: 0, accepted_ordinal: null, fingerprint: bare(intent.fingerprint) },
    ...{ allocated_by: lane.row.node_id, allocated_under: lane.row.token },
  };
}

function keyOf({ row }: LanePlan, requestId: string): string {
  return requestKey({ chain_id: row.chain_id, signer: row.signer, request_id: requestId });
}
