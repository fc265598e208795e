import { describe, expect, it } from "vitest";
import { fetchOutcome } from "../../../../src/adapters/evm/reads/read-outcome.ts";
import { ChainUnavailable, type PassedAnswer } from "../../../../src/ports/chain.ts";

const TX = `0x${"11".repeat(32)}` as const;
const BLOCK = `0x${"22".repeat(32)}` as const;
const TOKEN = `0x${"aa".repeat(20)}` as const;
const [FROM, TO] = ["01", "02"].map((digits) => `0x${digits.padStart(64, "0")}`);
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const word = (value: number | bigint) => value.toString(16).padStart(64, "0");

const log = (given: object = {}) => ({ address: TOKEN, topics: [TRANSFER, FROM, TO], data: `0x${word(7)}`, ...given });
const receipt = (logs: unknown, given: object = {}) => ({ transactionHash: TX, blockHash: BLOCK, logs, ...given });
const result = (value: unknown): PassedAnswer => ({ kind: "result", result: value });

/** A fake endpoint with a response for each method; `asked` records the requests. */
function endpoint(answers: Readonly<Record<string, PassedAnswer>>) {
  const asked: unknown[] = [];
  const ask = async (method: string, params: unknown): Promise<PassedAnswer> => {
    asked.push([method, params]);
    return answers[method] ?? { kind: "error", code: -32601, message: "no" };
  };
  return { ask, asked };
}

const shown = (logs: unknown, given: object = {}) =>
  fetchOutcome(endpoint({ eth_getTransactionReceipt: result(receipt(logs, given)) }).ask, { txHash: TX, replay: null });

describe("the logs of a mined transaction", () => {
  it("are decoded if they are well-known events", async () => {
    const outcome = await shown([
      log(),
      log({ topics: [TRANSFER, FROM, TO, `0x${word(9)}`], data: "0x" }),
      log({ topics: [TRANSFER, `0x${"ff".repeat(32)}`, TO] }),
      log({ topics: [], data: "0x00ff" }),
    ]);
    const zero = "0".repeat(38);
    const from = { name: "from", value: `0x${zero}01` };
    const to = { name: "to", value: `0x${zero}02` };
    expect(outcome?.logs.map(({ event }) => event)).toEqual([
      { name: "Transfer", args: [from, to, { name: "value", value: "7" }] },
      { name: "Transfer", args: [from, to, { name: "tokenId", value: "9" }] },
      null,
      null,
    ]);
    expect(outcome).toMatchObject({ blockHash: BLOCK, more: 0, revert: null });
  });

  // protects [Everything at once] src/adapters/evm/reads/read-outcome.ts
  it("are limited to a hundred logs of a thousand bytes each", async () => {
    const data = `0x${"ab".repeat(5_000)}`;
    const outcome = await shown(Array.from({ length: 1_000 }, () => log({ data })));
    expect([outcome?.logs.length, outcome?.more]).toEqual([100, 900]);
    expect(outcome?.logs[0]).toMatchObject({ dataLength: 5_000, event: null });
    expect(outcome?.logs[0]?.data).toHaveLength(2 + 2 * 1_024);
  });

  it.each<[string, unknown, object]>([
    ["no list", { length: 3 }, {}],
    ["null", null, {}],
    ["a log that is none", ["<script>"], {}],
    ["an address that is none", [log({ address: "javascript:alert(1)" })], {}],
    ["a topic that is none", [log({ topics: ["0x12"] })], {}],
    ["five topics", [log({ topics: [TRANSFER, FROM, TO, FROM, TO] })], {}],
    ["half a byte", [log({ data: "0xabc" })], {}],
    ["another transaction's", [log()], { transactionHash: BLOCK }],
    ["no block", [log()], { blockHash: null }],
    // protects [Everything at once] src/adapters/evm/reads/read-outcome.ts
  ])("are refused as a bad answer if they contain %s", async (_, logs, given) => {
    await expect(shown(logs, given)).rejects.toBeInstanceOf(ChainUnavailable);
  });

  it("are null if the endpoint has no receipt", async () => {
    const question = { txHash: TX, replay: null };
    expect(await fetchOutcome(endpoint({ eth_getTransactionReceipt: result(null) }).ask, question)).toBeNull();
    await expect(fetchOutcome(endpoint({}).ask, question)).rejects.toBeInstanceOf(ChainUnavailable);
  });
});

describe("the revert reason found by replaying a mined transaction", () => {
  const call = { from: TOKEN, to: TOKEN, data: "0x1234", value: 5n, gas: 90_000n } as const;
  const question = { txHash: TX, replay: { call, onBlock: 41 } };
  const of = (answer: PassedAnswer) => endpoint({ eth_getTransactionReceipt: result(receipt([])), eth_call: answer });
  const reverted = (data: unknown): PassedAnswer => ({ kind: "error", code: 3, message: "execution reverted", data });
  const REASON = `0x08c379a0${word(32)}${word(3)}${Buffer.from("no!").toString("hex").padEnd(64, "0")}`;

  it("is read from the state before the transaction's block", async () => {
    const node = of(reverted(REASON));
    expect(await fetchOutcome(node.ask, question)).toMatchObject({
      revert: { name: "Error", message: "no!", data: REASON },
    });
    const sent = { from: TOKEN, to: TOKEN, data: "0x1234", value: "0x5", gas: "0x15f90" };
    expect(node.asked).toContainEqual(["eth_call", [sent, "0x29"]]);
  });

  it("keeps the raw bytes of a custom error, up to a limit", async () => {
    const data = `0xdeadbeef${"00".repeat(4_000)}`;
    const outcome = await fetchOutcome(of(reverted(data)).ask, question);
    expect(outcome?.revert).toMatchObject({ name: null, message: null, data: data.slice(0, 2_050) });
  });

  it("is null if the replay does not revert", async () => {
    expect((await fetchOutcome(of(result("0x")).ask, question))?.revert).toBeNull();
    const words = await fetchOutcome(
      of({ kind: "error", code: -32000, message: "no state\u0000 of that block" }).ask,
      question,
    );
    expect(words?.revert).toEqual({ name: null, message: "no state  of that block", data: "0x" });
  });
});
