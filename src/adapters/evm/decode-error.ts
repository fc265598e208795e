import { decodeErrorResult, parseAbi } from "viem/utils";
import type { Hex } from "../../domain/lane.ts";
import type { DecodedError } from "../../ports/codec.ts";

/** Whoever wrote the contract chose these bytes: longer ones are shown as they are. */
const LONGEST_DATA = 10_000;

/** The ABI is a caller's and the data a contract's: whatever does not fit together is no error of this ABI. */
export function decodeError(abi: readonly unknown[], data: Hex): DecodedError | null {
  if (data.length > LONGEST_DATA) return null;
  try {
    const items = abi.every((item) => typeof item === "string") ? parseAbi(abi as readonly string[]) : abi;
    const errors = (items as readonly { readonly type?: unknown }[]).filter(({ type }) => type === "error");
    const { errorName, args } = decodeErrorResult({ abi: errors as never, data }) as {
      readonly errorName: string;
      readonly args?: readonly unknown[];
    };
    // viem knows Solidity's own errors by itself; those are decoded elsewhere, in words.
    if (!errors.some((error) => "name" in error && error.name === errorName)) return null;
    return { name: errorName, args: (args ?? []).map(asJson) };
  } catch {
    return null;
  }
}

function asJson(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asJson(each)]));
}
