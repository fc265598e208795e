/**
 * Detour: a nonce that no create brought gets its transaction. A caller hands in what it signed for a nonce it reserved, or names the
 * hash it sent itself (`bind`); or a placeholder, a transfer of nothing to oneself, takes a nonce that no transaction holds, so that
 * what waits above it can be mined.
 *
 * Reads: for a placeholder the fee market. Writes, in one fenced transaction: transaction, attempt with its bytes, TRACKING/PENDING,
 * claim, the end of the reservation or of the hole, and who decided it. Invariants: I3 (the nonce was this holder's alone), I6
 * (claimed before a byte leaves). Whatever else turns up at the nonce (a caller who signed and then let its reservation expire)
 * competes with a placeholder on chain, and the transaction reports whichever is mined. A crash before the commit leaves the
 * reservation or the hole; after it, a claimed attempt that the next owner sends.
 */
import { defined } from "../../domain/defined.ts";
import { forbiddenBy } from "../../domain/errors.ts";
import { bounded } from "../../domain/fees/ceilings.ts";
import { boundTransaction } from "../../domain/ledger/index.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { committed, LOOK_DUE, namedOnly, signedPace } from "../../domain/pace/transaction-pace.ts";
import { routed } from "../../domain/transaction/attempts.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import { fingerprint } from "../../domain/transaction/fingerprint.ts";
import type { PreparedIntent } from "../../domain/transaction/transaction.ts";
import type { Decision, OutcomeOf, SettleFate, Unfenced } from "../../ports/lane-store.ts";
import { SigningRefused } from "../../ports/signer.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import { holdAtCeiling } from "../lane/hold.ts";
import { type LaneWriterPorts, reportMove } from "../lane/lane-writer.ts";
import { forbiddenNow, spendingOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { Tracked } from "../lane/tracked.ts";
import { signOne } from "./another-attempt.ts";
import { gasOfNothing, nothing } from "./change-payload.ts";

interface Placing extends LaneWork {
  readonly hole: Hole;
  readonly reason: string;
  readonly decision: Decision;
  /** For placeholders that nobody decided: the most that a lane fills for expired reservations. */
  readonly mostPerHour?: number;
}

/** "conflict": the nonce is no hole any more. Throws FORBIDDEN if the signer's policy does not allow what it costs. */
export async function placeHolder({ ports, context, lane, hole, ...placing }: Placing): Promise<SettleFate> {
  const { signer, chainId } = lane.lane;
  const { nonce, why, reservationId } = hole;
  const payload = nothing(signer);
  const gas = await lane.term.during(gasOfNothing(context, signer));
  const { fees, reached } = await lane.term.during(context.price({}, { gas, value: payload.value }));
  const unsigned = bounded(context.ceilings, { ...payload, chainId, nonce, gas, fees, accessList: [] });
  // Whoever let its reservation expire pays for what closes its nonce.
  const owner = hole.expired?.owner ?? null;
  const spends = spendingOf(unsigned, "placeholder");
  const refused = await forbiddenNow(ports, lane, { spends, ...(owner === null ? {} : { owner }) });
  if (refused !== null) throw forbiddenBy(refused);
  const made = await signOne(ports, lane, { ...unsigned, because: "placeholder" }).catch(asForbidden);
  const txId = ports.entropy.uuid();
  const intent: PreparedIntent = {
    ...{ txId, lane: lane.lane, requestId: null, owner, payload, metadata: { placeholder: why } },
    ...{ fingerprint: fingerprint(payload), gas, gasCost: gas * feeCap(fees) },
  };
  const first = { ...made, ordinal: 1, kind: "placeholder", gas, fees } as const;
  const attempt = routed(first, context.chain.privateEndpoints.length > 0);
  const { reason, decision, mostPerHour } = placing;
  const isReserved = why === "expired" && reservationId !== null;
  const ending = isReserved
    ? { reservation: defined({ reservationId, becomes: "EXPIRED" as const, mostPerHour }) }
    : {};
  const { fate, forbidden } = await bind(ports, lane, { nonce, reason, decision, ...ending, intent, attempt });
  if (forbidden !== undefined) throw forbiddenBy(forbidden);
  if (fate !== "settled") return fate;
  const tx = lane.find(txId);
  if (reached !== null && tx !== null) holdAtCeiling(ports, lane, tx, reached);
  const message = `a placeholder takes nonce ${nonce} of ${signer}: ${hole.detail}`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_FILLED", message, lane: lane.lane, txId });
  return fate;
}

/** What a signer will not sign closes no nonce, like what a policy does not allow. */
function asForbidden(error: unknown): never {
  if (!(error instanceof SigningRefused)) throw error;
  throw forbiddenBy({ rule: "signer", detail: `the signer refused it: ${error.message}` });
}

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
function paceOf({ attempt: { ordinal, rawTransaction } }: Binding) {
  const pace = signedPace(ordinal, rawTransaction);
  return rawTransaction === null ? namedOnly(pace) : committed(pace, LOOK_DUE);
}
