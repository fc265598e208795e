import { decodeErrorResult } from "viem/utils";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Revert } from "../../../src/ports/chain.ts";

/** The Solidity panic codes that tests use. */
const PANICS: Readonly<Record<string, string>> = {
  "1": "An `assert` condition failed.",
  "17": "Arithmetic operation resulted in underflow or overflow.",
  "18": "Division or modulo by zero.",
  "50": "Array index is out of bounds.",
};

/** Decodes Solidity's two built-in errors; any other revert is returned as raw data. */
export function decodeRevert(data: Hex): Revert {
  try {
    const { errorName, args } = decodeErrorResult({ data, abi: [] });
    const argument = String(args?.[0] ?? "");
    return { name: errorName, message: errorName === "Panic" ? (PANICS[argument] ?? argument) : argument, data };
  } catch {
    return { name: null, message: null, data };
  }
}
