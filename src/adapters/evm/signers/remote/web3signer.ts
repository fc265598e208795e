/**
 * A remote signer over JSON-RPC, such as Web3Signer: `eth_accounts` at start, `eth_signTransaction` for each
 * transaction.
 *
 * Its responses are not trusted. Web3Signer signs with the chain id of its own configuration and drops access lists
 * (EthTransaction.java), whatever the request contains. A compromised signer could sign any receiver. So the signed
 * bytes must match the request, and the signature must match the account.
 */
import type { Address, Hex } from "../../../../domain/lane.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { SignerAway } from "../../../../ports/signer.ts";
import { amountsInHex, decodeTransaction, parsePayload, TYPES } from "../../codec/decode-transaction.ts";
import { openHttp } from "../../rpc/http.ts";
import { RpcUnreachable } from "../../rpc/rpc-errors.ts";
import { encodeCall, parseBody, readSingle } from "../../rpc/wire.ts";
import { BadKey, readSecretFile, readWhole } from "../private-keys.ts";
import { type EthereumSignature, encodeTransaction, signTransaction } from "../worker/serialise.js";
import { HALF_ORDER, isSignedBy, openAll, remoteKey, type SignerPorts, wrongAnswer } from "./key-service.ts";

export interface RemoteSignerSource {
  readonly url: string;
  /** Addresses to sign for; null for every account that the remote signer reports. */
  readonly addresses: readonly Address[] | null;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
}

const TIMEOUT_MS = 10_000;
/** Size limit of a response. A signed transaction has at most twice the bytes of a create request, in hex. */
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;

export async function openWeb3Signer(source: RemoteSignerSource, ports: Pick<SignerPorts, "clock" | "warn">) {
  const tls = await readTls(source, ports);
  const limits = { timeoutMs: TIMEOUT_MS, maxResponseBytes: MAX_ANSWER_BYTES };
  const http = openHttp({ url: source.url, clock: ports.clock, ...limits, tls });
  let nextId = 0;

  const ask = async (method: string, params: readonly unknown[]) => {
    const call = encodeCall(++nextId, { method, params }, false);
    const { body } = await http.post(call.json).catch((error: unknown) => {
      throw error instanceof RpcUnreachable ? new SignerAway(error.message, { cause: error }) : error;
    });
    const reply = readSingle(parseBody(body), call, http.label);
    if (reply.ok) return reply.result;
    const said = reply.error instanceof RpcUnreachable ? "" : `${http.label} refused ${method}: `;
    throw new SignerAway(`${said}${reply.error.message}`, { cause: reply.error });
  };

  return openAll(http, async () => {
    const addresses = chosen(source, http.label, await ask("eth_accounts", []));
    return addresses.map((address) =>
      remoteKey(address, async (transaction) => {
        const answer = await ask("eth_signTransaction", [requestOf(address, transaction)]);
        return checked(answer, address, transaction, http.label);
      }),
    );
  });
}

async function readTls({ caFile, certFile, keyFile }: RemoteSignerSource, { warn }: Pick<SignerPorts, "warn">) {
  const what = "TLS file of the remote signer";
  return {
    ...(caFile === null ? {} : { ca: await readWhole(caFile, what) }),
    ...(certFile === null ? {} : { cert: await readWhole(certFile, what) }),
    ...(keyFile === null ? {} : { key: await readSecretFile(keyFile, what, warn) }),
  };
}

function chosen({ addresses }: RemoteSignerSource, label: string, answer: unknown) {
  const isAddress = (each: unknown): each is string => typeof each === "string" && /^0x[\da-f]{40}$/i.test(each);
  if (!Array.isArray(answer) || !answer.every(isAddress)) throw wrongAnswer(`${label} gave no list of accounts`);
  const named = new Set(answer.map((each) => each.toLowerCase() as Address));
  const missing = addresses?.find((each) => !named.has(each));
  if (missing !== undefined) throw new BadKey(`${label} has no account ${missing}`);
  if (named.size === 0) throw new BadKey(`${label} names no account`);
  return addresses ?? [...named];
}

/**
 * Builds the signing request in JSON-RPC form. A signer may ignore fields that it does not support; the check of its
 * response detects that.
 */
function requestOf(from: Address, transaction: UnsignedTransaction) {
  const { to, data, fees, accessList } = transaction;
  const list = fees.type === "legacy" ? {} : { accessList };
  return { from, to, data, ...amountsInHex(transaction), type: TYPES[fees.type], ...list };
}

async function checked(answer: unknown, address: Address, transaction: UnsignedTransaction, label: string) {
  const isHex = typeof answer === "string" && /^0x(?:[\da-f]{2})+$/i.test(answer);
  if (!isHex) throw wrongAnswer(`${label} answered with something that is no signed transaction`);
  const rawTransaction = answer.toLowerCase() as Hex;
  const encoded = encodeTransaction(transaction);
  const signature = signatureOf(rawTransaction);
  const signed = signature && (await signTransaction(encoded, () => signature));
  if (signature === null || signed?.rawTransaction !== rawTransaction) {
    const how = await difference(rawTransaction, transaction);
    throw wrongAnswer(`${label} signed another transaction than it was asked to: ${how}`);
  }
  if (BigInt(`0x${signature.s}`) > HALF_ORDER)
    throw wrongAnswer(`${label} made a signature that no node takes (EIP-2: its s is too high)`);
  if (!(await isSignedBy(address, encoded, signature)))
    throw wrongAnswer(`${label} signed with another key than that of ${address}`);
  return signed;
}

/** Reads the signature of a transaction; null if the transaction is not signed. */
function signatureOf(rawTransaction: Hex): EthereumSignature | null {
  try {
    const { signature } = parsePayload(rawTransaction);
    if (signature === null) return null;
    // The legacy v is 27 or 28, or 35 and above (EIP-155). Whether it is odd or even gives the parity.
    const { r, s, v = 0n, yParity = Number((v + 1n) % 2n) } = signature;
    return { r: digits(r), s: digits(s), yParity: yParity === 0 ? 0 : 1 };
  } catch {
    return null;
  }
}

const digits = (hex: Hex) => hex.slice(2).padStart(64, "0");

const FIELDS = ["chainId", "nonce", "to", "value", "data", "gas", "fees", "accessList"] as const;

/** Lists the fields of a signed transaction that differ from the request, for the error message. */
async function difference(rawTransaction: Hex, asked: UnsignedTransaction) {
  const decoded = await decodeTransaction(rawTransaction).catch(() => null);
  if (decoded === null) return "it cannot be read";
  const text = (value: unknown) =>
    JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}` : each)).toLowerCase();
  const other = FIELDS.filter((field) => text(decoded.unsigned[field]) !== text(asked[field]));
  return other.length === 0
    ? "its encoding differs"
    : `${other.join(", ")} ${other.length === 1 ? "differs" : "differ"}`;
}
