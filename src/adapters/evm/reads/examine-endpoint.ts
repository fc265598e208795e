/** Reads the facts about an RPC endpoint that `fencepost doctor` judges. */

import { messageOf } from "../../../domain/text/thrown.ts";
import type { EndpointsOptions } from "../rpc/endpoints.ts";
import { fetchChainId } from "../rpc/read-block.ts";
import { RpcErrorAnswer } from "../rpc/rpc-errors.ts";
import { createTransport, type RpcTransport, type TransportOptions } from "../rpc/transport.ts";

export type EndpointFacts = Awaited<ReturnType<typeof examineEndpoint>>;
export type AnsweringEndpoint = Extract<EndpointFacts, { readonly kind: "answers" }>;

/** A JSON-RPC request for each ability. */
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

/** `label`: origin of the URL, without credentials. */
export async function examineEndpoint({ signers, ...options }: EndpointQuestion) {
  const rpc = createTransport({ ...options, report: () => undefined });
  const { label } = rpc;
  try {
    const chainId = Number(await rpc.request("eth_chainId", []));
    const block = await rpc.request("eth_getBlockByNumber", ["latest", false]);
    const { number, timestamp } = block as { readonly number: string; readonly timestamp: string };
    return {
      ...{ kind: "answers" as const, label, chainId, head: Number(number), syncing: await isSyncing(rpc) },
      /** Timestamp of the head minus this machine's clock. */
      headAheadMs: Number(timestamp) * 1_000 - options.clock.now().getTime(),
      /** Methods and tags that a node uses and this endpoint refused. */
      lacks: await lacksOf(rpc),
      /** Balance in wei for each signer asked for; absent if the endpoint did not answer. */
      balances: await balancesOf(rpc, signers),
    };
  } catch (error) {
    return { kind: "silent" as const, label, reason: messageOf(error) };
  } finally {
    await rpc.close();
  }
}

/** An endpoint that does not answer `eth_syncing` counts as synced. */
async function isSyncing(rpc: RpcTransport) {
  const answer = await rpc.request("eth_syncing", []).catch(() => false);
  return answer !== false && answer !== null;
}

/** Only an error answer, or null instead of a block, counts as lacking. No answer proves nothing. */
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

/** Chain id of every endpoint that answers. Endpoints that are down are checked when they come back. */
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
