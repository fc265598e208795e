import { hash } from "node:crypto";
import type { Hex } from "../lane.ts";
import type { Intent, Payload } from "./transaction.ts";

/**
 * Fingerprint of a payload, independent of notation. Only the caller's input is part of it. With an estimate or a
 * market price in it, a repeat of the same request would look like a reuse of the request id. `validUntil` is part of
 * it if given. An absent field adds nothing, so that stored fingerprints stay valid when another field is introduced.
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

/** Fingerprint of JSON, independent of member order; a bigint counts as its digits. */
export function fingerprintOfJson(value: unknown): Hex {
  const canonical = JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === "bigint") return each.toString();
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return `0x${hash("sha256", canonical, "hex")}`;
}
