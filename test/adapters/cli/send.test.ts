import { describe, expect, it } from "vitest";
import {
  type CreateTransaction,
  FencepostApiError,
  type FencepostClient,
  type Transaction,
} from "../../../src/client/index.ts";
import { type CommandWorld, runCommand } from "../../support/command.ts";
import * as examples from "../../support/sample-answers.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const TOKEN = { abi: [{ type: "constructor", inputs: [{ type: "uint256" }] }] };

interface Script extends Omit<CommandWorld, "actions"> {
  /** The transaction's state that the fake node returns at each poll. */
  readonly states?: readonly Partial<Transaction>[];
  readonly failure?: FencepostApiError;
}

async function run(argv: readonly string[], { states = [], failure, ...world }: Script = {}) {
  const sent: unknown[] = [];
  let looks = 0;
  const client = {
    send: async (intent: CreateTransaction) => {
      sent.push(intent);
      if (failure !== undefined) throw failure;
      return { ...examples.created, requestId: intent.requestId ?? null };
    },
    get: async () => ({ ...examples.transaction, ...states[Math.min(looks++, states.length - 1)] }),
  };
  const connect = async () => client as unknown as FencepostClient;
  return { ...(await runCommand(["send", ...argv], { ...world, actions: { connect } })), sent };
}

const from = ["--signer", SIGNER];
const payloadOf = async (argv: readonly string[], files: Readonly<Record<string, string>> = {}) => {
  const { sent, stderr } = await run([...from, ...argv], { files });
  expect(stderr).toBe("");
  return (sent[0] as { payload: unknown }).payload;
};

describe("fencepost send", () => {
  it("builds a transfer from an amount with its unit", async () => {
    expect(
      await payloadOf(["--to", TO, "--value", "1.5ether", "--max-fee-per-gas", "20gwei", "--gas", "21000"]),
    ).toEqual({
      to: TO,
      value: "1500000000000000000",
      maxFeePerGas: "20000000000",
      gas: "21000",
    });
    expect(await payloadOf(["--to", TO, "--data", "0xa9059cbb"])).toEqual({ to: TO, data: "0xa9059cbb" });
  });

  it("names a pool of signers and a sticky key in the request, instead of one signer", async () => {
    const to = ["--to", TO];
    const signerOf = async (argv: readonly string[]) => (await run([...argv, ...to])).sent[0];
    expect(await signerOf(["--pool", "payouts"])).toMatchObject({ signer: { pool: "payouts" } });
    expect(await signerOf(["--pool", "payouts", "--sticky", "customer-7"])).toMatchObject({
      signer: { pool: "payouts", stickyKey: "customer-7" },
    });
    const files = { "tx.json": JSON.stringify({ payload: { to: TO } }) };
    const { sent } = await run(["--file", "tx.json", "--pool", "payouts"], { files });
    expect(sent).toMatchObject([{ signer: { pool: "payouts" }, payload: { to: TO } }]);
  });

  it("sends the exact nonce that --nonce gives", async () => {
    const { sent } = await run([...from, "--to", TO, "--nonce", "0"]);
    expect(sent).toMatchObject([{ nonce: 0 }]);
  });

  it.each([
    ["a pool beside a signer", [...from, "--pool", "payouts"], /instead of --signer/],
    ["a sticky key without a pool", [...from, "--sticky", "k"], /--pool/],
  ])("refuses %s", async (_, argv, line) => {
    const { code, stderr, sent } = await run([...argv, "--to", TO]);
    expect(code).toBe(2);
    expect(stderr).toMatch(line);
    expect(sent).toEqual([]);
  });

  it("sends a call as signature and arguments, and leaves the encoding to the node", async () => {
    expect(await payloadOf(["--to", TO, "transfer(address,uint256)", SIGNER, "100"])).toEqual({
      to: TO,
      function: "transfer(address,uint256)",
      args: [SIGNER, "100"],
    });
    const abi = [{ type: "function", name: "pause", inputs: [{ type: "bool" }] }];
    const files = { "abi.json": JSON.stringify({ abi }) };
    expect(await payloadOf(["--to", TO, "--abi", "abi.json", "pause", "true"], files)).toEqual({
      to: TO,
      function: "pause",
      abi,
      args: [true],
    });
  });

  it.each([
    ["in JSON", [{ type: "function", name: "pay", inputs: [{ type: "string" }, { type: "uint256" }] }]],
    ["in Solidity's words", ["error Poor()", "function pay(string memo, uint256 amount)"]],
  ])("parses arguments by an ABI that is given %s", async (_, abi) => {
    const files = { "abi.json": JSON.stringify(abi) };
    expect(await payloadOf(["--to", TO, "--abi", "abi.json", "pay", "[rent]", "2gwei"], files)).toMatchObject({
      args: ["[rent]", "2000000000"],
    });
    const artifact = { "T.json": JSON.stringify({ ...TOKEN, bytecode: "0x6000" }) };
    expect(await payloadOf(["--deploy", "T.json", "2gwei"], artifact)).toMatchObject({ args: ["2000000000"] });
  });

  it("leaves arguments unchanged if the ABI has several functions with the given name", async () => {
    const abi = ["function pay(uint256 amount)", "function pay(bytes data)"];
    const files = { "abi.json": JSON.stringify(abi) };
    expect(await payloadOf(["--to", TO, "--abi", "abi.json", "pay", "2gwei"], files)).toMatchObject({
      args: ["2gwei"],
    });
  });

  it("accepts the options --valid-until and --allow-no-code", async () => {
    const said = { validUntil: "2026-11-02T09:45:00Z", allowNoCode: true };
    const argv = ["--valid-until", said.validUntil, "--allow-no-code"];
    expect((await run([...from, "--to", TO, ...argv])).sent).toMatchObject([said]);
    const files = { "tx.json": JSON.stringify({ payload: { to: TO } }) };
    expect((await run([...from, "--file", "tx.json", ...argv], { files })).sent).toMatchObject([said]);
  });

  it.each([
    ["as Hardhat writes it", { ...TOKEN, bytecode: "0x6000" }],
    ["as Foundry writes it", { ...TOKEN, bytecode: { object: "0x6000" } }],
    ["as solc writes it, without 0x", { ...TOKEN, bytecode: "6000" }],
  ])("deploys a compiled contract from a file %s", async (_, artifact) => {
    const files = { "Token.json": JSON.stringify(artifact) };
    const expected = { bytecode: "0x6000", abi: TOKEN.abi, args: ["42"] };
    expect(await payloadOf(["--deploy", "Token.json", "42"], files)).toEqual(expected);
  });

  it("deploys bytecode, with the constructor's signature if the constructor has arguments", async () => {
    expect(await payloadOf(["--bytecode", "0x6000"])).toEqual({ bytecode: "0x6000" });
    expect(await payloadOf(["--bytecode", "0x6000", "constructor(uint256[])", "[1,2]"])).toEqual({
      bytecode: "0x6000",
      abi: ["constructor(uint256[])"],
      args: [["1", "2"]],
    });
  });

  it("sends the content of a file or of standard input", async () => {
    const content = JSON.stringify({ signer: TO, requestId: "of-the-file", payload: { to: TO } });
    for (const path of ["tx.json", "-"]) {
      const { sent } = await run(["--file", path, "--signer", SIGNER], { files: { [path]: content } });
      expect(sent).toEqual([{ signer: SIGNER, requestId: "of-the-file", payload: { to: TO } }]);
    }
  });

  // protects [The command line] src/adapters/cli/send.ts
  it("prints how to retry if there is no response", async () => {
    const lost = new FencepostApiError({ code: "UNREACHABLE", status: 0, detail: "http://n does not answer" });
    const { sent, code, stderr } = await run([...from, "--to", TO], { failure: lost });
    expect(sent).toMatchObject([{ requestId: "cli-made-up" }]);
    expect(code).toBe(4);
    expect(stderr).toBe(
      "fencepost: http://n does not answer: it may have been accepted; repeat it with --request-id cli-made-up, and it is sent once\n",
    );
    const refused = new FencepostApiError({ code: "REQUEST_ID_REUSED", status: 409, detail: "another payload" });
    expect(await run([...from, "--to", TO], { failure: refused })).toMatchObject({ code: 3 });
  });

  it("prints the accepted transaction as readable text or as JSON", async () => {
    const { stdout, code } = await run([...from, "--to", TO, "--request-id", "order-42"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`accepted: transaction ${examples.created.txId} (nonce ${examples.created.nonce} of`);
    const { stdout: inJson } = await run([...from, "--to", TO, "--request-id", "order-42", "--json"]);
    expect(JSON.parse(inJson)).toEqual({ ...examples.created, requestId: "order-42" });
  });
});

describe("fencepost send --wait", () => {
  const wait = [...from, "--to", TO, "--wait"];
  const pending = { state: "TRACKING", subState: "PENDING" } as const;

  it.each([
    [0, { state: "CONFIRMED", subState: null }],
    [5, { state: "CONFIRMED", subState: "REPLACED" }],
    [5, { state: "FAILED_FINAL", subState: "REVERTED" }],
    [5, { state: "FAILED_FINAL", subState: "CANCELLED" }],
    // protects [The command line] src/adapters/cli/until-final.ts
  ] as const)("exits with code %i if the transaction ends as %j", async (code, end) => {
    const ended = await run(wait, { states: [pending, pending, end] });
    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(new RegExp(`^state +${end.state}`, "m"));
  });

  it("prints only the result on standard output", async () => {
    const end = { state: "CONFIRMED", subState: null } as const;
    const { stdout, stderr } = await run([...wait, "--json"], { states: [pending, pending, end] });
    expect(JSON.parse(stdout)).toMatchObject({ state: "CONFIRMED" });
    expect(stderr.match(/PENDING/g)).toHaveLength(1);
  });

  // protects [The command line] src/adapters/cli/until-final.ts
  it("keeps waiting for a STUCK transaction until the timeout", async () => {
    const { code, stderr } = await run([...wait, "--timeout", "5s"], { states: [{ state: "STUCK", subState: null }] });
    expect(code).toBe(6);
    expect(stderr).toContain(
      `is still STUCK: it continues; wait again: fencepost tx ${examples.transaction.txId} --wait`,
    );
  });
});

describe("fencepost send, before it calls a node,", () => {
  it.each([
    [["--to", TO], /--signer is missing.*fencepost signers/],
    [from, /--to is missing/],
    [[...from, "--to", TO, "--value", "1.5"], /name the unit, as in 1.5ether/],
    [[...from, "--to", TO, "transfer"], /transfer is no signature/],
    [[...from, "--to", TO, "transfer(address)"], /takes 1 arguments \(address\), but 0 are given/],
    [[...from, "--to", TO, "--data", "0x", "pause()"], /give no signature beside it/],
    [[...from, "--to", TO, "--bytecode", "0x60"], /a new contract has no --to/],
    [[...from, "--bytecode", "0x60", "7"], /arguments of a constructor need its signature/],
    [["--file", "tx.json", "pause()"], /--file has the whole transaction/],
    [["--file", "not.json"], /not.json is not a JSON object/],
    [[...from, "--deploy", "empty.json"], /empty.json has no bytecode/],
    [[...from, "--to", TO, "--abi", "empty.json", "f"], /empty.json has no ABI/],
    [[...from, "--to", TO, "--type", "blob"], /argument 'blob' is invalid/],
  ])("refuses the arguments %j", async (argv, line) => {
    const { code, sent, stderr } = await run(argv, { files: { "tx.json": "{}", "not.json": "[", "empty.json": "{}" } });
    expect(code).toBe(2);
    expect(sent).toEqual([]);
    expect(stderr).toMatch(line);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("fencepost send with several transactions in a file", () => {
  const many = JSON.stringify({
    transactions: [
      { signer: SIGNER, payload: {} },
      { signer: SIGNER, payload: {} },
    ],
  });

  it("gives each transaction its own request id", async () => {
    const asked: unknown[] = [];
    const problem = { type: "/docs", title: "t", status: 422, code: "UNKNOWN_SIGNER" as const, detail: "nobody" };
    const client = {
      sendBatch: async (transactions: readonly CreateTransaction[]) => {
        asked.push(...transactions.map(({ requestId }) => requestId));
        return [{ status: 202, ...examples.created }, problem];
      },
    };
    const actions = { connect: async () => client as unknown as FencepostClient };
    const argv = ["send", "--file", "many.json", "--request-id", "payday"];
    const { code, stdout, stderr } = await runCommand(argv, { actions, files: { "many.json": many } });
    expect(asked).toEqual(["payday-1", "payday-2"]);
    expect(stdout).toContain("refused: item 2: UNKNOWN_SIGNER: nobody\n");
    expect([code, stderr]).toEqual([3, "fencepost: 1 of 2 were refused; the others are accepted\n"]);
  });
});
