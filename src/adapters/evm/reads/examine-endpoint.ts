/** Reads the facts about an RPC endpoint that `fencepost doctor` judges. */

import { messageOf } from "../../../domain/text/thrown.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { EndpointsOptions } from "../rpc/endpoints.ts";
import { fetchChainId } from "../rpc/read-block.ts";
import { RpcErrorAnswer } from "../rpc/rpc-errors.ts";
import { createTransport, type RpcTransport } from "../rpc/transport.ts";

export interface SilentEndpoint {
  readonly kind: "silent";
  /** Origin of the URL, without credentials. */
  readonly label: string;
  readonly reason: string;
}

export interface AnsweringEndpoint {
  readonly kind: "answers";
  readonly label: string;
  readonly chainId: number;
  readonly head: number;
  /** Timestamp of the head minus this machine's clock. */
  readonly headAheadMs: number;
  readonly syncing: boolean;
  /** Methods and tags that a node uses and this endpoint refused. */
  readonly lacks: readonly Ability[];
  /** Balance in wei for each signer asked for; absent if the endpoint did not answer. */
  readonly balances: ReadonlyMap<string, bigint>;
}

export type EndpointFacts = SilentEndpoint | AnsweringEndpoint;

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

export interface EndpointQuestion {
  readonly url: string;
  readonly signers: readonly string[];
  readonly clock: Clock;
  readonly timeoutMs: number;
}

export async function examineEndpoint({ url, signers, clock, timeoutMs }: EndpointQuestion): Promise<EndpointFacts> {
  const rpc = createTransport({ url, clock, timeoutMs, report: () => undefined });
  try {
    const chainId = Number(await rpc.request("eth_chainId", []));
    const block = (await rpc.request("eth_getBlockByNumber", ["latest", false])) as {
      readonly number: string;
      readonly timestamp: string;
    };
    return {
      kind: "answers",
      label: rpc.label,
      chainId,
      head: Number(block.number),
      headAheadMs: Number(block.timestamp) * 1_000 - clock.now().getTime(),
      syncing: await isSyncing(rpc),
      lacks: await lacksOf(rpc),
      balances: await balancesOf(rpc, signers),
    };
  } catch (error) {
    return { kind: "silent", label: rpc.label, reason: messageOf(error) };
  } finally {
    await rpc.close();
  }
}

/** An endpoint that does not answer `eth_syncing` counts as synced. */
async function isSyncing(rpc: RpcTransport): Promise<boolean> {
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
