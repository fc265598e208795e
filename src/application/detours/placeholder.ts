/**
 * Detour: a transfer of nothing to oneself takes a nonce that no transaction holds, so that what waits above it can be mined.
 *
 * Reads: the fee market. Writes: through bind.ts, a transaction of our own with who decided it. Invariants: I3, I6. Whatever
 * else may turn up at the nonce (a caller who signed and then let its reservation expire) competes with it on chain, and
 * whichever is mined is what the transaction reports. A crash before the commit leaves the hole, after it a claimed attempt.
 */

import { forbiddenBy } from "../../domain/errors.ts";
import { bounded } from "../../domain/fees/ceilings.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { routed } from "../../domain/transaction/attempts.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import { fingerprint } from "../../domain/transaction/fingerprint.ts";
import type { PreparedIntent } from "../../domain/transaction/transaction.ts";
import type { Decision, SettleFate } from "../../ports/lane-store.ts";
import { SigningRefused } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { holdAtCeiling } from "../lane/lane-writer.ts";
import { forbiddenNow, spendingOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { signOne } from "./another-attempt.ts";
import { type Binding, bind } from "./bind.ts";
import { gasOfNothing, nothing } from "./change-payload.ts";

export interface Placing {
  readonly lane: OwnedLane;
  readonly hole: Hole;
  readonly reason: string;
  readonly decision: Decision;
  /** Of placeholders that nobody decided: no more than so many for expired reservations of a lane. */
  readonly mostPerHour?: number;
}

/** "conflict": the nonce is no hole any more. Throws FORBIDDEN where the signer's policy does not allow what it costs. */
export async function placeHolder(ports: LanePorts, context: ChainContext, placing: Placing): Promise<SettleFate> {
  const { lane, hole } = placing;
  const { signer, chainId } = lane.lane;
  const payload = nothing(signer);
  const { to, data, value } = payload;
  const gas = await lane.term.during(gasOfNothing(context, signer));
  const { fees, reached } = await lane.term.during(context.price({}, { gas, value }));
  const nonce = hole.nonce;
  const unsigned = bounded(context.ceilings, { chainId, nonce, to, data, value, gas, fees, accessList: [] });
  // Whoever let its reservation expire pays for what closes its nonce.
  const owner = hole.expired?.owner ?? null;
  const spends = spendingOf(unsigned, "placeholder");
  const refused = await forbiddenNow(ports, lane, { spends, ...(owner === null ? {} : { owner }) });
  if (refused !== null) throw forbiddenBy(refused);
  const made = await signOne(ports, lane, { ...unsigned, because: "placeholder" }).catch(asForbidden);
  const metadata = { placeholder: hole.why };
  const txId = ports.entropy.uuid();
  const intent: PreparedIntent = {
    ...{ txId, lane: lane.lane, requestId: null, owner, payload },
    ...{ fingerprint: fingerprint(payload), metadata, gas, gasCost: gas * feeCap(fees) },
  };
  const first = { ...made, ordinal: 1, kind: "placeholder", gas, fees } as const;
  const attempt = routed(first, context.chain.privateEndpoints.length > 0);
  const { fate, forbidden } = await bind(ports, lane, { ...bindingOf(placing), intent, attempt });
  if (forbidden !== undefined) throw forbiddenBy(forbidden);
  if (fate !== "settled") return fate;
  const tx = lane.find(txId);
  if (reached !== null && tx !== null) holdAtCeiling(ports, lane, tx, reached);
  const message = `a placeholder takes nonce ${hole.nonce} of ${signer}: ${hole.detail}`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_FILLED", message, lane: lane.lane, txId });
  return fate;
}

/** What a signer will not sign closes no nonce, like what a policy does not allow. */
function asForbidden(error: unknown): never {
  if (!(error instanceof SigningRefused)) throw error;
  throw forbiddenBy({ rule: "signer", detail: `the signer refused it: ${error.message}` });
}

function bindingOf({ hole, reason, decision, mostPerHour }: Placing): Omit<Binding, "intent" | "attempt"> {
  const { nonce, why, reservationId } = hole;
  const base = { nonce, reason, decision };
  if (why !== "expired" || reservationId === null) return base;
  const limit = mostPerHour === undefined ? {} : { mostPerHour };
  return { ...base, reservation: { reservationId, becomes: "EXPIRED", ...limit } };
}
