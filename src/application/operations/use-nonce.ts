/** What a caller does with the nonce it reserved: hands in what it signed, or names the hash of what it sent. */
import { bounded } from "../../domain/ceilings.ts";
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { fingerprint } from "../../domain/fingerprint.ts";
import type { Hash, Hex } from "../../domain/lane.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { Payload, PreparedIntent, SignedAttempt } from "../../domain/transaction.ts";
import type { Codec } from "../../ports/codec.ts";
import { BatchRefused } from "../../ports/lane-store.ts";
import type { Created } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { type Binding, bind } from "../detours/bind.ts";
import { blobCost } from "../detours/change-payload.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { type HandedIn, parseSubmission, parseUsed } from "../requests/reservation.ts";
import { refuseImpossibleGas } from "../stages/1-create/prepare.ts";
import type { Operation } from "./operation.ts";
import { findReservation, overAlready, type ReservationPorts, storeFailure } from "./reservations.ts";

export interface UseNoncePorts extends ReservationPorts {
  readonly codec: Codec;
}

interface Used {
  readonly reservationId: string;
  readonly request: unknown;
}

interface Submission extends Reservation {
  readonly handedIn: HandedIn;
}

/** From here on it is a tracked transaction like any other: its bytes are stored, claimed, sent and sent again. */
export const submitReserved: Operation<UseNoncePorts, Used, Submission, Created, Created> = {
  async laneOf(ports, { reservationId, request }) {
    const reservation = await openReservation(ports, reservationId);
    return { ...reservation, handedIn: await parseSubmission(ports.codec, request, reservation) };
  },
  perform(ports, lane, { handedIn, ...reservation }) {
    const payload = payloadOf(handedIn);
    const context = ports.chains.get(lane.lane.chainId) as ChainContext;
    refuseImpossibleGas(context, payload);
    const { txHash, rawTransaction } = handedIn;
    const { gas, fees } = bounded(context.ceilings, handedIn.unsigned, blobCost(handedIn));
    const attempt = { ordinal: 1, kind: "initial", txHash, gas, fees, rawTransaction } as const;
    const intent = intentOf(ports, reservation, { payload, gas });
    return settle(ports, lane, { reservation, intent, attempt, becomes: "SUBMITTED" });
  },
  answer: (_, __, created) => created,
};

interface Mark extends Reservation {
  readonly txHash: Hash;
}

/** Only followed: there are no bytes to send again. What it says is not known either. */
export const markUsed: Operation<UseNoncePorts, Used, Mark, Created, Created> = {
  async laneOf(ports, { reservationId, request }) {
    const reservation = await openReservation(ports, reservationId);
    return { ...reservation, txHash: parseUsed(request) };
  },
  async perform(ports, lane, { txHash, ...reservation }) {
    await refuseAnother(ports.chains.get(lane.lane.chainId) as ChainContext, txHash, reservation);
    const payload: Payload = { to: null, data: "0x", value: 0n };
    const intent = intentOf(ports, reservation, { payload, gas: 0n });
    return settle(ports, lane, { reservation, intent, attempt: hashAlone(txHash), becomes: "USED" });
  },
  answer: (_, __, created) => created,
};

/** Where the chain knows it already. Otherwise whose it is comes out when it is mined. */
async function refuseAnother({ chain }: ChainContext, txHash: Hash, { lane, nonce }: Reservation): Promise<void> {
  const sent = await chain.transaction(txHash).catch(() => null);
  if (sent === null || (sent.from === lane.signer && sent.nonce === nonce)) return;
  const detail = `${txHash} is nonce ${sent.nonce} of ${sent.from}, reserved is nonce ${nonce} of ${lane.signer}`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "INVALID_INPUT" });
}

async function openReservation(ports: UseNoncePorts, reservationId: string): Promise<Reservation> {
  const reservation = await findReservation(ports, reservationId);
  if (reservation.state !== "RESERVED") throw overAlready(reservation);
  return reservation;
}

interface Use {
  readonly reservation: Reservation;
  readonly intent: PreparedIntent;
  readonly attempt: SignedAttempt;
  readonly becomes: "SUBMITTED" | "USED";
}

async function settle(ports: UseNoncePorts, owned: OwnedLane, use: Use): Promise<Created> {
  const { intent, attempt, becomes } = use;
  const { reservationId, lane, nonce, requestId } = use.reservation;
  const reason = `${becomes === "SUBMITTED" ? "handed in" : "sent"} by the caller for reservation ${reservationId}`;
  const binding: Binding = { nonce, intent, attempt, reason, reservation: { reservationId, becomes } };
  const fate = await bindOn(ports, owned, binding);
  if (fate === "held") throw unavailable("this signer waits to be compared with the chain; nothing was done");
  if (fate !== "settled") throw overAlready(await findReservation(ports, reservationId));
  ports.telemetry.emit({ type: "nonce.reserved", lane, reservationId, nonce, state: becomes });
  return { outcome: "created", txId: intent.txId, lane, requestId, nonce, state: "TRACKING" };
}

async function bindOn(ports: UseNoncePorts, lane: OwnedLane, binding: Binding) {
  try {
    return await bind(ports, lane, binding);
  } catch (error) {
    if (!(error instanceof BatchRefused)) throw storeFailure(ports, lane, error);
    // The hash is the one thing in it that another transaction can have already.
    throw new FencepostError("CONFLICT", `${binding.attempt.txHash} belongs to another transaction`, { cause: error });
  }
}

function intentOf(
  ports: UseNoncePorts,
  { lane, requestId }: Reservation,
  { payload, gas }: { readonly payload: Payload; readonly gas: bigint },
): PreparedIntent {
  const txId = ports.entropy.uuid();
  return { txId, lane, requestId, payload, fingerprint: fingerprint(payload) as Hex, metadata: null, gas };
}

function payloadOf({ unsigned }: HandedIn): Payload {
  const { to, data, value, gas, fees, accessList } = unsigned;
  return { to, data, value, gas, ...fees, ...(accessList.length === 0 ? {} : { accessList }) };
}

/** What it costs is not known: zero. */
function hashAlone(txHash: Hash): SignedAttempt {
  const fees = { type: "legacy", gasPrice: 0n } as const;
  return { ordinal: 1, kind: "external", txHash, gas: 0n, fees, rawTransaction: null };
}
