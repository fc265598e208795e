import { decodeAbiParameters } from "viem/utils";
import type { Hex } from "../../domain/lane.ts";
import type { Revert } from "../../ports/chain.ts";
import { shorten } from "./error-texts.ts";

const ERROR_SELECTOR = "0x08c379a0";
const PANIC_SELECTOR = "0x4e487b71";
const WORD = 64;

/** Solidity's documented panic codes. */
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

/** `Error(string)` and `Panic(uint256)` in words; a custom error keeps its data, to be decoded with the contract's ABI. */
export function decodeRevert(data: Hex): Revert {
  const body = data.slice(10);
  if (data.startsWith(ERROR_SELECTOR)) {
    const message = decodeString(body);
    if (message !== null) return { name: "Error", message, data };
  }
  if (data.startsWith(PANIC_SELECTOR) && body.length === WORD) {
    const code = BigInt(`0x${body}`);
    const words = PANICS[code.toString()] ?? "unknown panic";
    return { name: "Panic", message: `${words} (0x${code.toString(16)})`, data };
  }
  return { name: null, message: null, data };
}

/**
 * One ABI-encoded string, fit to be stored: PostgreSQL refuses NUL, and the refusal would be tried for ever. Null where
 * offset or length point outside: a contract may revert with any bytes it likes.
 */
function decodeString(body: string): string | null {
  try {
    const [text] = decodeAbiParameters([{ type: "string" }], `0x${body}`);
    return shorten(text);
  } catch {
    return null;
  }
}
