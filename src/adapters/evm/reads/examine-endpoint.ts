/** Reads the facts about an RPC endpoint that `fencepost doctor` checks. */

import { messageOf } from "../../../domain/text/thrown.ts";
import type { EndpointsOptions } from "../rpc/endpoints.ts";
import { fetchChainId } from "../rpc/read-block.ts";
import { RpcErrorAnswer } from "../rpc/rpc-errors.ts";
import { createTransport, type RpcTransport, type TransportOptions } from "../rpc/transport.ts";

export type EndpointFacts = Awaited<ReturnType<typeof examineEndpoint>>;
export type AnsweringEndpoint = Extract<EndpointFacts, { readonly kind: "answers" }>;

/** For each ability of an endpoint, the JSON-RPC request that tests it. */
const ABILITIES = {
  finalized: ["eth_getBlockByNumber", ["finalized", false]],
  safe: ["eth_getBlockByNumber", ["safe", false]],
  blockWithTransactions: ["eth_getBlockByNumber", ["latest", true]],
  feeHistory: ["eth_feeHistory", ["0x1", "latest", [50]]],
  pendingCount: ["eth_getTransactionCount", [`0x${"0".repeat(40)}`, "pending"]],
  logs: ["eth_getLogs", [{ fromBlock: "latest", toBlock: "latest", address: `0x${"0".repeat(40)}` }]],
} as const satisfies Readonly<Record<string, readonly [string, readonly unknown[]]>>;
export type Ability = keyof typeof ABILITIES;

interface EndpointQuestion extends Pick<TransportOptions, "url" | "clock" | "timeoutMs"> {
  readonly signers: readonly string[];
}

/** Examines one endpoint. `label` is the origin of its URL, without credentials. */
export async function examineEndpoint({ signers, ...options }: EndpointQuestion) {
  const rpc = createTransport({ ...options, report: () => undefined });
  const { label } = rpc;
  try {
    const chainId = Number(await rpc.request("eth_chainId", []));
    const block = await rpc.request("eth_getBlockByNumber", ["latest", false]);
    const { number, timestamp } = block as { readonly number: string; readonly timestamp: string };
    return {
      ...{ kind: "answers" as const, label, chainId, head: Number(number), syncing: await isSyncing(rpc) },
      /** Timestamp of the endpoint's newest block minus this machine's clock, in milliseconds. */
      headAheadMs: Number(timestamp) * 1_000 - options.clock.now().getTime(),
      /** Methods and tags that Fencepost needs and this endpoint refused. */
      lacks: await lacksOf(rpc),
      /** Balance in wei of each requested signer; absent if the endpoint did not answer. */
      balances: await balancesOf(rpc, signers),
    };
  } catch (error) {
    return { kind: "silent" as const, label, reason: messageOf(error) };
  } finally {
    await rpc.close();
  }
}

/** True if the endpoint is still syncing. An endpoint that does not answer `eth_syncing` counts as synced. */
async function isSyncing(rpc: RpcTransport) {
  const answer = await rpc.request("eth_syncing", []).catch(() => false);
  return answer !== false && answer !== null;
}

/**
 * Finds abilities that an endpoint lacks. Only an error response, or null instead of a block, counts as lacking; a
 * missing response proves nothing.
 */
async function lacksOf(rpc: RpcTransport): Promise<readonly Ability[]> {
  const asked = Object.entries(ABILITIES).map(async ([name, [method, params]]) => {
    const lacking = await rpc.request(method, params).then(
      (answer) => answer === null,
      (error: unknown) => error instanceof RpcErrorAnswer,
    );
    return lacking ? [name as Ability] : [];
  });
  return (await Promise.all(asked)).flat();
}

async function balancesOf(rpc: RpcTransport, signers: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
  const asked = signers.map(async (signer) => {
    const answer = await rpc.request("eth_getBalance", [signer, "latest"]).catch(() => null);
    return typeof answer === "string" ? [[signer, BigInt(answer)] as const] : [];
  });
  return new Map((await Promise.all(asked)).flat());
}

/** Reads the chain id of every endpoint that answers. Endpoints that are down are checked when they are up again. */
export async function askChainIds({ urls, ...options }: Pick<EndpointsOptions, "urls" | "clock" | "timeoutMs">) {
  const claims = urls.map(async (url) => {
    const rpc = createTransport({ ...options, url, report: () => undefined });
    try {
      return [{ label: rpc.label, chainId: await fetchChainId(rpc) }];
    } catch {
      return [];
    } finally {
      await rpc.close();
    }
  });
  return (await Promise.all(claims)).flat();
}
