/**
 * Line protocol between a node and its signing process. Frequent messages are flat text: JSON takes several times as
 * long, and there are thousands a second.
 */
import { deserialize, serialize } from "node:v8";
import { DECLARATIONS, type SigningBounds, type ToSign } from "../../../../domain/keys/signing.ts";
import type { Address, Hash, Hex } from "../../../../domain/lane.ts";
import type { Message, MessageToSign } from "../../../../domain/messages/message.ts";
import { parsePersonal, parseTypedData } from "../../../../domain/messages/parse-message.ts";
import type { Policy } from "../../../../domain/policy/policy.ts";
import { messageOf } from "../../../../domain/text/thrown.ts";
import type { Fees } from "../../../../domain/transaction/fees.ts";
import type { AccessListEntry } from "../../../../domain/transaction/transaction.ts";
import { type SignedTransaction, SignerAway, SigningRefused } from "../../../../ports/signer.ts";
import { parseAddress } from "../../codec/abi-values.ts";
import { SigningFailed } from "../local-signer.ts";
import type { SignerSources } from "../open-signer.ts";
import { BadKey } from "../private-keys.ts";

/**
 * Start message for the signing process: the sources of its keys, the settings of key services, and the bounds that it
 * enforces. It contains no other part of the configuration.
 */
export interface Beginning {
  readonly sources: SignerSources;
  /** Environment variables with settings of AWS, Google Cloud and Vault. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly bounds: SigningBounds;
}

/** First message from the signing process: the addresses that it signs for. */
export interface Hello {
  readonly addresses: readonly Address[];
  /** The addresses whose keys the chain node holds; also contained in `addresses`. */
  readonly atNode: readonly Address[];
  readonly curve: "wasm" | "javascript";
}

export interface SignRequest {
  readonly id: number;
  readonly address: Address;
  readonly term: number;
  readonly transactions: readonly ToSign[];
}

/** Encodes the start message with V8's serializer, because JSON has neither bigint nor sets. */
export const encodeBeginning = (beginning: Beginning) => serialize(beginning).toString("base64");

export function decodeBeginning(text: string): Beginning {
  const bytes = Buffer.from(text, "base64");
  try {
    return deserialize(bytes) as Beginning;
  } finally {
    // Clear the bytes: they contain keys, and freed memory keeps its contents until it is overwritten.
    bytes.fill(0);
  }
}

/** First character of a line that carries policies; lines with requests begin with a number. */
export const POLICIES = "p";

export function encodePolicies(signers: ReadonlyMap<string, Policy>): string {
  return POLICIES + serialize(signers).toString("base64");
}

export function decodePolicies(line: string): ReadonlyMap<string, Policy> {
  return deserialize(Buffer.from(line.slice(POLICIES.length), "base64")) as ReadonlyMap<string, Policy>;
}

/** First character of a line that asks for signatures of messages. */
export const MESSAGES = "m";

/** Content to sign, without a digest: the signing process computes its own. */
export interface MessageRequest {
  readonly id: number;
  readonly address: Address;
  readonly messages: readonly Pick<MessageToSign, "chainId" | "message">[];
}

export function encodeMessages({ id, address, messages }: MessageRequest): string {
  const asked = messages.map(({ chainId, message }) => ({ chainId, message }));
  return `${MESSAGES}${id} ${JSON.stringify({ address, messages: asked })}`;
}

/**
 * Reads messages as a caller's are read, not as the normal form that the node claims: a value in another form could pass
 * a rule that it breaks. Throws INVALID_REQUEST.
 */
export function decodeMessages(line: string): MessageRequest {
  const { address, messages } = JSON.parse(line.slice(line.indexOf(" ") + 1)) as MessageRequest;
  const read = messages.map(({ chainId, message }, index) => ({ chainId, message: messageIn(message, `${index}`) }));
  return { id: Number.parseInt(line.slice(MESSAGES.length), 10), address, messages: read };
}

function messageIn(message: Message, path: string): Message {
  if (message.kind === "personal") return parsePersonal({ raw: message.bytes });
  const { domain, types, primaryType, value } = message;
  return parseTypedData({ domain, types, primaryType, message: value }, { parseAddress }, path);
}

export const encodeSignatures = (id: number, signatures: readonly Hex[]) => `${id} ${signatures.join(";")}`;

export const decodeSignatures = (text: string) => text.split(";") as readonly Hex[];

const NONE = "-";

export function encodeRequest({ id, address, term, transactions }: SignRequest): string {
  return `${id} ${address} ${term} ${transactions.map(encodeTransaction).join(";")}`;
}

function encodeTransaction(transaction: ToSign) {
  const { because = NONE, chainId, nonce, to, value, data, gas, fees, accessList } = transaction;
  const price =
    fees.type === "eip1559"
      ? `${fees.maxFeePerGas.toString(16)},${fees.maxPriorityFeePerGas.toString(16)}`
      : `${fees.gasPrice.toString(16)},0`;
  const list = accessList.map((entry) => [entry.address, ...entry.storageKeys].join(":")).join("|");
  const numbers = `${value.toString(16)},${gas.toString(16)}`;
  return `${because},${chainId},${nonce},${to ?? NONE},${numbers},${data},${fees.type},${price},${list}`;
}

export function decodeRequest(line: string): SignRequest {
  const [id, address, term, transactions = ""] = line.split(" ");
  return {
    id: Number(id),
    address: address as Address,
    term: Number(term),
    transactions: transactions === "" ? [] : transactions.split(";").map(decodeTransaction),
  };
}

function decodeTransaction(text: string): ToSign {
  const parts = text.split(",");
  const [because, chainId, nonce, to, value, gas, data, type, first, second, list = ""] = parts;
  const declared = because === NONE ? undefined : DECLARATIONS.find((each) => each === because);
  if (because !== NONE && declared === undefined)
    throw new RangeError(`the sign request is malformed: ${because} is not a known reason to sign again`);
  return {
    because: declared,
    chainId: wholeNumber(chainId),
    nonce: wholeNumber(nonce),
    to: to === NONE ? null : (to as Address),
    value: BigInt(`0x${value}`),
    gas: BigInt(`0x${gas}`),
    data: data as Hex,
    fees: feesOf(type, BigInt(`0x${first}`), BigInt(`0x${second}`)),
    accessList: list === "" ? [] : list.split("|").map(entryOf),
  };
}

function wholeNumber(text = "") {
  if (!/^\d+$/.test(text)) throw new RangeError("the sign request is malformed: a whole number is expected");
  return Number(text);
}

function feesOf(type: string | undefined, first: bigint, second: bigint): Fees {
  if (type === "eip1559") return { type, maxFeePerGas: first, maxPriorityFeePerGas: second };
  if (type === "legacy" || type === "eip2930") return { type, gasPrice: first };
  throw new RangeError(`the sign request is malformed: ${type} is not a fee type`);
}

function entryOf(text: string): AccessListEntry {
  const [address, ...storageKeys] = text.split(":");
  return { address: address as Address, storageKeys: storageKeys as readonly Hash[] };
}

export function encodeSigned(id: number, signed: readonly SignedTransaction[]): string {
  return `${id} ${signed.map(({ rawTransaction, txHash }) => `${rawTransaction},${txHash}`).join(";")}`;
}

export function decodeSigned(text: string): readonly SignedTransaction[] {
  if (text === "") return [];
  return text.split(";").map((each) => {
    const at = each.indexOf(",");
    return { rawTransaction: each.slice(0, at) as Hex, txHash: each.slice(at + 1) as Hash };
  });
}

interface Failure
  extends Partial<Pick<SigningRefused, "index" | "undeclared">>,
    Partial<Pick<SignerAway, "lies" | "signed">> {
  readonly kind: "refused" | "away" | "badKey" | "failed";
  readonly message: string;
}

/** Encodes an error so that the other process can rebuild it; `mask` hides secrets in its message. */
export function encodeFailure(error: unknown, mask: (text: string) => string): string {
  return JSON.stringify({ ...failureOf(error), message: mask(messageOf(error)) } satisfies Failure);
}

function failureOf(error: unknown): Omit<Failure, "message"> {
  if (error instanceof SigningRefused) return { kind: "refused", index: error.index, undeclared: error.undeclared };
  if (error instanceof SignerAway) return { kind: "away", lies: error.lies, signed: error.signed };
  return { kind: error instanceof BadKey ? "badKey" : "failed" };
}

export function decodeFailure(text: string): Error {
  const { kind, message, index = 0, undeclared, lies = false, signed = [] } = JSON.parse(text) as Failure;
  if (kind === "refused") return new SigningRefused(index, message, undeclared);
  if (kind === "away") return new SignerAway(message, { lies, signed });
  return kind === "badKey" ? new BadKey(message) : new SigningFailed(message);
}

/** Splits the stream between a node and its signing process into lines. */
export class Lines {
  /**
   * Chunks of an incomplete line. They are joined when the line is complete: appending each chunk would copy a long
   * line once per chunk.
   */
  private rest: string[] = [];

  take(chunk: string): readonly string[] {
    this.rest.push(chunk);
    if (!chunk.includes("\n")) return [];
    const lines = this.rest.join("").split("\n");
    this.rest = [lines.pop() ?? ""];
    return lines;
  }
}
