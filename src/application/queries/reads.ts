import { FencepostError, invalid } from "../../domain/errors.ts";
import { ANYBODY, type Limits, type Principal } from "../../domain/keys/principal.ts";
import type { Ports } from "../../ports/ports.ts";
import type { FeedPosition, QueryStore } from "../../ports/query-store.ts";
import type { CompletionsPage, CompletionsQuery, Include, ListQuery, RequestQuery, SignersQuery } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { AbiBook, createAbiCalls } from "./abis.ts";
import { type CostsQuery, costs, withCosts } from "./costs.ts";
import { explanationOf } from "./explain.ts";
import type { ExplainPorts } from "./explained-lane.ts";
import { type HistoryQuery, history } from "./history.ts";
import { signer, signers } from "./signers.ts";
import { chainLooks, transaction, transactionByRequest, transactions } from "./transactions.ts";

export type ReadPorts = CallPorts & Pick<ExplainPorts, "kills" | "reports"> & { readonly feed: Feed };

/** Calls that only read: any node answers them, whether or not it owns the lane. */
export function createReads(ports: ReadPorts) {
  const { store, feed } = ports;
  const abiBook = new AbiBook(ports);
  const looking = { ...ports, look: chainLooks(ports), abiBook };
  return {
    ...createAbiCalls({ ...ports, abiBook }),
    transaction: (txId: string, include?: readonly Include[]) => transaction(looking, txId, include),
    transactionByRequest: (query: RequestQuery, include?: readonly Include[]) =>
      transactionByRequest(looking, query, include),
    transactions: (query: ListQuery, limits?: Limits) => transactions(looking, query, limits),
    /**
     * Explains why a transaction is not final yet, and what would help. With `blockerByNonce`, only the nonce of the
     * transaction that it waits for is shown.
     */
    explain: (txId: string, options?: { readonly blockerByNonce?: boolean }) => explanationOf(looking, txId, options),
    completions: async (query: CompletionsQuery) => {
      const page = await feed.page(query);
      return query.include === "cost" ? { ...page, items: await withCosts(ports, page.items) } : page;
    },
    /**
     * One page of lanes, ordered by signer and chain. The chain's values are those that this node's loops last
     * received.
     */
    signers: (query?: SignersQuery, limits?: Limits) => signers(ports, query, limits),
    /**
     * One item per chain that the signer has a lane on or, if this node holds its key, could have one; `fresh` reads
     * the values from the chain now. UNKNOWN_SIGNER if there is no lane and this node does not hold the key.
     */
    signer: (name: string, options?: { readonly fresh?: boolean }) => signer(ports, name, options),
    /** Figures over time, merged over the lanes that the query and the key select. */
    history: (query?: HistoryQuery, limits?: Limits) => history(ports, query, limits),
    /** Fees paid and value moved by the transactions that were created in a range of time. */
    costs: (query?: CostsQuery, limits?: Limits) => costs(ports, query, limits),
    /** The names of signers in this node's configuration. */
    namedSigners: async ({ signers: visible }: Principal = ANYBODY) => {
      const names = [...(ports.settings.signerNames ?? [])].map(([address, name]) => ({ signer: address, name }));
      return names.filter((each) => visible?.has(each.signer) !== false);
    },
    /** The API key that makes this call, and the node that performs it. */
    me: async (principal: Principal = ANYBODY) => ({
      key: principal.name,
      scopes: [...principal.scopes],
      signers: principal.signers && [...principal.signers],
      chains: principal.chains && [...principal.chains],
      nodeId: ports.settings.nodeId,
      version: ports.settings.version,
    }),
    /** The live instances of the cluster. */
    nodes: async () => (await store.instances()).filter(({ dead, expired }) => !dead && !expired),
    /** Every lane that was ever acquired, with its owner if it has one. */
    leases: () => store.leases(),
  };
}

/**
 * The completion feed for callers: in order of the sequence numbers, and none is left out. A waiting caller is woken by
 * this node's own completions at once, and by those of other nodes at the next read of the counter.
 */

type FeedPorts = Pick<Ports, "clock"> & { readonly store: Pick<QueryStore, "feed"> };

const DEFAULT_LIMIT = 100;
const LOOK_EVERY_MS = 250;

export class Feed {
  private readonly ports;
  private sleepers = new Set<() => void>();
  private grown: () => void = () => undefined;

  constructor(ports: FeedPorts) {
    this.ports = ports;
  }

  /** Registers a listener that is called whenever the feed may have grown. */
  onGrew(listener: () => void): void {
    this.grown = listener;
  }

  /** Called after a node appended to the feed: wakes the waiting readers. */
  grew(): void {
    this.grown();
    const woken = this.sleepers;
    this.sleepers = new Set();
    for (const wake of woken) wake();
  }

  async page(query: CompletionsQuery): Promise<CompletionsPage> {
    refuseNoPosition(query.after);
    const untilMs = this.ports.clock.monotonicMs() + (query.waitMs ?? 0);
    for (;;) {
      const { items, ...position } = await this.ports.store.feed(query.after, query.limit ?? DEFAULT_LIMIT);
      refuseMisplaced(query, position);
      const leftMs = untilMs - this.ports.clock.monotonicMs();
      if (items.length > 0 || leftMs <= 0 || query.signal?.aborted === true) {
        return { epoch: position.epoch, items, next: items.at(-1)?.seq ?? query.after };
      }
      await this.sleep(Math.min(leftMs, LOOK_EVERY_MS), query.signal);
    }
  }

  private sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        cancel();
        this.sleepers.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = this.ports.clock.after(ms, wake);
      this.sleepers.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}

/**
 * Refuses an invalid position. Calls through the library pass no schema check, and PostgreSQL would refuse the value
 * with an error that looks like an outage.
 */
function refuseNoPosition(after: number) {
  if (!Number.isSafeInteger(after) || after < 0) throw invalid("after", "must be a whole number from 0 on");
}

function refuseMisplaced(query: CompletionsQuery, position: FeedPosition) {
  if (query.epoch !== undefined && query.epoch !== position.epoch) {
    throw new FencepostError("EPOCH_CHANGED", `the feed is in epoch ${position.epoch}, not ${query.epoch}`, {
      epoch: position.epoch,
      // The position from which the caller should continue. It is before completions of the old epoch that the caller
      // has not seen and the database still has; those of the new epoch follow.
      resumeAfter: Math.min(query.after, position.epochStartsAfter),
    });
  }
  if (query.after < position.truncatedThrough) {
    throw new FencepostError("FEED_TRUNCATED", `completions up to ${position.truncatedThrough} are no longer kept`, {
      resumeAfter: position.truncatedThrough,
    });
  }
}
