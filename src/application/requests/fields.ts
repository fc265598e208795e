/**
 * Stage 1: parses the basic fields of a request; an error names the path of its field. Also converts the three forms of
 * a payload (raw fields, ABI call, deployment) into one. Reads: the request alone. Writes: nothing. A crash here leaves
 * nothing behind.
 */
import { invalid } from "../../domain/errors.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import { unknownName } from "../../domain/text/near-names.ts";
import type { Fees, FeeWishes } from "../../domain/transaction/fees.ts";
import { type AccessListEntry, CREATE_FIELDS, type Payload } from "../../domain/transaction/transaction.ts";
import { BadEncoding, type Callee, type Codec } from "../../ports/codec.ts";

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_UINT256 = (1n << 256n) - 1n;

export function join(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}.${key}`;
}

export function asObject(value: unknown, path: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(path, "must be an object");
  return value as Record<string, unknown>;
}

/**
 * Refuses unknown keys. `elsewhere`: for fields that belong in another place of the request, the name of that place,
 * which the error mentions.
 */
export function refuseUnknownKeys(
  object: object,
  known: readonly string[],
  path: string,
  elsewhere?: ReadonlyMap<string, string>,
): void {
  for (const name of Object.keys(object)) {
    if (known.includes(name)) continue;
    const unknown = { name, path: join(path, name), known, complaint: "is not a known field" };
    throw unknownName(elsewhere === undefined ? unknown : { ...unknown, elsewhere });
  }
}

/** Parses an optional field; undefined stays undefined. */
export function given<T, U>(value: T | undefined, parse: (value: T) => U): U | undefined {
  return value === undefined ? undefined : parse(value);
}

/** Parses a number: decimal string, 0x hex, safe integer, or (inside a process) bigint. */
export function parseQuantity(value: unknown, path: string, most: bigint = MAX_UINT256): bigint {
  const quantity = toBigInt(value, path);
  if (quantity < 0n) throw invalid(path, "must not be negative");
  if (quantity > most) throw invalid(path, `must be at most ${most === MAX_UINT256 ? "2^256 - 1" : most}`);
  return quantity;
}

export function optionalQuantity(value: unknown, path: string, most?: bigint): bigint | undefined {
  return value === undefined || value === null ? undefined : parseQuantity(value, path, most);
}

function toBigInt(value: unknown, path: string) {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value))
      throw invalid(path, "must be a whole number up to 2^53 - 1; write larger numbers as strings");
    return BigInt(value);
  }
  if (typeof value === "string" && value.length <= 80) {
    if (/^-?(0|[1-9][0-9]*)$/.test(value) || /^0x[0-9a-fA-F]+$/.test(value)) return BigInt(value);
  }
  throw invalid(path, "must be a decimal string, 0x hex or an integer up to 2^53 - 1; amounts are in wei");
}

/** Converts errors of the codec into request errors with the path of the field. */
export function encoded<T>(path: string, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (error instanceof BadEncoding) throw invalid(error.path === "" ? path : join(path, error.path), error.message);
    throw error;
  }
}

export function parseAddress(codec: Codec, value: unknown, path: string): Address {
  if (typeof value !== "string") throw invalid(path, "must be an address: 0x and 40 hex digits");
  return encoded(path, () => codec.parseAddress(value));
}

/** Parses `allowNoCode`: true if the receiver of call data need not have code. */
export function parseAllowNoCode(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw invalid("allowNoCode", "must be true or false");
  return value;
}

export function parseHash(value: unknown, path: string): Hash {
  const hash = parseHex(value, path);
  if (hash.length !== 66) throw invalid(path, `must be 32 bytes, not ${(hash.length - 2) / 2}`);
  return hash;
}

export function parseHex(value: unknown, path: string): Hex {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]*$/.test(value)) throw invalid(path, "must be 0x and hex digits");
  if (value.length % 2 !== 0) throw invalid(path, "must have an even number of hex digits");
  return value.toLowerCase() as Hex;
}

const MAX_DATA_BYTES = 96 * 1024;
const MAX_ACCESS_LIST = 1_000;
const MAX_GAS = (1n << 63n) - 1n;

const SHARED_KEYS = ["value", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "gasPrice", "accessList", "type"];
const FORMS = {
  raw: ["to", "data", ...SHARED_KEYS],
  call: ["to", "function", "abi", "args", ...SHARED_KEYS],
  deploy: ["bytecode", "abi", "args", ...SHARED_KEYS],
} as const;

/**
 * Tables of fields that callers often misplace, with the place where each belongs. `PAYLOAD_FIELDS`: payload fields
 * given outside the payload. `BESIDE_PAYLOAD`: other fields given inside it.
 */
export const PAYLOAD_FIELDS: ReadonlyMap<string, string> = new Map(
  Object.values(FORMS).flatMap((names) => names.map((name) => [name, `payload.${name}`] as const)),
);
const BESIDE_PAYLOAD: ReadonlyMap<string, string> = new Map(
  CREATE_FIELDS.filter((name) => name !== "payload").map((name) => [name, `${name}\` beside \`payload`] as const),
);

/** Transaction types by their number in EIP-2718. A request gives the name, or the number in digits or in hex. */
const TYPES: readonly Fees["type"][] = ["legacy", "eip2930", "eip1559"];

export type Fields = Readonly<Record<string, unknown>>;
/** The same type without `readonly`, used while an object is being built. */
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Converts raw fields, an ABI call or a deployment into one form of payload. */
export function normalisePayload(codec: Codec, input: unknown): Payload {
  if (input === undefined) throw invalid("payload", "is required");
  const fields = asObject(input, "payload");
  const form = formOf(fields);
  refuseUnknownKeys(fields, FORMS[form], "payload", BESIDE_PAYLOAD);
  const target = form === "deploy" ? null : parseTarget(codec, fields.to);
  const data = encodeData(codec, form, fields);
  if ((data.length - 2) / 2 > MAX_DATA_BYTES) {
    throw invalid(form === "deploy" ? "payload.bytecode" : "payload.data", `must be at most ${MAX_DATA_BYTES} bytes`);
  }
  const value = optionalQuantity(fields.value, "payload.value") ?? 0n;
  const gas = optionalQuantity(fields.gas, "payload.gas", MAX_GAS);
  const accessList = parseAccessList(codec, fields.accessList);
  const fees = parseFees(fields, "payload", accessList !== undefined);
  const payload: Mutable<Payload> = { ...fees, to: target, data, value };
  if (gas !== undefined) payload.gas = gas;
  if (accessList !== undefined) payload.accessList = accessList;
  return payload;
}

function formOf(fields: Fields) {
  if (fields.bytecode !== undefined) return "deploy";
  if (fields.function !== undefined || fields.abi !== undefined || fields.args !== undefined) return "call";
  return "raw";
}

function parseTarget(codec: Codec, to: unknown) {
  if (to === undefined || to === null) throw invalid("payload.to", "is required (to deploy, give bytecode instead)");
  return parseAddress(codec, to, "payload.to");
}

function encodeData(codec: Codec, form: keyof typeof FORMS, fields: Fields) {
  if (form === "raw")
    return fields.data === undefined || fields.data === null ? "0x" : parseHex(fields.data, "payload.data");
  const args = fields.args ?? [];
  if (!Array.isArray(args)) throw invalid("payload.args", "must be an array");
  if (form === "deploy") {
    const bytecode = parseHex(fields.bytecode, "payload.bytecode");
    if (bytecode === "0x") throw invalid("payload.bytecode", "must not be empty");
    const abi = fields.abi === undefined ? undefined : parseAbi(fields.abi);
    return encoded("payload", () => codec.encodeDeploy(bytecode, abi, args));
  }
  return encoded("payload", () => callData(codec, fields, args));
}

/** Encodes the call. Without `function`, the only function of `abi` is used; then errors name the field `abi`. */
function callData(codec: Codec, fields: Fields, args: readonly unknown[]) {
  try {
    return codec.encodeCall(calleeOf(fields), args);
  } catch (error) {
    const isAbi = error instanceof BadEncoding && error.path === "function" && fields.function === undefined;
    throw isAbi ? new BadEncoding("abi", error.message) : error;
  }
}

function calleeOf(fields: Fields): Callee {
  const { function: named, abi } = fields;
  if (abi === undefined) {
    if (typeof named === "string") return named;
    if (Array.isArray(named)) return parseAbi(named);
    throw invalid("payload.function", 'must be a signature such as "transfer(address,uint256)", or give abi');
  }
  const entries = parseAbi(abi);
  if (named === undefined) return entries;
  if (typeof named !== "string") throw invalid("payload.function", "must be the name of a function in abi");
  return { abi: entries, function: named };
}

function parseAbi(abi: unknown): readonly unknown[] {
  if (!Array.isArray(abi)) throw invalid("payload.abi", "must be an array");
  return abi;
}

function parseAccessList(codec: Codec, value: unknown): readonly AccessListEntry[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || value.length > MAX_ACCESS_LIST) {
    throw invalid("payload.accessList", `must be an array of at most ${MAX_ACCESS_LIST} entries`);
  }
  return value.map((entry, index) => parseAccessListEntry(codec, entry, `payload.accessList.${index}`));
}

function parseAccessListEntry(codec: Codec, value: unknown, path: string): AccessListEntry {
  const entry = asObject(value, path);
  refuseUnknownKeys(entry, ["address", "storageKeys"], path);
  const address = parseAddress(codec, entry.address, join(path, "address"));
  const keys = entry.storageKeys ?? [];
  if (!Array.isArray(keys)) throw invalid(join(path, "storageKeys"), "must be an array");
  return { address, storageKeys: keys.map((key, index) => parseHash(key, `${path}.storageKeys.${index}`)) };
}

/** Parses the fee fields of an object at `path`; an absent field is left to the market. */
export function parseFees(fields: Fields, path = "payload", hasAccessList = false): FeeWishes {
  const gasPrice = optionalQuantity(fields.gasPrice, join(path, "gasPrice"));
  const maxFeePerGas = optionalQuantity(fields.maxFeePerGas, join(path, "maxFeePerGas"));
  const maxPriorityFeePerGas = optionalQuantity(fields.maxPriorityFeePerGas, join(path, "maxPriorityFeePerGas"));
  const dynamic = maxFeePerGas !== undefined || maxPriorityFeePerGas !== undefined;
  if (gasPrice !== undefined && dynamic)
    throw invalid(join(path, "gasPrice"), "cannot be combined with maxFeePerGas or maxPriorityFeePerGas");
  if (maxFeePerGas !== undefined && maxPriorityFeePerGas !== undefined && maxPriorityFeePerGas > maxFeePerGas) {
    throw invalid(
      join(path, "maxPriorityFeePerGas"),
      `must not exceed maxFeePerGas: a tip of ${maxPriorityFeePerGas} wei does not fit under a cap of ${maxFeePerGas}`,
    );
  }
  const given = parseType(fields.type, join(path, "type"));
  const type = given ?? (gasPrice !== undefined && hasAccessList ? "eip2930" : undefined);
  if (type === "eip1559" && gasPrice !== undefined)
    throw invalid(join(path, "gasPrice"), "does not fit type eip1559, which has maxFeePerGas and maxPriorityFeePerGas");
  if ((type === "legacy" || type === "eip2930") && dynamic)
    throw invalid(join(path, "type"), `${type} has gasPrice, not maxFeePerGas or maxPriorityFeePerGas`);
  if (type === "legacy" && hasAccessList)
    throw invalid(join(path, "accessList"), "does not fit type legacy: leave type out, or give eip2930");
  const fees: Mutable<FeeWishes> = {};
  if (type !== undefined) fees.type = type;
  if (gasPrice !== undefined) fees.gasPrice = gasPrice;
  if (maxFeePerGas !== undefined) fees.maxFeePerGas = maxFeePerGas;
  if (maxPriorityFeePerGas !== undefined) fees.maxPriorityFeePerGas = maxPriorityFeePerGas;
  return fees;
}

function parseType(value: unknown, path: string) {
  if (value === undefined || value === null) return undefined;
  const type = TYPES.find((name, number) => [name, number, `${number}`, `0x${number}`].some((form) => form === value));
  if (type === undefined) throw invalid(path, "must be legacy, eip2930 or eip1559");
  return type;
}
