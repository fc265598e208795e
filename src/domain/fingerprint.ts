import { hash } from "node:crypto";
import type { Hex } from "./lane.ts";
import type { Intent, Payload } from "./transaction.ts";

/**
 * Equal payloads have equal fingerprints, whatever notation they arrived in. Only what the caller asked for takes part:
 * an estimate or a market price made here would turn an honest repeat into a reuse. Beside the payload that is `validUntil`.
 * A word that is not said adds nothing: fingerprints that are stored stay true when another word comes to be compared.
 */
export function fingerprint(payload: Payload, { validUntil }: Pick<Intent, "validUntil"> = {}): Hex {
  const canonical = JSON.stringify([
    payload.to,
    payload.data,
    payload.value.toString(),
    payload.gas?.toString() ?? null,
    payload.type ?? null,
    payload.gasPrice?.toString() ?? null,
    payload.maxFeePerGas?.toString() ?? null,
    payload.maxPriorityFeePerGas?.toString() ?? null,
    payload.accessList?.map((entry) => [entry.address, entry.storageKeys]) ?? null,
    ...(validUntil === undefined ? [] : [validUntil.toISOString()]),
  ]);
  return `0x${hash("sha256", canonical, "hex")}`;
}

/** Equal JSON has equal fingerprints, in whichever order its members stand; a bigint is its digits, as on its way to another node. */
export function fingerprintOfJson(value: unknown): Hex {
  const canonical = JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === "bigint") return each.toString();
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return `0x${hash("sha256", canonical, "hex")}`;
}
