import type { EIP1193RequestFn, Transport } from "viem";
import { findByHash, hex, minedInstead, pendingView } from "../wallets/attempt-hashes.ts";
import { intentOf, type RpcTransaction } from "../wallets/intent.ts";
import { requestIdHere } from "../wallets/request-scope.ts";
import { unsupported } from "../wallets/send-error.ts";
import { DEFAULT_TIMEOUT_MS, sendThrough } from "../wallets/send-through.ts";
import { signThrough } from "../wallets/sign-through.ts";
import type { FencepostSource, Hex, TypedDataInput } from "../wallets/source.ts";

export interface FencepostTransportOptions {
  /** Client that sends the transactions and signs messages, for example from `createClient`. */
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
 * A viem transport: sends and signs through Fencepost, and reads from the chain. The client's account needs only an address.
 *
 * @example
 * const wallet = createWalletClient({ account: signer, chain, transport: fencepost({ client, rpc: http(rpcUrl) }) });
 */
export function fencepost(options: FencepostTransportOptions): Transport<"fencepost"> {
  return (parameters) => {
    const inner = options.rpc(parameters);
    const read = inner.request as Request;
    const answers = answersOf(options, read, parameters);
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
  { account, chain }: Pick<Parameters<Transport>[0], "account" | "chain">,
): Readonly<Record<string, Answer>> {
  const accounts = async () => (account === undefined ? [] : [account.address]);
  const sign = (signer: unknown, content: Content) => {
    const named = { signer: String(signer) as Hex, requestId: requestIdHere() };
    return signThrough(client, { ...(chain && { chainId: chain.id }), ...named, ...content }, timeoutMs);
  };
  return {
    eth_sendTransaction: async ([transaction]) => {
      const intent = intentOf((transaction ?? {}) as RpcTransaction, requestIdHere(), allowNoCode);
      return (await sendThrough(client, intent, timeoutMs)).attempt.txHash;
    },
    personal_sign: ([content, signer]) => sign(signer, { message: { raw: String(content) as Hex } }),
    eth_signTypedData_v4: async ([signer, data]) => sign(signer, { typedData: typedDataIn(data) }),
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
    ...Object.fromEntries(
      Object.entries(REFUSED).map(([method, why]) => [method, () => Promise.reject(unsupported(why))]),
    ),
  };
}

const ON_SEND = "Fencepost signs a transaction when it sends it: use eth_sendTransaction";
const AS_V4 = "Fencepost signs typed data as eth_signTypedData_v4 does, and in no other format";

const REFUSED: Readonly<Record<string, string>> = {
  eth_sign: "Fencepost signs no bytes that a policy cannot judge: use personal_sign or eth_signTypedData_v4",
  eth_signTransaction: ON_SEND,
  wallet_sendTransaction: ON_SEND,
  eth_signTypedData: AS_V4,
  eth_signTypedData_v3: AS_V4,
};

type Content = { readonly message: { readonly raw: Hex } } | { readonly typedData: TypedDataInput };

/** Typed data as viem passes it (JSON text), or as an object. */
function typedDataIn(data: unknown): TypedDataInput {
  try {
    return (typeof data === "string" ? JSON.parse(data) : data) as TypedDataInput;
  } catch {
    throw unsupported("the typed data is not JSON");
  }
}

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
