/** What a campaign compares beside the invariants: promises, stops, signatures and a limit. */
import { describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../../../src/domain/lane.ts";
import type { TransactionFact } from "../../../../src/main/dev/chaos/check.ts";
import { aboveLimit, afterStops, brokenPromises, falseSignatures } from "../../../../src/main/dev/chaos/judgement.ts";

const [ALICE, BOB] = [`0x${"Aa".repeat(20)}` as Address, `0x${"bb".repeat(20)}` as Address];
const HASH = `0x${"01".repeat(32)}` as Hash;

const stored = {
  ...{ txId: "tx-1", signer: ALICE.toLowerCase() as Address, requestId: "request-1", nonce: 1, state: "CONFIRMED" },
  ...{ subState: null, validUntil: null, expiredAt: null, receipt: null, history: [] },
  attempts: [{ hash: HASH, kind: "initial", foreign: false }],
} satisfies TransactionFact as TransactionFact;

describe("brokenPromises", () => {
  const promise = { txId: "tx-1", signer: stored.signer, requestId: "request-1" };

  it.each([
    ["is kept", {}, 0],
    ["is lost", { txId: "tx-2" }, 1],
    ["has another request id", { requestId: "request-2" }, 1],
    ["has another signer", { signer: BOB }, 1],
  ])("judges a promise that %s", (_, changed, count) => {
    expect(brokenPromises({ promised: [{ ...promise, ...changed }] }, [stored])).toHaveLength(count);
  });
});

describe("afterStops", () => {
  const suspension = { what: "suspend", signer: ALICE, node: null, fromMs: 1_000, untilMs: 3_000 };
  const kill = { what: "kill", signer: ALICE, node: "node-1", fromMs: 1_000, untilMs: 3_000 };
  const everything = { ...kill, signer: null };
  const arrival = { hash: HASH, node: "node-1", atMs: 2_000 };
  const signature = {
    ...{ signer: ALICE, requestId: "greeting-1", message: "hello", signature: "0x01" as Hex },
    ...{ node: "node-1", askedMs: 1_500, atMs: 1_600 },
  };

  it.each([
    ["bytes after a suspension", suspension, {}, 1],
    ["bytes of any node after a suspension", suspension, { node: "node-2" }, 1],
    ["bytes that left before the suspension was answered", suspension, { atMs: 1_200 }, 0],
    ["bytes after the suspension ended", suspension, { atMs: 3_100 }, 0],
    ["bytes after a kill of the node", kill, {}, 1],
    ["bytes of another node after a kill", kill, { node: "node-2" }, 0],
    ["bytes of another signer after a kill of one", { ...kill, signer: BOB }, {}, 0],
    ["bytes of any signer after a kill of everything", everything, {}, 1],
  ])("judges %s", (_, stop, changed, count) => {
    const arrivals = [{ ...arrival, ...changed }];
    expect(afterStops({ stops: [stop], signed: [] }, { arrivals, transactions: [stored] })).toHaveLength(count);
  });

  it.each([
    ["that was asked for after the stop", {}, 1],
    ["that was asked for before the stop", { askedMs: 900 }, 0],
    ["that came after the stop", { atMs: 3_100 }, 0],
    ["of another signer", { signer: BOB }, 0],
  ])("judges a signature %s", (_, changed, count) => {
    const signed = [{ ...signature, ...changed }];
    expect(afterStops({ stops: [suspension], signed }, { arrivals: [], transactions: [] })).toHaveLength(count);
  });
});

describe("falseSignatures", () => {
  const signed = {
    ...{ signer: ALICE, requestId: "greeting-1", message: "hello", signature: "0x01" as Hex },
    ...{ node: "node-1", askedMs: 0, atMs: 1, by: ALICE },
  };

  it.each([
    ["the same signature twice", {}, []],
    ["two signatures of one request", { signature: "0x02" as Hex }, ["I5: greeting-1 has two signatures"]],
    ["a signature of another key", { by: BOB }, [`sign: the signature of greeting-1 is not ${ALICE}'s`]],
  ])("judges %s", (_, changed, troubles) => {
    expect(falseSignatures([signed, { ...signed, ...changed }])).toEqual(troubles);
  });
});

describe("aboveLimit", () => {
  const mined = [
    { from: BOB, value: 60n },
    { from: BOB, value: 41n },
    { from: ALICE, value: 500n },
  ];

  it.each([
    ["within the limit", 101n, 1, 0],
    ["above the limit", 100n, 1, 1],
    ["within the limit of two days", 100n, 2, 0],
  ])("judges a value %s", (_, perDay, days, count) => {
    expect(aboveLimit(mined, { limited: BOB, perDay, days })).toHaveLength(count);
  });
});
