import { describe, expect, it } from "vitest";
import { EVERY_OUTCOME, isInside, isWanted, narrowedTo } from "../../../src/domain/webhooks/subscriber.ts";

const A = `0x${"a".repeat(40)}` as const;
const B = `0x${"b".repeat(40)}` as const;
const outcome = { lane: { chainId: 1, signer: A }, state: "CONFIRMED" } as const;

describe("the filter of a webhook", () => {
  it.each([
    ["everything", {}, true],
    ["its signer", { signers: [A] }, true],
    ["another signer", { signers: [B] }, false],
    ["its chain", { chains: [1] }, true],
    ["another chain", { chains: [2] }, false],
    ["its state", { states: ["CONFIRMED"] as const }, true],
    ["another state", { states: ["STUCK"] as const }, false],
    ["its key", { keys: ["shop"] }, true],
    ["another key", { keys: ["bank"] }, false],
    ["its signer on another chain", { signers: [A], chains: [2] }, false],
  ])("lets an outcome through if it names %s", (_, filter, wanted) => {
    expect(isWanted({ ...EVERY_OUTCOME, ...filter }, outcome, "shop")).toBe(wanted);
  });

  it("of keys lets nothing through that has no key", () => {
    expect(isWanted({ ...EVERY_OUTCOME, keys: ["shop"] }, outcome, null)).toBe(false);
  });
});

describe("a webhook of a limited key", () => {
  const limits = { signers: new Set([B, A]), chains: new Set([10, 2]) };

  it("gets the outcomes of its own signers and chains if it names none", () => {
    expect(narrowedTo(limits, EVERY_OUTCOME)).toEqual({ ...EVERY_OUTCOME, signers: [A, B], chains: [2, 10] });
    expect(narrowedTo(limits, { ...EVERY_OUTCOME, signers: [A] }).signers).toEqual([A]);
  });

  it("is hidden from the key if it gets others too", () => {
    const own = { ...EVERY_OUTCOME, signers: [A], chains: [2] };
    const others = [{ ...own, signers: null }, { ...own, chains: null }, { ...own, chains: [2, 3] }, EVERY_OUTCOME];
    expect([own, ...others].map((filter) => isInside(filter, limits))).toEqual([true, false, false, false, false]);
    expect(isInside(EVERY_OUTCOME, { signers: null, chains: null })).toBe(true);
  });
});
