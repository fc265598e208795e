import type { Address } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { SimulatedBlock } from "./block.ts";

export type Fault =
  /** The connection breaks before the node has done anything. */
  | { readonly kind: "unavailable" }
  /** The node does what it was asked, and the answer never arrives. */
  | { readonly kind: "loseReply" }
  /** No answer, and no end of the connection either; `executed` says whether the node did it. */
  | { readonly kind: "hang"; readonly executed?: boolean }
  /** A proxy in between answers in HTML; nothing is executed. */
  | { readonly kind: "httpError"; readonly status: number; readonly retryAfterSeconds?: number }
  /** Every error of the node is wrapped as an internal one (−32603), with its text further in. */
  | { readonly kind: "wrapErrors" }
  /** Another error instead of doing anything. */
  | { readonly kind: "error"; readonly code: number; readonly message: string };

export interface FaultScope {
  /** JSON-RPC method; all methods if absent. The direct interface uses the method that it would have called. */
  readonly method?: string;
  readonly times?: number;
  readonly when?: (params: readonly unknown[]) => boolean;
}

export type NonceLie = (honest: number, address: Address, tag: "latest" | "pending") => number;

/** Null: it denies that there is one. */
export type ReceiptLie = (honest: Receipt) => Receipt | null;

/** Null: it knows no such tag. */
export type TagLie = (honest: SimulatedBlock) => SimulatedBlock | null;

interface Injected {
  readonly fault: Fault;
  readonly scope: FaultScope;
  left: number;
}

/** Faults of one endpoint. Both interfaces of the simulated chain consult them before they answer. */
/** Prices that an endpoint claims: every block's base fee (null: none), and the price of a unit of gas. */
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

  /** Returns how to end it before its `times` are used up. */
  inject(fault: Fault, scope: FaultScope = {}): () => void {
    const injected: Injected = { fault, scope, left: scope.times ?? Number.POSITIVE_INFINITY };
    this.#injected.add(injected);
    return () => this.#injected.delete(injected);
  }

  /** The endpoint lags: it knows nothing above this block. Null lets it catch up. */
  pinHead(blockNumber: number | null): void {
    this.#pinnedHead = blockNumber;
  }

  /**
   * This many blocks that no other endpoint has, on top of the real ones and linked by hash; the endpoint's tags move
   * with them.
   */
  inventBlocks(count: number): void {
    this.#invented = count;
  }

  get invented(): number {
    return this.#invented;
  }

  /** Two machines behind one URL, asked in turns: every other call meets one that is this many blocks behind. */
  alternate(lag: number): void {
    this.#lag = lag;
  }

  /** It follows the chain, always this many blocks late. */
  trail(blocks: number): void {
    this.#trail = blocks;
  }

  /** How far the machine is behind that answers the call under way. */
  get lag(): number {
    return Math.max(this.#trail, this.#turn % 2 === 0 ? 0 : this.#lag);
  }

  get pinnedHead(): number | null {
    return this.#pinnedHead;
  }

  lieAboutNonce(lie: NonceLie | null): void {
    this.#nonceLie = lie;
  }

  /** Gas that this endpoint claims for a call. */
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

  /** This endpoint says that calls to this receiver revert. */
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

  /** This endpoint's block for `safe` or `finalized`. */
  lieAboutTags(lie: TagLie | null): void {
    this.#tagLie = lie;
  }

  tagged(honest: SimulatedBlock): SimulatedBlock | null {
    return this.#tagLie === null ? honest : this.#tagLie(honest);
  }

  /** A pruned node: accounts are known as of the last `blocks` blocks and no earlier ones. */
  prune(blocks: number): void {
    this.#keptState = blocks;
  }

  get keptState(): number {
    return this.#keptState;
  }

  /** A node with `eth_getTransactionBySenderAndNonce`; geth had none for most of its life. */
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

  /** The fault that strikes this call, used up by one. */
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
