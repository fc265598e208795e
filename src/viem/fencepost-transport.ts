import type { Account, EIP1193RequestFn, Transport } from "viem";
import { findByHash, hex, minedInstead, pendingView } from "../wallets/attempt-hashes.ts";
import { intentOf, type RpcTransaction } from "../wallets/intent.ts";
import { requestIdHere } from "../wallets/request-scope.ts";
import { unsupported } from "../wallets/send-error.ts";
import { DEFAULT_TIMEOUT_MS, sendThrough } from "../wallets/send-through.ts";
import type { FencepostSource, Hex } from "../wallets/source.ts";

export interface FencepostTransportOptions {
  /** Client that sends the transactions, for example from `createClient`. */
  readonly client: FencepostSource;
  /** Ordinary viem transport to the same chain, used for reads. */
  readonly rpc: Transport;
  /**
   * Time limit for a send to return its hash; default 30 s. A transaction that was accepted is still sent after that.
   */
  readonly timeoutMs?: number;
  /**
   * Accepts call data to addresses without code, where a call does nothing. A mistyped address is then not detected.
   */
  readonly allowNoCode?: boolean;
}

type Request = (call: { readonly method: string; readonly params?: unknown }, options?: object) => Promise<unknown>;
type Answer = (params: readonly unknown[], read: () => Promise<unknown>) => Promise<unknown>;

/**
 * A viem transport: sends through Fencepost, and reads from the chain. The client's account needs only an address.
 *
 * @example
 * const wallet = createWalletClient({ account: signer, chain, transport: fencepost({ client, rpc: http(rpcUrl) }) });
 */
export function fencepost(options: FencepostTransportOptions): Transport<"fencepost"> {
  return (parameters) => {
    const inner = options.rpc(parameters);
    const read = inner.request as Request;
    const answers = answersOf(options, read, parameters.account);
    const request: Request = (call, overrides) => {
      const onward = () => read(call, overrides);
      const params = Array.isArray(call.params) ? call.params : [];
      return answers[call.method]?.(params, onward) ?? onward();
    };
    const named = { key: "fencepost", name: "Fencepost", type: "fencepost" } as const;
    return {
      config: { ...inner.config, ...named, request: request as EIP1193RequestFn },
      request: request as EIP1193RequestFn,
      ...(inner.value === undefined ? {} : { value: inner.value }),
    };
  };
}

function answersOf(
  { client, timeoutMs = DEFAULT_TIMEOUT_MS, allowNoCode }: FencepostTransportOptions,
  read: Request,
  account: Account | undefined,
): Readonly<Record<string, Answer>> {
  const accounts = async () => (account === undefined ? [] : [account.address]);
  return {
    eth_sendTransaction: async ([transaction]) => {
      const intent = intentOf((transaction ?? {}) as RpcTransaction, requestIdHere(), allowNoCode);
      return (await sendThrough(client, intent, timeoutMs)).attempt.txHash;
    },
    eth_accounts: accounts,
    eth_requestAccounts: accounts,
    eth_getTransactionByHash: async ([hash], onward) =>
      (await onward()) ?? onTransaction(client, hash, (found) => pendingView(found, String(hash))),
    eth_getTransactionReceipt: async ([hash], onward) => {
      const receipt = await onward();
      if (receipt !== null) return receipt;
      const mined = await onTransaction(client, hash, (found) => minedInstead(found, String(hash)));
      return mined === null ? null : read({ method: "eth_getTransactionReceipt", params: [mined] });
    },
    eth_getTransactionCount: async ([address, block], onward) =>
      (block === "pending" ? await nextNonce(client, String(address), read) : null) ?? onward(),
    ...Object.fromEntries(REFUSED.map((method) => [method, () => Promise.reject(unsupported(CANNOT_SIGN))])),
  };
}

const REFUSED = [
  "eth_sign",
  "eth_signTransaction",
  "eth_signTypedData",
  "eth_signTypedData_v3",
  "eth_signTypedData_v4",
  "personal_sign",
  "wallet_sendTransaction",
];

const CANNOT_SIGN =
  "Fencepost signs only the transactions that it sends: for messages and typed data use an account with a key of its own";

/**
 * Looks up a transaction at Fencepost if the chain does not have it. Returns null, as the chain did, if Fencepost's
 * node does not respond.
 */
async function onTransaction<T>(
  client: FencepostSource,
  hash: unknown,
  view: (found: NonNullable<Awaited<ReturnType<typeof findByHash>>>) => T | null,
): Promise<T | null> {
  const found = await findByHash(client, String(hash)).catch(() => null);
  return found === null ? null : view(found);
}

/** The lane's next nonce; null if Fencepost does not manage the account, or has not used it yet. */
async function nextNonce(client: FencepostSource, address: string, read: Request): Promise<string | null> {
  if (client.signer === undefined) return null;
  const lanes = await client.signer(address as Hex).catch(() => []);
  const chainId = lanes.length === 0 ? 0 : Number(await read({ method: "eth_chainId" }));
  const cursor = lanes.find((lane) => lane.chainId === chainId)?.cursor ?? null;
  return cursor === null ? null : hex(cursor);
}
