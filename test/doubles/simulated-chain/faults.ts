import type { Address } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { SimulatedBlock } from "./block.ts";

export type Fault =
  /** The connection breaks before the node has done anything. */
  | { readonly kind: "unavailable" }
  /** The node performs the request, but its response never arrives. */
  | { readonly kind: "loseReply" }
  /** There is no response and the connection stays open. If `executed` is true, the node still performs the request. */
  | { readonly kind: "hang"; readonly executed?: boolean }
  /** A proxy in between responds with HTML; nothing is executed. */
  | { readonly kind: "httpError"; readonly status: number; readonly retryAfterSeconds?: number }
  /** Every error of the node is wrapped as an internal error (−32603), with its text inside `data`. */
  | { readonly kind: "wrapErrors" }
  /** The node returns another error and executes nothing. */
  | { readonly kind: "error"; readonly code: number; readonly message: string };

export interface FaultScope {
  /**
   * The JSON-RPC method to which the fault applies; all methods if absent. If a test does not use JSON-RPC, the method
   * that a real client would call.
   */
  readonly method?: string;
  readonly times?: number;
  readonly when?: (params: readonly unknown[]) => boolean;
}

export type NonceLie = (honest: number, address: Address, tag: "latest" | "pending") => number;

/** Returns the false receipt to report; null if the endpoint shall deny that there is a receipt. */
export type ReceiptLie = (honest: Receipt) => Receipt | null;

/** Returns a false block for a tag; null means that the endpoint does not know the tag. */
export type TagLie = (honest: SimulatedBlock) => SimulatedBlock | null;

interface Injected {
  readonly fault: Fault;
  readonly scope: FaultScope;
  left: number;
}

/** Prices that an endpoint claims: every block's base fee (null for none), and the gas price. */
export interface FeeLie {
  readonly baseFee: bigint | null;
  readonly price: bigint;
}

export class Faults {
  readonly #injected = new Set<Injected>();
  #pinnedHead: number | null = null;
  #nonceLie: NonceLie | null = null;
  #feeLie: FeeLie | null = null;
  #gasLie: ((honest: bigint) => bigint) | null = null;
  #receiptLie: ReceiptLie | null = null;
  #balanceLie: ((honest: bigint) => bigint) | null = null;
  #revertsTo: Address | null = null;
  #tagLie: TagLie | null = null;
  #invented = 0;
  #lag = 0;
  #trail = 0;
  #turn = 0;
  #keptState = Number.POSITIVE_INFINITY;
  #looksUpByNonce = false;

  /** Injects a fault. The returned function removes it before its `times` are used up. */
  inject(fault: Fault, scope: FaultScope = {}): () => void {
    const injected: Injected = { fault, scope, left: scope.times ?? Number.POSITIVE_INFINITY };
    this.#injected.add(injected);
    return () => this.#injected.delete(injected);
  }

  /** Makes the endpoint lag: it has no block above this one. Null lets it catch up. */
  pinHead(blockNumber: number | null): void {
    this.#pinnedHead = blockNumber;
  }

  /**
   * Adds this many invented blocks on top of the real ones, linked by hash. No other endpoint has them. The endpoint's
   * block tags move up accordingly.
   */
  inventBlocks(count: number): void {
    this.#invented = count;
  }

  get invented(): number {
    return this.#invented;
  }

  /** Simulates two machines behind one URL that answer in turn, one of which is this many blocks behind. */
  alternate(lag: number): void {
    this.#lag = lag;
  }

  /** Makes the endpoint follow the chain this many blocks behind. */
  trail(blocks: number): void {
    this.#trail = blocks;
  }

  /** Number of blocks by which the machine that answers the current call lags behind. */
  get lag(): number {
    return Math.max(this.#trail, this.#turn % 2 === 0 ? 0 : this.#lag);
  }

  get pinnedHead(): number | null {
    return this.#pinnedHead;
  }

  lieAboutNonce(lie: NonceLie | null): void {
    this.#nonceLie = lie;
  }

  /** Changes the gas that this endpoint estimates for a call. */
  lieAboutGas(lie: ((honest: bigint) => bigint) | null): void {
    this.#gasLie = lie;
  }

  estimate(honest: bigint): bigint {
    return this.#gasLie === null ? honest : this.#gasLie(honest);
  }

  nonce(honest: number, address: Address, tag: "latest" | "pending"): number {
    return this.#nonceLie === null ? honest : this.#nonceLie(honest, address, tag);
  }

  lieAboutBalance(lie: ((honest: bigint) => bigint) | null): void {
    this.#balanceLie = lie;
  }

  balance(honest: bigint): bigint {
    return this.#balanceLie === null ? honest : this.#balanceLie(honest);
  }

  /** Makes this endpoint claim that calls to this address revert. */
  lieAboutReverts(to: Address | null): void {
    this.#revertsTo = to;
  }

  saysReverts(to: Address | null): boolean {
    return to !== null && to === this.#revertsTo;
  }

  lieAboutFees(lie: FeeLie | null): void {
    this.#feeLie = lie;
  }

  get feeLie(): FeeLie | null {
    return this.#feeLie;
  }

  lieAboutReceipts(lie: ReceiptLie | null): void {
    this.#receiptLie = lie;
  }

  receipt(honest: Receipt): Receipt | null {
    return this.#receiptLie === null ? honest : this.#receiptLie(honest);
  }

  /** Changes this endpoint's block for `safe` or `finalized`. */
  lieAboutTags(lie: TagLie | null): void {
    this.#tagLie = lie;
  }

  tagged(honest: SimulatedBlock): SimulatedBlock | null {
    return this.#tagLie === null ? honest : this.#tagLie(honest);
  }

  /** Simulates a pruned node: it has account state only for the last `blocks` blocks. */
  prune(blocks: number): void {
    this.#keptState = blocks;
  }

  get keptState(): number {
    return this.#keptState;
  }

  /** Sets whether the node supports `eth_getTransactionBySenderAndNonce`, which older versions of geth lack. */
  lookUpByNonce(offered = true): void {
    this.#looksUpByNonce = offered;
  }

  get looksUpByNonce(): boolean {
    return this.#looksUpByNonce;
  }

  heal(): void {
    this.#injected.clear();
    this.#pinnedHead = null;
    this.#nonceLie = null;
    this.#feeLie = null;
    this.#gasLie = null;
    this.#receiptLie = null;
    this.#balanceLie = null;
    this.#revertsTo = null;
    this.#tagLie = null;
    this.#keptState = Number.POSITIVE_INFINITY;
    this.#invented = 0;
    this.#lag = 0;
    this.#trail = 0;
  }

  /** Returns the fault that applies to this call, and reduces its remaining count by one. */
  strike(method: string, params: readonly unknown[]): Fault | null {
    this.#turn++;
    for (const injected of this.#injected) {
      const { scope, fault } = injected;
      if (scope.method !== undefined && scope.method !== method) continue;
      if (scope.when !== undefined && !scope.when(params)) continue;
      injected.left--;
      if (injected.left <= 0) this.#injected.delete(injected);
      return fault;
    }
    return null;
  }
}
