/** Everything in figures: kept counts, the newest rows, and the chains as this node's loops were last told of them. */

import { explorerOf } from "../../domain/chain/explorers.ts";
import { tipTaken } from "../../domain/fees/repricing.ts";
import { isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { State } from "../../domain/transaction/transitions.ts";
import { revisionOf } from "../../domain/troubles/revision.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { ChainView, HeldQuery, OldestPending, OverviewView } from "../sight-api.ts";
import { SharedLook } from "./shared-look.ts";

type OverviewPorts = Pick<CallPorts, "clock" | "store" | "chains">;

type Figures = Omit<OverviewView, "revision">;

const UNLIMITED: Limits = { signers: null, chains: null };
/** Not over, with a nonce. */
const OPEN_STATES = ["ALLOCATED", "TRACKING", "STUCK"] as const satisfies readonly State[];
const LOOKED_UP_FOR_MS = 30_000;

export class OverviewBoard {
  private readonly ports: OverviewPorts;
  private readonly everything: SharedLook<Figures>;
  /** Of keys that see a part. */
  private readonly parts = new WeakMap<Limits, SharedLook<Figures>>();
  private readonly dear = new Map<string, { readonly atMs: number; readonly found: readonly OldestPending[] }>();

  constructor(ports: OverviewPorts) {
    this.ports = ports;
    this.everything = new SharedLook(ports.clock, () => this.draw(UNLIMITED));
  }

  view(query: HeldQuery = {}, limits: Limits = UNLIMITED): Promise<OverviewView> {
    return this.lookOf(limits).held(query, (figures) => {
      const { asOf: _, ...lasting } = figures;
      return { ...figures, revision: revisionOf(inJson(lasting)) };
    });
  }

  private lookOf(limits: Limits): SharedLook<Figures> {
    if (!isLimited(limits)) return this.everything;
    const known = this.parts.get(limits) ?? new SharedLook(this.ports.clock, () => this.draw(limits));
    this.parts.set(limits, known);
    return known;
  }

  private async draw(limits: Limits): Promise<Figures> {
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
      createdPerMinute: pulse?.createdPerMinute ?? null,
      completedPerMinute: pulse?.completedPerMinute ?? null,
      timeToFinalitySeconds: seconds.length === 0 ? null : { p50: share(seconds, 0.5), p95: share(seconds, 0.95) },
      oldestPending,
      chains: [...chains.values()].filter(({ chain }) => limits.chains?.has(chain.chainId) !== false).map(chainView),
    };
  }

  private async oldest(limits: Limits) {
    const found =
      limits.signers === null ? await this.oldestOfAll(limits) : await this.oldestOf([...limits.signers], limits);
    return found.reduce<OldestPending | null>(
      (oldest, each) => (oldest === null || each.createdAt < oldest.createdAt ? each : oldest),
      null,
    );
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

  /** Where thousands are over and only watched, the oldest that is open is young; finding it costs, and is done seldom. */
  private async lookedUp(chainIds: readonly number[]): Promise<readonly OldestPending[]> {
    if (chainIds.length === 0) return [];
    const nowMs = this.ports.clock.monotonicMs();
    const key = chainIds.join();
    const known = this.dear.get(key);
    if (known !== undefined && nowMs - known.atMs < LOOKED_UP_FOR_MS) return known.found;
    const asked = chainIds.flatMap((chainId) =>
      OPEN_STATES.map((state) => this.ports.store.transactions({ chainId, state, order: "oldest", limit: 1 })),
    );
    const found = (await Promise.all(asked)).flat().map(oldestOf);
    this.dear.set(key, { atMs: nowMs, found });
    return found;
  }

  /** By the heads of their lines. */
  private async oldestOf(signers: readonly `0x${string}`[], limits: Limits): Promise<readonly OldestPending[]> {
    const lanes = (await Promise.all(signers.map((signer) => this.ports.store.lanes(signer)))).flat();
    return lanes.flatMap(({ lane, headOfLine }) => {
      if (headOfLine === null || !isWithin(limits, lane)) return [];
      const { txId, nonce, createdAt } = headOfLine;
      return [{ lane, txId, nonce, createdAt }];
    });
  }
}

function oldestOf({ lane, txId, nonce, createdAt }: TransactionRecord): OldestPending {
  return { lane, txId, nonce, createdAt };
}

function chainView(context: ChainContext): ChainView {
  const { chain, reachable, follower, settings, knownMarket, headSince, usualBlockMs } = context;
  return {
    chainId: chain.chainId,
    reachable: reachable && follower.head !== null,
    head: follower.head?.number ?? null,
    headSince,
    blockSeconds: usualBlockMs === null ? null : Number((usualBlockMs / 1_000).toPrecision(2)),
    stalled: context.isStalled([]),
    baseFee: follower.baseFee,
    tip: knownMarket && tipTaken(knownMarket),
    endpoints: chain.health?.() ?? [],
    explorer: explorerOf(chain.chainId, settings.explorerUrl),
  };
}

/** The value that this share of them does not exceed. */
function share(values: readonly number[], part: number) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? 0;
}

/** JSON has no bigints. */
function inJson({ chains, ...figures }: Omit<Figures, "asOf">) {
  return [figures, chains.map(({ baseFee, tip, ...chain }) => [chain, `${baseFee}`, `${tip}`])];
}
