import {
  AbiCoder,
  AbstractSigner,
  type BigNumberish,
  getAddress,
  hexlify,
  makeError,
  type Provider,
  type TransactionRequest,
  type TransactionResponse,
  type TypedDataDomain,
  TypedDataEncoder,
  type TypedDataField,
  toUtf8Bytes,
} from "ethers";
import { minedInstead } from "../wallets/attempt-hashes.ts";
import { intentOf, type RpcTransaction } from "../wallets/intent.ts";
import { requestIdHere } from "../wallets/request-scope.ts";
import { FencepostSendError, unsupported } from "../wallets/send-error.ts";
import { DEFAULT_TIMEOUT_MS, sendThrough } from "../wallets/send-through.ts";
import { signThrough } from "../wallets/sign-through.ts";
import type { FencepostSource, Hex, TypedDataInput } from "../wallets/source.ts";
import { SentResponse } from "./sent-response.ts";

export interface FencepostSignerOptions {
  /** Client that sends the transactions and signs messages, for example from `createClient`. */
  readonly client: FencepostSource;
  /** Ordinary ethers provider of the same chain, used for reads. */
  readonly provider?: Provider;
  /**
   * Time limit for a send to return its hash; default 30 s. A transaction that was accepted is still sent after that.
   */
  readonly timeoutMs?: number;
  /**
   * Accepts call data to addresses without code, where a call does nothing. A mistyped address is then not detected.
   */
  readonly allowNoCode?: boolean;
}

/** An ethers Signer whose transactions Fencepost sends, and whose messages it signs if a policy allows them. */
export class FencepostSigner extends AbstractSigner {
  readonly address: string;
  readonly #options: FencepostSignerOptions;

  constructor(address: string, options: FencepostSignerOptions) {
    super(options.provider);
    this.address = getAddress(address);
    this.#options = options;
  }

  async getAddress(): Promise<string> {
    return this.address;
  }

  override connect(provider: Provider | null): FencepostSigner {
    const { provider: _, ...options } = this.#options;
    return new FencepostSigner(this.address, provider === null ? options : { ...options, provider });
  }

  /**
   * Resolves when the first attempt is signed and stored. The request id is `customData.requestId`, or that of
   * `withRequestId`, or a new one.
   */
  override async sendTransaction(request: TransactionRequest): Promise<TransactionResponse> {
    const { client, timeoutMs = DEFAULT_TIMEOUT_MS, allowNoCode } = this.#options;
    const { provider } = this;
    if (provider === null) throw missingProvider();
    const requestId = requestIdOf(request.customData) ?? requestIdHere();
    const populated = { ...(await this.populateCall(request)), customData: undefined };
    const [{ chainId }, head] = await Promise.all([provider.getNetwork(), provider.getBlockNumber()]);
    const intent = intentOf(rpcForm({ chainId, ...populated }), requestId, allowNoCode);
    const { transaction, attempt } = await sendThrough(client, intent, timeoutMs).catch((error: unknown) => {
      throw toEthersError(error, populated as TransactionRequest);
    });
    // If the request is a repeat, the transaction may have been mined already, with the hash of another attempt.
    const hash = minedInstead(transaction, attempt.txHash) ?? attempt.txHash;
    return new SentResponse({ transaction, attempt, hash, requestId }, provider, head);
  }

  override async signTransaction(): Promise<string> {
    throw unsupported("Fencepost signs only the transactions that it sends: use sendTransaction");
  }

  /** Signs a personal message (EIP-191), if a policy allows it. The request id is that of `withRequestId`, or a new one. */
  override async signMessage(message: string | Uint8Array): Promise<string> {
    const bytes = typeof message === "string" ? toUtf8Bytes(message) : message;
    return this.#sign({ message: { raw: hexlify(bytes) as Hex } }, await this.#chainId());
  }

  /** Signs typed data (EIP-712), if a policy allows it. */
  override async signTypedData(
    domain: TypedDataDomain,
    types: Record<string, TypedDataField[]>,
    value: Record<string, unknown>,
  ): Promise<string> {
    const named = await TypedDataEncoder.resolveNames(domain, types, value, (name) => this.#addressOf(name));
    const typedData = TypedDataEncoder.getPayload(named.domain, types, named.value) as TypedDataInput;
    return this.#sign({ typedData }, (await this.#chainId()) ?? domain.chainId ?? undefined);
  }

  async #chainId(): Promise<BigNumberish | undefined> {
    return (await this.provider?.getNetwork())?.chainId;
  }

  async #addressOf(name: string): Promise<string> {
    const address = await this.provider?.resolveName(name);
    if (typeof address === "string") return address;
    throw unsupported(`${name} is no address, and the provider does not resolve it`);
  }

  #sign(content: Content, chainId: BigNumberish | undefined): Promise<string> {
    const { client, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const named = { signer: this.address as Hex, requestId: requestIdHere() };
    return signThrough(client, { ...(chainId && { chainId: Number(chainId) }), ...named, ...content }, timeoutMs);
  }
}

function missingProvider() {
  const error = makeError("missing provider", "UNSUPPORTED_OPERATION", { operation: "sendTransaction" });
  return Object.assign(error, { cause: unsupported("the signer has no provider: connect(provider) first") });
}

type Content = { readonly message: { readonly raw: Hex } } | { readonly typedData: TypedDataInput };

function requestIdOf(customData: unknown): string | undefined {
  if (customData === undefined || customData === null) return undefined;
  const { requestId, ...rest } = customData as Readonly<Record<string, unknown>>;
  if (Object.keys(rest).length > 0) throw unsupported("customData may hold a requestId, and nothing else");
  if (requestId !== undefined && typeof requestId !== "string")
    throw unsupported("customData.requestId must be a string");
  return requestId;
}

/**
 * Converts ethers' names and numbers to JSON-RPC. Fields without an equivalent are passed on unchanged, and refused
 * later.
 */
function rpcForm({ gasLimit, type, ...request }: Readonly<Record<string, unknown>>): RpcTransaction {
  const given = { ...request, gas: gasLimit, type: type === null || type === undefined ? type : `0x${type}` };
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, typeof value === "bigint" ? `0x${value.toString(16)}` : value]),
  );
}

/** Converts Fencepost's errors to ethers' errors: CALL_EXCEPTION with the reason, INSUFFICIENT_FUNDS, NONCE_EXPIRED. */
function toEthersError(error: unknown, transaction: TransactionRequest): unknown {
  if (!(error instanceof FencepostSendError)) return error;
  const { data, details } = error;
  if (data !== undefined) {
    const { to, from, data: asked } = transaction as { to?: string | null; from?: string; data?: string };
    const call = { ...(to == null ? {} : { to }), ...(from === undefined ? {} : { from }), data: asked ?? "0x" };
    return Object.assign(AbiCoder.getBuiltinCallException("estimateGas", call, data), { cause: error });
  }
  if (/\bnonce too low\b/.test(details)) {
    return Object.assign(makeError(details, "NONCE_EXPIRED", { transaction }), { cause: error });
  }
  if (!details.startsWith("insufficient funds")) return error;
  return Object.assign(makeError(details, "INSUFFICIENT_FUNDS", { transaction }), { cause: error });
}
