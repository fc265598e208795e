import { describe, expect, it } from "vitest";
import { type Call, ChainUnavailable, type Simulation } from "../../../src/ports/chain.ts";
import { useEvmBench } from "../../support/evm-bench.ts";
import { Refusal } from "../../support/faulty-rpc.ts";
import { REVERT_DATA } from "../../support/reverting-contracts.ts";

const bench = useEvmBench();

const CALL: Call = { from: `0x${"11".repeat(20)}`, to: `0x${"22".repeat(20)}`, data: "0x", value: 0n };
const REASON = `0x${REVERT_DATA.withReason}`;

type Refused = readonly [code: number, message: string, data?: unknown];

/** Runs a simulation for which the endpoint refuses both forms of the call with this error, and returns the result. */
async function outcomeOf([code, message, data]: Refused, gas?: bigint): Promise<Simulation> {
  const { server, chain } = await bench();
  for (const method of ["eth_estimateGas", "eth_call"]) {
    server.on(method, () => {
      throw new Refusal(code, message, data);
    });
  }
  return chain.simulate(gas === undefined ? CALL : { ...CALL, gas });
}

describe("simulating a transaction", () => {
  it("uses eth_estimateGas if no gas limit is given", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x5208");
    server.on("eth_call", () => "0x");
    expect(await chain.simulate(CALL)).toMatchObject({ outcome: "ok", gas: 21_000n });
    expect(await chain.simulate({ ...CALL, gas: 50_000n })).toMatchObject({ outcome: "ok", gas: 50_000n });
    const [estimate] = server.calls("eth_estimateGas");
    expect(estimate?.params).toEqual([{ from: CALL.from, to: CALL.to, data: "0x", value: "0x0" }, "latest"]);
    expect(server.calls("eth_call")[0]?.params[0]).toMatchObject({ gas: "0xc350" });
  });

  // protects [Chains that differ] src/application/chain/chain-context.ts, src/adapters/evm/reads/simulate-call.ts
  it("reports on request whether the receiver has code, in the same round trip", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x5208");
    server.on("eth_call", () => "0x");
    const asking = { ...CALL, data: "0xa9059cbb", asksCode: true } as const;
    await chain.simulate({ ...CALL, data: "0xa9059cbb" });
    const before = server.requests.length;
    for (const [code, hasCode] of [
      ["0x", false],
      ["0x6080", true],
      [`0xef0100${"11".repeat(20)}`, true],
    ] as const) {
      server.on("eth_getCode", () => code);
      expect(await chain.simulate(asking)).toMatchObject({ outcome: "ok", hasCode });
      expect(await chain.simulate({ ...asking, gas: 50_000n })).toMatchObject({ outcome: "ok", hasCode });
    }
    expect(server.requests.length - before, "six simulations, one request each").toBe(6);
  });

  it.each([null, 7, "", "0x0", "nothing", {}])(
    "reports nothing about the receiver's code if eth_getCode returns %j",
    async (code) => {
      const { server, chain } = await bench();
      server.on("eth_call", () => "0x");
      server.on("eth_getCode", () => code);
      const asking = { ...CALL, data: "0x01", gas: 50_000n, asksCode: true } as const;
      expect(await chain.simulate(asking)).not.toHaveProperty("hasCode");
      server.on("eth_getCode", () => {
        throw new Refusal(-32_601, "the method eth_getCode does not exist");
      });
      expect(await chain.simulate(asking)).not.toHaveProperty("hasCode");
    },
  );

  // protects [Holes] src/adapters/evm/reads/simulate-call.ts
  it("reads no block, because the gas limit of the newest block is already known", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x5208");
    server.on("eth_call", () => "0x");
    await chain.simulate(CALL);
    await chain.simulate({ ...CALL, gas: 50_000n });
    expect(server.calls("eth_getBlockByNumber")).toEqual([]);
  });

  it("refuses a gas estimate above any possible gas limit as a bad answer", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x8000000000000000");
    await expect(chain.simulate(CALL)).rejects.toThrow(ChainUnavailable);
  });

  it("omits `to` for a deployment, and includes an access list", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x5208");
    const accessList = [{ address: CALL.from, storageKeys: [] }];
    await chain.simulate({ ...CALL, to: null, data: "0x6000", accessList });
    expect(server.calls("eth_estimateGas")[0]?.params[0]).toEqual({
      from: CALL.from,
      data: "0x6000",
      value: "0x0",
      accessList,
    });
  });

  it("also compares the value with the sender's balance, because some nodes do not", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0x5208");
    expect((await chain.simulate({ ...CALL, value: 10n ** 18n + 1n })).outcome).toBe("insufficientFunds");
    expect((await chain.simulate({ ...CALL, value: 10n ** 18n })).outcome).toBe("ok");
  });

  it.each<[string, Refused]>([
    ["geth, Reth, anvil", [3, "execution reverted: no lunch", REASON]],
    ["Erigon", [3, "execution reverted", REASON]],
    ["Besu", [-32000, "Execution reverted: no lunch", REASON]],
    ["Nethermind", [-32015, "VM execution error.", REASON]],
    ["OpenEthereum", [-32015, "VM execution error.", `Reverted ${REASON}`]],
    [
      "Hardhat",
      [
        -32603,
        "Error: VM Exception while processing transaction: reverted with reason string 'no lunch'",
        { message: "x", data: REASON },
      ],
    ],
    ["zkSync", [3, "execution reverted: no lunch", REASON]],
    ["a wallet's wrapper", [-32603, "Internal JSON-RPC error.", { originalError: { code: 3, data: REASON } }]],
  ])("decodes a revert reason in the format of %s", async (_, refused) => {
    expect(await outcomeOf(refused)).toEqual({
      outcome: "revert",
      revert: { name: "Error", message: "no lunch", data: REASON },
    });
  });

  it.each<[string, Refused, string | null]>([
    ["in the text", [3, "execution reverted: no lunch"], "no lunch"],
    [
      "in quotes",
      [-32000, "VM Exception while processing transaction: reverted with reason string 'no lunch'"],
      "no lunch",
    ],
    ["nowhere", [3, "execution reverted"], null],
    ["nowhere, in words", [-32000, "Transaction reverted without a reason string"], null],
    ["nowhere, with empty data", [3, "execution reverted", "0x"], null],
    [
      "in a text that mentions funds",
      [3, "execution reverted: insufficient funds for gas"],
      "insufficient funds for gas",
    ],
    ["in a text that mentions gas", [-32000, "execution reverted: out of gas"], "out of gas"],
  ])("reads the revert reason from the error text if there is no data: %s", async (_, refused, message) => {
    const name = message === null ? null : "Error";
    expect(await outcomeOf(refused)).toEqual({ outcome: "revert", revert: { name, message, data: "0x" } });
  });

  it.each<[string, Refused]>([
    ["geth", [-32000, "invalid opcode: INVALID"]],
    ["geth", [-32000, "invalid jump destination"]],
    ["geth", [-32000, "stack underflow (0 <=> 1)"]],
    ["Reth", [-32003, "EVM error: InvalidFEOpcode"]],
    [
      "EDR",
      [-32000, "VM Exception while processing transaction: invalid opcode", { reason: "OpcodeNotFound", data: "0x" }],
    ],
    ["Nethermind", [-32015, "VM execution error.", "BadInstruction"]],
    ["geth", [-32000, "max code size exceeded"]],
    ["geth", [-32000, "max initcode size exceeded: code size 49153 limit 49152"]],
    ["EDR", [-32000, "create initcode size limit", null]],
    ["EDR", [-32000, "CreateInitCodeSizeLimit", { reason: { Inner: "CreateInitCodeSizeLimit" }, data: "0x" }]],
    ["Reth", [-32003, "EVM error: CreateContractSizeLimit"]],
    ["geth", [-32000, "invalid code: must not begin with 0xef"]],
    [
      "EDR",
      [-32000, "CreateContractStartingWithEF", { reason: { Inner: "CreateContractStartingWithEF" }, data: "0x" }],
    ],
    ["EDR", [-32000, "NotActivated", { reason: { Inner: "NotActivated" }, data: "0x" }]],
    ["geth", [-32000, "return data out of bounds"]],
    ["EDR", [-32000, "OutOfOffset", { reason: { Inner: "OutOfOffset" }, data: "0x" }]],
    ["geth", [-32000, "contract address collision"]],
    ["EDR", [-32000, 'PrecompileErrorWithContext("bn254 invalid pair length")', { data: "0x" }]],
  ])("reports an aborted execution as a revert without data, in the format of %s", async (_, refused) => {
    expect(await outcomeOf(refused)).toMatchObject({ outcome: "revert", revert: { name: null, data: "0x" } });
  });

  it.each<[string, Refused]>([
    ["geth", [-32000, "insufficient funds for transfer"]],
    ["geth", [-32000, "insufficient funds for gas * price + value: address 0x11 have 0 want 1"]],
    [
      "geth",
      [-32000, "failed with 50000000 gas: insufficient funds for gas * price + value: address 0x11 have 0 want 1"],
    ],
    ["Besu", [-32004, "Upfront cost exceeds account balance"]],
    ["Nethermind", [-32000, "insufficient sender balance"]],
    ["anvil", [-32003, "Insufficient funds for gas * price + value"]],
  ])("recognises insufficient funds in the text of %s", async (_, refused) => {
    expect((await outcomeOf(refused)).outcome).toBe("insufficientFunds");
  });

  it.each<[string, Refused]>([
    ["geth", [-32000, "intrinsic gas too low: have 20000, want 21000 (supplied gas 20000)"]],
    ["geth", [-32000, "err: intrinsic gas too low: have 20000, want 21000 (supplied gas 20000)"]],
    ["geth", [-32000, "out of gas"]],
    ["Reth", [-32003, "out of gas: gas required exceeds: 20000"]],
    ["EDR", [-32000, "Transaction ran out of gas"]],
    ["EDR", [-32000, "Transaction requires at least 21000 gas but got 20000"]],
    ["Besu", [-32003, "Intrinsic gas exceeds gas limit"]],
    ["Nethermind", [-32015, "VM execution error.", "OutOfGas"]],
  ])("recognises too little gas for eth_call in the text of %s", async (_, refused) => {
    expect((await outcomeOf(refused, 25_000n)).outcome).toBe("gasTooLow");
  });

  it.each<[string, Refused]>([
    ["geth", [-32000, "gas required exceeds allowance (50000000)"]],
    ["anvil", [-32003, "Out of gas: gas required exceeds allowance: 30000000"]],
    ["EDR", [-32000, "Transaction ran out of gas"]],
    ["Nethermind", [-32000, "Cannot estimate gas, gas spent exceeded transaction and block gas limit: out of gas"]],
  ])("recognises a gas estimate over the block's limit in the text of %s", async (_, refused) => {
    expect((await outcomeOf(refused)).outcome).toBe("gasOverBlock");
  });

  it.each<[string, Refused]>([
    ["a pruned node", [-32000, "missing trie node 1234 (path 05)"]],
    ["a node that starts", [-32000, "header not found"]],
    ["a rate limit", [-32005, "daily request count exceeded, request rate limited"]],
    ["a timeout in the node", [-32000, "execution aborted (timeout = 5s)"]],
    ["an internal error", [-32603, "Internal error"]],
    ["bad parameters", [-32602, "invalid argument 0"]],
    ["an empty error text", [0, ""]],
  ])("reports that the chain is unavailable after %s", async (_, refused) => {
    await expect(outcomeOf(refused)).rejects.toThrow(ChainUnavailable);
    await expect(outcomeOf(refused, 25_000n)).rejects.toThrow(ChainUnavailable);
  });

  it.each(["hang up", "0x", null, {}, 7])("is unavailable if eth_estimateGas returns %j", async (value) => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => value);
    await expect(chain.simulate(CALL)).rejects.toThrow(ChainUnavailable);
  });

  it.each([null, "0x1", 7])("is unavailable if eth_call returns %j", async (value) => {
    const { server, chain } = await bench();
    server.on("eth_call", () => value);
    await expect(chain.simulate({ ...CALL, gas: 25_000n })).rejects.toThrow(ChainUnavailable);
  });

  it("uses another endpoint if the first endpoint cannot simulate", async () => {
    const { server, other, chain } = await bench({ endpoints: 2 });
    other.on("eth_estimateGas", () => "0x5208");
    server.on("eth_estimateGas", () => {
      throw new Refusal(-32000, "missing trie node");
    });
    expect(await chain.simulate(CALL)).toMatchObject({ outcome: "ok", gas: 21_000n });
    server.on("eth_estimateGas", () => {
      throw new Refusal(3, "execution reverted", REASON);
    });
    expect((await chain.simulate(CALL)).outcome).toBe("revert");
  });
});

describe("the gas of a plain transfer", () => {
  const PLAIN: Call = { ...CALL, value: 1n, gasWithoutCode: 21_000n };

  it("is the known cost if the receiver has no code", async () => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0xd88a42");
    server.on("eth_getCode", () => "0x");
    const before = server.requests.length;
    expect(await chain.simulate(PLAIN)).toMatchObject({ outcome: "ok", gas: 21_000n });
    expect(server.requests.slice(before).map(({ calls }) => calls.map(({ method }) => method))).toEqual([
      ["eth_chainId"],
      ["eth_estimateGas", "eth_getBalance", "eth_getCode"],
    ]);
    server.on("eth_estimateGas", () => {
      throw new Refusal(3, "execution reverted", REASON);
    });
    expect(await chain.simulate(PLAIN), "nor where it fails").toMatchObject({ outcome: "ok", gas: 21_000n });
  });

  it.each([
    ["a contract", () => "0x6000"],
    ["an account that has delegated itself (EIP-7702)", () => `0xef0100${"22".repeat(20)}`],
    [
      "not known, because the node has lost its state",
      () => {
        throw new Refusal(-32_000, "missing trie node");
      },
    ],
    ["something that is no code", () => null],
    // protects [Holes] src/adapters/evm/reads/simulate-call.ts, src/domain/fees/gas.ts
  ])("is estimated by the node if the receiver is %s", async (_, code) => {
    const { server, chain } = await bench();
    server.on("eth_estimateGas", () => "0xafc8");
    server.on("eth_getCode", code);
    expect(await chain.simulate(PLAIN)).toMatchObject({ outcome: "ok", gas: 45_000n });
  });

  it("is the gas that the caller gave, without a check for code", async () => {
    const { server, chain } = await bench();
    server.on("eth_call", () => "0x");
    expect(await chain.simulate({ ...PLAIN, gas: 50_000n })).toMatchObject({ outcome: "ok", gas: 50_000n });
    expect(server.calls("eth_getCode")).toEqual([]);
  });
});

describe("simulating a transaction on every endpoint", () => {
  // protects [Holes] src/application/chain/gas-needed.ts, src/adapters/evm/chain.ts
  it("returns the results of all endpoints that are up", async () => {
    const says = (gas: bigint) => ({ kind: "says", answer: expect.objectContaining({ outcome: "ok", gas }) });
    const alone = await bench();
    alone.server.on("eth_estimateGas", () => "0x5208");
    expect(await alone.chain.simulateEverywhere(CALL)).toEqual([says(21_000n)]);
    const { server, other, chain } = await bench({ endpoints: 2 });
    server.on("eth_estimateGas", () => "0xd88a42");
    other.on("eth_estimateGas", () => "0x5208");
    expect(await chain.simulateEverywhere(CALL)).toEqual([says(14_191_170n), says(21_000n)]);
    server.failAlways({ kind: "status", status: 502 });
    expect(await chain.simulateEverywhere(CALL)).toEqual([{ kind: "silent" }, says(21_000n)]);
  });

  it("returns each endpoint's newest block and fee market too", async () => {
    const { server, other, chain } = await bench({ endpoints: 2 });
    for (const [each, gas] of [
      [server, "0xd88a42"],
      [other, "0x5208"],
    ] as const) {
      each.on("eth_estimateGas", () => gas);
    }
    const [first, second] = await chain.prospects(CALL);
    expect(first).toMatchObject({ kind: "says", answer: { simulation: { gas: 14_191_170n } } });
    expect(second).toMatchObject({ kind: "says", answer: { simulation: { gas: 21_000n } } });
    const methods = other.requests.flatMap(({ calls }) => calls.map(({ method }) => method));
    expect(methods.indexOf("eth_getBlockByNumber")).toBeLessThan(methods.indexOf("eth_estimateGas"));
    other.failAlways({ kind: "status", status: 502 });
    expect(await chain.prospects(CALL)).toMatchObject([{ kind: "says" }, { kind: "silent" }]);
  });
});
