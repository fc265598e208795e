/**
 * Stage 5: finds receipts. The hashes in each new block are matched against our open transactions, so the cost grows
 * with the number of blocks. Look-ups by hash cover the rest: transactions of a newly acquired lane, those in blocks
 * that this node may have missed, and those that have waited too long. If the chain's count has passed a nonce without
 * a receipt of ours, another program used the nonce. Its transaction is then found and stored as an attempt of another
 * program; finality and reorgs treat it like any other.
 *
 * Reads: the chain. Writes: the receipt and TRACKING/MINED, for another program's transaction with an attempt of kind
 * external. Invariant I7: "not found" counts only as the answer of a healthy endpoint. An error decides nothing, and
 * its look-up goes to the tail of the queue and blocks no other; a count alone decides nothing either. A crash before
 * the commit leaves TRACKING: the next owner looks up by hash, and its first answer "nonce too low" begins the search
 * for another program. After the commit, MINED waits for finality.
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

/**
 * Matches new blocks with our open transactions. Returns the blocks whose receipts could not be fetched, to be tried
 * again.
 */
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
 * Looks up receipts by hash for all transactions that need it, oldest first; those that got no answer last time come
 * last. After a failure the batch is halved: an endpoint that limits calls would refuse the same hundred for ever.
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

/** A receipt counts only if its block is canonical: in our window or, for older blocks, according to the chain. */
async function onCanonicalChain(context: ChainContext, receipts: readonly Receipt[]) {
  const numbers = receipts.map(({ blockNumber }) => blockNumber);
  const hashAt = await canonicalHashes(context, numbers);
  return receipts.filter(({ blockNumber, blockHash }) => hashAt.get(blockNumber) === blockHash);
}

/**
 * Records receipts. If we signed the bytes, the hash identifies our transaction. A hash that a caller, a signing node
 * or an endpoint reported might belong to any transaction, so sender and nonce are checked on the chain. False if the
 * chain did not return one of those transactions: it must be looked up again.
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

/**
 * This hash turned out to be another transaction's, so it is no longer tracked. Our transaction, or another one at its
 * nonce, is still to be mined.
 */
function disown({ clock }: LanePorts, { hashes }: ChainContext, tx: Tracked, sent: ChainTransaction) {
  hashes.delete(sent.txHash);
  // This hash was an endpoint's false report about another program's transaction: no alert is needed.
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
    // If the endpoint may serve another chain, the receipt is not recorded now, but looked up again once the chain's
    // identity is certain.
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
      // The chain node refuses future nonces. Now that this transaction is mined, the node accepts the next one: send
      // it at once, without waiting for the rest of the pass.
      lane.signing?.kick();
      lane.broadcasting?.kick();
    }
  }
  for (const [lane, planned] of byLane) void quietly(commitReceipts(ports, lane, planned));
}

/**
 * The processing of the block does not wait for this commit: later decisions are written after it, in the lane's order,
 * and a failure reloads the lane.
 */
async function commitReceipts(ports: LanePorts, lane: OwnedLane, planned: readonly Planned[]) {
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("receipt.committed");
}

/** Maximum number of nonces of a lane that are investigated in one pass; the rest follows in the next. */
const AT_ONCE = 16;

/** Investigates every nonce of the lane that another program seems to have used. */
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
  // Commit even if the chain stopped answering half-way: the transactions found so far are already changed in memory.
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
}

/**
 * True if the mined count must be read: the lane's lowest unmined nonce has stayed the same for the interval of stale
 * receipts, so another program may have used it unnoticed.
 */
function countIsDue(context: ChainContext, lane: OwnedLane, nowMs: number) {
  const nonce = lane.headOfLine();
  const { check } = lane.pace.counts;
  const isSame = nonce !== null && check?.nonce === nonce;
  if (isSame && nowMs < check.dueMs) return false;
  const next = nonce === null ? null : { nonce, dueMs: nowMs + context.settings.staleReceiptTimeoutMs };
  if (check !== next) happened(lane, checkSet, next);
  return isSame;
}

/**
 * Transactions without a receipt, although the chain's count has passed their nonce and their own hashes were already
 * looked up.
 */
function suspectsOf(lane: OwnedLane) {
  let passed = lane.pace.counts.reported;
  for (const nonce of lane.mined.keys()) passed = Math.max(passed, nonce);
  const suspects: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.nonce >= passed && tx.pace.answer !== "nonceConsumed") continue;
    if (tx.receipt !== null || tx.pace.look.kind === "owed") continue;
    // Skip a transaction with an attempt without a hash: a node may have signed it and used the nonce.
    // 4-broadcast/note-answer.ts investigates such a transaction.
    if (tx.attempts.every(({ txHash }) => txHash !== null)) suspects.push(tx);
  }
  return suspects.sort((a, b) => a.nonce - b.nonce);
}

/**
 * Finds other programs' transactions at these nonces and plans their writes. False if, for one of the nonces, the chain
 * does not show which transaction was mined.
 */
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
    // The mined transaction is ours after all, and was missed so far: the look-up by hash records its receipt.
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

/** A signing node may have reported a wrong hash: a transaction with the same contents at our nonce is ours. */
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

/**
 * True if the node has no receipt for any of our own attempts. Otherwise it contradicts itself, and nothing is decided.
 */
async function noneOfOursIsMined({ chain }: ChainContext, tx: Tracked) {
  const receipts = await chain.receipts(hashesOf(tx.attempts));
  return receipts.every((receipt) => receipt === null) && tx.receipt === null;
}

export type Mined = Extract<Sent, { kind: "mined" }>;

/** Records in memory which transaction was mined at the nonce, by its real hash; returns the writes. */
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
  // The attempt may already be known: a reorg may have removed its transaction and restored it now.
  const known = tx.attempts.some((attempt) => attempt.txHash === txHash);
  const attempt = known ? {} : { attempt: { ...externalAttempt(tx, sent), foreign: true as const } };
  const planned = mine(work, tx, sent, { ...attempt, lastError: reason, reason });
  const message = `another program uses the key of ${lane.signer}: its nonce ${nonce} went to ${txHash}`;
  work.ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code: "EXTERNAL_KEY_USE", message, lane, txId });
  return planned;
}

/**
 * The nonce is used but its transaction cannot be found. The node may lag, or an authorisation used the nonce without a
 * transaction. The search is repeated after the interval for transactions with an unknown hash.
 */
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
