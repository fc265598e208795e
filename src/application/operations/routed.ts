/**
 * The same operations, whichever node is asked: each is taken to the owner of its lane, done there under its fence, and
 * what it left behind is read here. An operation is told once: where no answer comes, the operator looks.
 */
import type { Lane } from "../../domain/lane.ts";
import type { Created, FencepostApi, LaneOrder, OperationName, ReserveRequest, TransactionOrder } from "../api.ts";
import type { LaneActions } from "../cluster/lane-actions.ts";
import { transaction } from "../queries/transactions.ts";
import { parseReserve } from "../requests/reservation.ts";
import { laneOfOrder, lanesOfOrder } from "./lane-actions.ts";
import { createOperations, type OperationPorts } from "./operations.ts";
import { findReservation } from "./reservations.ts";
import { acting } from "./transaction-actions.ts";

type Operations = Pick<FencepostApi, OperationName>;

/** By name, what the owner does with a request that travelled. What it answers must survive JSON. */
type Performers = Readonly<Record<string, (local: Operations, body: never) => Promise<unknown>>>;

interface UseBody {
  readonly reservationId: string;
  readonly request?: unknown;
}

const PERFORMERS: Performers = {
  act: async (local, order: TransactionOrder) => void (await local.act(order)),
  actOnLane: async (local, order: LaneOrder) => void (await local.actOnLane(order)),
  reserveNonce: async (local, request: ReserveRequest) => {
    const { outcome, reservation } = await local.reserveNonce(request);
    return { outcome, reservationId: reservation.reservationId };
  },
  submitReserved: (local, { reservationId, request }: UseBody) => local.submitReserved(reservationId, request),
  markUsed: (local, { reservationId, request }: UseBody) => local.markUsed(reservationId, request),
  releaseNonce: async (local, { reservationId }: UseBody) => void (await local.releaseNonce(reservationId)),
};

export function routeOperations(ports: OperationPorts, actions: LaneActions): Operations {
  const local = createOperations(ports);
  for (const [name, perform] of Object.entries(PERFORMERS)) {
    actions.register(name, async (_, body) => (await perform(local, body as never)) ?? null);
  }
  const ask = (lane: Lane, name: keyof Operations, body: object) =>
    actions.forwardToOwner(lane, { action: name, body: body as Readonly<Record<string, unknown>> });
  const use = async (name: keyof Operations, body: UseBody) => {
    const { lane } = await findReservation(ports, body.reservationId);
    return (await ask(lane, name, body)) as Created;
  };
  return {
    act: (order) => acting(askAct(ports, ask, order)),
    actOnLane: (order) => acting(askLane(ports, ask, order)),
    reserveNonce: (request) => acting(askReserve(ports, ask, request)),
    reservation: local.reservation,
    submitReserved: (reservationId, request) => acting(use("submitReserved", { reservationId, request })),
    markUsed: (reservationId, request) => acting(use("markUsed", { reservationId, request })),
    releaseNonce: (reservationId) =>
      acting(use("releaseNonce", { reservationId }).then(() => findReservation(ports, reservationId))),
  };
}

type Ask = (lane: Lane, name: keyof Operations, body: object) => Promise<unknown>;

async function askAct(ports: OperationPorts, ask: Ask, order: TransactionOrder): ReturnType<Operations["act"]> {
  const { txId, lane } = await transaction(ports, order.txId);
  await ask(lane, "act", order);
  return transaction(ports, txId);
}

async function askLane(ports: OperationPorts, ask: Ask, order: LaneOrder): ReturnType<Operations["actOnLane"]> {
  await ask(laneOfOrder(ports, order), "actOnLane", order);
  return lanesOfOrder(ports, order);
}

async function askReserve(
  ports: OperationPorts,
  ask: Ask,
  request: ReserveRequest,
): ReturnType<Operations["reserveNonce"]> {
  const { lane } = parseReserve(ports.intents, request);
  const answer = (await ask(lane, "reserveNonce", request)) as {
    readonly outcome: "created" | "existing";
    readonly reservationId: string;
  };
  return { outcome: answer.outcome, reservation: await findReservation(ports, answer.reservationId) };
}
