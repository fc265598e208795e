/**
 * Nonces for callers that sign themselves: kept under a time to live, then used, or given back. Only a release makes a
 * nonce free; one that expires is a hole, which the lane's policy closes (detours/holes.ts).
 */
import { DatabaseSilent, FencepostError, outcomeUnknown, unavailable } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Failpoints } from "../../ports/failpoints.ts";
import { OutcomeUnknown, type ReserveFate, type SettleFate } from "../../ports/lane-store.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { Reserved, ReserveRequest } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { underNextTerm } from "../lane/between-owners.ts";
import type { LaneWriterPorts } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import type { NormalisePorts } from "../requests/normalise.ts";
import { parseReserve } from "../requests/reservation.ts";
import { nonceFloor } from "../stages/2-allocate/nonce-floor.ts";
import type { Operation, OwnerPorts } from "./operation.ts";

export interface ReservationPorts extends LaneWriterPorts, OwnerPorts {
  readonly store: Pick<QueryStore, "reservation">;
  readonly intents: NormalisePorts;
  readonly entropy: Entropy;
  readonly failpoint: Failpoints;
  readonly chains: ReadonlyMap<number, ChainContext>;
}

interface Asked {
  readonly lane: Lane;
  readonly requestId: string | null;
  /** Null: as long as the chain's settings say. */
  readonly ttlMs: number | null;
}

interface Wanted {
  readonly requestId: string | null;
  readonly ttlMs: number;
  readonly reservationId: string;
}

type Given = Pick<Reserved, "outcome"> & Pick<Reservation, "reservationId">;

export const reserveNonce: Operation<ReservationPorts, ReserveRequest, Asked, Given, Reserved> = {
  laneOf: (ports, request) => parseReserve(ports.intents, request),
  // What is the only chain here may be one of several there.
  travels: (request, { lane }) => ({ ...request, chainId: lane.chainId }),
  async perform(ports, lane, { requestId, ttlMs }) {
    const context = ports.chains.get(lane.lane.chainId) as ChainContext;
    const reservationId = ports.entropy.uuid();
    const wanted = { requestId, ttlMs: ttlMs ?? context.settings.reservationTtlMs, reservationId };
    // Lost while it waited: nothing was consumed, and the lane may be had again.
    return given(await underNextTerm(ports.lanes, lane, (owned) => reserveOn(ports, { context, lane: owned, wanted })));
  },
  answer: async (ports, _, { outcome, reservationId }) => ({
    outcome,
    reservation: await findReservation(ports, reservationId),
  }),
};

interface Named {
  readonly reservationId: string;
}

export const releaseNonce: Operation<ReservationPorts, Named, Reservation, void, Reservation> = {
  laneOf: (ports, { reservationId }) => findReservation(ports, reservationId),
  async perform(ports, lane, { reservationId }) {
    const fate = await releaseOn(ports, lane, reservationId);
    if (fate !== "settled") throw overAlready(await findReservation(ports, reservationId));
  },
  answer: (ports, { reservationId }) => findReservation(ports, reservationId),
};

export async function findReservation(
  { store }: Pick<ReservationPorts, "store">,
  reservationId: string,
): Promise<Reservation> {
  const found = await store.reservation(reservationId);
  if (found === null) throw new FencepostError("NOT_FOUND", `there is no reservation ${reservationId}`);
  return found;
}

export function overAlready({ reservationId, state, txId }: Reservation): FencepostError {
  const detail = `reservation ${reservationId} is ${state}, so nothing more can be done with it`;
  return new FencepostError("CONFLICT", detail, txId === null ? {} : { txId });
}

async function reserveOn(
  ports: ReservationPorts,
  work: { readonly context: ChainContext; readonly lane: OwnedLane; readonly wanted: Wanted },
): Promise<ReserveFate> {
  const { context, lane, wanted } = work;
  const floor = await lane.term.during(nonceFloor(ports, context, lane));
  const fill = lane.freeNonces(context.counts.of(lane.lane.signer).usedBelow);
  const filling = fill.length === 0 ? {} : { fill };
  const write = lane.term.write({ kind: "reserve", floor, ...filling, ...wanted });
  const outcome = await written(ports, lane, write);
  await ports.failpoint("reserve.committed");
  if (outcome.fate.fate !== "created") return outcome.fate;
  note(ports, context, { lane, fate: outcome.fate, ttlMs: wanted.ttlMs });
  return outcome.fate;
}

function note(
  { telemetry }: ReservationPorts,
  { settings }: ChainContext,
  work: {
    readonly lane: OwnedLane;
    readonly fate: Extract<ReserveFate, { fate: "created" }>;
    readonly ttlMs: number;
  },
): void {
  const { lane, fate, ttlMs } = work;
  const { reservationId, nonce, state } = fate.reservation;
  lane.nonces.keptFor(nonce, ttlMs);
  telemetry.emit({ type: "nonce.reserved", lane: lane.lane, reservationId, nonce, state });
  if (fate.recycled) telemetry.emit({ type: "nonce.recycled", lane: lane.lane, count: 1 });
  const { reserved } = lane.nonces;
  if (reserved !== settings.alertReserved + 1) return;
  const message = `${reserved} nonces of ${lane.lane.signer} are reserved and unused: everything above the lowest waits`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "RESERVED_PILE_UP", message, lane: lane.lane });
}

async function releaseOn(ports: ReservationPorts, lane: OwnedLane, reservationId: string): Promise<SettleFate> {
  const outcome = await written(ports, lane, lane.term.write({ kind: "release", reservationId }));
  if (outcome.fate !== "settled" || outcome.hole === null) return outcome.fate;
  await ports.failpoint("release.committed");
  const { nonce } = outcome.hole;
  ports.telemetry.emit({ type: "nonce.reserved", lane: lane.lane, reservationId, nonce, state: "RELEASED" });
  // What waits above may move down into it.
  lane.signing?.kick();
  return "settled";
}

async function written<T>(ports: ReservationPorts, lane: OwnedLane, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw storeFailure(ports, lane, error);
  }
}

/** The outcome is unknown: memory may differ from the database, and the caller must look or repeat. */
export function storeFailure(
  ports: Pick<ReservationPorts, "reload" | "chains">,
  lane: OwnedLane,
  error: unknown,
): Error {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  context.counts.of(lane.lane.signer).comparedAtMs = null;
  if (error instanceof TermOver) return error;
  if (!(error instanceof OutcomeUnknown)) return new DatabaseSilent("nothing was done", error);
  ports.reload(lane, "the database did not say whether it settled a nonce");
  const detail =
    "the database did not say whether it did this; look at the reservation, or repeat with the same request id";
  return outcomeUnknown(detail, { cause: error });
}

function given(fate: ReserveFate): Given {
  switch (fate.fate) {
    case "created":
    case "existing":
      return { outcome: fate.fate, reservationId: fate.reservation.reservationId };
    case "requestTaken":
      throw new FencepostError("REQUEST_ID_REUSED", `the request id belongs to transaction ${fate.txId}`, {
        txId: fate.txId,
      });
    case "noCursor":
      throw unavailable("this signer's nonce is not known yet; nothing was reserved");
  }
}
