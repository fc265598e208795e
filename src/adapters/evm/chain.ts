import type { SubmitResult } from "../../domain/answers.ts";
import type { CountAnswer } from "../../domain/counts.ts";
import type { FeeMarket } from "../../domain/fees.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import type { Receipt, UnsignedTransaction } from "../../domain/transaction.ts";
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
  type IdentityAnswer,
  type NodeSubmission,
  type ReceiptVerdict,
  type SecondOpinion,
  type Settling,
  type Simulation,
  type SimulationAnswer,
  type SubmitOptions,
} from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { agreeOnBlock, agreeOnHeight, agreeOnReceipts, type Question } from "./agree.ts";
import { agreeOnTag, agreeOnTagForAll } from "./agree-on-tag.ts";
import { askChainIds } from "./ask-chain-ids.ts";
import { fetchFeeMarket } from "./fetch-fee-market.ts";
import { BlockProver } from "./proof/block-prover.ts";
import { blockFrom, fetchBlockNumber, fetchBlocks, fetchTagged } from "./read-block.ts";
import { CountsAtHead, type CountTag, fetchCount } from "./read-counts.ts";
import { fetchIdentity } from "./read-identity.ts";
import { fetchPooled } from "./read-pool.ts";
import { fetchReceipts, fetchReceiptsInBlock } from "./read-receipts.ts";
import { fetchBySenderAndNonce, fetchCountAt, fetchSentInBlock, fetchTransaction } from "./read-sent.ts";
import { type Endpoint, Endpoints } from "./rpc/endpoints.ts";
import { BadAnswer, readBigInt } from "./rpc/quantities.ts";
import { RpcUnreachable } from "./rpc/rpc-errors.ts";
import type { TransportOptions } from "./rpc/transport.ts";
import { sendThroughNode } from "./send-unsigned.ts";
import { simulateCall } from "./simulate-call.ts";
import {
  concluded,
  isOpen,
  lostSubmission,
  type Submission,
  submitThrough,
  weightiest,
} from "./submit-transactions.ts";

export interface EvmChainOptions {
  /** In order of preference; user and password in a URL are sent as basic authentication. */
  readonly urls: readonly string[];
  /** Read from the endpoints where absent; then at least one must be up. */
  readonly chainId?: number;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Of one request, all in all. */
  readonly timeoutMs?: number;
  /** Where calls keep coming, a request leaves this often (TransportOptions); 0 where absent. */
  readonly requestEveryMs?: number;
}

/** Throws `WrongChain` where an endpoint that is up serves another chain than the rest, or than `chainId`. */
export async function createEvmChain(options: EvmChainOptions): Promise<Chain> {
  if (options.urls.length === 0) throw new TypeError("a chain needs at least one RPC URL");
  const found = await askChainIds(options);
  const chainId = options.chainId ?? found[0]?.chainId;
  if (chainId === undefined) {
    // The origin alone: paths and queries carry API keys.
    const asked = options.urls.map((url) => new URL(url).origin).join(", ");
    throw new ChainUnavailable(`no RPC endpoint answers (${asked}): is it running, and is the URL right?`);
  }
  if (found.some((each) => each.chainId !== chainId)) {
    const claims = found.map((each) => `${each.label} serves chain ${each.chainId}`).join(", ");
    throw new WrongChain(options.chainId === undefined ? claims : `chain ${chainId} is configured, but ${claims}`);
  }
  return new EvmChain(chainId, options);
}

export class WrongChain extends Error {
  constructor(claims: string) {
    super(`the RPC endpoints are not of one chain: ${claims}`);
    this.name = "WrongChain";
  }
}

class EvmChain implements Chain {
  readonly chainId: number;
  readonly #endpoints: Endpoints;
  readonly #prover = new BlockProver();
  readonly #counts = new CountsAtHead();

  constructor(chainId: number, options: EvmChainOptions) {
    const { urls, telemetry, clock, entropy } = options;
    this.chainId = chainId;
    this.#endpoints = new Endpoints({ urls, chainId, telemetry, clock, entropy, transport: transportOptions(options) });
  }

  get endpoints(): number {
    return this.#endpoints.size;
  }

  head(tag: BlockTag): Promise<Block | null> {
    if (tag !== "latest") return agreeOnTag(this.#endpoints, tag);
    return this.#endpoints.read((rpc) => fetchTagged(rpc, tag));
  }

  headForAll(tag: Exclude<BlockTag, "latest">): Promise<Block | null> {
    return agreeOnTagForAll(this.#endpoints, tag);
  }

  heightReached(upTo: number): Promise<number> {
    return agreeOnHeight(this.#endpoints, upTo);
  }

  async blocksByNumber(numbers: readonly number[]): Promise<readonly (Block | null)[]> {
    return numbers.length === 0 ? [] : this.#endpoints.read((rpc) => fetchBlocks(rpc, numbers));
  }

  blockByHash(hash: Hash): Promise<Block | null> {
    return this.#endpoints.read(async (rpc) => {
      const [reply] = await rpc.batch([{ method: "eth_getBlockByHash", params: [hash, false] }]);
      return blockFrom(reply, { hash });
    });
  }

  secondOpinion(blockNumber: number): Promise<SecondOpinion> {
    return agreeOnBlock(this.#endpoints, blockNumber);
  }

  async settleReceipts(
    block: BlockPlace,
    transactions: readonly Settling[],
    depth: number,
  ): Promise<readonly ReceiptVerdict[]> {
    if (transactions.length === 0) return [];
    const question = { block, transactions, depth };
    const agreed = await agreeOnReceipts(this.#endpoints, question);
    return agreed ?? this.#endpoints.read((_, endpoint) => this.#settleAlone(endpoint, question));
  }

  async receiptsInBlock(block: Block, hashes: readonly Hash[]): Promise<readonly Receipt[]> {
    if (hashes.length === 0) return [];
    return this.#endpoints.read((_, endpoint) => fetchReceiptsInBlock(endpoint, block, hashes));
  }

  async receipts(hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
    if (hashes.length === 0) return [];
    return this.#endpoints.read((rpc) => fetchReceipts(rpc, hashes));
  }

  transactionCount(address: Address, tag: CountTag): Promise<Counted> {
    return this.#endpoints.read(async (rpc) => ({
      count: await fetchCount(rpc, address, tag),
      endpoint: rpc.label,
    }));
  }

  async transactionCountEverywhere(
    address: Address,
    atBlock: number,
    tag: CountTag = "latest",
  ): Promise<readonly CountAnswer[]> {
    const said = await this.#endpoints.readEverywhere((_, endpoint) => this.#counts.ask(endpoint, address, tag));
    if (said.length === 0) throw new ChainUnavailable(`no endpoint serves chain ${this.chainId}`);
    return said.map((each) => {
      if (each.kind === "silent") return each;
      const { head, count } = each.answer;
      return { kind: head >= atBlock ? "says" : "behind", count };
    });
  }

  async pooled(address: Address, nonces: readonly number[]): Promise<readonly (Hash | null)[] | null> {
    if (nonces.length === 0) return [];
    return this.#endpoints.read((rpc) => fetchPooled(rpc, address, nonces));
  }

  transactionCountAt(address: Address, blockNumber: number): Promise<number | null> {
    return this.#endpoints.read((rpc) => fetchCountAt(rpc, address, blockNumber));
  }

  sentInBlock(address: Address, blockNumber: number): Promise<readonly ChainTransaction[] | null> {
    return this.#endpoints.read((rpc) => fetchSentInBlock(rpc, address, blockNumber));
  }

  transactionBySenderAndNonce(address: Address, nonce: number): Promise<ChainTransaction | null | "unsupported"> {
    return this.#endpoints.read((rpc) => fetchBySenderAndNonce(rpc, address, nonce));
  }

  transaction(hash: Hash): Promise<ChainTransaction | null> {
    return this.#endpoints.read((rpc) => fetchTransaction(rpc, hash));
  }

  identity(genesisHash: Hash | null): Promise<ChainIdentity> {
    this.#endpoints.rememberGenesis(genesisHash);
    return this.#endpoints.readUnproven(async (rpc, endpoint) => {
      const identity = await fetchIdentity(rpc);
      // Another machine answers behind this URL now: it has to prove itself before it is used for anything else.
      if (identity.chainId !== this.chainId && endpoint.chain === "proven") endpoint.chain = "unproven";
      return identity;
    });
  }

  async identityEverywhere(): Promise<readonly IdentityAnswer[]> {
    const said = await this.#endpoints.readEverywhere(fetchIdentity);
    return said.map((each) => (each.kind === "silent" ? each : { kind: "says", identity: each.answer }));
  }

  balance(address: Address): Promise<bigint> {
    return this.#endpoints.read(async (rpc) =>
      readBigInt(await rpc.request("eth_getBalance", [address, "latest"]), "eth_getBalance"),
    );
  }

  feeMarket(): Promise<FeeMarket> {
    return this.#endpoints.read(fetchFeeMarket);
  }

  simulate(call: Call): Promise<Simulation> {
    return this.#endpoints.read((rpc) => simulateCall(rpc, call));
  }

  async simulateEverywhere(call: Call): Promise<readonly SimulationAnswer[]> {
    const said = await this.#endpoints.readEverywhere((rpc) => simulateCall(rpc, call));
    return said.map((each) => (each.kind === "silent" ? each : { kind: "says", simulation: each.answer }));
  }

  async submit(
    rawTransactions: readonly Hex[],
    { everywhere = false }: SubmitOptions = {},
  ): Promise<readonly SubmitResult[]> {
    if (rawTransactions.length === 0) return [];
    const endpoints = this.#endpoints.usable();
    if (everywhere) {
      const all = await Promise.all(endpoints.map((endpoint) => this.#submitTo(endpoint, rawTransactions)));
      return rawTransactions.map((_, index) => concluded(all.flatMap((each) => each[index] ?? [])));
    }
    return this.#submitToFirst(endpoints, rawTransactions);
  }

  async sendUnsigned(from: Address, transaction: UnsignedTransaction): Promise<NodeSubmission> {
    const [endpoint] = this.#endpoints.usable();
    if (endpoint === undefined) return { ...weightiest([]), txHash: null };
    try {
      return await this.#endpoints.askOne(endpoint, (rpc) => sendThroughNode(rpc, from, transaction));
    } catch (error) {
      if (!(error instanceof RpcUnreachable || error instanceof BadAnswer)) throw error;
      return { answer: "unknown", detail: error.message, txHash: null };
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#endpoints.close(), this.#prover.close()]);
  }

  /** The blocks on top may have been claimed by another one, which is down by now: this one must have come so far itself. */
  async #settleAlone(endpoint: Endpoint, { block, transactions, depth }: Question): Promise<readonly ReceiptVerdict[]> {
    const [verdicts, height] = await Promise.all([
      this.#prover.settle(endpoint, block, transactions),
      this.#endpoints.size === 1 ? null : fetchBlockNumber(endpoint.rpc),
    ]);
    const isDeep = height === null || height >= block.number + depth;
    const detail = `${endpoint.rpc.label} stands at block ${height}`;
    return isDeep ? verdicts : transactions.map(() => ({ kind: "behind", detail }));
  }

  /**
   * What one endpoint lost, or refused for good, goes to the next: the bytes are claimed already, so a repetition changes
   * nothing, and one node's mood decides nothing.
   */
  async #submitToFirst(endpoints: readonly Endpoint[], raws: readonly Hex[]): Promise<readonly SubmitResult[]> {
    const said: Submission[][] = raws.map(() => []);
    let open = raws.map((raw, index) => ({ raw, index }));
    for (const endpoint of endpoints) {
      if (open.length === 0) break;
      const asked = open;
      const submissions = await this.#submitTo(
        endpoint,
        asked.map((each) => each.raw),
      );
      for (const [at, { index }] of asked.entries()) said[index]?.push(submissions[at] as Submission);
      open = asked.filter(({ index }) => isOpen(said[index] as Submission[]));
    }
    return said.map(concluded);
  }

  async #submitTo(endpoint: Endpoint, raws: readonly Hex[]): Promise<readonly Submission[]> {
    try {
      return await this.#endpoints.askOne(endpoint, async (rpc) => {
        const submissions = await submitThrough(rpc, raws);
        const lost = submissions.find((each) => each.lost !== null)?.lost;
        // Reported to the endpoint's health only; what did get an answer is kept.
        if (lost !== undefined && lost !== null && submissions.every((each) => each.lost !== null)) throw lost;
        return submissions;
      });
    } catch (error) {
      if (error instanceof RpcUnreachable) return raws.map(() => lostSubmission(error));
      if (!(error instanceof BadAnswer)) throw error;
      const lost = new RpcUnreachable("malformed", `${endpoint.rpc.label}: ${error.message}`, { cause: error });
      return raws.map(() => lostSubmission(lost));
    }
  }
}

function transportOptions({ timeoutMs, requestEveryMs }: EvmChainOptions): Partial<TransportOptions> {
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(requestEveryMs === undefined ? {} : { requestEveryMs }),
  };
}
