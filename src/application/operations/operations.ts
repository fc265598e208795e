/**
 * Operations of operators, and of callers that sign themselves. Any node accepts a request; the lane's owner performs
 * the operation under its fence, and the result is read on the node that received the request. If no answer arrives it
 * is not repeated automatically: not every operation has an id that would identify a repeat. With an idempotency key an
 * operator can repeat it safely; without one, the operator must check first.
 */
import { invalid, orDatabaseSilent } from "../../domain/errors.ts";
import { ANYBODY, type Limits, refuseOutside } from "../../domain/keys/principal.ts";
import { type Lane, laneKey } from "../../domain/lane.ts";
import type { LaneActionRequest, SignedRequest, TransactionActionRequest } from "../api.ts";
import type { OwnerActions } from "../cluster/owner-actions.ts";
import { orRefused } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { SignerPorts } from "../queries/signers.ts";
import { actOnLane } from "./lane-actions.ts";
import { type MessagePorts, messageCalls } from "./messages.ts";
import type { Offer, Operation } from "./operation.ts";
import { orUnserved, type ReservationPorts, reservationCalls, submitSigned } from "./reservations.ts";
import { type ActionPorts, act } from "./transaction-actions.ts";

export type OperationPorts = ActionPorts &
  ReservationPorts &
  MessagePorts &
  SignerPorts & { readonly actions: Pick<OwnerActions, "register" | "forwardToOwner"> };

const asDone = <Done, Answer>(_: unknown, __: unknown, done: Done) => done as unknown as Answer;

const acting = <T>(work: Promise<T>) => orDatabaseSilent(work, "look at the transaction before repeating this");

export function createOperations(ports: OperationPorts) {
  const { actions } = ports;
  /**
   * Registers an operation under a name that other nodes send. The name must stay stable: an owner of another release
   * receives it, too.
   */
  const offer: Offer<OperationPorts> = <Body extends object, Asked extends { readonly lane: Lane }, Done, Answer>(
    action: string,
    {
      laneOf,
      travels,
      isDone,
      repeatable,
      perform,
      answer = asDone,
    }: Operation<OperationPorts, Body, Asked, Done, Answer>,
  ) => {
    // `carryOut` and `parse` are async functions, so that an error thrown before their first await becomes a rejection,
    // too.
    const carryOut = async (lane: OwnedLane, asked: Asked) => orRefused(perform(ports, lane, asked));
    const parse = async (body: Body, owner: string | null) => laneOf(ports, body, owner);
    actions.register(action, async (lane, { body, owner }) => {
      const asked = await acting(parse(body as Body, owner));
      if (laneKey(asked.lane) !== lane.key)
        throw invalid("lane", "differs from the lane that the request's body names");
      return (await acting(carryOut(lane, asked))) ?? null;
    });
    const ask = async (body: Body, owner: string | null, limits: Limits): Promise<Answer> => {
      const asked = await parse(body, owner);
      refuseOutside(limits, asked.lane);
      if ((await isDone?.(ports, asked)) === true) return answer(ports, asked, undefined as Done);
      const forwarded = travels?.(body, asked) ?? body;
      const words = { action, body: forwarded as Readonly<Record<string, unknown>>, owner };
      const request = repeatable?.(asked) === true ? { ...words, repeatable: true } : words;
      const done = await actions.forwardToOwner(asked.lane, request, (lane) => acting(carryOut(lane, asked)));
      return answer(ports, asked, done as Done);
    };
    return (body: Body, owner: string | null = null, limits: Limits = ANYBODY) => acting(ask(body, owner, limits));
  };
  const transactionAction = offer("act", act);
  const laneAction = offer("actOnLane", actOnLane);
  // Actions that have an idempotency key are forwarded under separate names. Under the usual name, an owner of an older
  // release would carry out the action without storing the key.
  const transactionActionOnce = offer("actOnce", act);
  const laneActionOnce = offer("actOnLaneOnce", actOnLane);
  const signed = offer("submitSigned", submitSigned);
  return {
    /**
     * Carries out an operator's action; returns the transaction as it is afterwards. The message of a CONFLICT states
     * what happened instead.
     */
    act: (received: TransactionActionRequest) =>
      (received.idempotencyKey === undefined ? transactionAction : transactionActionOnce)(received),
    /** Carries out an operator's action on a lane as a whole. */
    actOnLane: (received: LaneActionRequest, limits?: Limits) =>
      (received.idempotencyKey === undefined ? laneAction : laneActionOnce)(received, null, limits),
    ...messageCalls(offer),
    ...reservationCalls(ports, offer, acting),
    /**
     * Accepts a transaction that its caller signed with a key that is managed here, at the lane's next nonce or at a
     * reserved one; CONFLICT for any other nonce.
     */
    submitSigned: (request: SignedRequest, owner?: string | null, limits?: Limits) =>
      orUnserved(ports, request, signed(request, owner, limits)),
  };
}
