import { FencepostError, invalid } from "../../domain/errors.ts";
import { ANYBODY, type Limits, type Principal } from "../../domain/keys/principal.ts";
import type { Ports } from "../../ports/ports.ts";
import type { FeedPosition, QueryStore } from "../../ports/query-store.ts";
import type {
  CompletionsPage,
  CompletionsQuery,
  Include,
  ListQuery,
  RequestQuery,
  SignaturesQuery,
  SignersQuery,
} from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { AbiBook, createAbiCalls } from "./abis.ts";
import { type CostsQuery, costs, withCosts } from "./costs.ts";
import { explanationOf } from "./explain.ts";
import type { ExplainPorts } from "./explained-lane.ts";
import { type HistoryQuery, history } from "./history.ts";
import { SharedReads } from "./shared-reads.ts";
import { signature, signatures } from "./signatures.ts";
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
    /** A requested signature for audit, without the signature itself. */
    signature: (signatureId: string) => signature(ports, signatureId),
    /** Requested signatures, newest first. */
    signatures: (query?: SignaturesQuery, limits?: Limits) => signatures(ports, query, limits),
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
  private readonly shared;
  private sleepers = new Set<() => void>();
  /** How often the feed may have grown. */
  private growth = 0;
  /** Cancels the next look of all waiting readers. */
  private cancelLook: () => void = () => undefined;
  private grown: () => void = () => undefined;

  constructor(ports: FeedPorts) {
    this.ports = ports;
    this.shared = new SharedReads(ports.store);
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
    this.growth++;
    this.shared.renew();
    this.cancelLook();
    for (const wake of woken) wake();
  }

  async page(query: CompletionsQuery): Promise<CompletionsPage> {
    refuseNoPosition(query.after);
    const { after, limit = DEFAULT_LIMIT, follows = false } = query;
    const untilMs = this.ports.clock.monotonicMs() + (query.waitMs ?? 0);
    for (let isFirst = true; ; isFirst = false) {
      const { growth } = this;
      // The first read is the caller's own: a read that another one began may be older than an item that the caller
      // knows of.
      const reading = isFirst && !follows ? this.ports.store.feed(after, limit) : this.shared.read(after, limit);
      const { items, ...position } = await reading;
      refuseMisplaced(query, position);
      const leftMs = untilMs - this.ports.clock.monotonicMs();
      if (items.length > 0 || leftMs <= 0 || query.signal?.aborted === true) {
        return { epoch: position.epoch, items, next: items.at(-1)?.seq ?? after };
      }
      if (growth === this.growth) await this.sleep(leftMs, query.signal);
    }
  }

  /** Waits until the feed may have grown, or the caller's time is over. All waiting readers look together. */
  private sleep(leftMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.ports;
    return new Promise((resolve) => {
      const wake = () => {
        cancel();
        this.sleepers.delete(wake);
        if (this.sleepers.size === 0) this.cancelLook();
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = leftMs < LOOK_EVERY_MS ? clock.after(leftMs, wake) : () => undefined;
      if (this.sleepers.size === 0) this.cancelLook = clock.after(LOOK_EVERY_MS, () => this.grew());
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
