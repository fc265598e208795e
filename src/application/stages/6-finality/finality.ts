/**
 * Stage 6: decides, on one frozen view of the chain, what every mined transaction is: withdrawn, waiting or final.
 *
 * Reads: the hash-linked window, the chain's tags where finality is a tag, every endpoint before anything final (settle.ts).
 * Writes: nothing itself; withdrawals (reorg.ts) and outcomes (stage 7) are committed by those. Invariants: I7, I8.
 * A crash leaves TRACKING/MINED; the next owner derives the same decision from the chain again.
 */
import { type FinalityView, isFinal, watchedThrough } from "../../../domain/chain/finality.ts";
import type { Hash } from "../../../domain/lane.ts";
import { ChainUnavailable, unlessSilent } from "../../../ports/chain.ts";
import { type ChainContext, canonicalHashes } from "../../chain/chain-context.ts";
import { inTurn, type Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { complete } from "../7-complete/complete.ts";
import { reviseWatched, withdraw } from "./reorg.ts";
import { applyVerdicts, foreignByContents, type MinedOn, settleReceipts, type Verdicts } from "./settle.ts";

/** What one pass decides by: heights and tags read once, hashes by height from the window, receipts that were settled. */
export interface FinalityPass {
  readonly context: ChainContext;
  readonly view: FinalityView;
  readonly verdicts: Verdicts;
  /** The highest block whose outcomes need no more watching; −1 where there is none. */
  readonly watchEnds: number;
}

/** Everything that these lanes might decide is asked about here, once per block. */
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

/** What ends a watch must not be a height that one endpoint alone claims: a reorg below it would never be reported. */
async function endOfWatch(
  { chain, settings }: ChainContext,
  view: FinalityView,
  lanes: readonly OwnedLane[],
): Promise<number> {
  const claimed = watchedThrough(settings.confirmations, view);
  if (!lanes.some((lane) => hasWatched(lane, claimed))) return -1;
  const head = await unlessSilent(chain.heightReached(view.head), -1);
  return watchedThrough(settings.confirmations, { ...view, head });
}

/** Whether something of the lane is watched up to this block. */
export function hasWatched({ watched }: OwnedLane, throughBlock: number): boolean {
  for (const number of watched.values()) if (number <= throughBlock) return true;
  return false;
}

function deepEnough(
  { context, view }: Pick<FinalityPass, "context" | "view">,
  lanes: readonly OwnedLane[],
): readonly MinedOn[] {
  const { window } = context.follower;
  const deep: MinedOn[] = [];
  for (const lane of lanes) {
    for (const tx of lane.mined.values()) {
      const { receipt } = tx;
      if (receipt === null || !isFinal(receipt.blockNumber, context.settings, view)) continue;
      // One that has left the chain is withdrawn, not asked about; below the window it is not known yet.
      const canonical = window.hashAt(receipt.blockNumber) ?? receipt.blockHash;
      if (canonical === receipt.blockHash) deep.push({ lane, tx, receipt });
    }
  }
  return deep;
}

function forgetDisputes({ disputes }: ChainContext, lanes: readonly OwnedLane[]): void {
  if (disputes.size === 0) return;
  const minedIn = (lane: OwnedLane) => [...lane.mined.values()].flatMap(({ receipt }) => receipt?.blockHash ?? []);
  const blocks = new Set(lanes.flatMap((lane) => [...lane.watched.keys(), ...minedIn(lane)]));
  disputes.keepOnly((hash) => blocks.has(hash));
}

/**
 * A tag is a block of one chain, and its height says nothing about another: where the window is still on a branch that
 * the tagged block is not part of, nothing is final until the follower has caught up. Below the window, hashes are asked
 * of the chain itself, after the tag. Null: nothing is final by it now.
 */
async function taggedHeight(context: ChainContext, tag: "safe" | "finalized"): Promise<number | null> {
  try {
    const block = await context.chain.head(tag);
    const height = block !== null && context.follower.window.mayStandOn(block) ? block.number : null;
    context.noteTag(tag, height !== null);
    return height;
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    // An endpoint that answers everything but this would otherwise keep everything from being final, without an alert.
    if (context.reachable) context.noteTag(tag, false);
    return null;
  }
}

/** Withdraws what left the canonical chain. Done before new blocks are matched, so that a moved transaction is found again. */
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

/** An outcome that was reported is taken back on no one endpoint's word: where two are up, two show another block. */
async function goneForAll(
  context: ChainContext,
  differing: readonly (readonly [Hash, number])[],
): Promise<readonly Hash[]> {
  const gone: Hash[] = [];
  for (const [hash, number] of differing) {
    const opinion = await context.secondOpinion(number);
    if (opinion.kind === "none" || (opinion.kind === "agreed" && opinion.hash !== hash)) gone.push(hash);
    if (opinion.kind === "disagree") context.disputes.note({ number, hash }, opinion.answers);
    else context.disputes.end(hash);
  }
  return gone;
}

/** Commits what is final on this view, and ends the watch over what is deep enough. */
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
): Promise<void> {
  const hashAt = await lane.term.during(canonicalHashes(context, asked.map(blockNumberOf)), "finality");
  const candidates = asked.filter((tx) => hashAt.get(blockNumberOf(tx)) === tx.receipt?.blockHash);
  const { settled, corrected, absent } = applyVerdicts(ports, lane, candidates, verdicts);
  if (absent.length > 0) await withdraw(ports, lane, absent, "does not hold it");
  if (settled.length > 0) {
    await ports.failpoint("finality.decided");
    const foreign = await lane.term.during(foreignByContents(ports, settled, verdicts));
    complete(ports, lane, settled, { corrected, foreign });
  }
}

/** Nothing waits for the rows: they are let go with those of the blocks to come. What could not be written is watched on. */
function endWatch({ context, watchEnds: throughBlock }: FinalityPass, lane: OwnedLane): null {
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

function blockNumberOf(tx: Tracked): number {
  return tx.receipt?.blockNumber ?? -1;
}

/** Unknown is not different: a height that the chain could not tell us about withdraws nothing. */
function differs(canonical: Hash | undefined, stored: Hash | undefined): boolean {
  return canonical !== undefined && canonical !== stored;
}
