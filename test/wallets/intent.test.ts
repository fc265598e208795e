import { describe, expect, it } from "vitest";
import { intentOf } from "../../src/wallets/intent.ts";
import { RECIPIENT, SIGNER } from "./sample-transaction.ts";

const from = SIGNER;

describe("a transaction of a wallet library", () => {
  it.each([
    ["a transfer", { from, to: RECIPIENT, value: "0x5", chainId: "0x7a69" }, { to: RECIPIENT, value: "0x5" }],
    ["a call", { from, to: RECIPIENT, data: "0x01", gas: "0x5208" }, { to: RECIPIENT, data: "0x01", gas: "0x5208" }],
    ["a call under its other name", { from, to: RECIPIENT, input: "0x01" }, { to: RECIPIENT, data: "0x01" }],
    ["both names of one thing", { from, to: RECIPIENT, input: "0x01", data: "0x01" }, { to: RECIPIENT, data: "0x01" }],
    ["a deployment", { from, data: "0x60", to: null }, { bytecode: "0x60" }],
    [
      "prices",
      { from, to: RECIPIENT, maxFeePerGas: "0x2", maxPriorityFeePerGas: "0x1", type: "0x2" },
      { type: "eip1559", to: RECIPIENT, maxFeePerGas: "0x2", maxPriorityFeePerGas: "0x1" },
    ],
    [
      "an old price",
      { from, to: RECIPIENT, gasPrice: "0x2", type: "0x0" },
      { to: RECIPIENT, gasPrice: "0x2", type: "legacy" },
    ],
  ])("is converted to a create request: %s", (_, asked, payload) => {
    const chain = "chainId" in asked ? { chainId: 31337 } : {};
    expect(intentOf(asked, "order-1")).toEqual({ signer: SIGNER, requestId: "order-1", payload, ...chain });
  });

  it("may call an address without code only if the transport allows that", () => {
    const call = { from, to: RECIPIENT, data: "0x01" };
    expect(intentOf(call, "order-1", true)).toMatchObject({ allowNoCode: true });
    expect(intentOf(call, "order-1")).not.toHaveProperty("allowNoCode");
  });

  it("keeps the caller's nonce, including 0", () => {
    expect(intentOf({ from, to: RECIPIENT, nonce: "0x0" }, "order-1")).toMatchObject({ nonce: 0 });
    expect(intentOf({ from, to: RECIPIENT, nonce: null }, "order-1")).not.toHaveProperty("nonce");
  });

  it.each([
    ["a nonce that is none", { from, to: RECIPIENT, nonce: "0x1fffffffffffffffff" }, /is no nonce/],
    [
      "blobs",
      { from, to: RECIPIENT, blobs: [], maxFeePerBlobGas: "0x1" },
      /no transactions with blobs, maxFeePerBlobGas/,
    ],
    ["an authorization", { from, to: RECIPIENT, authorizationList: [] }, /no transactions with authorizationList/],
    ["a field of another chain", { from, to: RECIPIENT, feeCurrency: RECIPIENT }, /no transactions with feeCurrency/],
    ["a type it does not send", { from, to: RECIPIENT, type: "0x4" }, /no transactions of type 0x4/],
    ["two payloads", { from, to: RECIPIENT, data: "0x01", input: "0x02" }, /data and input differ/],
    ["nobody's", { to: RECIPIENT }, /needs the account that it is from/],
    ["nothing", { from }, /needs a receiver, or the code of a contract/],
    // protects [Wallet libraries, and tests of callers] src/wallets/intent.ts
  ])("is refused and never changed silently: %s", (_, asked, message) => {
    expect(() => intentOf(asked, "order-1")).toThrow(message);
  });
});
