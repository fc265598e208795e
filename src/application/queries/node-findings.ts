/** What this node alone knows of what needs a person. Memory only: nothing is asked for it. */
import {
  ofAway,
  ofBalance,
  ofDisputes,
  ofDoubt,
  ofDrift,
  ofEndpoint,
  ofPriceDispute,
  ofRefused,
  ofStalled,
  ofTransaction,
  ofUnreachable,
  ofWatch,
} from "../../domain/troubles/find.ts";
import type { Trouble } from "../../domain/troubles/rows.ts";
import { SYMPTOMS, type TroubleCode } from "../../domain/troubles/table.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { FactCode, Tracked } from "../lane/tracked.ts";

export function nodeFindings({ chains, lanesOf }: Pick<CallPorts, "chains" | "lanesOf">): readonly Trouble[] {
  return [...chains].flatMap(([chainId, context]) => {
    const lanes = lanesOf(chainId);
    const ofLanes = lanes.flatMap((lane) => [...ofOwned(context, lane), ...ofWatched(context, lane)]);
    return [...ofChain(context, lanes), ...ofLanes];
  });
}

/** Alerts of the watch over the lane (loops/stuck-watch.ts) that are not over. */
function ofWatched({ standing }: ChainContext, lane: OwnedLane): readonly Trouble[] {
  const codes = SYMPTOMS.filter((code) => standing.has({ code, lane: lane.lane }));
  if (codes.length === 0) return [];
  const head = lane.unmined.get(lane.headOfLine() ?? -1) ?? null;
  const waiting = head === null ? lane.pendingDepth() : lane.pendingBehind(head.nonce);
  const seen = { lane: lane.lane, head, oldestAt: lane.oldestPendingAt(), waiting };
  return codes.map((code) => ofWatch(code, seen));
}

function ofChain(context: ChainContext, lanes: readonly OwnedLane[]): readonly Trouble[] {
  const { follower, headSince: since, usualBlockMs: usualMs } = context;
  const { chainId } = context.chain;
  const waiting = lanes.reduce((sum, lane) => sum + lane.pendingDepth(), 0);
  const { prices } = context.disputes;
  return [
    ...(context.reachable ? [] : [ofUnreachable(chainId, context.unreachableSince, waiting)]),
    ...(context.isStalled(lanes) ? [ofStalled({ chainId, since, waiting }, follower.head?.number ?? 0, usualMs)] : []),
    ...(context.chain.health?.() ?? []).flatMap(({ url, status, behind }, index) =>
      status === "up" || status === "unknown" ? [] : [ofEndpoint({ chainId, index, url, status, behind })],
    ),
    ...ofDisputes(chainId, context.disputes.ofNote()),
    ...(prices === null ? [] : [ofPriceDispute(chainId, prices)]),
  ];
}

function ofOwned(context: ChainContext, lane: OwnedLane): readonly Trouble[] {
  const { signer, distrust, counts } = lane.pace;
  const waiting = lane.pendingDepth();
  const balance = context.knownBalances.get(lane.lane.signer);
  const threshold = context.settings.alertLowBalanceWei;
  // A count that is claimed and not proved is a matter of seconds, unless endpoints contradict each other.
  const { unproved } = counts;
  return [
    ...(signer.kind === "away" ? [ofAway({ ...signer, lane: lane.lane, waiting })] : []),
    ...(distrust === null ? [] : [ofDoubt(lane.lane, distrust, waiting)]),
    ...(threshold !== null && balance !== undefined && balance < threshold
      ? [ofBalance(lane.lane, balance, threshold)]
      : []),
    ...(unproved === null || lane.cursor === null ? [] : [ofDrift(lane.lane, unproved, lane.cursor)]),
    ...ofRefused(lane.lane, lane.refusals.all),
    ...[...lane.unmined.values()].flatMap((tx) => ofUnmined(context, lane, tx)),
  ];
}

/** Null: another row has it. */
const CODES: Readonly<Record<FactCode, TroubleCode | null>> = {
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

function ofUnmined(context: ChainContext, lane: OwnedLane, tx: Tracked): readonly Trouble[] {
  const { txId, nonce, status, lostSightAt, createdAt } = tx;
  const { signer } = lane.lane;
  const balance = context.knownBalances.get(signer);
  const minedCount = context.counts.lastTold(signer).latest;
  const facts = {
    ...(balance !== undefined && { balance: `${balance}` }),
    ...(minedCount !== null && { minedCount }),
  };
  const about = { lane: lane.lane, txId, nonce, open: lane.pendingBehind(nonce) + 1, facts };
  if (status.subState === "UNKNOWN_SUBMIT_RESULT") {
    const text = "a node may have signed and sent it, and its answer was lost; it is looked for";
    return [ofTransaction("SUBMIT_RESULT_UNKNOWN", { ...about, since: lostSightAt ?? createdAt }, text)];
  }
  for (const [fact, { text, since }] of tx.facts) {
    const code = CODES[fact];
    if (code !== null) return [ofTransaction(code, { ...about, since }, text)];
  }
  return [];
}
