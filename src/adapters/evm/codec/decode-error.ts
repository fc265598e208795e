import { decodeErrorResult, parseAbi } from "viem/utils";
import type { Hex } from "../../../domain/lane.ts";
import type { DecodedError } from "../../../ports/codec.ts";

/** The contract's author chooses the revert data. Longer data is shown undecoded. */
const LONGEST_DATA = 10_000;

/** The ABI is the caller's and the data the contract's. Null if they do not match. */
export function decodeError(abi: readonly unknown[], data: Hex): DecodedError | null {
  if (data.length > LONGEST_DATA) return null;
  try {
    const items = abi.every((item) => typeof item === "string") ? parseAbi(abi as readonly string[]) : abi;
    const errors = (items as readonly { readonly type?: unknown }[]).filter(({ type }) => type === "error");
    const { errorName, args } = decodeErrorResult({ abi: errors as never, data }) as {
      readonly errorName: string;
      readonly args?: readonly unknown[];
    };
    // viem also decodes Solidity's own errors; error-texts.ts does that with readable messages.
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
