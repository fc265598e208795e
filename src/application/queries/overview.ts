/**
 * The overview for operators: counters from the lane rows, the newest transactions, and the chains as this node's loops
 * last read them.
 */

import { explorerOf } from "../../domain/chain/explorers.ts";
import { tipTaken } from "../../domain/fees/repricing.ts";
import { ANYBODY, isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import type { State } from "../../domain/transaction/transitions.ts";
import { revisionOf } from "../../domain/troubles/revision.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { HeldQuery } from "../api.ts";
import { Answers, sharedLook } from "../chain/answers.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";

type OverviewPorts = Pick<CallPorts, "clock" | "store" | "chains">;

type Figures = Awaited<ReturnType<OverviewBoard["draw"]>>;
type OldestPending = Pick<TransactionRecord, "lane" | "txId" | "nonce" | "createdAt">;

export type OverviewView = Figures & { readonly revision: string };

/** States of a transaction that has a nonce and is not final. */
const OPEN_STATES = ["ALLOCATED", "TRACKING", "STUCK"] as const satisfies readonly State[];
const LOOKED_UP_FOR_MS = 30_000;

export class OverviewBoard {
  private readonly ports;
  private readonly everything;
  /** The overviews for API keys that may see only some signers or chains, one per key. */
  private readonly parts = new WeakMap<Limits, ReturnType<typeof sharedLook<Figures>>>();
  private readonly dear: Answers<string, readonly OldestPending[]>;

  constructor(ports: OverviewPorts) {
    this.ports = ports;
    this.everything = sharedLook(ports.clock, () => this.draw(ANYBODY));
    this.dear = new Answers(ports.clock);
  }

  view(query: HeldQuery = {}, limits: Limits = ANYBODY): Promise<OverviewView> {
    return this.lookOf(limits)(query, (figures) => {
      const { asOf: _, ...lasting } = figures;
      return { ...figures, revision: revisionOf(inJson(lasting)) };
    });
  }

  private lookOf(limits: Limits) {
    if (!isLimited(limits)) return this.everything;
    const known = this.parts.get(limits) ?? sharedLook(this.ports.clock, () => this.draw(limits));
    this.parts.set(limits, known);
    return known;
  }

  private async draw(limits: Limits) {
    const { store, chains } = this.ports;
    const [totals, pulse, oldestPending] = await Promise.all([
      store.totals(limits),
      isLimited(limits) ? null : store.pulse(),
      this.oldest(limits),
    ]);
    const seconds = pulse?.secondsToFinality ?? [];
    return {
      asOf: totals.at,
      lanes: totals.lanes,
      states: totals.states,
      /** Rates over the last minutes; null for a key that may see only some transactions. */
      createdPerMinute: pulse?.createdPerMinute ?? null,
      completedPerMinute: pulse?.completedPerMinute ?? null,
      timeToFinalitySeconds: seconds.length === 0 ? null : { p50: share(seconds, 0.5), p95: share(seconds, 0.95) },
      oldestPending,
      chains: [...chains.values()].filter(({ chain }) => limits.chains?.has(chain.chainId) !== false).map(chainView),
    };
  }

  private async oldest(limits: Limits) {
    const found = await (limits.signers === null ? this.oldestOfAll(limits) : this.oldestOf(limits.signers, limits));
    return found.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime())[0] ?? null;
  }

  private async oldestOfAll({ chains }: Limits): Promise<readonly OldestPending[]> {
    const { store } = this.ports;
    const chainIds = chains === null ? [...this.ports.chains.keys()] : [...chains];
    const scopes = chains === null ? [{}] : chainIds.map((chainId) => ({ chainId }));
    const waiting = scopes.map((scope) =>
      store.transactions({ ...scope, state: "CREATED", order: "oldest", limit: 1 }),
    );
    const [open, ...created] = await Promise.all([store.oldestOpen(chainIds), ...waiting]);
    const known = open.filter((each) => typeof each === "object");
    const unsure = chainIds.filter((_, at) => open[at] === "unknown");
    return [...known, ...created.flat().map(oldestOf), ...(await this.lookedUp(unsure))];
  }

  /**
   * Looks up the oldest open transactions. The query is expensive if thousands of older ones are settled and only
   * checked for reorgs, so the result is reused.
   */
  private lookedUp(chainIds: readonly number[]): Promise<readonly OldestPending[]> {
    return this.dear.about(chainIds.join(), LOOKED_UP_FOR_MS, async () => {
      const asked = chainIds.flatMap((chainId) =>
        OPEN_STATES.map((state) => this.ports.store.transactions({ chainId, state, order: "oldest", limit: 1 })),
      );
      return (await Promise.all(asked)).flat().map(oldestOf);
    });
  }

  /** The oldest open transaction of each lane of these signers, which is the one with the lowest nonce. */
  private async oldestOf(signers: ReadonlySet<Address>, limits: Limits): Promise<readonly OldestPending[]> {
    const lanes = (await Promise.all([...signers].map((signer) => this.ports.store.lanes(signer)))).flat();
    return lanes.flatMap(({ lane, headOfLine }) =>
      headOfLine === null || !isWithin(limits, lane) ? [] : [oldestOf({ lane, ...headOfLine })],
    );
  }
}

function oldestOf({ lane, txId, nonce, createdAt }: OldestPending): OldestPending {
  return { lane, txId, nonce, createdAt };
}

/** One chain as this node's loops last saw it; does not call the chain. */
function chainView(context: ChainContext) {
  const { chain, reachable, follower, settings, knownMarket, headSince, usualBlockMs } = context;
  return {
    chainId: chain.chainId,
    reachable: reachable && follower.head !== null,
    head: follower.head?.number ?? null,
    /** When this node first saw the chain's newest block, by its own clock. */
    headSince,
    /** Usual time between blocks; null if unknown, or if the chain makes blocks on demand. */
    blockSeconds: usualBlockMs === null ? null : Number((usualBlockMs / 1_000).toPrecision(2)),
    stalled: context.isStalled([]),
    baseFee: follower.baseFee,
    /** Tip above the base fee that recent blocks accepted. */
    tip: knownMarket && tipTaken(knownMarket),
    endpoints: chain.health?.() ?? [],
    explorer: explorerOf(chain.chainId, settings.explorerUrl),
  };
}

/** Returns the value that the given share of the values does not exceed (a quantile). */
function share(values: readonly number[], part: number) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? 0;
}

/** Converts the overview's values to JSON, which has no bigints. */
function inJson({ chains, ...figures }: Omit<Figures, "asOf">) {
  return [figures, chains.map(({ baseFee, tip, ...chain }) => [chain, `${baseFee}`, `${tip}`])];
}
