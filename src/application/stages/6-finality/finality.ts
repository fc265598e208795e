/**
 * Stage 6: decides, on one immutable view of the chain, whether each mined transaction is withdrawn, waiting or final.
 * Every outcome rests on a receipt from one endpoint, which may have lied. So before anything is final, all endpoints
 * are asked once more (ports/chain.ts, settleReceipts), with one request per block for all lanes.
 *
 * Reads: the hash-linked window, the chain's tags if finality is a tag, the endpoints. Writes: withdrawals
 * (TRACKING/PENDING without a receipt; for outcomes already reported, with a second completion), the end of watching
 * for reorgs, and, for display only, the canonical blocks above mined transactions. Outcomes are written by stage 7.
 * Invariants: I7, I8. A crash before a commit leaves TRACKING/MINED, from which the next owner derives the same
 * decision. A crash after a withdrawal leaves TRACKING/PENDING, which every owner looks up by hash and sends again.
 */
import { type Confirmation, reviseConfirmations } from "../../../domain/chain/confirmations.ts";
import { depthNeeded, type FinalityView, isFinal, watchedThrough } from "../../../domain/chain/finality.ts";
import type { Hash } from "../../../domain/lane.ts";
import { withdrawn } from "../../../domain/pace/transaction-pace.ts";
import { attemptToSend } from "../../../domain/transaction/attempts.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import {
  type BlockPlace,
  ChainUnavailable,
  type ReceiptVerdict,
  type Settling,
  unlessSilent,
} from "../../../ports/chain.ts";
import { type ChainContext, canonicalHashes } from "../../chain/chain-context.ts";
import type { LaneWork } from "../../chain/work-ports.ts";
import { inTurn, sideBySide, type Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, noteTime, plan, withOwnContract } from "../../lane/lane-writer.ts";
import { type OwnedLane, resumed, type Tracked } from "../../lane/owned-lane.ts";
import { happened } from "../../lane/tracked.ts";
import { saysTheSame } from "../5-receipt/receipt.ts";
import { type Correction, complete, paidBefore } from "../7-complete/complete.ts";

/** Input of one finality pass: heights and tags read once, hashes by height from the window, settled receipts. */
export interface FinalityPass {
  readonly context: ChainContext;
  readonly view: FinalityView;
  readonly verdicts: Verdicts;
  /** The highest block whose outcomes need not be watched for reorgs any more; −1 if there is none. */
  readonly watchEnds: number;
}

/** Opens a pass: asks the endpoints about everything that these lanes might decide, once per block. */
export async function openPass(context: ChainContext, lanes: readonly OwnedLane[]): Promise<FinalityPass> {
  const { settings, follower } = context;
  const head = follower.window.tip?.number ?? -1;
  const tagged = settings.finality === "confirmations" ? null : await taggedHeight(context, settings.finality);
  const finalized = settings.finality === "finalized" ? tagged : null;
  const view = { head, tagged, finalized };
  forgetDisputes(context, lanes);
  const mined = deepEnough({ context, view }, lanes);
  const asked = [settleReceipts(context, mined), endOfWatch(context, view, lanes)] as const;
  const [verdicts, watchEnds] = await Promise.all(asked);
  return { context, view, verdicts, watchEnds };
}

/**
 * Highest block up to which outcomes need not be watched for reorgs any more. A height that only one endpoint reports
 * must not decide this: a reorg below it would never be reported.
 */
async function endOfWatch({ chain, settings }: ChainContext, view: FinalityView, lanes: readonly OwnedLane[]) {
  const claimed = watchedThrough(settings.confirmations, view);
  if (!lanes.some((lane) => hasWatched(lane, claimed))) return -1;
  const head = await unlessSilent(chain.heightReached(view.head), -1);
  return watchedThrough(settings.confirmations, { ...view, head });
}

/** True if the lane has a transaction, mined at or below this block, that is watched for reorgs. */
export function hasWatched({ watched }: OwnedLane, throughBlock: number): boolean {
  for (const number of watched.values()) if (number <= throughBlock) return true;
  return false;
}

function deepEnough({ context, view }: Pick<FinalityPass, "context" | "view">, lanes: readonly OwnedLane[]) {
  const { window } = context.follower;
  const deep: MinedOn[] = [];
  for (const lane of lanes) {
    for (const tx of lane.mined.values()) {
      const { receipt } = tx;
      if (receipt === null || !isFinal(receipt.blockNumber, context.settings, view)) continue;
      // If the block left the chain, its transaction is withdrawn, not settled. Below the window the canonical hash is
      // not known here, so the receipt's own is assumed.
      const canonical = window.hashAt(receipt.blockNumber) ?? receipt.blockHash;
      if (canonical === receipt.blockHash) deep.push({ lane, tx, receipt });
    }
  }
  return deep;
}

function forgetDisputes({ disputes }: ChainContext, lanes: readonly OwnedLane[]) {
  if (disputes.size === 0) return;
  const minedIn = (lane: OwnedLane) => [...lane.mined.values()].flatMap(({ receipt }) => receipt?.blockHash ?? []);
  const blocks = new Set(lanes.flatMap((lane) => [...lane.watched.keys(), ...minedIn(lane)]));
  disputes.keepOnly((hash) => blocks.has(hash));
}

/**
 * Height of the block with this tag; null if nothing is final by the tag now. If this node's window of blocks is still
 * on a branch without the tagged block, nothing is final until the window has caught up. For blocks below the window,
 * hashes are requested from the chain after the tag was read.
 */
async function taggedHeight(context: ChainContext, tag: "safe" | "finalized") {
  try {
    const block = await context.chain.head(tag);
    const height = block !== null && context.follower.window.mayStandOn(block) ? block.number : null;
    context.noteTag(tag, height !== null);
    return height;
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    // Alert if an endpoint answers everything except this tag: else nothing would ever become final, without notice.
    if (context.reachable) context.noteTag(tag, false);
    return null;
  }
}

/** Withdraws transactions whose block left the chain, so that matching can find them in a new block afterwards. */
export async function withdrawOrphaned(ports: LanePorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  const mined = [...lane.mined.values()];
  const hashAt = await lane.term.during(canonicalHashes(context, mined.map(blockNumberOf)));
  const orphaned = mined.filter((tx) => differs(hashAt.get(blockNumberOf(tx)), tx.receipt?.blockHash));
  if (orphaned.length > 0) await withdraw(ports, lane, orphaned, "left the canonical chain");
  const watchedHashes = await lane.term.during(canonicalHashes(context, [...lane.watched.values()]));
  const differing = [...lane.watched].filter(([hash, number]) => differs(watchedHashes.get(number), hash));
  const gone = differing.length === 0 ? [] : await lane.term.during(goneForAll(context, differing));
  if (gone.length > 0) await reviseWatched(ports, lane, gone);
}

/** A reported outcome is not withdrawn because of one endpoint alone: if two are up, both must show another block. */
async function goneForAll(context: ChainContext, differing: readonly (readonly [Hash, number])[]) {
  const gone: Hash[] = [];
  for (const [hash, number] of differing) {
    const opinion = await context.secondOpinion(number);
    if (opinion.kind === "none" || (opinion.kind === "agreed" && opinion.hash !== hash)) gone.push(hash);
    if (opinion.kind === "disagree") context.disputes.note({ number, hash }, opinion.answers);
    else context.disputes.end(hash);
  }
  return gone;
}

/** Commits transactions that are final on this view. Deep enough ones are no longer watched for reorgs. */
export function decideFinal(ports: LanePorts, pass: FinalityPass, lane: OwnedLane): Working {
  const { verdicts } = pass;
  const asked: Tracked[] = [];
  for (const tx of lane.mined.values()) if (tx.receipt !== null && verdicts.has(tx.receipt.txHash)) asked.push(tx);
  if (asked.length === 0) return endWatch(pass, lane);
  return inTurn(
    () => decideAsked(ports, pass, lane, asked),
    () => endWatch(pass, lane),
  );
}

async function decideAsked(
  ports: LanePorts,
  { context, verdicts }: FinalityPass,
  lane: OwnedLane,
  asked: readonly Tracked[],
) {
  const hashAt = await lane.term.during(canonicalHashes(context, asked.map(blockNumberOf)), "finality");
  const candidates = asked.filter((tx) => hashAt.get(blockNumberOf(tx)) === tx.receipt?.blockHash);
  const { settled, corrected, absent } = applyVerdicts({ ports, lane }, candidates, verdicts);
  if (absent.length > 0) await withdraw(ports, lane, absent, "does not hold it");
  if (settled.length > 0) {
    await ports.failpoint("finality.decided");
    const foreign = await lane.term.during(foreignByContents(ports, settled, verdicts));
    complete(ports, lane, settled, { corrected, foreign });
  }
}

/** Stops watching old blocks for reorgs. If this write fails, the blocks merely stay watched. */
function endWatch({ context, watchEnds: throughBlock }: FinalityPass, lane: OwnedLane) {
  if (!hasWatched(lane, throughBlock)) return null;
  for (const hash of lane.watched.keys()) if (context.disputes.about(hash) !== null) return null;
  const past = [...lane.watched].filter(([, number]) => number <= throughBlock);
  for (const [hash] of past) lane.watched.delete(hash);
  const watchOn = () => {
    for (const [hash, number] of past) lane.watched.set(hash, number);
  };
  lane.term.write({ kind: "unwatch", throughBlock }).catch(watchOn);
  return null;
}

function blockNumberOf(tx: Tracked) {
  return tx.receipt?.blockNumber ?? -1;
}

/** True only if the chain returned another hash: a height without an answer withdraws nothing. */
function differs(canonical: Hash | undefined, stored: Hash | undefined) {
  return canonical !== undefined && canonical !== stored;
}

/** Withdraws receipts. `because`: the block left the chain, or it does not contain the transaction. */
async function withdraw(
  ports: LanePorts,
  lane: OwnedLane,
  transactions: readonly Tracked[],
  because: "left the canonical chain" | "does not hold it",
) {
  const nowMs = ports.clock.monotonicMs();
  const planned = transactions.map((tx) => {
    const reason = `block ${tx.receipt?.blockNumber} ${tx.receipt?.blockHash} ${because}`;
    sendAgain(tx, nowMs);
    const withdrawal = plan(tx, "withdraw", { receipt: null, reason });
    lane.unmine(tx);
    return withdrawal;
  });
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("withdraw.committed");
}

/** Revises outcomes that were final but still watched: a reorg was deeper than the finality rule assumes. */
async function reviseWatched(ports: LanePorts, lane: OwnedLane, gone: readonly Hash[]) {
  await lane.term.during(lane.outcomes.written());
  const records = await lane.term.during(ports.store.loadWatched(lane.lane, gone));
  for (const hash of gone) lane.watched.delete(hash);
  const nowMs = ports.clock.monotonicMs();
  const planned = records.map((record) => {
    const tx = resumed(record);
    sendAgain(tx, nowMs);
    const reason = `block ${record.receipt?.blockHash} left the canonical chain`;
    return plan(tx, "reorg", { receipt: null, reason, paid: paidBefore(record) });
  });
  const message = `${records.length} settled transactions were reorganised away; each is tracked and sent again`;
  ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code: "DEEP_REORG", message, lane: lane.lane });
  await commitPlanned(ports, lane, planned);
  for (const { tx } of planned) {
    lane.track(tx);
    noteTime(lane, tx, ports.clock);
  }
  ports.feedGrew();
  await ports.failpoint("withdraw.committed");
}

function sendAgain(tx: Tracked, nowMs: number) {
  const attempt = attemptToSend(tx.attempts, tx.receipt?.txHash);
  happened(tx, withdrawn, attempt?.ordinal ?? null, nowMs);
}

/**
 * Stores the canonical blocks above mined transactions, once per chain, under the fence of a lane of this node. After
 * a reorg, the list is replaced from the fork up. A crash leaves an older list, which the next pass extends.
 */
export async function recordConfirmations(
  { telemetry }: LanePorts,
  context: ChainContext,
  lanes: readonly OwnedLane[],
): Promise<void> {
  const deciding = lanes.find((lane) => lane.mined.size > 0);
  const lowest = lowestMined(lanes);
  const { window } = context.follower;
  if (deciding === undefined || lowest === null || window.oldest === null) return;
  const observed = window.above(lowest).map(({ number, hash }): Confirmation => ({ number, hash }));
  const change = reviseConfirmations(context.storedConfirmations, observed);
  if (change.kind === "same") return;
  const pruneBelow = window.oldest.number;
  const outcome = await deciding.term.write({ kind: "confirmations", blocks: change.blocks, pruneBelow });
  context.storedConfirmations = observed;
  if (outcome.newFork) {
    const fromBlock = (change.blocks[0] as Confirmation).number;
    telemetry.emit({ type: "confirmations.newFork", chainId: context.chain.chainId, fromBlock });
  }
}

function lowestMined(lanes: readonly OwnedLane[]) {
  let lowest: number | null = null;
  for (const lane of lanes) {
    for (const { receipt } of lane.mined.values()) {
      if (receipt !== null && (lowest === null || receipt.blockNumber < lowest)) lowest = receipt.blockNumber;
    }
  }
  return lowest;
}

/** Verdicts of the endpoints, by the hash of the mined payload. A transaction without a verdict is not decided. */
type Verdicts = ReadonlyMap<Hash, ReceiptVerdict>;

interface MinedOn {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly receipt: Receipt;
}

/** Maximum number of blocks settled at once: after a long absence there are many, and each may be fetched whole. */
const BLOCKS_AT_ONCE = 4;

/** Collects the endpoints' combined answers about everything that is about to be decided. */
async function settleReceipts(context: ChainContext, mined: readonly MinedOn[]) {
  const verdicts = new Map<Hash, ReceiptVerdict>();
  const blocks = blocksOf(mined).filter(({ block }) => context.disputes.mayAsk(block.hash));
  await sideBySide(blocks, BLOCKS_AT_ONCE, (asked) => settleBlock(context, asked, verdicts));
  return verdicts;
}

interface AskedBlock {
  readonly block: BlockPlace;
  readonly transactions: Settling[];
}

function blocksOf(mined: readonly MinedOn[]) {
  const blocks = new Map<Hash, AskedBlock>();
  for (const each of mined) {
    const { blockNumber: number, blockHash: hash } = each.receipt;
    const asked = blocks.get(hash) ?? { block: { number, hash }, transactions: [] };
    blocks.set(hash, asked);
    asked.transactions.push(settlingOf(each));
  }
  return [...blocks.values()];
}

/** A hash that was only reported to us may belong to another nonce: endpoints must also check sender and nonce. */
function settlingOf({ lane, tx, receipt: { txHash } }: MinedOn): Settling {
  const attempt = tx.attempts.find((each) => each.txHash === txHash);
  const isNamed = attempt?.kind === "external" || attempt?.foreign === true || attempt?.nodeSigned === true;
  return isNamed ? { txHash, sentBy: { signer: lane.lane.signer, nonce: tx.nonce } } : { txHash };
}

/** Settles one block. A block for which no endpoint answers delays no other block. */
async function settleBlock(
  { chain, disputes, settings }: ChainContext,
  { block, transactions }: AskedBlock,
  verdicts: Map<Hash, ReceiptVerdict>,
) {
  try {
    const answers = await chain.settleReceipts(block, transactions, depthNeeded(settings));
    for (const [index, { txHash }] of transactions.entries()) {
      const verdict = answers[index];
      if (verdict !== undefined) verdicts.set(txHash, verdict);
    }
    const disputed = answers.find((verdict) => verdict.kind === "disagree");
    const late = answers.find((verdict) => verdict.kind === "behind");
    if (disputed?.kind === "disagree") disputes.note(block, disputed.answers);
    else if (late?.kind === "behind") disputes.wait(block, late.detail);
    else disputes.end(block.hash);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    disputes.wait(block, error.message);
  }
}

/**
 * For transactions that a chain node signed: decides whether the mined transaction is another program's, by the
 * contents that the endpoints agree on. The first decision relied on one endpoint, which may have lied either way.
 */
async function foreignByContents({ store }: LanePorts, candidates: readonly Tracked[], verdicts: Verdicts) {
  const shown = candidates.flatMap((tx) => {
    const verdict = tx.receipt === null ? undefined : verdicts.get(tx.receipt.txHash);
    const isNodeSigned = tx.attempts.some(({ nodeSigned }) => nodeSigned === true);
    return isNodeSigned && verdict?.kind === "agreed" && verdict.sent !== undefined
      ? [[tx, verdict.sent] as const]
      : [];
  });
  if (shown.length === 0) return new Map();
  const payloads = await store.loadPayloads(shown.map(([{ txId }]) => txId));
  const foreign = shown.flatMap(([tx, sent], index) => {
    const payload = payloads[index];
    return payload === undefined ? [] : [[tx, !saysTheSame(payload, sent)] as const];
  });
  return new Map(foreign);
}

function applyVerdicts(
  { ports, lane }: Pick<LaneWork, "ports" | "lane">,
  candidates: readonly Tracked[],
  verdicts: Verdicts,
) {
  const settled: Tracked[] = [];
  const corrected = new Map<Tracked, Correction>();
  const absent: Tracked[] = [];
  for (const tx of candidates) {
    const verdict = tx.receipt === null ? undefined : verdicts.get(tx.receipt.txHash);
    if (verdict?.kind === "absent") absent.push(tx);
    if (verdict?.kind === "unproven" || verdict?.kind === "agreed") settled.push(tx);
    if (verdict?.kind !== "agreed") continue;
    const receipt = withOwnContract(ports, lane, tx, verdict.receipt);
    const stored = difference(tx.receipt, receipt);
    if (stored !== null) corrected.set(tx, { receipt, stored });
  }
  return { settled, corrected, absent };
}

/**
 * How a stored receipt differs from the agreed one. The position in the block is ignored: it decides nothing, and nodes
 * count it differently. A missing or different paid price is only "imprecise": not every node reports it, and it does
 * not change the outcome.
 */
function difference(stored: Receipt | null, agreed: Receipt) {
  const isTrue =
    stored?.status === agreed.status &&
    stored.gasUsed === agreed.gasUsed &&
    stored.contractAddress === agreed.contractAddress;
  if (!isTrue) return "false";
  const isPaid =
    stored.effectiveGasPrice === agreed.effectiveGasPrice &&
    stored.besideGas === agreed.besideGas &&
    stored.besideGasUnsure === agreed.besideGasUnsure;
  return isPaid ? null : "imprecise";
}
