import { describe, expect, it } from "vitest";
import { NotFoundError } from "../../src/client/error-classes.ts";
import { firstAttempt, minedInstead, pendingView, waitForFinal } from "../../src/wallets/attempt-hashes.ts";
import type { FencepostSource } from "../../src/wallets/source.ts";
import { attempt, hashOf, RECIPIENT, SIGNER, sampleTransaction } from "./sample-transaction.ts";

const kinds = (...names: Parameters<typeof attempt>[1][]) => names.map((kind, index) => attempt(index + 1, kind));

describe("the mined transaction that replaces an unmined attempt", () => {
  it.each([
    ["the same payload for more", kinds("initial", "reprice"), 1, 2, hashOf(2)],
    ["the same payload for less", kinds("initial", "reprice", "reprice"), 3, 1, hashOf(1)],
    ["the attempt itself", kinds("initial", "reprice"), 1, 1, null],
    ["a cancel", kinds("initial", "cancel"), 1, 2, null],
    ["a dearer cancel", kinds("initial", "cancel", "reprice"), 1, 3, null],
    ["the original of a replacement", kinds("initial", "replace"), 2, 1, null],
    ["the replacement for more", kinds("initial", "replace", "reprice"), 2, 3, hashOf(3)],
    ["a foreign transaction", kinds("initial", "external"), 1, 2, null],
  ])("is found only if the payload is the same: %s", (_, attempts, asked, mined, instead) => {
    expect(minedInstead(sampleTransaction({ attempts }, mined), hashOf(asked))).toBe(instead);
  });

  it("is null while nothing is mined", () => {
    const attempts = kinds("initial", "reprice");
    expect(minedInstead(sampleTransaction({ attempts }), hashOf(1))).toBeNull();
    expect(minedInstead(sampleTransaction({ attempts }, 1), hashOf(9))).toBeNull();
  });
});

describe("the pending view of an attempt", () => {
  it("has the form of a node's pending transaction, with lower-case addresses", () => {
    expect(pendingView(sampleTransaction(), hashOf(1).toUpperCase().replace("0X", "0x"))).toMatchObject({
      hash: hashOf(1),
      from: SIGNER.toLowerCase(),
      to: RECIPIENT.toLowerCase(),
      nonce: "0x4",
      value: "0x5",
      gas: "0x5208",
      type: "0x2",
      maxFeePerGas: "0x77359400",
      blockNumber: null,
    });
  });

  it("is absent if the attempt has another payload than the transaction", () => {
    const attempts = kinds("initial", "cancel");
    expect(pendingView(sampleTransaction({ attempts }), hashOf(2))).toBeNull();
    expect(pendingView(sampleTransaction(), hashOf(9))).toBeNull();
  });

  it("uses the transaction's first attempt", () => {
    const attempts = kinds("initial", "reprice");
    expect(firstAttempt(sampleTransaction({ attempts: attempts.toReversed() }))?.txHash).toBe(hashOf(1));
    const unsaid = [{ ...attempt(1, "initial"), txHash: null }, attempt(2, "reprice")];
    expect(firstAttempt(sampleTransaction({ attempts: unsaid }))).toBeNull();
    expect(firstAttempt(sampleTransaction({ attempts: [] }))).toBeNull();
  });
});

describe("waitForFinal", () => {
  const source = (found: boolean): FencepostSource => ({
    send: () => Promise.reject(new Error("not asked")),
    get: () => Promise.reject(new Error("not asked")),
    list: async ({ txHash }) => ({ items: found && txHash === hashOf(1) ? [sampleTransaction()] : [] }),
    waitFor: async (txId) => sampleTransaction({ txId, state: "CONFIRMED" }),
  });

  it("waits by transaction id, or by the hash of any attempt", async () => {
    expect(await waitForFinal(source(true), { txId: "tx-9" })).toMatchObject({ txId: "tx-9", state: "CONFIRMED" });
    expect(await waitForFinal(source(true), { hash: hashOf(1) })).toMatchObject({ txId: "tx-1" });
  });

  it("fails if no transaction has the hash", async () => {
    const failed = waitForFinal(source(false), { hash: hashOf(1) });
    await expect(failed).rejects.toThrow(/knows no transaction with the hash/);
    await expect(failed).rejects.toBeInstanceOf(NotFoundError);
    await expect(waitForFinal(source(true), {})).rejects.toMatchObject({ code: "INVALID_REQUEST", path: "hash" });
  });
});
