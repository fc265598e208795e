/**
 * Stage 5: finds receipts. Block by block: a new block's transaction hashes are matched against what is tracked, so the cost grows with
 * blocks. A look by hash covers the rest: what was resumed, what the follower may have missed, what has waited too long. A nonce that
 * the chain's count has passed without a receipt of ours was used by another program: its transaction is found and kept as an attempt
 * that is not ours, and finality, reorgs and the watch treat it like any other.
 *
 * Reads: the chain. Writes: the receipt and TRACKING/MINED, for another program's transaction with an attempt of kind external.
 * Invariant I7: "not found" is the answer of a healthy endpoint; an error decides nothing, goes to the tail of the queue and blocks no
 * other look; a count alone decides nothing either. A crash before the commit leaves TRACKING: the next owner looks by hash, and its
 * first answer "nonce too low" begins the look for another program. After the commit, MINED waits for finality.
 */

import { checkSet, countReported } from "../../../domain/pace/count-events.ts";
import { externalUseUnseen, isUnsure } from "../../../domain/pace/lane-pace.ts";
import { byTurn, isLookDue, looked, lookFailed, lookOwed } from "../../../domain/pace/transaction-pace.ts";
import { isDue } from "../../../domain/pace/when.ts";
import { hashesOf } from "../../../domain/transaction/attempts.ts";
import type { Receipt, SignedAttempt } from "../../../domain/transaction/transaction.ts";
import { type Block, type ChainTransaction, ChainUnavailable, type SentContents } from "../../../ports/chain.ts";
import type { StoredPayload } from "../../../ports/lane-store.ts";
import type { TelemetryEvent } from "../../../ports/telemetry.ts";
import { type ChainContext, canonicalHashes, LOOKS_AT_ONCE } from "../../chain/chain-context.ts";
import { findSent, type Sent } from "../../chain/find-sent.ts";
import type { LaneWork } from "../../chain/work-ports.ts";
import { sideBySide, type Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan, withOwnContract } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { quietly } from "../../lane/term.ts";
import { establish, happened } from "../../lane/tracked.ts";

/** Matches new blocks. Returns those whose receipts could not be fetched, to be tried again. */
export async function receiptsOfBlocks(
  ports: LanePorts,
  context: ChainContext,
  blocks: readonly Block[],
): Promise<readonly Block[]> {
  const failed: Block[] = [];
  const ours = blocks.filter((block) => block.transactionHashes.some((hash) => context.hashes.has(hash)));
  await sideBySide(ours, context.settings.receiptWorkers, async (block) => {
    if (!(await receiptsOfBlock(ports, context, block))) failed.push(block);
  });
  return failed;
}

async function receiptsOfBlock(ports: LanePorts, context: ChainContext, block: Block) {
  const hashes = block.transactionHashes.filter((hash) => context.hashes.has(hash));
  try {
    const receipts = await context.chain.receiptsInBlock(block, hashes);
    reportChecked(ports, context, "found", receipts.length);
    const isCanonical = context.follower.window.contains(block);
    const canonical = receipts.filter(({ blockHash }) => isCanonical && blockHash === block.hash);
    const isComplete = await record(ports, context, canonical);
    return isComplete && receipts.length === hashes.length;
  } catch {
    reportChecked(ports, context, "error", hashes.length);
    return false;
  }
}

type Checked = Extract<TelemetryEvent, { readonly type: "receipt.checked" }>["result"];

function reportChecked({ telemetry }: LanePorts, { chain: { chainId } }: ChainContext, result: Checked, count: number) {
  telemetry.emit({ type: "receipt.checked", chainId, result, count });
}

/**
 * Looks for receipts by hash of everything that owes a look, oldest first, behind it what got no answer last time. Half
 * as many are asked for after that: an endpoint that counts calls would refuse the same hundred for ever.
 */
export async function staleReceipts(
  ports: LanePorts,
  context: ChainContext,
  lanes: Iterable<OwnedLane>,
): Promise<void> {
  const due: Tracked[] = [];
  const nowMs = ports.clock.monotonicMs();
  for (const lane of lanes) {
    for (const tx of lane.unmined.values()) {
      if (isLookDue(tx.pace, nowMs, context.settings.staleReceiptTimeoutMs)) due.push(tx);
    }
  }
  due.sort((a, b) => byTurn(a.pace, b.pace));
  for (let from = 0; from < due.length; ) {
    const asked = due.slice(from, from + context.looksAtOnce);
    if (!(await lookUp(ports, context, asked))) {
      context.looksAtOnce = Math.max(1, Math.floor(asked.length / 2));
      return;
    }
    context.looksAtOnce = Math.min(2 * context.looksAtOnce, LOOKS_AT_ONCE);
    from += asked.length;
  }
}

async function lookUp(ports: LanePorts, context: ChainContext, transactions: readonly Tracked[]) {
  const hashes = transactions.flatMap((tx) => hashesOf(tx.attempts));
  try {
    const found = (await context.chain.receipts(hashes)).filter((receipt) => receipt !== null);
    const canonical = await onCanonicalChain(context, found);
    const nowMs = ports.clock.monotonicMs();
    for (const tx of transactions) happened(tx, looked, nowMs);
    reportChecked(ports, context, "found", found.length);
    reportChecked(ports, context, "notFound", hashes.length - found.length);
    await record(ports, context, canonical);
    return true;
  } catch {
    const nowMs = ports.clock.monotonicMs();
    for (const tx of transactions) happened(tx, lookFailed, nowMs);
    reportChecked(ports, context, "error", hashes.length);
    return false;
  }
}

/** A receipt counts only if its block is canonical: in our window, or, below it, by the chain's own word. */
async function onCanonicalChain(context: ChainContext, receipts: readonly Receipt[]) {
  const numbers = receipts.map(({ blockNumber }) => blockNumber);
  const hashAt = await canonicalHashes(context, numbers);
  return receipts.filter(({ blockNumber, blockHash }) => hashAt.get(blockNumber) === blockHash);
}

/**
 * Records receipts. A payload that we signed is identified by its hash; a hash that a caller, a signing node or an
 * endpoint named might be anybody's, so its sender and nonce are checked. False: the chain did not show some of those
 * transactions. They need another look.
 */
async function record(ports: LanePorts, context: ChainContext, found: readonly Receipt[]) {
  const named = found.filter((receipt) => isNamed(context, receipt));
  const own = found.filter((receipt) => !named.includes(receipt));
  let isComplete = true;
  for (const receipt of named) {
    const sent = await context.chain.transaction(receipt.txHash).catch(() => null);
    const indexed = context.hashes.get(receipt.txHash);
    if (sent === null) isComplete = false;
    else if (indexed === undefined) continue;
    else if (sent.from === indexed.lane.lane.signer && sent.nonce === indexed.tx.nonce) own.push(receipt);
    else disown(ports, context, indexed.tx, sent);
  }
  await recordOwn(ports, context, own);
  return isComplete;
}

function isNamed({ hashes }: ChainContext, receipt: Receipt) {
  const attempts = hashes.get(receipt.txHash)?.tx.attempts ?? [];
  const named = attempts.find(({ txHash }) => txHash === receipt.txHash);
  return named !== undefined && (named.kind === "external" || named.nodeSigned === true);
}

/** Nothing more is to be learned from that hash; the transaction is still to be mined, by whatever comes at its nonce. */
function disown({ clock }: LanePorts, { hashes }: ChainContext, tx: Tracked, sent: ChainTransaction) {
  hashes.delete(sent.txHash);
  // An endpoint named this hash falsely: there is nobody to alert.
  if (tx.attempts.some(({ txHash, foreign }) => txHash === sent.txHash && foreign === true)) return;
  const text = `${sent.txHash} is another transaction: nonce ${sent.nonce} of ${sent.from}`;
  establish(tx, "HASH_OF_ANOTHER", { text, since: clock.now() });
}

async function recordOwn(ports: LanePorts, context: ChainContext, receipts: readonly Receipt[]) {
  const byLane = new Map<OwnedLane, Planned[]>();
  if (receipts.length > 0) await ports.failpoint("receipt.found");
  for (const found of receipts) {
    const indexed = context.hashes.get(found.txHash);
    if (indexed === undefined || indexed.tx.receipt !== null) continue;
    // The chain may not be ours: the receipt is looked for again once that is known.
    const { lane, tx } = indexed;
    if (isUnsure(lane.pace)) {
      happened(tx, lookOwed);
      continue;
    }
    const receipt = withOwnContract(ports, lane, tx, found);
    if (receipt.contractAddress !== null) context.knownCode.deploy(receipt.contractAddress);
    const planned = byLane.get(lane) ?? [];
    byLane.set(lane, planned);
    planned.push(plan(tx, "mine", { receipt, lastError: null }));
    lane.mine(tx);
    if (lane.pace.window.kind === "closed") {
      // The node takes the next nonce now: the rest of the pass need not be waited for.
      lane.signing?.kick();
      lane.broadcasting?.kick();
    }
  }
  for (const [lane, planned] of byLane) void quietly(commitReceipts(ports, lane, planned));
}

/** The pass goes on: what it decides is written behind this, in the lane's order, and a failure reloads the lane. */
async function commitReceipts(ports: LanePorts, lane: OwnedLane, planned: readonly Planned[]) {
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("receipt.committed");
}

/** How many nonces of a lane are looked into in one pass; the rest has its turn in the next. */
const AT_ONCE = 16;

/** Looks into every nonce of the lane that seems to be used up by another program. */
export function noticeExternalUse(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const nowMs = ports.clock.monotonicMs();
  const suspects = suspectsOf(lane).length;
  if (suspects === 0) endUnseen(context, lane);
  const due = suspects > 0 || countIsDue(context, lane, nowMs);
  return !due || !isDue(lane.pace.externalLook, nowMs) ? null : lookInto({ ports, context, lane });
}

async function lookInto(work: LaneWork) {
  const { ports, context, lane } = work;
  const planned: Planned[] = [];
  try {
    const { counts, settings } = context;
    const { count } = await lane.term.during(counts.mined(lane.lane.signer, { atMostMs: settings.pollIntervalMs }));
    happened(lane, countReported, count);
    const consumed = suspectsOf(lane).filter(({ nonce }) => nonce < count);
    if (await findForeign(work, consumed.slice(0, AT_ONCE), planned)) endUnseen(context, lane);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
  }
  // Also if the chain fell silent half-way: memory has moved for those that were found.
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
}

/** A head of line that is not mined may have been overtaken without a word: the count is asked at the pace of stale receipts. */
function countIsDue(context: ChainContext, lane: OwnedLane, nowMs: number) {
  const nonce = lane.headOfLine();
  const { check } = lane.pace.counts;
  const isSame = nonce !== null && check?.nonce === nonce;
  if (isSame && nowMs < check.dueMs) return false;
  const next = nonce === null ? null : { nonce, dueMs: nowMs + context.settings.staleReceiptTimeoutMs };
  if (check !== next) happened(lane, checkSet, next);
  return isSame;
}

/** The known count has passed it, and its own hashes were looked for already. */
function suspectsOf(lane: OwnedLane) {
  let passed = lane.pace.counts.reported;
  for (const nonce of lane.mined.keys()) passed = Math.max(passed, nonce);
  const suspects: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.nonce >= passed && tx.pace.answer !== "nonceConsumed") continue;
    if (tx.receipt !== null || tx.pace.look.kind === "owed") continue;
    // An attempt without a hash may have used the nonce, signed by a node out of our sight: 4-broadcast/note-answer.ts
    // looks into that.
    if (tx.attempts.every(({ txHash }) => txHash !== null)) suspects.push(tx);
  }
  return suspects.sort((a, b) => a.nonce - b.nonce);
}

/** Plans what is found, as it is found. False: of one of them it cannot be shown what was mined at its nonce. */
async function findForeign(work: LaneWork, consumed: readonly Tracked[], planned: Planned[]) {
  const { ports, context, lane } = work;
  const seen = new Map<number, ChainTransaction>();
  let isWhole = true;
  for (const tx of consumed) {
    const sent = await lane.term.during(findSent(context, { signer: lane.lane.signer, nonce: tx.nonce, seen }));
    if (sent.kind === "unseen") {
      reportUnseen(work, tx, sent.detail);
      isWhole = false;
    }
    if (sent.kind !== "mined" || tx.receipt !== null) continue;
    const { txHash: hash } = sent.transaction;
    // Ours after all, and missed so far: the look by hash brings its receipt in.
    if (tx.attempts.some(({ txHash, foreign }) => foreign !== true && txHash === hash)) happened(tx, lookOwed);
    else if (await lane.term.during(noneOfOursIsMined(context, tx))) {
      const isOurs = await lane.term.during(isMadeByNode(ports, tx, sent.transaction));
      if (tx.receipt !== null) continue;
      const misnamed = { attempt: externalAttempt(tx, sent), lastError: null, reason: `found by nonce: ${hash}` };
      planned.push(isOurs ? mine(work, tx, sent, misnamed) : mineForeign(work, tx, sent));
    }
  }
  return isWhole;
}

/** A node that signs may have named another hash than that of what it made: what says the same at our nonce is ours. */
async function isMadeByNode({ store }: LanePorts, tx: Tracked, found: ChainTransaction) {
  if (!tx.attempts.some(({ nodeSigned }) => nodeSigned === true)) return false;
  const [payload] = await store.loadPayloads([tx.txId]);
  return payload !== undefined && saysTheSame(payload, found);
}

export function saysTheSame({ payload }: StoredPayload, { to, value, data }: SentContents): boolean {
  return payload.to === to && payload.value === value && payload.data === data;
}

function externalAttempt({ attempts }: Tracked, { transaction: { txHash, gas, fees } }: Mined): SignedAttempt {
  return { ordinal: attempts.length + 1, kind: "external", txHash, gas, fees, rawTransaction: null };
}

/** A node that shows a receipt for one of ours as well contradicts itself: then nothing is decided. */
async function noneOfOursIsMined({ chain }: ChainContext, tx: Tracked) {
  const receipts = await chain.receipts(hashesOf(tx.attempts));
  return receipts.every((receipt) => receipt === null) && tx.receipt === null;
}

export type Mined = Extract<Sent, { kind: "mined" }>;

/** Notes in memory what was mined at the nonce, by its real hash; returns what is to be written. */
function mine({ ports, lane }: LaneWork, tx: Tracked, { receipt }: Mined, change: Parameters<typeof plan>[2]) {
  const planned = plan(tx, "mine", { ...change, receipt: withOwnContract(ports, lane, tx, receipt) });
  lane.mine(tx);
  lane.follow(tx);
  return planned;
}

export function mineForeign(work: LaneWork, tx: Tracked, sent: Mined): Planned {
  const { lane } = work.lane;
  const { txHash } = sent.transaction;
  const { txId, nonce } = tx;
  const reason = `nonce ${nonce} was used by ${txHash}, which is not ours`;
  // A reorg may have taken it away before, and brought it back now.
  const known = tx.attempts.some((attempt) => attempt.txHash === txHash);
  const attempt = known ? {} : { attempt: { ...externalAttempt(tx, sent), foreign: true as const } };
  const planned = mine(work, tx, sent, { ...attempt, lastError: reason, reason });
  const message = `another program uses the key of ${lane.signer}: its nonce ${nonce} went to ${txHash}`;
  work.ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code: "EXTERNAL_KEY_USE", message, lane, txId });
  return planned;
}

/** Looked into again, at the pace of the gray zone: a node that lags, or an authorisation that left no transaction. */
function reportUnseen({ ports, context, lane: owned }: LaneWork, { txId, nonce }: Tracked, detail: string) {
  const { lane } = owned;
  const againInMs = context.settings.grayZoneIntervalMs ?? context.settings.staleReceiptTimeoutMs;
  happened(owned, externalUseUnseen, ports.clock.monotonicMs() + againInMs);
  const message = `nonce ${nonce} of ${lane.signer} is used up on chain, and by what cannot be shown: ${detail}`;
  context.standing.raise({ severity: "WARNING", code: "NONCE_CONSUMED_UNSEEN", message, lane, txId });
}

function endUnseen({ standing }: ChainContext, { lane }: OwnedLane) {
  if (standing.size === 0) return;
  standing.resolve({ code: "NONCE_CONSUMED_UNSEEN", lane }, `what was mined at the nonces of ${lane.signer} is known`);
}
