import { toHex } from "../../../src/adapters/evm/signers/worker/serialise.js";
import { keccak256, keccakLoaded } from "../../../src/adapters/evm/threads/keccak.js";
import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import { listItems, type RlpItem, readItem } from "./rlp.ts";

await keccakLoaded;

/** A transaction as a mempool sees it: its cost, its requirements, and its position in its sender's order. */
export interface SimulatedTransaction {
  readonly hash: Hash;
  /** The signed bytes; null for foreign transactions, which are generated without a signature. */
  readonly raw: Hex | null;
  readonly from: Address;
  readonly type: 0 | 1 | 2 | 3;
  readonly nonce: number;
  readonly to: Address | null;
  readonly value: bigint;
  readonly data: Hex;
  readonly gas: bigint;
  /** The cap per unit of gas; `gasPrice` for types 0 and 1. */
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly intrinsicGas: bigint;
  /** Blob gas and fee cap; only for type 3. */
  readonly blobs?: { readonly gas: bigint; readonly feeCap: bigint };
}

/** A decoded transaction before its sender is recovered. */
export interface DecodedTransaction extends Omit<SimulatedTransaction, "from" | "raw"> {
  readonly raw: Hex;
  readonly size: number;
  /** Null if the transaction is not replay-protected (before EIP-155). */
  readonly chainId: number | null;
  readonly signature: Signature;
}

export interface Signature {
  readonly r: Buffer;
  readonly s: Buffer;
  readonly recoveryId: number;
  /**
   * Returns the hash of the signed content. It is a function, because a chain that does not verify signatures never
   * needs the hash.
   */
  readonly signedHash: () => Uint8Array;
}

export class MalformedTransaction extends Error {}

/** Position of each field in a transaction's RLP list; -1 if the transaction type has no such field. */
interface Layout {
  readonly fields: number;
  readonly nonce: number;
  readonly price: number;
  readonly tip: number;
  readonly accessList: number;
}

const LAYOUTS: Record<SimulatedTransaction["type"], Layout> = {
  0: { fields: 9, nonce: 0, price: 1, tip: 1, accessList: -1 },
  1: { fields: 11, nonce: 1, price: 2, tip: 2, accessList: 7 },
  2: { fields: 12, nonce: 1, price: 3, tip: 2, accessList: 8 },
  3: { fields: 14, nonce: 1, price: 3, tip: 2, accessList: 8 },
};

export function decodeTransaction(raw: Hex): DecodedTransaction {
  const bytes = Buffer.from(raw.slice(2), "hex");
  if (bytes.length * 2 !== raw.length - 2 || bytes.length === 0) throw new MalformedTransaction("invalid hex string");
  const type = typeOf(bytes);
  const layout = LAYOUTS[type];
  const items = listItems(bytes, type === 0 ? 0 : 1);
  if (items.length !== layout.fields)
    throw new MalformedTransaction("rlp: too few elements or input list has too many");
  const field = fieldReader(bytes, items);
  // In every type, the fields gas, to, value and data follow the price.
  const to = field.address(layout.price + 2);
  const data = field.bytes(layout.price + 4);
  const accessList = layout.accessList === -1 ? NO_ACCESS_LIST : countAccessList(bytes, items[layout.accessList]);
  return {
    raw,
    hash: toHex(keccak256(bytes)),
    size: bytes.length,
    type,
    nonce: safeNonce(field.integer(layout.nonce)),
    to,
    value: field.integer(layout.price + 3),
    data: `0x${data.toString("hex")}`,
    gas: field.integer(layout.price + 1),
    maxFeePerGas: field.integer(layout.price),
    maxPriorityFeePerGas: field.integer(layout.tip),
    intrinsicGas: intrinsicGas(data, to === null, accessList),
    ...(type === 3 && { blobs: { gas: blobGas(items[10]), feeCap: field.integer(9) } }),
    ...authorOf({ bytes, items, type, field }),
  };
}

/** Blob gas (EIP-4844): GAS_PER_BLOB for each blob hash, which takes 33 bytes in RLP. */
function blobGas(hashes: RlpItem | undefined): bigint {
  return (BigInt((hashes?.end ?? 0) - (hashes?.start ?? 0)) / 33n) * 131_072n;
}

function typeOf(bytes: Buffer): SimulatedTransaction["type"] {
  const first = bytes[0] as number;
  if (first >= 0xc0) return 0;
  if (first === 1 || first === 2 || first === 3) return first;
  throw new MalformedTransaction("transaction type not supported");
}

type FieldReader = ReturnType<typeof fieldReader>;

function fieldReader(bytes: Buffer, items: readonly RlpItem[]) {
  const slice = (index: number): Buffer => {
    const item = items[index];
    if (item === undefined || item.isList) throw new MalformedTransaction("rlp: expected input string or byte");
    return bytes.subarray(item.start, item.end);
  };
  return {
    bytes: slice,
    integer: (index: number) => toInteger(slice(index)),
    scalar: (index: number): Buffer => {
      const value = slice(index);
      if (value.length > 32) throw new MalformedTransaction("rlp: value too large");
      return value;
    },
    address: (index: number): Address | null => {
      const value = slice(index);
      if (value.length === 0) return null;
      if (value.length !== 20) throw new MalformedTransaction("rlp: input string too short for common.Address");
      return `0x${value.toString("hex")}`;
    },
  };
}

function toInteger(value: Buffer): bigint {
  if (value.length === 0) return 0n;
  if (value[0] === 0) throw new MalformedTransaction("rlp: non-canonical integer (leading zero bytes)");
  if (value.length > 32) throw new MalformedTransaction("rlp: value too large");
  return value.length <= 6 ? BigInt(value.readUIntBE(0, value.length)) : BigInt(`0x${value.toString("hex")}`);
}

function safeNonce(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new MalformedTransaction("nonce has max value");
  return Number(value);
}

interface Parsed {
  readonly bytes: Buffer;
  readonly items: readonly RlpItem[];
  readonly type: SimulatedTransaction["type"];
  readonly field: FieldReader;
}

function authorOf(parsed: Parsed): Pick<DecodedTransaction, "chainId" | "signature"> {
  const { bytes, items, type, field } = parsed;
  const first = items.length - 3;
  const v = Number(field.integer(first));
  const unsignedFields = bytes.subarray(items[0]?.head, items[first]?.head);
  const r = field.scalar(first + 1);
  const s = field.scalar(first + 2);
  if (type !== 0) {
    const chainId = Number(field.integer(0));
    return { chainId, signature: { r, s, recoveryId: v, signedHash: () => hashList([type], unsignedFields) } };
  }
  if (v === 27 || v === 28) {
    return { chainId: null, signature: { r, s, recoveryId: v - 27, signedHash: () => hashList([], unsignedFields) } };
  }
  // EIP-155: v contains the chain id, and the signed list ends with (chain id, 0, 0).
  const chainId = Math.floor((v - 35) / 2);
  const signedHash = () =>
    hashList([], Buffer.concat([unsignedFields, rlpInteger(chainId), Buffer.from([0x80, 0x80])]));
  return { chainId, signature: { r, s, recoveryId: (v - 35) % 2, signedHash } };
}

function rlpInteger(value: number): Buffer {
  if (value < 0x80) return Buffer.from([value]);
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return Buffer.concat([Buffer.from([0x80 + bytes.length]), bytes]);
}

function hashList(prefix: readonly number[], payload: Buffer): Uint8Array {
  return keccak256(Buffer.concat([Buffer.from(prefix), listHeader(payload.length), payload]));
}

function listHeader(length: number): Buffer {
  if (length < 56) return Buffer.from([0xc0 + length]);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return Buffer.concat([Buffer.from([0xf7 + bytes.length]), bytes]);
}

export interface AccessListSize {
  readonly addresses: number;
  readonly storageKeys: number;
}

const NO_ACCESS_LIST: AccessListSize = { addresses: 0, storageKeys: 0 };

function countAccessList(bytes: Buffer, item: RlpItem | undefined): AccessListSize {
  if (item === undefined || !item.isList) throw new MalformedTransaction("rlp: expected List");
  let addresses = 0;
  let storageKeys = 0;
  for (let at = item.start; at < item.end; addresses++) {
    const entry = readItem(bytes, at);
    const [, keys] = listItems(bytes.subarray(0, entry.end), at);
    for (let key = keys?.start ?? 0; keys !== undefined && key < keys.end; storageKeys++)
      key = readItem(bytes, key).end;
    at = entry.end;
  }
  return { addresses, storageKeys };
}

/** Gas before execution: EIP-2028 for calldata, EIP-2930 for access lists, EIP-3860 for init code. */
export function intrinsicGas(data: Uint8Array, isDeployment: boolean, accessList = NO_ACCESS_LIST): bigint {
  let gas = isDeployment ? 53_000 + 2 * Math.ceil(data.length / 32) : 21_000;
  for (let i = 0; i < data.length; i++) gas += data[i] === 0 ? 4 : 16;
  return BigInt(gas + accessList.addresses * 2_400 + accessList.storageKeys * 1_900);
}

/** The most that the sender can be charged; the balance must cover it. */
export function maximumCost(transaction: SimulatedTransaction): bigint {
  return transaction.gas * transaction.maxFeePerGas + transaction.value;
}
