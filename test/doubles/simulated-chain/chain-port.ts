import { fetchOutcome } from "../../../src/adapters/evm/reads/read-outcome.ts";
import { NOT_STARTED, type NotStarted, type SubmitResult } from "../../../src/domain/chain/answers.ts";
import type { CountAnswer } from "../../../src/domain/chain/counts.ts";
import { lowerOf, type MarketWord, type SharedBaseFee } from "../../../src/domain/fees/two-markets.ts";
import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import type { FeeMarket } from "../../../src/domain/transaction/fees.ts";
import type { Receipt, UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import type { OutcomeQuestion, ShownOutcome } from "../../../src/ports/chain.ts";
import {
  type Block,
  type BlockPlace,
  type BlockTag,
  type Call,
  type Chain,
  type ChainIdentity,
  type ChainTransaction,
  ChainUnavailable,
  type Counted,
  type EndpointAnswer,
  type MayLeave,
  type NodeSubmission,
  type PassedAnswer,
  type Prospect,
  type ReceiptVerdict,
  type SecondOpinion,
  type Send,
  type Settling,
  type Simulation,
} from "../../../src/ports/chain.ts";
import { receiptOf, type SimulatedBlock } from "./block.ts";
import type { SimulatedChain } from "./core.ts";
import { Faults, type FeeLie } from "./faults.ts";
import { decodeRevert } from "./revert.ts";
import { createRpc, RpcError } from "./rpc.ts";
import { simulateCall } from "./simulation.ts";
import type { SimulatedTransaction } from "./transaction.ts";
import { ChainView } from "./view.ts";

export interface DirectChainOptions {
  readonly faults?: Faults;
  /**
   * A second endpoint: another view of this chain (for example a lagging one), or a view of another chain (with false
   * data).
   */
  readonly elsewhere?: { readonly chain: SimulatedChain; readonly faults: Faults };
  /**
   * True if block hashes can be recomputed. Then even a single endpoint contradicts itself if it reports a false
   * receipt.
   */
  readonly proves?: boolean;
  readonly privateEndpoints?: readonly string[];
  /** Awaited before every call to the chain, so that a simulation on a virtual clock can give calls a duration. */
  readonly latency?: (method: string) => Promise<void>;
  /**
   * If set, the endpoint refuses batches: the sends of one call run one after the other, and this function is awaited
   * before each.
   */
  readonly eachSend?: () => Promise<void>;
  /** Wraps each send that starts, so that a test can record which node it belongs to. */
  readonly sending?: <T>(send: () => T) => T;
}

interface SimulatedEndpoint {
  readonly chain: SimulatedChain;
  readonly view: ChainView;
  readonly faults: Faults;
}

interface Silent {
  readonly kind: "silent";
}

const FEE_HISTORY_BLOCKS = 100;
const FEE_HISTORY_PERCENTILE = 25;

/** The `Chain` port on the simulated chain without sockets, for tests and simulations that control time. */
export class DirectChain implements Chain {
  readonly chainId: number;
  readonly endpoints: number;
  readonly privateEndpoints: readonly string[];
  readonly faults: Faults;
  #chain: SimulatedChain;
  #view: ChainView;
  readonly #elsewhere: SimulatedEndpoint | null;
  /** For each endpoint, the block tags for which it has ever returned a block. */
  readonly #shownTags: readonly Set<BlockTag>[] = [new Set(), new Set()];
  readonly #proves: boolean;
  readonly #latency: (method: string) => Promise<void>;
  readonly #eachSend: (() => Promise<void>) | undefined;
  readonly #sending: <T>(send: () => T) => T;

  constructor(chain: SimulatedChain, options: DirectChainOptions = {}) {
    const { elsewhere } = options;
    this.chainId = chain.chainId;
    this.endpoints = elsewhere === undefined ? 1 : 2;
    this.privateEndpoints = options.privateEndpoints ?? [];
    this.faults = options.faults ?? new Faults();
    this.#chain = chain;
    this.#view = new ChainView(chain, this.faults);
    this.#elsewhere =
      elsewhere === undefined ? null : { ...elsewhere, view: new ChainView(elsewhere.chain, elsewhere.faults) };
    this.#proves = options.proves ?? false;
    this.#latency = options.latency ?? (() => Promise.resolve());
    this.#eachSend = options.eachSend;
    this.#sending = options.sending ?? ((send) => send());
  }

  async head(tag: BlockTag): Promise<Block | null> {
    const { shown, voters } = await this.#tagged(tag);
    if (shown.length === voters) return lowest(shown);
    return null;
  }

  /**
   * The blocks that the endpoints return for a tag now, and the number of endpoints that have ever returned a block for
   * it. For `latest`, only the first endpoint counts.
   */
  async #tagged(tag: BlockTag): Promise<{ readonly shown: readonly Block[]; readonly voters: number }> {
    const here = await this.#answer("eth_getBlockByNumber", [tag], () => this.#toBlock(this.#view.tagged(tag)));
    const asksOne = this.#elsewhere === null || tag === "latest";
    const there = asksOne
      ? null
      : await this.#askElsewhere("eth_getBlockByNumber", [tag], (view) => toBlock(view.tagged(tag)));
    const said = [here, there];
    const voters = this.#shownTags.filter((tags, endpoint) => {
      if (isPresent(said[endpoint])) tags.add(tag);
      return tags.has(tag);
    });
    return { shown: said.filter(isPresent), voters: voters.length };
  }

  async heightReached(upTo: number): Promise<number> {
    if (this.#elsewhere === null) return upTo;
    const here = await this.#answer("eth_blockNumber", [], () => this.#view.head.number);
    const there = await this.#askElsewhere("eth_blockNumber", [], (view) => view.head.number);
    return Math.min(upTo, here, there ?? -1);
  }

  blocksByNumber(numbers: readonly number[]): Promise<readonly (Block | null)[]> {
    return this.#answer("eth_getBlockByNumber", numbers, () =>
      numbers.map((n) => this.#toBlock(this.#view.byNumber(n))),
    );
  }

  blockByHash(hash: Hash): Promise<Block | null> {
    return this.#answer("eth_getBlockByHash", [hash], () => this.#toBlock(this.#view.byHash(hash)));
  }

  async secondOpinion(blockNumber: number): Promise<SecondOpinion> {
    if (this.#elsewhere === null) return { kind: "none" };
    const shown = (view: ChainView) => view.byNumber(blockNumber)?.hash ?? null;
    const here = await this.#answer("eth_getBlockByNumber", [blockNumber], () => shown(this.#view));
    const there = await this.#askElsewhere("eth_getBlockByNumber", [blockNumber], shown);
    if (here === null || there === null) return { kind: "behind" };
    if (here === there) return { kind: "agreed", hash: here };
    return { kind: "disagree", answers: [`here: ${here}`, `elsewhere: ${there}`] };
  }

  async settleReceipts(
    block: BlockPlace,
    transactions: readonly Settling[],
    depth: number,
  ): Promise<readonly ReceiptVerdict[]> {
    // The real adapter reads receipts by hash if reading them by block fails, and vice versa, so a fault of one method
    // would have no effect. Inject faults of this call at `eth_getBlockByNumber` instead.
    const method = "eth_getBlockByNumber";
    const words = (view: ChainView) => {
      const isDeep = view.head.number >= block.number + depth;
      return transactions.map((each) => (isDeep ? wordOf(view, block, each) : "behind"));
    };
    if (this.#elsewhere === null) {
      if (!this.#proves) return transactions.map(() => ({ kind: "unproven" }));
      return this.#answer(method, [block.hash], () => {
        if (contradictsItself(this.#view, block)) return transactions.map(() => CONTRADICTION);
        return words(this.#view).map((word) => verdictOf(word, word));
      });
    }
    const here = await this.#answer(method, [block.hash], () => words(this.#view));
    const there = await this.#askElsewhere(method, [block.hash], words);
    return here.map((word, index) => verdictOf(word, there?.[index] ?? "behind"));
  }

  receiptsInBlock(block: Block, hashes: readonly Hash[]): Promise<readonly Receipt[]> {
    return this.#answer("eth_getBlockReceipts", [block.hash], () => {
      const wanted = new Set(hashes);
      const found = this.#view.byHash(block.hash);
      const shown = found === null ? [] : this.#view.receiptsIn(found);
      return shown.filter((receipt) => receipt !== null).filter(({ txHash }) => wanted.has(txHash));
    });
  }

  receipts(hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
    return this.#answer("eth_getTransactionReceipt", hashes, () => hashes.map((hash) => this.#view.receipt(hash)));
  }

  transactionCount(address: Address, tag: "latest" | "pending"): Promise<Counted> {
    return this.#answer("eth_getTransactionCount", [address, tag], () => ({
      count: this.#view.transactionCount(address, tag),
      endpoint: "simulated",
    }));
  }

  transactionCountEverywhere(
    address: Address,
    atBlock: number,
    tag: "latest" | "pending" = "latest",
  ): Promise<readonly CountAnswer[]> {
    return this.#askEverywhere("eth_getTransactionCount", [address, tag], ({ view }) => ({
      kind: view.head.number < atBlock ? "behind" : "says",
      count: view.transactionCount(address, tag),
    }));
  }

  pooled(address: Address, nonces: readonly number[]): Promise<readonly (Hash | null)[] | null> {
    return this.#answer("txpool_contentFrom", [address], () =>
      nonces.map((nonce) => this.#chain.pool.entry(address, nonce)?.transaction.hash ?? null),
    );
  }

  transactionCountAt(address: Address, blockNumber: number): Promise<number | null> {
    return this.#answer("eth_getTransactionCount", [address, blockNumber], () => {
      if (this.#view.byNumber(blockNumber) === null) throw new ChainUnavailable("header not found");
      return this.#view.transactionCountAt(address, blockNumber);
    });
  }

  sentInBlock(address: Address, blockNumber: number): Promise<readonly ChainTransaction[] | null> {
    return this.#answer("eth_getBlockByNumber", [blockNumber, true], () => {
      const block = this.#view.byNumber(blockNumber);
      const sent = block?.transactions.filter(({ transaction }) => transaction.from === address);
      return sent?.map(({ transaction }) => toTransaction(transaction, block)) ?? null;
    });
  }

  transactionBySenderAndNonce(address: Address, nonce: number): Promise<ChainTransaction | null | "unsupported"> {
    return this.#answer("eth_getTransactionBySenderAndNonce", [address, nonce], () => {
      if (!this.#view.looksUpByNonce) return "unsupported";
      const found = this.#view.bySenderAndNonce(address, nonce);
      return found === null ? null : toTransaction(found, this.#view.placeOf(found.hash)?.block ?? null);
    });
  }

  transaction(hash: Hash): Promise<ChainTransaction | null> {
    return this.#answer("eth_getTransactionByHash", [hash], () => {
      const place = this.#view.placeOf(hash);
      const found = this.#chain.transaction(hash);
      return found === null ? null : toTransaction(found, place?.block ?? null);
    });
  }

  identity(_genesisHash: Hash | null): Promise<ChainIdentity> {
    return this.#answer("eth_chainId", [], () => identityOf(this.#chain, this.#view));
  }

  identityEverywhere(): Promise<readonly EndpointAnswer<ChainIdentity>[]> {
    return this.#askEverywhere("eth_chainId", [], ({ chain, view }) => ({
      kind: "says",
      answer: identityOf(chain, view),
    }));
  }

  /** From now on another chain is behind the same URL, after a reset or by mistake. Only `identity` shows which one. */
  serve(chain: SimulatedChain): void {
    this.#chain = chain;
    this.#view = new ChainView(chain, this.faults);
  }

  balance(address: Address): Promise<bigint> {
    return this.#answer("eth_getBalance", [address, "latest"], () => this.#view.account(address).balance);
  }

  async feeMarket(): Promise<FeeMarket> {
    const answers = await this.#askEverywhere("eth_feeHistory", [], (endpoint) => ({
      kind: "market" as const,
      endpoint,
      ...marketWordOf(endpoint),
    }));
    const [first, second] = answers.flatMap((each) => (each.kind === "silent" ? [] : each));
    if (first === undefined) throw new ChainUnavailable("no endpoint answers");
    if (second === undefined) return first.market;
    return lowerOf(first, second, sharedBaseFee(first.endpoint, second.endpoint), []);
  }

  simulate(call: Call): Promise<Simulation> {
    return this.#answer(methodOf(call), [call], () => {
      failOn(this.faults, "eth_getBalance", [call.from]);
      return simulateOn(this.#chain, this.#view, call);
    });
  }

  simulateEverywhere(call: Call): Promise<readonly EndpointAnswer<Simulation>[]> {
    return this.#askEverywhere(methodOf(call), [call], ({ chain, view }) => ({
      kind: "says",
      answer: simulateOn(chain, view, call),
    }));
  }

  prospects(call: Call): Promise<readonly EndpointAnswer<Prospect>[]> {
    return this.#askEverywhere(methodOf(call), [call], (endpoint) => ({
      kind: "says",
      answer: {
        head: shownBlock(endpoint.view.head, endpoint.faults),
        market: marketOn(endpoint),
        simulation: simulateOn(endpoint.chain, endpoint.view, call),
      },
    }));
  }

  /**
   * Checks the permission to send in the same event-loop tick in which the transport takes the bytes, as the real
   * transport does.
   */
  async submit(sends: readonly Send[]): Promise<readonly (SubmitResult | NotStarted)[]> {
    await this.#latency("eth_sendRawTransaction");
    const results: (SubmitResult | NotStarted)[] = [];
    for (const { raw, mayLeave } of sends) {
      if (this.#eachSend !== undefined) await this.#eachSend();
      results.push(mayLeave() ? this.#sending(() => this.#submitOne(raw)) : NOT_STARTED);
    }
    return results;
  }

  async sendUnsigned(
    from: Address,
    transaction: UnsignedTransaction,
    mayLeave: MayLeave,
  ): Promise<NodeSubmission | NotStarted> {
    await this.#latency("eth_sendTransaction");
    if (!mayLeave()) return NOT_STARTED;
    const fault = this.faults.strike("eth_sendTransaction", [transaction]);
    const lost = { answer: "unknown", detail: `simulated fault: ${fault?.kind}`, txHash: null } as const;
    if (fault !== null && !isExecuted(fault)) return lost;
    const submission = this.#chain.sendUnsigned(from, transaction);
    if (fault !== null && fault.kind !== "wrapErrors") return lost;
    if (submission.accepted) return { answer: "accepted", detail: null, txHash: submission.hash };
    return { answer: submission.refusal.answer, detail: submission.refusal.message, txHash: null };
  }

  async passOn(method: string, params: unknown): Promise<PassedAnswer> {
    const given = (params ?? []) as readonly unknown[];
    return this.#answer(method, given, (): PassedAnswer => {
      const ask = createRpc({ chain: this.#chain, view: this.#view, blockReceipts: true });
      try {
        return { kind: "result", result: ask(method, given) };
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        return { kind: "error", code: error.code, message: error.message, data: error.data };
      }
    });
  }

  async passSigned(raw: Hex, mayLeave: MayLeave): Promise<PassedAnswer | NotStarted> {
    await this.#latency("eth_sendRawTransaction");
    return mayLeave() ? this.passOn("eth_sendRawTransaction", [raw]) : NOT_STARTED;
  }

  outcome(question: OutcomeQuestion): Promise<ShownOutcome | null> {
    return fetchOutcome((method, params) => this.passOn(method, params), question);
  }

  async close(): Promise<void> {}

  #submitOne(raw: Hex): SubmitResult {
    const fault = this.faults.strike("eth_sendRawTransaction", [raw]);
    if (fault !== null && !isExecuted(fault)) return { answer: "unknown", detail: `simulated fault: ${fault.kind}` };
    const submission = this.#chain.submit(raw);
    if (fault !== null && fault.kind !== "wrapErrors")
      return { answer: "unknown", detail: `simulated fault: ${fault.kind}` };
    if (submission.accepted) return { answer: "accepted", detail: null };
    const { answer, message, gasCap } = submission.refusal;
    return { answer, detail: message, ...(gasCap === undefined ? {} : { gasCap }) };
  }

  #toBlock(block: SimulatedBlock | null): Block | null {
    return block === null ? null : shownBlock(block, this.faults);
  }

  async #answer<T>(method: string, params: readonly unknown[], read: () => T): Promise<T> {
    await this.#latency(method);
    failOn(this.faults, method, params);
    return read();
  }

  async #askEverywhere<T>(
    method: string,
    params: readonly unknown[],
    read: (endpoint: SimulatedEndpoint) => T,
  ): Promise<readonly (T | Silent)[]> {
    await this.#latency(method);
    const own = { chain: this.#chain, view: this.#view, faults: this.faults };
    const endpoints = this.#elsewhere === null ? [own] : [own, this.#elsewhere];
    const silent: unknown[] = [];
    const answers = endpoints.map((endpoint): T | Silent => {
      try {
        failOn(endpoint.faults, method, params);
      } catch (error) {
        silent.push(error);
        return { kind: "silent" };
      }
      return read(endpoint);
    });
    if (silent.length === endpoints.length) throw silent[0];
    return answers;
  }

  async #askElsewhere<T>(method: string, params: readonly unknown[], read: (view: ChainView) => T): Promise<T | null> {
    await this.#latency(method);
    if (this.#elsewhere === null) return null;
    failOn(this.#elsewhere.faults, method, params);
    return read(this.#elsewhere.view);
  }
}

function lowest(blocks: readonly Block[]): Block | null {
  return blocks.toSorted((a, b) => a.number - b.number)[0] ?? null;
}

function marketOf({ baseFee, price }: FeeLie): FeeMarket {
  const baseFees = baseFee === null ? [] : Array.from({ length: FEE_HISTORY_BLOCKS + 1 }, () => baseFee);
  return { baseFees, priorityFees: [price], gasPrice: price };
}

function marketOn({ chain, view, faults }: SimulatedEndpoint): FeeMarket {
  if (faults.feeLie !== null) return marketOf(faults.feeLie);
  const { number } = view.head;
  const first = Math.max(0, number - FEE_HISTORY_BLOCKS + 1);
  const blocks = Array.from({ length: number - first + 1 }, (_, i) => view.byNumber(first + i)).filter(isPresent);
  const baseFees = [...blocks.map((block) => block.baseFeePerGas), chain.nextBaseFee].filter(isPresent);
  const priorityFees = blocks.map((block) => view.tipAt(block, FEE_HISTORY_PERCENTILE)).filter(isPresent);
  return { baseFees, priorityFees, gasPrice: view.gasPrice() };
}

/** The market and the base fee that an endpoint shows. */
function marketWordOf(endpoint: SimulatedEndpoint): MarketWord {
  const { baseFeePerGas } = shownBlock(endpoint.view.head, endpoint.faults);
  return { label: "an endpoint", market: marketOn(endpoint), baseFee: baseFeePerGas };
}

/** A header that two endpoints have proves its base fee, which no endpoint can change without changing the hash. */
function sharedBaseFee(one: SimulatedEndpoint, other: SimulatedEndpoint): SharedBaseFee {
  const number = Math.min(one.view.head.number, other.view.head.number);
  const [a = null, b = null] = [one, other].map(({ view }) => view.byNumber(number));
  return a === null || a.hash !== b?.hash ? "none" : { baseFee: a.baseFeePerGas };
}

function shownBlock(block: SimulatedBlock, { feeLie }: Faults): Block {
  const honest = toBlock(block) as Block;
  return feeLie === null ? honest : { ...honest, baseFeePerGas: feeLie.baseFee };
}

function methodOf({ gas }: Call): string {
  return gas === undefined ? "eth_estimateGas" : "eth_call";
}

function simulateOn(chain: SimulatedChain, view: ChainView, call: Call): Simulation {
  const result = simulateCall(chain, view, call);
  const { to, gas, gasWithoutCode } = call;
  const { balance } = view.account(call.from);
  const isPlain = gasWithoutCode !== undefined && to !== null && !chain.hasCode(to) && !view.saysReverts(to);
  if (isPlain && result.outcome !== "insufficientFunds") return { outcome: "ok", gas: gasWithoutCode, balance };
  const code = call.asksCode === true && to !== null ? { hasCode: chain.hasCode(to) } : {};
  if (result.outcome === "ok") return { outcome: "ok", gas: gas ?? result.gas, balance, ...code };
  return result.outcome === "revert" ? { outcome: "revert", revert: decodeRevert(result.data) } : result;
}

function failOn(faults: Faults, method: string, params: readonly unknown[]): void {
  const fault = faults.strike(method, params);
  if (fault === null || fault.kind === "wrapErrors") return;
  const limited = fault.kind === "httpError" && fault.status === 429;
  throw new ChainUnavailable(`${method}: simulated fault: ${fault.kind}`, { limited });
}

function isExecuted(fault: { readonly kind: string; readonly executed?: boolean }): boolean {
  return fault.kind === "loseReply" || fault.kind === "wrapErrors" || fault.executed === true;
}

function toBlock(block: SimulatedBlock | null): Block | null {
  if (block === null) return null;
  const { number, hash, parentHash, baseFeePerGas, gasLimit, transactions } = block;
  const transactionHashes = transactions.map(({ transaction }) => transaction.hash);
  return { number, hash, parentHash, baseFeePerGas, gasLimit, transactionHashes };
}

function toTransaction(transaction: SimulatedTransaction, block: SimulatedBlock | null): ChainTransaction {
  const { hash, from, nonce, to, value, data, gas, type, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  const fees: ChainTransaction["fees"] =
    type === 2
      ? { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas }
      : { type: type === 1 ? "eip2930" : "legacy", gasPrice: maxFeePerGas };
  const mined = block === null ? null : { number: block.number, hash: block.hash };
  return { txHash: hash, from, nonce, to, value, data, gas, fees, block: mined };
}

function identityOf(chain: SimulatedChain, view: ChainView): ChainIdentity {
  return { chainId: chain.chainId, genesisHash: view.byNumber(0)?.hash ?? null };
}

type Word =
  | Pick<Extract<ReceiptVerdict, { readonly kind: "agreed" }>, "receipt" | "sent">
  | "absent"
  | "withheld"
  | "moved"
  | "behind";

const CONTRADICTION: ReceiptVerdict = { kind: "disagree", answers: ["its receipts do not hash to the block's root"] };

/** On a chain whose receipts are part of the block's hash, a lie about any receipt contradicts the hash. */
function contradictsItself(view: ChainView, { hash }: BlockPlace): boolean {
  const block = view.byHash(hash);
  if (block === null) return false;
  const inWords = (receipt: Receipt | null) => textOf(receipt === null ? "absent" : { receipt });
  return view.receiptsIn(block).some((shown, index) => inWords(shown) !== inWords(receiptOf(block, index)));
}

/** Returns what one endpoint reports about a transaction in a block. */
function wordOf(view: ChainView, block: BlockPlace, { txHash, sentBy }: Settling): Word {
  const shown = view.byNumber(block.number);
  if (shown === null) return "behind";
  if (shown.hash !== block.hash) return "moved";
  const index = shown.transactions.findIndex(({ transaction }) => transaction.hash === txHash);
  const transaction = shown.transactions[index]?.transaction;
  const isOther = sentBy !== undefined && (transaction?.from !== sentBy.signer || transaction.nonce !== sentBy.nonce);
  if (isOther || transaction === undefined) return "absent";
  const receipt = view.receiptsIn(shown)[index];
  // A node may still be indexing the newest block, so a missing receipt there only means that it is behind.
  if (!receipt) return view.head.number > block.number ? "withheld" : "behind";
  const { to, value, data } = transaction;
  return { receipt, ...(sentBy && { sent: { to, value, data } }) };
}

function verdictOf(here: Word, there: Word): ReceiptVerdict {
  const behind = { kind: "behind", detail: "an endpoint has not come so far" } as const;
  if (here === "behind" || there === "behind") return behind;
  if (textOf(here) !== textOf(there))
    return { kind: "disagree", answers: [`here: ${textOf(here)}`, `elsewhere: ${textOf(there)}`] };
  if (here === "moved") return { kind: "moved" };
  if (here === "withheld") return behind;
  return here === "absent" ? { kind: "absent", detail: "not in that block" } : { kind: "agreed", ...here };
}

function textOf(word: Word): string {
  if (typeof word === "string") return word;
  const { receipt, sent } = word;
  const said = sent === undefined ? "" : `, ${sent.value} wei to ${sent.to} with ${sent.data}`;
  return `${receipt.status}, ${receipt.gasUsed} gas, contract ${receipt.contractAddress}${said}`;
}

function isPresent<T>(value: T | null): value is T {
  return value !== null;
}
