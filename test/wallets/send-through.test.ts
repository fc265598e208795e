import { describe, expect, it } from "vitest";
import { FencepostError, failureOf } from "../../src/client/error-classes.ts";
import type { Problem } from "../../src/contract/schemas/problem.ts";
import type { Transaction } from "../../src/contract/schemas/transaction-schema.ts";
import { requestIdHere, withRequestId } from "../../src/wallets/request-scope.ts";
import { sendThrough } from "../../src/wallets/send-through.ts";
import type { FencepostSource, Intent } from "../../src/wallets/source.ts";
import { hashOf, RECIPIENT, SIGNER, sampleTransaction } from "./sample-transaction.ts";

const INTENT: Intent = { signer: SIGNER, requestId: "order-1", payload: { to: RECIPIENT } };

/** An error as the SDK and the library throw it. */
const failure = (code: Problem["code"] | "UNREACHABLE" | "UNEXPECTED_ANSWER", status: number, problem: object = {}) =>
  failureOf({ code, status, detail: "for a reason" }, { problem: problem as Problem });

/** Answers sends and reads with these results, one after the other; the last one repeats. */
function scripted(sends: readonly (Error | string)[], looks: readonly (Error | Transaction)[] = [sampleTransaction()]) {
  const asked: Intent[] = [];
  let looked = 0;
  const source: FencepostSource = {
    send: async (intent) => {
      const answer = sends[Math.min(asked.push(intent), sends.length) - 1];
      if (typeof answer !== "string") throw answer;
      return { txId: answer };
    },
    get: async () => {
      const answer = looks[Math.min(looked++, looks.length - 1)];
      if (answer === undefined || answer instanceof Error) throw answer;
      return answer;
    },
    list: () => Promise.reject(new Error("not asked")),
    waitFor: () => Promise.reject(new Error("not asked")),
  };
  return { source, asked };
}

describe("a send through a wallet library", () => {
  // protects [Wallet libraries, and tests of callers] src/wallets/send-through.ts
  it("is repeated under the same request id while its outcome is unknown", async () => {
    const unknown = [failure("UNREACHABLE", 0), failure("UNAVAILABLE", 503), failure("UNEXPECTED_ANSWER", 502)];
    const { source, asked } = scripted(
      [...unknown, "tx-1"],
      [sampleTransaction({ attempts: [] }), sampleTransaction()],
    );
    expect((await sendThrough(source, INTENT, 30_000)).attempt.txHash).toBe(hashOf(1));
    expect(asked).toEqual([INTENT, INTENT, INTENT, INTENT]);
  });

  it("keeps polling for the hash of an accepted transaction while a node is unavailable", async () => {
    const { source, asked } = scripted(["tx-1"], [failure("UNREACHABLE", 0), sampleTransaction()]);
    expect((await sendThrough(source, INTENT, 30_000)).transaction.txId).toBe("tx-1");
    expect(asked).toHaveLength(1);
  });

  it("fails at its timeout with the request id if the outcome is unknown", async () => {
    const { source } = scripted([failure("UNREACHABLE", 0)]);
    const error = await sendThrough(source, INTENT, 1).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: -32003, requestId: "order-1", txId: null });
    expect(error).toHaveProperty("message", expect.stringContaining("send it again with the request id order-1"));
  });

  it("fails at its timeout with the transaction's id if nothing is signed", async () => {
    const waiting = sampleTransaction({ state: "CREATED", subState: "AWAITING_APPROVAL", attempts: [] });
    const error = await sendThrough(scripted(["tx-1"], [waiting]).source, INTENT, 1).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ txId: "tx-1", requestId: "order-1", code: -32003 });
    expect(error).toBeInstanceOf(FencepostError);
    expect(error).toMatchObject({ failure: "TIMEOUT", retry: "later", docs: "fencepost/docs/viem.md#errors" });
    expect(error).toHaveProperty("message", expect.stringContaining("not signed yet: it is CREATED/AWAITING_APPROVAL"));
  });

  it("fails if the transaction ended unsigned", async () => {
    const rejected = sampleTransaction({ state: "FAILED_FINAL", subState: "REJECTED", attempts: [], lastError: "no" });
    const sending = sendThrough(scripted(["tx-1"], [rejected]).source, INTENT, 30_000);
    await expect(sending).rejects.toThrow("tx-1 ended as FAILED_FINAL/REJECTED (no) and was never signed");
  });

  it.each([
    ["a forbidden receiver", failure("FORBIDDEN", 403), { code: 4100 }],
    ["an unknown signer", failure("UNKNOWN_SIGNER", 422), { code: 4100 }],
    ["another chain", failure("UNKNOWN_CHAIN", 422), { code: 4901 }],
    ["a request id of another payload", failure("REQUEST_ID_REUSED", 409), { code: -32003 }],
    ["a page that is not Fencepost's", failure("UNEXPECTED_ANSWER", 404), { code: -32003 }],
    [
      "too little money",
      failure("SUBMISSION_REJECTED", 422, { reason: "INSUFFICIENT_FUNDS" }),
      { code: -32003, details: expect.stringMatching(/^insufficient funds for gas/) },
    ],
    [
      "a revert",
      failure("SUBMISSION_REJECTED", 422, {
        reason: "REVERT",
        revert: { name: "Error", message: "no lunch", data: "0x08" },
      }),
      { code: 3, data: "0x08", details: "execution reverted: no lunch" },
    ],
    // protects [Wallet libraries, and tests of callers] src/wallets/send-error.ts
  ])("fails with a JSON-RPC code if the outcome is known: %s", async (_, refusal, expected) => {
    const { source, asked } = scripted([refusal, "tx-1"]);
    const error = await sendThrough(source, INTENT, 30_000).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ ...expected, cause: refusal, requestId: "order-1" });
    expect(error).toBeInstanceOf(FencepostError);
    const { retry, docs, problem } = refusal;
    expect(error).toMatchObject({ failure: refusal.code, retry, docs, problem });
    // viem takes every error with this member for a revert.
    expect("data" in (error as object)).toBe("data" in expected);
    expect("data" in (error as object)).toBe("data" in expected);
    expect(asked).toHaveLength(1);
  });

  it("rethrows errors that are not Fencepost's unchanged", async () => {
    const mistake = new TypeError("a mistake");
    await expect(sendThrough(scripted([mistake]).source, INTENT, 30_000)).rejects.toBe(mistake);
  });
});

describe("the request id of a wallet send", () => {
  it("is taken from the surrounding withRequestId call", async () => {
    const named = (id: string) =>
      withRequestId(id, async () => {
        await Promise.resolve();
        return requestIdHere();
      });
    expect(await Promise.all([named("a"), named("b")])).toEqual(["a", "b"]);
    expect(requestIdHere()).toMatch(/^[0-9a-f-]{36}$/);
    expect(requestIdHere()).not.toBe(requestIdHere());
  });
});
