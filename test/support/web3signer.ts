/**
 * A fake Web3Signer (its EthSignTransactionResultProvider and EthTransaction): a fixed chain id, transaction types
 * legacy and 1559, unknown fields ignored, one request at a time. Messages as in EthSignResultProvider, which adds the
 * prefix of EIP-191, and EthSignTypedDataResultProvider.
 */
import type { ServerOptions } from "node:https";
import { privateKeyToAccount } from "viem/accounts";
import type { Hex } from "../../src/domain/lane.ts";
import { type ServiceHandler, startServiceServer } from "./service-server.ts";

type Quantities = Readonly<Record<string, Hex | null | undefined>>;

export interface Web3SignerOptions {
  readonly keys: readonly Hex[];
  /**
   * The chain id for which every request is signed. Null means the chain id in the request; the real Web3Signer does
   * not offer that.
   */
  readonly chainId: number | null;
  readonly tls?: ServerOptions;
}

export function startWeb3Signer({ keys, chainId, tls }: Web3SignerOptions) {
  const accounts = keys.map((key) => privateKeyToAccount(key));
  const handler: ServiceHandler = async ({ body }) => {
    const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: readonly Quantities[] };
    const answer = (result: unknown) => ({ body: { jsonrpc: "2.0", id, result } });
    const refuse = (code: number, message: string) => ({
      status: 400,
      body: { jsonrpc: "2.0", id, error: { code, message } },
    });
    const accountOf = (from: unknown) => accounts.find(({ address }) => address.toLowerCase() === from);
    const unknown = () => refuse(-32000, "No unlocked account matches the Sender");
    if (method === "eth_accounts") return answer(accounts.map(({ address }) => address.toLowerCase()));
    if (method === "eth_sign" || method === "eth_signTypedData") {
      const [from, content] = params as readonly unknown[];
      // The real one takes text alone, for both methods: a list with an object is "Invalid params" in most releases.
      if (params.length !== 2 || typeof content !== "string") return refuse(-32602, "Invalid params");
      const account = accountOf(from);
      if (account === undefined) return unknown();
      if (method === "eth_sign") return answer(await account.signMessage({ message: { raw: content as Hex } }));
      return answer(await account.signTypedData(JSON.parse(content)));
    }
    if (method !== "eth_signTransaction") return refuse(-32601, "Method not found");
    const [request = {}] = params;
    if (request.nonce === undefined) return refuse(-32602, "Invalid params");
    const account = accountOf(request.from?.toLowerCase());
    if (account === undefined) return unknown();
    return answer(await account.signTransaction(transactionOf(request, chainId ?? Number(request.chainId))));
  };
  return startServiceServer(handler, tls);
}

function transactionOf(request: Quantities, chainId: number) {
  const quantity = (name: string): bigint => BigInt(request[name] ?? "0x0");
  const { to, data } = request;
  const content = { nonce: Number(quantity("nonce")), gas: quantity("gas"), value: quantity("value"), chainId };
  const target = { ...(to ? { to } : {}), ...(data ? { data } : {}) };
  if (request.maxFeePerGas && request.maxPriorityFeePerGas) {
    const fees = { maxFeePerGas: quantity("maxFeePerGas"), maxPriorityFeePerGas: quantity("maxPriorityFeePerGas") };
    return { type: "eip1559", ...content, ...target, ...fees } as const;
  }
  return { type: "legacy", ...content, ...target, gasPrice: quantity("gasPrice") } as const;
}
