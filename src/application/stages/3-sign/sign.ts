/**
 * Stage 3: prices and signs waiting transactions in nonce order. Commits each attempt together with its claim (the
 * stored right to send it).
 *
 * Reads: ALLOCATED rows, the lane's free nonces, the fee market. Writes, each in one fenced transaction: the attempt
 * with its bytes and hash, TRACKING/PENDING and the claim; lower nonces for transactions that move down;
 * FAILED_FINAL/REJECTED without a nonce for those that can never be signed. Invariants: I6 (no byte leaves the process
 * before the database has it and this owner has claimed it), I3 (a transaction moves down only if it was never claimed
 * and its hash is known nowhere), I7 (a signer that does not answer decides nothing), I9 (no nonce gap stays behind). A
 * crash before a commit changes nothing: bytes that were neither stored nor sent have no effect, and the next owner
 * signs again, perhaps different bytes. A crash after a commit leaves a claimed attempt, which the next owner claims
 * again and sends.
 */
import { type Bounded, bounded, feeLimit, overCeiling } from "../../../domain/fees/ceilings.ts";
import { planShiftDown } from "../../../domain/nonces/holes.ts";
import { signerAnswered, signerAwaited, signerFailed } from "../../../domain/pace/lane-pace.ts";
import { isExpiryLookOwed } from "../../../domain/pace/lane-time.ts";
import { committed, LOOK_DUE, lookedAt } from "../../../domain/pace/transaction-pace.ts";
import { messageOf } from "../../../domain/text/thrown.ts";
import { routed } from "../../../domain/transaction/attempts.ts";
import { envelopeFor, type FeeMarket, isFullyPriced, under } from "../../../domain/transaction/fees.ts";
import type { SignedAttempt } from "../../../domain/transaction/transaction.ts";
import { unlessSilent } from "../../../ports/chain.ts";
import type { AllocatedRecord } from "../../../ports/lane-store.ts";
import { type DeclaredPayload, type SignedTransaction, SignerAway, SigningRefused } from "../../../ports/signer.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, holdAtCeiling, plan } from "../../lane/lane-writer.ts";
import { type OwnedLane, queued } from "../../lane/owned-lane.ts";
import { TermOver } from "../../lane/term.ts";
import { happened, signed } from "../../lane/tracked.ts";

const AT_ONCE = 200;
const PAGE = 512;

/**
 * Signs as many transactions as fit in the window. Returns when there is nothing to sign, or nothing may be signed now.
 */
export async function sign(ports: LanePorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  while (!lane.held && !lane.amending && signerAwaited(lane.pace, ports.clock.monotonicMs()) === null) {
    // If transactions past their `validUntil` may be waiting, for example after a takeover, end them first, so that
    // they are not signed and sent late.
    if (isExpiryLookOwed(lane.pace)) return lane.activities?.expiring.kick();
    if (lane.backlog.missingFrom() !== null) await refill(ports, lane);
    // If a nonce is free, the transactions above it get their chance to move down before any of them is signed.
    if (!lane.nonces.isWhole) await shiftDown(ports, lane);
    const window = lane.openWindow(context.settings.inFlightWindow, ports.clock.monotonicMs());
    const batch = lane.toSign(window, AT_ONCE);
    if (batch.length === 0 || !(await signBatch(ports, context, lane, batch))) return;
  }
}

async function refill(ports: LanePorts, lane: OwnedLane) {
  for (let from = lane.backlog.missingFrom(); from !== null; ) {
    const page = await lane.term.during(ports.store.loadAllocated(lane.lane, from, PAGE));
    from = lane.backlog.refill(page, PAGE) ? null : lane.backlog.missingFrom();
  }
}

/** Signs one batch. False if nothing more can be signed now. */
async function signBatch(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  fitting: readonly AllocatedRecord[],
) {
  const [first] = fitting as readonly [AllocatedRecord];
  const why = whyBeyond(context, first);
  if (why !== null) {
    await giveUp(ports, lane, first, why);
    return true;
  }
  const beyond = fitting.findIndex((record) => whyBeyond(context, record) !== null);
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
  // Keep only the transactions before the first that expired, was put on hold or changed its nonce while they were
  // being priced and signed. The bytes signed for that one and for those after it are never sent.
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

/**
 * Explains why the transaction can never be paid for: its value alone exceeds a cost ceiling, which was lowered after
 * the transaction was accepted. Null if it can be paid for.
 */
function whyBeyond({ ceilings }: ChainContext, { gas, payload }: AllocatedRecord) {
  const content = { gas, value: payload.value };
  const limit = feeLimit(ceilings, content);
  return limit.most < 0n ? overCeiling(ceilings, content, 0n, limit).message : null;
}

/**
 * Signs a batch. Returns null if one of the transactions can never be signed: that one has given up its nonce, and the
 * others are tried again. If the signer becomes unavailable half-way, returns the transactions signed so far.
 */
async function signAll(
  ports: LanePorts,
  lane: OwnedLane,
  batch: readonly AllocatedRecord[],
  unsigned: readonly DeclaredPayload[],
): Promise<readonly (SignedTransaction | null)[] | null> {
  // For a key that the chain node holds: the node signs when the transaction is sent, so only payload, nonce and fees
  // are committed before.
  if (ports.signer.custody(lane.lane.signer) === "node") return unsigned.map(() => null);
  try {
    return await askSigner(ports, lane, unsigned);
  } catch (error) {
    if (error instanceof SignerAway) return error.signed;
    const refused = error instanceof SigningRefused ? batch[error.index] : undefined;
    if (!(error instanceof SigningRefused) || refused === undefined) throw error;
    if (error.undeclared) await declareAgain(ports, lane, batch);
    else await giveUp(ports, lane, refused, `the signer refused it: ${error.message}`);
    return null;
  }
}

/**
 * The signer has already signed another payload for one of these nonces. Either a commit failed and the price has
 * changed since, or the nonce belonged to a transaction that gave it up. The database decides: if its row is still
 * unsigned, nothing was committed at the nonce, and signing is safe. Otherwise this node's memory is wrong, and the
 * lane is reloaded.
 */
async function declareAgain(ports: LanePorts, lane: OwnedLane, batch: readonly AllocatedRecord[]) {
  const [first] = batch as readonly [AllocatedRecord];
  const waiting = await lane.term.during(ports.store.loadAllocated(lane.lane, first.nonce, batch.length));
  const isHeld = batch.every(({ txId, nonce }, at) => waiting[at]?.txId === txId && waiting[at]?.nonce === nonce);
  if (isHeld) lane.backlog.neverCommitted(batch);
  else lane.term.readAgain(`nonce ${first.nonce} was signed for with another payload`);
}

/**
 * Prices a batch. Null if the fee market cannot be read: the transactions stay ALLOCATED, and the next block starts
 * this stage again.
 */
async function priceAll(context: ChainContext, lane: OwnedLane, batch: readonly AllocatedRecord[]) {
  // Fees set by the caller need no market.
  const unpriced = batch.find(({ payload }) => !isFullyPriced(payload)) ?? (batch[0] as AllocatedRecord);
  const market = await lane.term.during(unlessSilent(context.marketFor(unpriced.payload), null));
  return market && batch.map((record) => priceOne(context, lane, record, market));
}

function priceOne(context: ChainContext, { lane }: OwnedLane, record: AllocatedRecord, market: FeeMarket) {
  const { nonce, gas, payload, mostCost } = record;
  const { to, data, value, accessList = [] } = payload;
  const { fees: wanted, reached } = context.priceOn(market, payload, { gas, value });
  // The market may have risen since the policies counted this transaction's cost, so the price is limited to what they
  // counted. A higher price needs a further payload, which the policies check again (reprice.ts).
  const fees = mostCost === undefined ? wanted : under(wanted, (mostCost - value) / gas);
  const content = { chainId: lane.chainId, nonce, to, data, value, gas, accessList };
  return { unsigned: bounded(context.ceilings, { ...content, fees: envelopeFor(fees, accessList) }), reached };
}

function planSigned(
  record: AllocatedRecord,
  unsigned: Bounded,
  made: SignedTransaction | null,
  { now, privately }: { readonly now: Date; readonly privately: boolean },
) {
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

/**
 * Signs all of the payloads. Throws `SigningRefused`, or `SignerAway` if the signer does not answer. After such a
 * failure it also throws `SignerAway`, without calling the signer, until a retry is due.
 */
export async function askSigner(
  ports: LanePorts,
  lane: OwnedLane,
  unsigned: readonly DeclaredPayload[],
): Promise<readonly SignedTransaction[]> {
  const why = signerAwaited(lane.pace, ports.clock.monotonicMs());
  if (why !== null) throw new SignerAway(why);
  try {
    const signed = await lane.term.sign(() => ports.signer.sign(lane.lane.signer, unsigned, lane.fence.token));
    noteBack(ports, lane);
    return signed;
  } catch (error) {
    // A request that was refused before the key was used does not show whether the key is available.
    if (error instanceof TermOver || error instanceof SigningRefused) throw error;
    throw noteAway(ports, lane, error);
  }
}

function noteAway(ports: LanePorts, lane: OwnedLane, error: unknown) {
  const { clock, entropy, telemetry } = ports;
  const reason = messageOf(error);
  const away = error instanceof SignerAway ? error : new SignerAway(reason, { cause: error });
  const { lies } = away;
  const { signer: before } = lane.pace;
  const isNews = before.kind === "there" || before.lies !== lies;
  const moment = { nowMs: clock.monotonicMs(), now: clock.now(), random: entropy.random() };
  happened(lane, signerFailed, { ...moment, reason, lies });
  if (isNews) {
    const [severity, code, what] = lies ? SIGNER_LIES : SIGNER_AWAY;
    const message = `the signer of ${lane.lane.signer} ${what}: ${reason}`;
    telemetry.emit({ type: "alert", severity, code, message, lane: lane.lane });
  }
  return away;
}

const SIGNER_LIES = ["CRITICAL", "SIGNER_LIES", "did not sign what it was asked to"] as const;
const SIGNER_AWAY = ["ERROR", "SIGNER_AWAY", "cannot sign now, and is asked again"] as const;

function noteBack({ telemetry }: LanePorts, lane: OwnedLane) {
  if (lane.pace.signer.kind === "there") return;
  happened(lane, signerAnswered);
  const message = `the signer of ${lane.lane.signer} signs again`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "SIGNER_BACK", message, lane: lane.lane });
}

/**
 * Ends a transaction that can never be signed. Its nonce becomes free, and transactions above it move down; the history
 * still shows the nonce.
 */
async function giveUp(ports: LanePorts, lane: OwnedLane, record: AllocatedRecord, why: string) {
  const { txId, nonce } = record;
  const reason = `nonce ${nonce} is given up: ${why}`;
  const planned = plan(queued(record), "giveUp", { reason, lastError: why });
  await commitPlanned(ports, lane, [planned]);
  await ports.failpoint("giveUp.committed");
  lane.backlog.drop(record);
  ports.feedGrew();
  const message = `${txId} will never be signed and gave nonce ${nonce} of ${lane.lane.signer} up: ${why}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "NONCE_GIVEN_UP", message, lane: lane.lane, txId });
}

/**
 * Moves transactions down into free nonces below them, all together and in order. The nonces that they leave become
 * free.
 */
async function shiftDown(ports: LanePorts, lane: OwnedLane) {
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
