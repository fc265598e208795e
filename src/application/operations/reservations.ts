/**
 * Nonces for callers that sign themselves: reserved for a time to live, then used or released. Only a release makes a
 * nonce free. The nonce of an expired reservation becomes a hole, and gets a placeholder (detours/holes.ts). Until then
 * its caller may still report its use. To use a reservation, a caller submits the signed transaction, or names the hash
 * of the one it sent.
 */
import {
  DatabaseSilent,
  FencepostError,
  forbiddenBy,
  otherNonce,
  outcomeUnknown,
  unavailable,
} from "../../domain/errors.ts";
import { bounded } from "../../domain/fees/ceilings.ts";
import { anothersRequestId, isAnothers, spentRequestId } from "../../domain/keys/principal.ts";
import type { Hash, Hex, Lane } from "../../domain/lane.ts";
import { batchFailed } from "../../domain/pace/count-events.ts";
import { pileSeen } from "../../domain/pace/lane-pace.ts";
import { routed } from "../../domain/transaction/attempts.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import { fingerprint } from "../../domain/transaction/fingerprint.ts";
import type { Reservation } from "../../domain/transaction/reservations.ts";
import type { Payload, PreparedIntent, SignedAttempt } from "../../domain/transaction/transaction.ts";
import { BatchRefused, OutcomeUnknown, type ReserveResult, type Unfenced } from "../../ports/lane-store.ts";
import type { Created, Reserved, ReserveRequest, SignedRequest } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { type Binding, bind } from "../detours/another-attempt.ts";
import { blobCost } from "../detours/change-payload.ts";
import { underNextTerm } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { happened } from "../lane/tracked.ts";
import { asObject, parseHex, refuseUnknownKeys } from "../requests/fields.ts";
import {
  decodeGiven,
  type HandedIn,
  type NormalisePorts,
  parseChainId,
  parseReserve,
  parseSubmission,
  parseUsed,
  type ReserveIntent,
  rejected,
} from "../requests/normalise.ts";
import type { ChainSettings } from "../settings.ts";
import { existingAs } from "../stages/1-create/answer-existing.ts";
import { refuseImpossible, refuseImpossibleGas } from "../stages/1-create/prepare.ts";
import { nonceFloor } from "../stages/2-allocate/allocate.ts";
import type { Offer, Operation, OwnerPorts } from "./operation.ts";

export interface ReservationPorts extends CallPorts, OwnerPorts {
  readonly intents: NormalisePorts;
}

export function reservationCalls(
  ports: ReservationPorts,
  offer: Offer<ReservationPorts>,
  reading: <T>(work: Promise<T>) => Promise<T>,
) {
  const submit = offer("submitReserved", submitReserved);
  const use = offer("markUsed", markUsed);
  const release = offer("releaseNonce", releaseNonce);
  return {
    /** Reserves a nonce for a caller that signs itself; a repeat of the request id returns the same reservation. */
    reserveNonce: offer("reserveNonce", reserveNonce),
    reservation: (reservationId: string) => reading(findReservation(ports, reservationId)),
    /** Submits `{ rawTransaction }`, signed for the reserved nonce. CONFLICT if the nonce is used or released. */
    submitReserved: (reservationId: string, request: unknown) => submit({ reservationId, request }),
    /** Reports `{ txHash }` of a transaction that the caller sent itself: it is tracked, but never sent from here. */
    markUsed: (reservationId: string, request: unknown) => use({ reservationId, request }),
    /** Releases a reservation. The caller declares that it signed nothing, so the nonce is free for reuse. */
    releaseNonce: (reservationId: string) => release({ reservationId }),
  };
}

type Wanted = Omit<Unfenced<"reserve">, "kind" | "floor" | "fill">;
type Given = Pick<Reserved, "outcome"> & Pick<Reservation, "reservationId">;

const reserveNonce: Operation<ReservationPorts, ReserveRequest, ReserveIntent, Given, Reserved> = {
  laneOf: (ports, request, owner) => parseReserve(ports.intents, request, owner),
  // Add the chain id to the body before it is forwarded. The caller may omit it because this node has only one chain,
  // but the owner's node may have several.
  travels: (request, { lane }) => ({ ...request, chainId: lane.chainId }),
  repeatable: ({ requestId }) => requestId !== null,
  async perform(ports, lane, { requestId, owner, ttlMs }) {
    const context = ports.chains.get(lane.lane.chainId) as ChainContext;
    const { reservationTtlMs, maxReservations: most } = context.settings;
    const reservationId = ports.entropy.uuid();
    const wanted = { requestId, ttlMs: ttlMs ?? reservationTtlMs, reservationId, owner, most };
    // If this node lost the lane while the request waited, no nonce was used: try again if this node gets the lane
    // back.
    const reserving = (owned: OwnedLane) => reserveOn(ports, context, owned, wanted);
    return given(await underNextTerm(ports.lanes, lane, reserving), wanted, context.settings);
  },
  answer: async (ports, _, { outcome, reservationId }) => ({
    outcome,
    reservation: await findReservation(ports, reservationId),
  }),
};

type Named = Pick<Reservation, "reservationId">;

const releaseNonce: Operation<ReservationPorts, Named, Reservation, void, Reservation> = {
  laneOf: (ports, { reservationId }) => findReservation(ports, reservationId),
  async perform(ports, lane, { reservationId }) {
    const { result, hole } = await written(lane, lane.term.write({ kind: "release", reservationId }));
    if (result !== "settled") throw overAlready(await findReservation(ports, reservationId));
    if (hole === null) return;
    await ports.failpoint("release.committed");
    report(ports, lane, { reservationId, nonce: hole.nonce, state: "RELEASED" });
    // Wake signing: transactions with higher nonces may move down to the released nonce.
    lane.signing?.kick();
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

function overAlready({ reservationId, nonce, state, txId }: Reservation) {
  const taken = state === "EXPIRED" && txId !== null ? `, and transaction ${txId} took its nonce ${nonce}` : "";
  const detail = `reservation ${reservationId} is ${state}${taken}, so nothing more can be done with it`;
  return new FencepostError("CONFLICT", detail, txId === null ? {} : { txId });
}

async function reserveOn(
  ports: ReservationPorts,
  context: ChainContext,
  lane: OwnedLane,
  wanted: Wanted,
): Promise<ReserveResult> {
  const floor = await lane.term.during(nonceFloor(ports, context, lane));
  const fill = lane.freeNonces();
  const filling = fill.length === 0 ? {} : { fill };
  const { result } = await written(lane, lane.term.write({ kind: "reserve", floor, ...filling, ...wanted }));
  await ports.failpoint("reserve.committed");
  if (result.result !== "created") return result;
  lane.nonces.keptFor(result.reservation.nonce, wanted.ttlMs);
  report(ports, lane, result.reservation);
  if (result.recycled) ports.telemetry.emit({ type: "nonce.recycled", lane: lane.lane, count: 1 });
  notePile(context, lane);
  return result;
}

function report(
  { telemetry }: ReservationPorts,
  { lane, fence: { token } }: OwnedLane,
  { reservationId, nonce, state }: Pick<Reservation, "reservationId" | "nonce" | "state">,
) {
  telemetry.emit({ type: "nonce.reserved", lane, token, reservationId, nonce, state });
}

/** Alerts about too many reservations. One commit may add several, so the number may jump past the threshold. */
function notePile({ settings, standing }: ChainContext, lane: OwnedLane) {
  const { reserved } = lane.nonces;
  const isPiledUp = reserved > settings.alertReserved;
  happened(lane, pileSeen, isPiledUp);
  if (!isPiledUp) return;
  const message = `${reserved} nonces of ${lane.lane.signer} are reserved and unused: everything above the lowest waits`;
  standing.raise({ severity: "WARNING", code: "RESERVED_PILE_UP", message, lane: lane.lane });
}

function written<T>(lane: OwnedLane, write: Promise<T>) {
  return write.catch((error) => Promise.reject(storeFailure(lane, error)));
}

/** Error of a failed reservation. If its outcome is unknown, the caller must check or repeat. */
function storeFailure(lane: OwnedLane, error: unknown): Error {
  happened(lane, batchFailed);
  if (error instanceof TermOver) return error;
  if (!(error instanceof OutcomeUnknown)) return new DatabaseSilent("nothing was done", error);
  const detail =
    "the database did not say whether it did this; look at the reservation, or repeat with the same request id";
  return outcomeUnknown(detail, { cause: error });
}

function given(result: ReserveResult, { requestId, owner }: Wanted, { maxReservations }: ChainSettings): Given {
  if (result.result === "noCursor") throw unavailable("this signer's nonce is not known yet; nothing was reserved");
  if (result.result === "tooMany") {
    const detail = `this key keeps ${maxReservations} nonces of this signer from others already: use or release one first`;
    const extras = { rule: "maxReservations", limit: maxReservations, retryAfterSeconds: 1 };
    throw new FencepostError("QUOTA_EXCEEDED", detail, extras);
  }
  if (result.result === "spent") throw spentRequestId(requestId);
  const found = result.result === "requestTaken" ? result : result.reservation;
  if (isAnothers(found.owner, owner)) throw anothersRequestId(requestId);
  if (result.result !== "requestTaken")
    return { outcome: result.result, reservationId: result.reservation.reservationId };
  const { txId } = result;
  throw new FencepostError("REQUEST_ID_REUSED", `the request id belongs to transaction ${txId}`, { txId });
}

type Used = Named & { readonly request: unknown };
/** Submits a transaction for a reserved nonce. It is tracked like any other: stored, claimed, sent and resent. */
const submitReserved: Operation<
  ReservationPorts,
  Used,
  Reservation & { readonly handedIn: HandedIn },
  Created,
  Created
> = {
  async laneOf(ports, { reservationId, request }) {
    const reservation = await usableReservation(ports, reservationId);
    return { ...reservation, handedIn: await parseSubmission(ports.codec, request, reservation) };
  },
  perform(ports, lane, { handedIn, ...reservation }) {
    const context = ports.chains.get(lane.lane.chainId) as ChainContext;
    refuseImpossibleGas(context, payloadOf(handedIn));
    return settle(ports, lane, { reservation, ...submissionOf(ports, reservation, handedIn), becomes: "SUBMITTED" });
  },
};

/**
 * Records the hash of a transaction that the caller sent itself. Only its receipt is looked up: there are no bytes to
 * resend, and its payload is unknown.
 */
const markUsed: Operation<ReservationPorts, Used, Reservation & { readonly txHash: Hash }, Created, Created> = {
  laneOf: async (ports, { reservationId, request }) => ({
    ...(await usableReservation(ports, reservationId)),
    txHash: parseUsed(request),
  }),
  async perform(ports, lane, { txHash, ...reservation }) {
    await refuseAnother(ports.chains.get(lane.lane.chainId) as ChainContext, txHash, reservation);
    const payload: Payload = { to: null, data: "0x", value: 0n };
    const intent = intentOf(ports, reservation, { payload, gas: 0n, gasCost: 0n });
    // The caller did not report the transaction's price and gas: both are recorded as zero.
    const fees = { type: "legacy", gasPrice: 0n } as const;
    const attempt: SignedAttempt = { ordinal: 1, kind: "external", txHash, gas: 0n, fees, rawTransaction: null };
    return settle(ports, lane, { reservation, intent, attempt, becomes: "USED" });
  },
};

/**
 * Refuses a hash whose transaction belongs to another signer or nonce, if the chain already has that transaction. If
 * the chain does not have it yet, the mismatch is found when it is mined.
 */
async function refuseAnother({ chain }: ChainContext, txHash: Hash, { lane, nonce }: Reservation) {
  const sent = await chain.transaction(txHash).catch(() => null);
  if (sent === null || (sent.from === lane.signer && sent.nonce === nonce)) return;
  const detail = `${txHash} is nonce ${sent.nonce} of ${sent.from}, reserved is nonce ${nonce} of ${lane.signer}`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "INVALID_INPUT" });
}

async function usableReservation(ports: ReservationPorts, reservationId: string) {
  const reservation = await findReservation(ports, reservationId);
  const { state, txId } = reservation;
  // An expired reservation without a transaction may still be used: the lane's owner decides under its lock.
  if (state === "RESERVED" || (state === "EXPIRED" && txId === null)) return reservation;
  throw overAlready(reservation);
}

type Submitted = Pick<Binding, "intent" | "attempt">;

interface Use extends Submitted {
  readonly reservation: Reservation;
  readonly becomes: "SUBMITTED" | "USED";
}

async function settle(ports: ReservationPorts, owned: OwnedLane, use: Use): Promise<Created> {
  const { intent, attempt, becomes } = use;
  const { reservationId, lane, nonce } = use.reservation;
  const reason = `${becomes === "SUBMITTED" ? "handed in" : "sent"} by the caller for reservation ${reservationId}`;
  const binding: Binding = { nonce, intent, attempt, reason, reservation: { reservationId, becomes } };
  // The transaction is stored without a request id if another transaction has used that id meanwhile.
  const { result, requestId } = await bindOn(ports, owned, binding);
  if (result !== "settled") throw overAlready(await findReservation(ports, reservationId));
  report(ports, owned, { reservationId, nonce, state: becomes });
  return { outcome: "created", txId: intent.txId, lane, requestId, nonce, state: "TRACKING" };
}

/** Stores a transaction at its nonce. Throws if a policy forbids it or the lane must first be compared to the chain. */
export async function bindOn(ports: ReservationPorts, lane: OwnedLane, binding: Binding) {
  const bound = await bind(ports, lane, binding).catch((cause: unknown) => {
    if (!(cause instanceof BatchRefused)) throw storeFailure(lane, cause);
    // The database can have refused the row for one reason only: another stored transaction has this hash.
    throw new FencepostError("CONFLICT", `${binding.attempt.txHash} is the hash of another transaction`, { cause });
  });
  if (bound.forbidden !== undefined) throw forbiddenBy(bound.forbidden);
  if (bound.result === "held") throw unavailable("this signer is held until compared with the chain; nothing was done");
  return bound;
}

type Owned = Pick<Reservation, "lane" | "requestId" | "owner">;

/** Builds the intent and the first attempt of a transaction that its caller signed; checks it against the ceilings. */
export function submissionOf(ports: ReservationPorts, owned: Owned, handedIn: HandedIn): Submitted {
  const { ceilings, chain } = ports.chains.get(owned.lane.chainId) as ChainContext;
  const { txHash, rawTransaction, unsigned } = handedIn;
  const blobs = blobCost(handedIn);
  const { gas, fees } = bounded(ceilings, unsigned, blobs);
  const first: SignedAttempt = { ordinal: 1, kind: "initial", txHash, gas, fees, rawTransaction };
  const costs = { payload: payloadOf(handedIn), gas, gasCost: gas * feeCap(fees) + blobs };
  return { intent: intentOf(ports, owned, costs), attempt: routed(first, chain.privateEndpoints.length > 0) };
}

function intentOf(
  ports: ReservationPorts,
  { lane, requestId, owner }: Owned,
  { payload, ...costs }: Pick<PreparedIntent, "payload" | "gas" | "gasCost">,
): PreparedIntent {
  const txId = ports.entropy.uuid();
  const fingerprinted = { payload, fingerprint: fingerprint(payload) as Hex };
  return { txId, lane, requestId, owner, ...fingerprinted, metadata: null, ...costs };
}

export function payloadOf({ unsigned }: HandedIn): Payload {
  const { to, data, value, gas, fees, accessList } = unsigned;
  return { to, data, value, gas, ...fees, ...(accessList.length === 0 ? {} : { accessList }) };
}

/**
 * A transaction that its caller signed with a key that is managed here, without having reserved its nonce: accepted if
 * its nonce is the lane's next one, or one that the same API key has reserved, and refused otherwise. From then on it
 * is a tracked transaction like any other.
 */

interface Signed {
  readonly lane: Lane;
  readonly owner: string | null;
  readonly handedIn: HandedIn;
}

export const submitSigned: Operation<
  ReservationPorts,
  SignedRequest,
  Signed,
  Created,
  Created & { readonly txHash: Hash }
> = {
  async laneOf({ codec, intents }, request, owner) {
    const body = asObject(request, "");
    refuseUnknownKeys(body, ["chainId", "rawTransaction"], "");
    const rawTransaction = parseHex(body.rawTransaction, "rawTransaction");
    const chainId = parseChainId(intents.chainIds, body.chainId, intents.isServedElsewhere);
    const decoded = await decodeGiven(codec, rawTransaction, (why) =>
      rejected("INVALID_INPUT", `rawTransaction ${why}`),
    );
    if (decoded.unsigned.chainId !== chainId) {
      throw rejected("INVALID_INPUT", `rawTransaction is for chain ${decoded.unsigned.chainId}, not ${chainId}`);
    }
    return { lane: { chainId, signer: decoded.signer }, owner, handedIn: { ...decoded, rawTransaction } };
  },
  travels: (request, { lane }) => ({ ...request, chainId: lane.chainId }),
  // This operation may be repeated: the same bytes always give the same transaction.
  repeatable: () => true,
  async perform(ports, owned, { lane, owner, handedIn }) {
    const context = ports.chains.get(lane.chainId) as ChainContext;
    const known = await heldAt(ports, lane, handedIn, owner);
    if (known !== null) return known;
    refuseImpossible(context, payloadOf(handedIn));
    const submission = submissionOf(ports, { lane, requestId: null, owner }, handedIn);
    const floor = await owned.term.during(nonceFloor(ports, context, owned));
    const reason = "signed by the caller, for a nonce that it chose";
    const { nonce } = handedIn.unsigned;
    const { result, next = null } = await bindOn(ports, owned, { nonce, ...submission, reason, chosen: { floor } });
    // A simultaneous repeat with the same bytes may have stored the transaction meanwhile.
    if (result !== "settled") return (await heldAt(ports, lane, handedIn, owner)) ?? refuse(otherNonce(nonce, next));
    return { outcome: "created", txId: submission.intent.txId, lane, requestId: null, nonce, state: "TRACKING" };
  },
  answer: (_, { handedIn }, created) => ({ ...created, txHash: handedIn.txHash }),
};

/**
 * If no live node holds the signer's key and the signer has no lane, it counts as not managed here, and its transaction
 * is passed on to the chain. If it has a lane, this throws UNAVAILABLE: otherwise its transaction would be sent without
 * its lane.
 */
export async function orUnserved<T>(ports: ReservationPorts, request: SignedRequest, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "UNKNOWN_SIGNER") throw error;
    const { lane } = await submitSigned.laneOf(ports, request, null);
    if ((await ports.store.lanes(lane.signer)).length === 0) throw error;
    throw unavailable(`no live node holds the key of ${lane.signer}; nothing was done`);
  }
}

/**
 * The transaction at this nonce if it has the same bytes; null if there is no such transaction, or if it belongs to
 * another API key.
 */
async function heldAt({ store }: ReservationPorts, at: Lane, { txHash, unsigned }: HandedIn, asking: string | null) {
  const found = await store.transactionAt(at, unsigned.nonce);
  if (found === null || isAnothers(found.owner, asking)) return null;
  return found.attempts.some((attempt) => attempt.txHash === txHash) ? existingAs(found) : null;
}

function refuse(error: FencepostError): never {
  throw error;
}
