/**
 * Stage 3: price, sign, and commit the attempt together with the claim to send it.
 *
 * Reads: ALLOCATED rows in nonce order, the fee market. Writes, in one fenced transaction: attempt with raw bytes and
 * hash, state TRACKING/PENDING, claim. Invariant I6: between signing and sending stands that commit; no byte leaves the
 * process before the database knows it and this term has claimed it.
 * A crash after signing leaves nothing: bytes that were neither stored nor sent have no effect, and others are signed in their
 * place, which may differ. A crash after the commit leaves a claimed attempt that the next owner claims again and sends.
 */

import { type Bounded, bounded, type FeeLimit, feeLimit, overCeiling } from "../../../domain/fees/ceilings.ts";
import { signerAwaited } from "../../../domain/pace/lane-pace.ts";
import { isExpiryLookOwed } from "../../../domain/pace/lane-time.ts";
import { committed, LOOK_DUE, lookedAt } from "../../../domain/pace/transaction-pace.ts";
import { routed } from "../../../domain/transaction/attempts.ts";
import { envelopeFor, type FeeMarket, isFullyPriced, under } from "../../../domain/transaction/fees.ts";
import type { SignedAttempt } from "../../../domain/transaction/transaction.ts";
import { unlessSilent } from "../../../ports/chain.ts";
import type { AllocatedRecord } from "../../../ports/lane-store.ts";
import { type DeclaredPayload, type SignedTransaction, SignerAway, SigningRefused } from "../../../ports/signer.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, holdAtCeiling, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { happened, signed } from "../../lane/tracked.ts";
import { askSigner } from "./ask-signer.ts";
import { giveUp } from "./give-up.ts";
import { shiftDown } from "./shift-down.ts";

const AT_ONCE = 200;
const PAGE = 512;

/** Signs what the window has room for. Returns when there is nothing to sign, or nothing may be signed now. */
export async function sign(ports: LanePorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  while (!lane.held && !lane.amending && signerAwaited(lane.pace, ports.clock.monotonicMs()) === null) {
    // After a takeover, or a hold: what waited past its `validUntil` ends unsigned, and is not sent late.
    if (isExpiryLookOwed(lane.pace)) return lane.activities?.expiring.kick();
    if (lane.backlog.missingFrom() !== null) await refill(ports, lane);
    // Nothing is signed above a free nonce before what is above it has had its chance to move down.
    if (!lane.nonces.isWhole) await shiftDown(ports, lane);
    const window = lane.openWindow(context.settings.inFlightWindow, ports.clock.monotonicMs());
    const batch = lane.toSign(window, AT_ONCE);
    if (batch.length === 0 || !(await signBatch(ports, context, lane, batch))) return;
  }
}

async function refill(ports: LanePorts, lane: OwnedLane): Promise<void> {
  for (let from = lane.backlog.missingFrom(); from !== null; ) {
    const page = await lane.term.during(ports.store.loadAllocated(lane.lane, from, PAGE));
    from = lane.backlog.refill(page, PAGE) ? null : lane.backlog.missingFrom();
  }
}

/** False: nothing more can be signed now. */
async function signBatch(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  fitting: readonly AllocatedRecord[],
): Promise<boolean> {
  const beyond = fitting.findIndex((record) => isBeyond(context, record));
  if (beyond === 0) {
    const first = fitting[0] as AllocatedRecord;
    await giveUp(ports, lane, first, whyBeyond(context, first));
    return true;
  }
  const wanted = beyond === -1 ? fitting : fitting.slice(0, beyond);
  const priced = await priceAll(context, lane, wanted);
  if (priced === null) return false;
  const unsigned = priced.map((each, index) => {
    return { ...each.unsigned, because: lane.backlog.declaredFor(wanted[index] as AllocatedRecord) };
  });
  const made = await signAll(ports, lane, wanted, unsigned);
  if (made === null) return true;
  if (made.length === 0) return false;
  await ports.failpoint("sign.signed");
  // Held back, or past its time, while it was being priced and signed: what was signed for it never leaves.
  const batch = lane.backlog.stillWaiting(wanted.slice(0, made.length));
  if (batch.length === 0) return true;
  const how = { now: ports.clock.now(), privately: context.chain.privateEndpoints.length > 0 };
  const planned = batch.map((record, index) =>
    planSigned(record, unsigned[index] as Bounded, made[index] ?? null, how),
  );
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("sign.committed");
  const look = context.settings.fetchReceiptUponEntry ? LOOK_DUE : lookedAt(ports.clock.monotonicMs());
  lane.backlog.signed(batch);
  planned.forEach(({ tx }, index) => {
    happened(tx, committed, look);
    lane.track(tx);
    const reached = priced[index]?.reached ?? null;
    if (reached !== null) holdAtCeiling(ports, lane, tx, reached);
  });
  lane.broadcasting?.kick();
  return true;
}

/** Accepted under a ceiling that has been lowered since: what it moves is above it, and no price is low enough. */
function isBeyond({ ceilings }: ChainContext, { gas, payload }: AllocatedRecord): boolean {
  return feeLimit(ceilings, { gas, value: payload.value }).most < 0n;
}

function whyBeyond({ ceilings }: ChainContext, { gas, payload }: AllocatedRecord): string {
  const content = { gas, value: payload.value };
  return overCeiling(ceilings, content, 0n, feeLimit(ceilings, content)).message;
}

/**
 * Null: one of them will never be signed, and has given its nonce up. The others have another turn. Where the signer is
 * away, those that it signed before.
 */
async function signAll(
  ports: LanePorts,
  lane: OwnedLane,
  batch: readonly AllocatedRecord[],
  unsigned: readonly DeclaredPayload[],
): Promise<readonly (SignedTransaction | null)[] | null> {
  // The chain node signs when it is sent: what is committed before is payload, nonce and fees.
  if (ports.signer.custody(lane.lane.signer) === "node") return unsigned.map(() => null);
  try {
    return await askSigner(ports, lane, unsigned);
  } catch (error) {
    if (error instanceof SignerAway) return error.signed;
    const refused = error instanceof SigningRefused ? batch[error.index] : undefined;
    if (!(error instanceof SigningRefused) || refused === undefined) throw error;
    if (error.undeclared) {
      await declareAgain(ports, lane, batch);
      return null;
    }
    await giveUp(ports, lane, refused, `the signer refused it: ${error.message}`);
    return null;
  }
}

/**
 * The signer has signed another payload for one of these nonces. That is so where the commit failed and the price has changed
 * since, or where the nonce was another transaction's that gave it up. The database says whether it is: what still waits
 * there has nothing committed at its nonce. Else memory is wrong, and is read again.
 */
async function declareAgain(ports: LanePorts, lane: OwnedLane, batch: readonly AllocatedRecord[]): Promise<void> {
  const [first] = batch as readonly [AllocatedRecord];
  const waiting = await lane.term.during(ports.store.loadAllocated(lane.lane, first.nonce, batch.length));
  const isHeld = batch.every(({ txId, nonce }, at) => waiting[at]?.txId === txId && waiting[at]?.nonce === nonce);
  if (isHeld) lane.backlog.neverCommitted(batch);
  else lane.term.readAgain(`nonce ${first.nonce} was signed for with another payload`);
}

interface PricedPayload {
  readonly unsigned: Bounded;
  readonly reached: FeeLimit | null;
}

/** Null: the market cannot be asked. They stay ALLOCATED; the next head kicks this stage again. */
async function priceAll(
  context: ChainContext,
  lane: OwnedLane,
  batch: readonly AllocatedRecord[],
): Promise<readonly PricedPayload[] | null> {
  // What its caller priced costs the same on any market.
  const unpriced = batch.find(({ payload }) => !isFullyPriced(payload)) ?? (batch[0] as AllocatedRecord);
  const market = await lane.term.during(unlessSilent(context.marketFor(unpriced.payload), null));
  return market && batch.map((record) => priceOne(context, lane, record, market));
}

function priceOne(
  context: ChainContext,
  { lane }: OwnedLane,
  record: AllocatedRecord,
  market: FeeMarket,
): PricedPayload {
  const { nonce, gas, payload, mostCost } = record;
  const { to, data, value, accessList = [] } = payload;
  const { fees: wanted, reached } = context.priceOn(market, payload, { gas, value });
  // The market may have risen since policies counted it: more is a further payload, judged like any other (reprice.ts).
  const fees = mostCost === undefined ? wanted : under(wanted, (mostCost - value) / gas);
  const content = { chainId: lane.chainId, nonce, to, data, value, gas, accessList };
  return { unsigned: bounded(context.ceilings, { ...content, fees: envelopeFor(fees, accessList) }), reached };
}

function planSigned(
  record: AllocatedRecord,
  unsigned: Bounded,
  made: SignedTransaction | null,
  { now, privately }: { readonly now: Date; readonly privately: boolean },
): Planned {
  const first: SignedAttempt = {
    ordinal: 1,
    kind: record.changedTo ?? "initial",
    txHash: made?.txHash ?? null,
    gas: unsigned.gas,
    fees: unsigned.fees,
    rawTransaction: made?.rawTransaction ?? null,
    ...(made === null ? { nodeSigned: true } : {}),
  };
  const attempt = routed(first, privately);
  return plan(signed(record, attempt, now), "sign", { attempt, claim: { ordinal: attempt.ordinal } });
}
