/**
 * A remote signer over JSON-RPC, such as Web3Signer: `eth_accounts` at start, `eth_signTransaction` for each
 * transaction, `eth_sign` and `eth_signTypedData` for messages. Its `eth_sign` adds the prefix of EIP-191.
 *
 * Its responses are not trusted. Web3Signer signs with the chain id of its own configuration and drops access lists
 * (EthTransaction.java), whatever the request contains. A compromised signer could sign any receiver. So the signed
 * bytes must match the request, and the signature must match the account.
 */
import type { Address } from "../../../../domain/lane.ts";
import type { Message } from "../../../../domain/messages/message.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { SignerAway } from "../../../../ports/signer.ts";
import { amountsInHex, TYPES } from "../../codec/decode-transaction.ts";
import { typedDataForm } from "../../codec/typed-data-form.ts";
import { openHttp } from "../../rpc/http.ts";
import { RpcUnreachable } from "../../rpc/rpc-errors.ts";
import { encodeCall, parseBody, readSingle } from "../../rpc/wire.ts";
import { BadKey, readSecretFile, readWhole } from "../private-keys.ts";
import { provenSignature, wrongAnswer } from "../recovery.ts";
import { openAll, remoteKey, type SignerPorts } from "./key-service.ts";
import { checked } from "./signed-answer.ts";

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
      remoteKey(address, {
        transaction: async (transaction) => {
          const answer = await ask("eth_signTransaction", [requestOf(address, transaction)]);
          return checked(answer, address, transaction, http.label);
        },
        message: async ({ message, digest }) => {
          const answer = await ask(...messageRequest(address, message));
          return provenSignature(answer, { address, digest, label: http.label });
        },
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

/** Method and parameters that have a message signed. Typed data is sent as text: older releases take no object. */
function messageRequest(from: Address, message: Message): [method: string, params: readonly unknown[]] {
  if (message.kind === "personal") return ["eth_sign", [from, message.bytes]];
  return ["eth_signTypedData", [from, JSON.stringify(typedDataForm(message))]];
}
