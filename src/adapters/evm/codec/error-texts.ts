import { decodeErrorResult, parseAbi } from "viem/utils";
import type { Hex } from "../../../domain/lane.ts";
import type { Revert } from "../../../ports/chain.ts";
import type { DecodedError } from "../../../ports/codec.ts";
import { isBytes, type RpcErrorAnswer } from "../rpc/rpc-errors.ts";
import { checkInputs } from "./check-inputs.ts";
import { parseSignatures } from "./parse-signatures.ts";

/** Members of a JSON-RPC error object that a node may have set. */
export type NodeError = Pick<RpcErrorAnswer, "code" | "message"> & { readonly data?: unknown };

const LONGEST_TEXT = 2_000;
const LONGEST_DETAIL = 300;
const DEEPEST = 4;
/** Members of an error's `data` in which proxies and tools put the node's own error. */
const INNER_KEYS: readonly string[] = ["message", "data", "error", "originalError", "cause", "reason"];

/**
 * Collects the message of a node's error and every text inside `data`, because gateways wrap the node's error in their
 * own error -32603.
 */
export function textsOf(error: NodeError): readonly string[] {
  const texts = [error.message];
  collect(error.data, texts, 0);
  return texts.filter((text) => text !== "").map((text) => text.slice(0, LONGEST_TEXT));
}

function collect(value: unknown, texts: string[], depth: number) {
  if (depth > DEEPEST) return;
  if (typeof value === "string" && !isBytes(value)) texts.push(value);
  if (typeof value !== "object" || value === null) return;
  for (const key of INNER_KEYS) collect((value as Record<string, unknown>)[key], texts, depth + 1);
}

const EMBEDDED_BYTES = /^(?:reverted )?(0x(?:[0-9a-f]{2})*)$/i;

/**
 * Finds the return data of a reverted execution in an error: in `data` (geth, Reth, anvil), in `data.data` (Hardhat,
 * EDR), or after the word "Reverted" (OpenEthereum, Nethermind). Null if there is none. "0x" counts as none, because
 * zkSync adds it to every error.
 */
export function revertDataOf(data: unknown, depth = 0): Hex | null {
  if (depth > DEEPEST) return null;
  if (typeof data === "string") {
    const bytes = EMBEDDED_BYTES.exec(data.trim())?.[1]?.toLowerCase();
    return bytes === undefined || bytes.length < 10 ? null : (bytes as Hex);
  }
  if (typeof data !== "object" || data === null) return null;
  const inner = data as Record<string, unknown>;
  return revertDataOf(inner.data, depth + 1) ?? revertDataOf(inner.originalError, depth + 1);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go; PostgreSQL refuses NUL in a text.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g;
const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Cleans and shortens a node's text for storage and display. */
export function shorten(text: string): string {
  const clean = text.replace(CONTROL, " ").replace(LONE_SURROGATE, "\ufffd").trim();
  // A character has at most two units. The rest of a long text is not split.
  const points = Array.from(clean.slice(0, 2 * LONGEST_DETAIL + 2));
  return points.length <= LONGEST_DETAIL ? clean : `${points.slice(0, LONGEST_DETAIL - 1).join("")}…`;
}

const SOLIDITY_ERRORS = parseAbi(["error Error(string)", "error Panic(uint256)"]);
/** Length of the data of `Panic(uint256)` in characters: prefix, 4-byte selector, one 32-byte word. */
const PANIC_LENGTH = 2 + 8 + 64;

/** Panic codes from the Solidity documentation. */
const PANICS: Readonly<Record<string, string>> = {
  "0": "generic panic",
  "1": "assertion failed",
  "17": "arithmetic overflow or underflow",
  "18": "division or modulo by zero",
  "33": "conversion to an enum that has no such value",
  "34": "storage byte array is not encoded correctly",
  "49": "pop from an empty array",
  "50": "array index out of bounds",
  "65": "too much memory allocated",
  "81": "call of an uninitialised internal function",
};

/**
 * Decodes `Error(string)` and `Panic(uint256)` to text that PostgreSQL can store: PostgreSQL refuses NUL, and the
 * failing write would be retried without end. Other errors keep their data, so that the contract's ABI can decode it.
 */
export function decodeRevert(data: Hex): Revert {
  try {
    const { errorName: name, args } = decodeErrorResult({ abi: SOLIDITY_ERRORS, data });
    if (name === "Error") return { name, message: shorten(args[0]), data };
    const words = PANICS[String(args[0])] ?? "unknown panic";
    if (data.length === PANIC_LENGTH) return { name, message: `${words} (0x${args[0].toString(16)})`, data };
  } catch {
    // Ignore a decoding error: a contract may revert with any bytes.
  }
  return { name: null, message: null, data };
}

/**
 * Longest revert data that is decoded, because the contract's author chooses its size. Longer data is shown undecoded.
 */
const LONGEST_DATA = 10_000;

/**
 * Decodes a custom error with the ABI that the caller supplied. Null if the ABI does not match the contract's revert
 * data.
 */
export function decodeError(abi: readonly unknown[], data: Hex): DecodedError | null {
  if (data.length > LONGEST_DATA) return null;
  try {
    const items = abi.every((item) => typeof item === "string") ? parseSignatures(abi as readonly string[]) : abi;
    const errors = (items as readonly AbiItem[]).filter((item) => item.type === "error" && isDecodable(item));
    const { errorName, args } = decodeErrorResult({ abi: errors as never, data }) as {
      readonly errorName: string;
      readonly args?: readonly unknown[];
    };
    // viem also decodes Solidity's built-in errors. Skip these: `decodeRevert` handles them with readable messages.
    if (!errors.some((error) => "name" in error && error.name === errorName)) return null;
    return { name: errorName, args: (args ?? []).map(asJson) };
  } catch {
    return null;
  }
}

interface AbiItem {
  readonly type?: unknown;
  readonly inputs?: unknown;
}

/** The contract's author chooses the data, and the caller the ABI: together they must not keep the decoder busy. */
function isDecodable({ inputs = [] }: AbiItem) {
  try {
    checkInputs(inputs as readonly unknown[]);
    return true;
  } catch {
    return false;
  }
}

function asJson(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asJson(each)]));
}
