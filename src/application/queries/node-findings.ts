/** What this node alone knows of what needs a person. Memory only: nothing is asked for it. */
import type { AlertCode } from "../../domain/alerts.ts";
import {
  type BlockedTransaction,
  ofAway,
  ofBalance,
  ofBlocked,
  ofDisputes,
  ofDoubt,
  ofDrift,
  ofEndpoint,
  ofPriceDispute,
  ofRefused,
  ofStalled,
  ofUnreachable,
  ofWatch,
} from "../../domain/attention/from-node.ts";
import type { Trouble } from "../../domain/attention/troubles.ts";
import type { CauseCode } from "../../domain/explain/situation.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { FactCode, Tracked } from "../lane/tracked.ts";

export interface FindingPorts {
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly lanesOf: (chainId: number) => readonly OwnedLane[];
}

export function nodeFindings({ chains, lanesOf }: FindingPorts): readonly Trouble[] {
  return [...chains].flatMap(([chainId, context]) => {
    const lanes = lanesOf(chainId);
    const ofLanes = lanes.flatMap((lane) => [...ofOwned(context, lane), ...ofWatched(lane)]);
    return [...ofChain(context, lanes), ...ofLanes];
  });
}

/** Grown old, or deep: an explanation of the head says why. */
function ofWatched(lane: OwnedLane): readonly Trouble[] {
  const codes = lane.pace.firing;
  if (codes === null || codes.size === 0) return [];
  const head = lane.unmined.get(lane.headOfLine() ?? -1);
  const waiting = head === undefined ? lane.pendingDepth() : lane.pendingBehind(head.nonce);
  return [...codes].map((code) =>
    ofWatch({
      lane: lane.lane,
      code,
      head: head === undefined ? null : { txId: head.txId, nonce: head.nonce, createdAt: head.createdAt },
      waiting,
    }),
  );
}

function ofChain(context: ChainContext, lanes: readonly OwnedLane[]): readonly Trouble[] {
  const { chainId } = context.chain;
  const waiting = lanes.reduce((sum, lane) => sum + lane.pendingDepth(), 0);
  const away = context.reachable ? [] : [ofUnreachable(chainId, context.unreachableSince, waiting)];
  const stalled = context.isStalled(lanes) ? [ofStalled(stallOf(context, waiting))] : [];
  const endpoints = (context.chain.health?.() ?? []).flatMap(({ url, status, behind }, index) =>
    status === "up" || status === "unknown" ? [] : [ofEndpoint({ chainId, index, url, status, behind })],
  );
  const { prices } = context.disputes;
  const priced = prices === null ? [] : [ofPriceDispute(chainId, prices)];
  return [...away, ...stalled, ...endpoints, ...ofDisputes(chainId, context.disputes.ofNote()), ...priced];
}

function stallOf({ chain: { chainId }, follower, headSince, usualBlockMs }: ChainContext, waiting: number) {
  return { chainId, head: follower.head?.number ?? 0, since: headSince, usualMs: usualBlockMs, waiting };
}

function ofOwned(context: ChainContext, lane: OwnedLane): readonly Trouble[] {
  const { signer, distrust } = lane.pace;
  const waiting = lane.pendingDepth();
  const found: Trouble[] = [];
  if (signer.kind === "away") {
    const { since, reason, lies } = signer;
    found.push(ofAway({ lane: lane.lane, since, reason, waiting, lies }));
  }
  if (distrust !== null) found.push(ofDoubt(lane.lane, distrust, waiting));
  const balance = context.knownBalances.get(lane.lane.signer);
  const threshold = context.settings.alertLowBalanceWei;
  if (threshold !== null && balance !== undefined && balance < threshold) {
    found.push(ofBalance(lane.lane, balance, threshold));
  }
  const drift = driftOf(lane);
  if (drift !== null) found.push(drift);
  found.push(...ofRefused(lane.lane, lane.refusals.all));
  return [...found, ...[...lane.unmined.values()].flatMap((tx) => ofUnmined(lane, tx))];
}

/** A count that is claimed and not proved is a matter of seconds, unless endpoints contradict each other. */
function driftOf({ lane, cursor, pace }: OwnedLane): Trouble | null {
  const { unproved } = pace.counts;
  return unproved === null || cursor === null ? null : ofDrift(lane, unproved, cursor);
}

/** In the words of an explanation; null: it is told of in another place, or by a state. */
const AS_CAUSES: Readonly<Record<FactCode, CauseCode | AlertCode | null>> = {
  FEE_CEILING_REACHED: "FEE_CEILING_REACHED",
  POLICY_LIMIT_REACHED: "POLICY_LIMIT_REACHED",
  MAX_ATTEMPTS_REACHED: "MAX_ATTEMPTS_REACHED",
  CANNOT_RESIGN: "CANNOT_RESIGN",
  RESENT_OFTEN: "RESENT_OFTEN",
  NONCE_HOLE: null,
  INSUFFICIENT_FUNDS: "INSUFFICIENT_FUNDS",
  HASH_OF_ANOTHER: null,
  REFUSED_FOR_GOOD: "NODE_REFUSED",
};

function ofUnmined(lane: OwnedLane, tx: Tracked): readonly Trouble[] {
  const blocked = blockedBy(tx);
  if (blocked === null) return [];
  const { txId, nonce } = tx;
  return [ofBlocked({ ...blocked, lane: lane.lane, txId, nonce, waiting: lane.pendingBehind(nonce) })];
}

function blockedBy({
  facts,
  status,
  lostSightAt,
  createdAt,
}: Tracked): Pick<BlockedTransaction, "code" | "text" | "since"> | null {
  if (status.subState === "UNKNOWN_SUBMIT_RESULT") {
    const text = "a node may have signed and sent it, and its answer was lost; it is looked for";
    return { code: "SUBMIT_RESULT_UNKNOWN", text, since: lostSightAt ?? createdAt };
  }
  for (const [fact, { text, since }] of facts) {
    const code = AS_CAUSES[fact];
    if (code !== null) return { code, text, since };
  }
  return null;
}
