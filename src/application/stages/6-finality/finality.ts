/**
 * Stage 6: decides, on one frozen view of the chain, what every mined transaction is: withdrawn, waiting or final.
 *
 * Reads: the hash-linked window, the chain's tags where finality is a tag, a second endpoint before anything final.
 * Writes: nothing itself; withdrawals (detours/reorg.ts) and outcomes (stage 7) are committed by those. Invariants: I7, I8.
 * A crash leaves TRACKING/MINED; the next owner derives the same decision from the chain again.
 */
import { type FinalityView, isFinal, watchedThrough } from "../../../domain/finality.ts";
import type { Hash } from "../../../domain/lane.ts";
import type { Failpoints } from "../../../ports/failpoints.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { type ReorgPorts, reviseWatched, withdraw } from "../../detours/reorg.ts";
import { type RequeuePorts, requeueLost } from "../../detours/requeue.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { stopLate } from "../../lane/too-late.ts";
import { canonicalHashes } from "../5-receipt/receipt.ts";
import { type CompletePorts, complete } from "../7-complete/complete.ts";

export interface FinalityPorts extends CompletePorts, ReorgPorts, RequeuePorts {
  readonly store: ReorgPorts["store"] & RequeuePorts["store"];
  readonly failpoint: Failpoints;
}

/** What one pass decides by: heights and tags read once, hashes by height from the window. */
export interface FinalityPass {
  readonly context: ChainContext;
  readonly view: FinalityView;
}

export async function openPass(context: ChainContext): Promise<FinalityPass> {
  const { settings, follower } = context;
  const head = follower.window.tip?.number ?? -1;
  const tagged = settings.finality === "confirmations" ? null : await taggedHeight(context, settings.finality);
  const finalized = settings.finality === "finalized" ? tagged : null;
  return { context, view: { head, tagged, finalized } };
}

/**
 * A tag is a block of one chain, and its height says nothing about another: where the window is still on a branch that
 * the tagged block is not part of, nothing is final until the follower has caught up. Below the window, hashes are asked
 * of the chain itself, after the tag.
 */
async function taggedHeight(context: ChainContext, tag: "safe" | "finalized"): Promise<number | null> {
  const block = await context.chain.head(tag);
  context.noteTag(tag, block !== null);
  const { window } = context.follower;
  if (block === null || window.oldest === null) return null;
  return block.number < window.oldest.number || window.contains(block) ? block.number : null;
}

/** Withdraws what left the canonical chain. Done before new blocks are matched, so that a moved transaction is found again. */
export async function withdrawOrphaned(ports: FinalityPorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  const mined = [...lane.mined.values()];
  const hashAt = await canonicalHashes(context, mined.map(blockNumberOf));
  const orphaned = mined.filter((tx) => differs(hashAt.get(blockNumberOf(tx)), tx.receipt?.blockHash));
  if (orphaned.length > 0 && !lane.stopped) await withdraw(ports, lane, orphaned);
  const watchedHashes = await canonicalHashes(context, [...lane.watched.values()]);
  const gone = [...lane.watched].filter(([hash, number]) => differs(watchedHashes.get(number), hash));
  if (gone.length > 0 && !lane.stopped) {
    await reviseWatched(
      ports,
      lane,
      gone.map(([hash]) => hash),
    );
  }
}

/** Commits what is final on this view, and ends the watch over what is deep enough. */
export async function decideFinal(ports: FinalityPorts, pass: FinalityPass, lane: OwnedLane): Promise<void> {
  const { context, view } = pass;
  const candidates = [...lane.mined.values()].filter((tx) => isFinal(blockNumberOf(tx), context.settings, view));
  const hashAt = await canonicalHashes(context, candidates.map(blockNumberOf));
  const canonical = candidates.filter((tx) => hashAt.get(blockNumberOf(tx)) === tx.receipt?.blockHash);
  const decided = await agreedElsewhere(context, canonical);
  if (decided.length > 0 && lane.stopped) stopLate(ports, lane, "finality");
  else if (decided.length > 0) {
    await ports.failpoint("finality.decided");
    const settled = await requeueLost(ports, context, { lane, decided });
    if (settled.length > 0) await complete(ports, lane, settled);
  }
  if (!lane.stopped) await endWatch(ports, lane, watchedThrough(context.settings.confirmations, view));
}

async function agreedElsewhere(context: ChainContext, decided: readonly Tracked[]): Promise<readonly Tracked[]> {
  if (context.chain.endpoints < 2) return decided;
  const numbers = [...new Set(decided.map(blockNumberOf))];
  const opinions = await Promise.all(numbers.map((number) => context.chain.secondOpinion(number)));
  const agreed = new Map(numbers.map((number, index) => [number, opinions[index]]));
  return decided.filter((tx) => {
    const opinion = agreed.get(blockNumberOf(tx));
    return opinion === "none" || opinion === tx.receipt?.blockHash;
  });
}

async function endWatch(ports: FinalityPorts, lane: OwnedLane, throughBlock: number): Promise<void> {
  const past = [...lane.watched].filter(([, number]) => number <= throughBlock);
  if (past.length === 0) return;
  await ports.writer.write({ kind: "unwatch", fence: lane.fence, throughBlock });
  for (const [hash] of past) lane.watched.delete(hash);
}

function blockNumberOf(tx: Tracked): number {
  return tx.receipt?.blockNumber ?? -1;
}

/** Unknown is not different: a height nobody could tell us about withdraws nothing. */
function differs(canonical: Hash | undefined, stored: Hash | undefined): boolean {
  return canonical !== undefined && canonical !== stored;
}
