import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  classifySubmission,
  namedGasCap,
  SUBMISSION_WORDINGS,
} from "../../../../src/adapters/evm/submit/submission-wordings.ts";
import type { SubmitAnswer } from "../../../../src/domain/chain/answers.ts";
import { NODE_ANSWERS, WRAPPED_ANSWERS } from "../node-answers.ts";

const say = (message: string, code = -32000, data?: unknown) => classifySubmission({ code, message, data });

describe("the classification of eth_sendRawTransaction errors", () => {
  it.each(NODE_ANSWERS.map(([client, message, answer, code = -32000]) => ({ client, message, answer, code })))(
    "maps the text of $client: $message → $answer",
    ({ message, answer, code }) => {
      expect(say(message, code)).toBe(answer);
    },
  );

  it("ignores upper and lower case", () => {
    for (const [, message, answer] of NODE_ANSWERS) {
      expect([message.toUpperCase(), message.toLowerCase()].map((text) => say(text))).toEqual([answer, answer]);
    }
  });

  it("does not depend on the error code", () => {
    const codes = [-32000, -32001, -32003, -32005, -32010, -32602, -32603, 3, 0];
    for (const [, message, answer] of NODE_ANSWERS) {
      expect(codes.map((code) => say(message, code))).toEqual(codes.map(() => answer));
    }
  });

  it("is tested with at least sixty wordings from all clients", () => {
    expect(NODE_ANSWERS.length).toBeGreaterThanOrEqual(60);
    const named = new Set(NODE_ANSWERS.map(([client]) => client));
    for (const client of [
      "geth",
      "Erigon",
      "Nethermind",
      "Besu",
      "Reth",
      "anvil",
      "EDR",
      "Nitro",
      "op-geth",
      "zkSync",
      "bor",
    ]) {
      expect(named).toContain(client);
    }
    const answers: SubmitAnswer[] = [
      "alreadyKnown",
      "nonceConsumed",
      "nonceTooHigh",
      "underpriced",
      "insufficientFunds",
      "rejected",
      "unknown",
    ];
    expect([...new Set(NODE_ANSWERS.map(([, , answer]) => answer))].sort()).toEqual(answers.sort());
  });

  it.each(SUBMISSION_WORDINGS)("recognises every wording of its table: $says", ({ says, answer }) => {
    expect(say(says.replaceAll("…", "123"))).toBe(answer);
  });

  it("lists no wording twice in its table", () => {
    const words = SUBMISSION_WORDINGS.map((each) => each.says);
    expect(words.filter((each, index) => words.indexOf(each) !== index)).toEqual([]);
  });
});

describe("the gas cap per transaction in a refusal", () => {
  const capOf = (message: string, data?: unknown) => namedGasCap({ code: -32000, message, data });

  it.each([
    ["geth", "transaction gas limit too high (cap: 16777216, tx: 20000000)", 16_777_216n],
    ["Reth, anvil", "transaction gas limit (20000000) is greater than the cap (16777216)", 16_777_216n],
    ["Nethermind", "TxGasLimitCapExceeded: Gas limit 20000000 exceeded cap of 16777216.", 16_777_216n],
    ["Besu", "Transaction gas limit must be at most 16777216", 16_777_216n],
    ["EDR", "Transaction gas limit is 20000000 and exceeds transaction gas cap of 16777216", 16_777_216n],
    ["Base", "exceeds maximum per-transaction gas limit: transaction gas 37801375, limit 25000000", 25_000_000n],
  ])("is read from the text of %s: %s", (_, message, cap) => {
    expect(capOf(message)).toBe(cap);
    expect(capOf("Internal JSON-RPC error.", { message }), "wrapped").toBe(cap);
  });

  it.each([
    ["no number is named", "exceeds max transaction gas limit"],
    ["a block is meant", "Transaction gas limit is 60000001 and exceeds block gas limit of 60000000"],
    [
      "a block is meant",
      "Transaction gas limit is greater than the block gas limit, gas_limit: 60000000, cap: 30000000",
    ],
    ["a price is meant", "tx fee (1.10 ether) exceeds the configured cap (1.00 ether)"],
    ["something else was refused", "max initcode size exceeded: code size 49153 limit 49152"],
  ])("is reported as unknown because %s: %s", (_, message) => {
    expect(capOf(message)).toBeNull();
  });
});

// protects [Chains that differ] src/adapters/evm/codec/error-texts.ts
describe("submission errors wrapped by RPC gateways", () => {
  it.each(WRAPPED_ANSWERS)("are classified by the wrapped text: %s", (_, error, answer) => {
    expect(classifySubmission(error)).toBe(answer);
  });
});

// protects [Chains that differ] src/adapters/evm/submit/submission-wordings.ts
describe("submission errors classified as unknown", () => {
  it.each([
    ["a contract's own text", "execution reverted: nonce too low", 3],
    ["a contract's own text, in the format of zkSync", "execution reverted: already known", 3],
    [
      "Hardhat after mining at once",
      "VM Exception while processing transaction: reverted with reason string 'nonce too low'",
      -32603,
    ],
    ["Besu's revert", "Execution reverted: insufficient funds", -32000],
    ["ganache", "VM Exception while processing transaction: revert insufficient funds for gas * price + value", -32000],
    [
      "zkSync's account validation",
      "failed to validate the transaction. reason: Validation revert: Account validation error: nonce too low",
      3,
    ],
  ])("include reverts whose text looks like a node's error: %s", (_, message, code) => {
    expect(say(message, code)).toBe("unknown");
  });

  it("include reverts that are recognised only by their data", () => {
    const data = `0x08c379a0${"0".repeat(64)}`;
    expect(say("nonce too low", 3, data)).toBe("unknown");
    expect(say("nonce too low", -32603, { message: "nonce too low", data })).toBe("unknown");
    expect(say("nonce too low", -32015, `Reverted ${data}`)).toBe("unknown");
  });

  it.each([
    "authority nonce too low",
    "block already known",
    "the nonce too low error was not found",
    "transaction is not already known",
    "no insufficient funds here",
    "known transactions are listed elsewhere",
    "gas limit reached",
    "invalid transaction nonce",
    "OwnNonceAlreadyUsed",
    "exceeds the per second request limit",
    "daily request count exceeded, request rate limited",
    "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.",
    "too many requests, please try again later",
    "rate limit exceeded: replacement is allowed in 3s",
    "project ID request rate exceeded",
    "context deadline exceeded",
    "i/o timeout",
    "header not found",
    "missing trie node 1234",
    "Internal error",
    "internal error",
    "transaction indexing is in progress",
    "the method eth_sendRawTransaction does not exist/is not available",
    "502 Bad Gateway",
    "tx dropped due to L2 congestion",
    "nonce",
    "low",
    "",
    " ",
    ":::",
  ])("include the text %j", (message) => {
    expect(say(message)).toBe("unknown");
  });

  it("include texts that match two different answers", () => {
    expect(say("nonce too low: already known")).toBe("unknown");
    expect(say("already known", -32603, { message: "nonce too low" })).toBe("unknown");
    expect(say("node is syncing: nonce too low")).toBe("unknown");
  });

  it("include `txpool is full`, even with a price in the text", () => {
    expect(say("txpool is full: transaction underpriced")).toBe("unknown");
  });

  it("include random text, in the message or in data", () => {
    const known = SUBMISSION_WORDINGS.map((each) => each.says.split("…")[0]?.trim() ?? "");
    const text = fc
      .string({ unit: "grapheme", maxLength: 200 })
      .filter((each) => !known.some((says) => each.toLowerCase().includes(says)));
    fc.assert(fc.property(text, fc.integer(), (message, code) => say(message, code) === "unknown"));
    fc.assert(
      fc.property(text, (message) => say("Internal error", -32603, { message, data: { message } }) === "unknown"),
    );
  });

  it("include texts in which a known phrase is only part of a clause", () => {
    const word = fc.stringMatching(/^[a-z]{3,9}$/);
    const phrase = fc.constantFrom("nonce too low", "already known", "insufficient funds", "exceeds block gas limit");
    fc.assert(fc.property(word, phrase, (before, says) => say(`${before} ${says}`) === "unknown"));
  });

  it("never count as accepted", () => {
    const answers = new Set([
      "alreadyKnown",
      "nonceConsumed",
      "nonceTooHigh",
      "underpriced",
      "insufficientFunds",
      "rejected",
      "unknown",
    ]);
    const pieces = fc.array(
      fc.oneof(fc.string(), fc.constantFrom(...SUBMISSION_WORDINGS.map((each) => each.says), ": ", "'", "(", "\u0000")),
    );
    const message = pieces.map((each) => each.join(""));
    fc.assert(
      fc.property(message, fc.integer(), fc.jsonValue(), (text, code, data) => answers.has(say(text, code, data))),
    );
  });

  it("include texts of a megabyte and data nested 10,000 levels deep", () => {
    expect(say(`${"x ".repeat(500_000)}nonce too low`)).toBe("unknown");
    let data: unknown = "nonce too low";
    for (let depth = 0; depth < 10_000; depth++) data = { data };
    expect(say("Internal error", -32603, data)).toBe("unknown");
  });
});
