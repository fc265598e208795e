import { type Chain, ChainUnavailable, type ReceiptVerdict } from "../../ports/chain.ts";
import { BlockProver } from "./proof/block-prover.ts";
import { agreeOnBlock, agreeOnHeight, agreeOnReceipts, agreeOnTag, type Question } from "./reads/agree.ts";
import { openMarket } from "./reads/agree-on-market.ts";
import { askChainIds } from "./reads/examine-endpoint.ts";
import { passOn, passSigned } from "./reads/pass-on.ts";
import { fetchOutcome } from "./reads/read-outcome.ts";
import { fetchReceipts, fetchShownInBlock } from "./reads/read-receipts.ts";
import {
  countsAtHead,
  fetchBySenderAndNonce,
  fetchCount,
  fetchCountAt,
  fetchPooled,
  fetchSentInBlock,
  fetchTransaction,
} from "./reads/read-sent.ts";
import { fetchProspect, simulateCall } from "./reads/simulate-call.ts";
import { type Ask, Endpoints, type EndpointsOptions } from "./rpc/endpoints.ts";
import { fetchBlockNumber, fetchBlocks, fetchIdentity, fetchTagged } from "./rpc/read-block.ts";
import { read } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";
import type { SigningChain } from "./signers/node-keys.ts";
import { signAtNode } from "./submit/sign-at-node.ts";
import { sendUnsigned, submit } from "./submit/submit-transactions.ts";

export interface EvmChainOptions extends Omit<EndpointsOptions, "chainId"> {
  /** Expected chain id. If absent, it is read from the endpoints, of which at least one must be up. */
  readonly chainId?: number;
}

/** The chain, and its node's signatures of messages, which the application reaches as those of any other signer. */
export type EvmChain = Chain & SigningChain;

/**
 * Creates the chain adapter. Throws `WrongChain` if an endpoint that is up serves another chain than the other
 * endpoints, or than `chainId`.
 */
export async function createEvmChain(options: EvmChainOptions): Promise<EvmChain> {
  if (options.urls.length === 0) throw new TypeError("a chain needs at least one RPC URL");
  const found = await askChainIds(options);
  const chainId = options.chainId ?? found[0]?.chainId;
  if (chainId === undefined) {
    // The error message names only the origins of the endpoints: their paths and queries may contain API keys.
    const asked = options.urls.map((url) => new URL(url).origin).join(", ");
    throw new ChainUnavailable(`no RPC endpoint answers (${asked}): is it running, and is the URL right?`);
  }
  if (found.some((each) => each.chainId !== chainId)) {
    const claims = found.map((each) => `${each.label} serves chain ${each.chainId}`).join(", ");
    const wrong =
      options.chainId === undefined ? "the RPC endpoints are not of one chain:" : `chain ${chainId} is configured, but`;
    throw new WrongChain(`${wrong} ${claims}`);
  }
  const endpoints = new Endpoints({ ...options, chainId });
  return openChain(chainId, endpoints, openMarket(endpoints, options.clock));
}

export class WrongChain extends Error {
  override readonly name = "WrongChain";
}

function openChain(chainId: number, endpoints: Endpoints, feeMarket: Chain["feeMarket"]): EvmChain {
  const prover = new BlockProver();
  const countAtHead = countsAtHead();
  const first = <T>(ask: Ask<T>) => endpoints.read(ask);
  const firstOf =
    <A extends readonly unknown[], T>(fetch: (rpc: RpcTransport, ...asked: A) => Promise<T>) =>
    (...asked: A) =>
      endpoints.read((rpc) => fetch(rpc, ...asked));
  const readOf = async <T>(subjects: readonly unknown[], ask: Ask<readonly T[]>) =>
    subjects.length === 0 ? [] : endpoints.read(ask);
  return {
    chainId,
    endpoints: endpoints.size,
    privateEndpoints: endpoints.privateEndpoints,
    health: () => endpoints.health(),
    head: (tag) => (tag === "latest" ? first((rpc) => fetchTagged(rpc, tag)) : agreeOnTag(endpoints, tag)),
    heightReached: (upTo) => agreeOnHeight(endpoints, upTo),
    blocksByNumber: (numbers) => readOf(numbers, (rpc) => fetchBlocks(rpc, numbers)),
    blockByHash: async (hash) => (await first((rpc) => fetchBlocks(rpc, [hash])))[0] ?? null,
    secondOpinion: (blockNumber) => agreeOnBlock(endpoints, blockNumber),
    settleReceipts: async (block, transactions, depth) => {
      if (transactions.length === 0) return [];
      const question = { block, transactions, depth };
      return (await agreeOnReceipts(endpoints, question)) ?? first(settlingAlone(endpoints, prover, question));
    },
    receiptsInBlock: async (block, hashes) => {
      const shown = await readOf(hashes, (_, endpoint) => fetchShownInBlock(endpoint, block, hashes));
      return shown.map(({ receipt }) => receipt);
    },
    receipts: (hashes) => readOf(hashes, (rpc) => fetchReceipts(rpc, hashes)),
    transactionCount: (address, tag) =>
      first(async (rpc) => ({ count: await fetchCount(rpc, address, tag), endpoint: rpc.label })),
    transactionCountEverywhere: async (address, atBlock, tag = "latest") => {
      const said = await endpoints.readEverywhere((_, endpoint) => countAtHead(endpoint, address, tag));
      if (said.length === 0) throw new ChainUnavailable(`no endpoint serves chain ${chainId}`);
      return said.map((each) => {
        if (each.kind === "silent") return each;
        const { head, count } = each.answer;
        return { kind: head >= atBlock ? "says" : "behind", count };
      });
    },
    pooled: async (address, nonces) => (nonces.length === 0 ? [] : first((rpc) => fetchPooled(rpc, address, nonces))),
    transactionCountAt: firstOf(fetchCountAt),
    sentInBlock: firstOf(fetchSentInBlock),
    transactionBySenderAndNonce: firstOf(fetchBySenderAndNonce),
    transaction: firstOf(fetchTransaction),
    identity: (genesisHash) => endpoints.identity(genesisHash),
    identityEverywhere: () => endpoints.readEverywhere(fetchIdentity),
    balance: (address) =>
      first(async (rpc) => read.bigint(await rpc.request("eth_getBalance", [address, "latest"]), "eth_getBalance")),
    feeMarket,
    simulate: firstOf(simulateCall),
    simulateEverywhere: (call) => endpoints.readEverywhere((rpc) => simulateCall(rpc, call)),
    prospects: (call) => endpoints.readEverywhere((rpc) => fetchProspect(rpc, call)),
    submit: (sends, options) => submit(endpoints, sends, options),
    sendUnsigned: (from, transaction, mayLeave, options) =>
      sendUnsigned(endpoints, from, transaction, { mayLeave, ...options }),
    signMessage: (address, message) => signAtNode(endpoints, address, message),
    passOn: (method, params) => passOn(endpoints, method, params),
    passSigned: (raw, mayLeave) => passSigned(endpoints, raw, mayLeave),
    outcome: (question) => fetchOutcome((method, params) => passOn(endpoints, method, params), question),
    close: async () => void (await Promise.all([endpoints.close(), prover.close()])),
  };
}

/**
 * Checks receipts when only one endpoint is up. This endpoint must itself have reached the required depth: the depth
 * may have been reported by an endpoint that is down now.
 */
function settlingAlone(endpoints: Endpoints, prover: BlockProver, question: Question): Ask<readonly ReceiptVerdict[]> {
  const { block, transactions, depth } = question;
  return async (rpc, endpoint) => {
    const height = endpoints.size === 1 ? null : fetchBlockNumber(rpc);
    const [verdicts, head] = await Promise.all([prover.settle(endpoint, block, transactions), height]);
    if (head === null || head >= block.number + depth) return verdicts;
    return transactions.map(() => ({ kind: "behind", detail: `${rpc.label} is at block ${head}` }));
  };
}
