import { afterEach, describe, expect, it, vi } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../../src/application/requests/normalise.ts";
import { prepare, type Standing } from "../../../../src/application/stages/1-create/prepare.ts";
import type { Address } from "../../../../src/domain/lane.ts";
import type { EndpointAnswer, Simulation } from "../../../../src/ports/chain.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { type ChainBench, createChainBench } from "../../../support/chain-bench.ts";
import { OperatedWorld } from "../../../support/operations.ts";
import { CHAIN_ID, SIGNER, TO, transfer, World, type WorldNode } from "../../../support/world.ts";

const FIRST: Standing = { behindPending: false, laneKnown: true };
const FEES = { gas: 60_000, maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
const NO_CODE = { code: "SUBMISSION_REJECTED", status: 422, extras: { reason: "NO_CODE" } };
const ports = { codec: createCodec(), entropy: createSeededEntropy(3), chainIds: [CHAIN_ID] };

async function ready(): Promise<ChainBench> {
  const bench = createChainBench();
  bench.simulated.mine(3);
  await bench.context.follower.advance();
  return bench;
}

function call(bench: ChainBench, more: object = {}, standing = FIRST) {
  const { allowNoCode, ...payload } = { to: TO, data: "0xa9059cbb", ...more } as Record<string, unknown>;
  const said = allowNoCode === undefined ? {} : { allowNoCode };
  return prepare(bench.context, normalise(ports, { signer: SIGNER, payload, ...said }), standing);
}

const says = (hasCode: boolean | undefined, gas = 50_000n): EndpointAnswer<Simulation> => {
  const code = hasCode === undefined ? {} : { hasCode };
  return { kind: "says", answer: { outcome: "ok", gas, balance: 10n ** 20n, ...code } };
};

/** Sets the answers of all endpoints, which are requested after the first endpoint reported no code at the address. */
function elsewhere(bench: ChainBench, ...answers: readonly EndpointAnswer<Simulation>[]): void {
  bench.chain.simulateEverywhere = async () => answers;
}

describe("call data to an address without code", () => {
  // protects [Chains that differ] src/application/stages/1-create/prepare.ts, src/application/chain/gas-needed.ts
  it("is refused, whether gas and fees are given or not", async () => {
    const bench = await ready();
    await expect(call(bench)).rejects.toMatchObject(NO_CODE);
    await expect(call(bench, FEES)).rejects.toMatchObject(NO_CODE);
    await expect(call(bench)).rejects.toThrow(/has no code.*allowNoCode: true/);
  });

  it("is accepted if the caller sets allowNoCode", async () => {
    const bench = await ready();
    await call(bench, { allowNoCode: true });
    await expect(call(bench, { allowNoCode: false })).rejects.toMatchObject(NO_CODE);
    await call(bench, { data: "0x", value: 1 });
    bench.simulated.burnGasAt(TO, 0n);
    await call(bench);
  });

  // protects [Chains that differ] src/application/stages/1-create/prepare.ts, src/domain/chain/receiver-code.ts
  it("is accepted with given gas behind unmined transactions", async () => {
    const bench = await ready();
    await call(bench, FEES, { behindPending: true, laneKnown: true });
    await call(bench, { gas: 60_000 }, { behindPending: true, laneKnown: true });
  });

  // protects [Chains that differ] src/application/stages/1-create/prepare.ts
  it("is refused without gas behind unmined transactions", async () => {
    const bench = await ready();
    const behind = { behindPending: true, laneKnown: true };
    const refused = { code: "SUBMISSION_REJECTED", extras: { reason: "GAS_TOO_LOW", dependsOnPending: true } };
    await expect(call(bench, {}, behind)).rejects.toMatchObject(refused);
    await expect(call(bench, {}, behind)).rejects.toThrow(/has no code yet.*give gas.*allowNoCode: true/);
    await call(bench, { allowNoCode: true }, behind);
    elsewhere(bench, says(false), says(true, 70_000n));
    expect((await call(bench, {}, behind)).gas).toBeGreaterThanOrEqual(70_000n);
  });

  it("is accepted if the chain is unreachable and gas and fees are given", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await call(bench, FEES);
    await expect(call(bench)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it.each([
    ["the first precompile", "0x0000000000000000000000000000000000000001"],
    ["the last of Ethereum's", "0x0000000000000000000000000000000000000011"],
    ["RIP-7212", "0x0000000000000000000000000000000000000100"],
    ["Arbitrum's ArbSys", "0x0000000000000000000000000000000000000064"],
    ["a predeploy of the OP stack", "0x4200000000000000000000000000000000000016"],
    ["a native precompile of Avalanche", "0x0200000000000000000000000000000000000005"],
    ["an actor of Filecoin", "0xfe00000000000000000000000000000000000003"],
    // protects [Chains that differ] src/application/stages/1-create/prepare.ts, src/domain/chain/receiver-code.ts
  ])("is accepted at %s, which needs no code", async (_, to) => {
    await call(await ready(), { to });
  });

  it.each([
    ["the zero address", `0x${"00".repeat(20)}`],
    ["an address that merely begins with zeros", `0x${"00".repeat(8)}${"a1".repeat(12)}`],
  ])("is refused at %s", async (_, to) => {
    await expect(call(await ready(), { to })).rejects.toMatchObject(NO_CODE);
  });

  it.each([null, "yes", 1, {}])("is refused if allowNoCode is %j", (allowNoCode) => {
    const said = () => normalise(ports, { signer: SIGNER, payload: { to: TO }, allowNoCode });
    if (allowNoCode === null) expect(said()).not.toHaveProperty("allowNoCode");
    else expect(said).toThrow("allowNoCode: must be true or false");
  });
});

describe("an endpoint that reports no code at an address", () => {
  // protects [Chains that differ] src/application/chain/gas-needed.ts
  it("is overruled by an endpoint that reports code", async () => {
    const bench = await ready();
    elsewhere(bench, says(false, 21_064n), says(true, 100_000n));
    expect((await call(bench)).gas).toBe(120_000n);
    expect(bench.context.knownCode.isSeen(TO)).toBe(true);
  });

  it("is overruled by an endpoint at which the call reverts", async () => {
    const bench = await ready();
    const revert = { name: null, message: null, data: "0x" } as const;
    elsewhere(bench, says(false), { kind: "says", answer: { outcome: "revert", revert } });
    await expect(call(bench)).rejects.toMatchObject({ extras: { reason: "REVERT" } });
  });

  it.each([
    ["does not answer", { kind: "silent" } as const],
    ["returns no result", says(undefined)],
    // protects [Chains that differ] src/application/chain/gas-needed.ts
  ])("causes no refusal if another endpoint %s", async (_, other) => {
    const bench = await ready();
    elsewhere(bench, says(false), other);
    await call(bench);
  });

  it("causes a refusal if every reachable endpoint reports no code", async () => {
    const bench = await ready();
    elsewhere(bench, says(false), says(false));
    await expect(call(bench)).rejects.toMatchObject(NO_CODE);
  });
});

describe("contract code that was seen once", () => {
  // protects [Chains that differ] src/application/chain/chain-context.ts, src/adapters/evm/reads/simulate-call.ts
  it("is not requested again", async () => {
    const bench = await ready();
    bench.simulated.burnGasAt(TO, 0n);
    const simulate = vi.spyOn(bench.chain, "simulate");
    const everywhere = vi.spyOn(bench.chain, "simulateEverywhere");
    for (let n = 0; n < 100; n++) await call(bench, FEES);
    expect(simulate).toHaveBeenCalledTimes(100);
    expect(simulate.mock.calls.filter(([{ asksCode }]) => asksCode === true)).toHaveLength(1);
    expect(everywhere).not.toHaveBeenCalled();
  });

  it("permits all later calls", async () => {
    const bench = await ready();
    bench.context.knownCode.see(TO);
    await call(bench);
  });

  it("is remembered for ten thousand addresses and no more", async () => {
    const { knownCode } = (await ready()).context;
    const address = (n: number) => `0xb${n.toString(16).padStart(39, "0")}` as Address;
    for (let n = 0; n <= 10_000; n++) knownCode.see(address(n));
    expect([0, 1, 10_000].map((n) => knownCode.isSeen(address(n)))).toEqual([false, true, true]);
  });

  it("includes code that this node deployed", async () => {
    const bench = await ready();
    bench.context.knownCode.deploy(TO);
    await call(bench);
    elsewhere(bench, says(false), says(true, 100_000n));
    expect((await call(bench)).gas, "and who has it is still asked").toBe(120_000n);
  });
});

describe("a node that receives a call to an address without code", () => {
  let world: World;
  afterEach(() => world.close());
  const calling = (more: object = {}) => ({ ...(transfer().payload as object), data: "0xa9059cbb", ...FEES, ...more });

  async function start(): Promise<WorldNode> {
    world = new World();
    const entry = await world.startNode();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    return entry;
  }

  // protects [Chains that differ] src/application/stages/1-create/prepare.ts, src/application/chain/gas-needed.ts
  it("rejects a transaction from the intake table", async () => {
    world = new World();
    const refused = normalise(ports, { ...transfer(), payload: calling() });
    const allowed = normalise(ports, { ...transfer(), payload: calling(), allowNoCode: true });
    world.database.insertIntake(refused);
    world.database.insertIntake(allowed);
    await world.startNode();
    await world.allSettled(2);
    const [first, second] = [refused, allowed].map(({ txId }) => world.database.state.transactions.get(txId));
    expect(first).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(first?.lastError).toContain("has no code");
    expect(second).toMatchObject({ state: "CONFIRMED", nonce: 0 });
  });

  it("consumes no nonce", async () => {
    const { node } = await start();
    const request = transfer({ payload: calling() });
    expect(await world.refusal(node.api.create(request))).toMatchObject(NO_CODE);
    const repeated = { ...request, allowNoCode: true };
    expect(await world.settle(node.api.create(repeated))).toMatchObject({ outcome: "created", nonce: 1 });
    // A repeated request returns the existing transaction, even if its `allowNoCode` differs.
    expect(await world.settle(node.api.create(request))).toMatchObject({ outcome: "existing", nonce: 1 });
  });

  it.each([
    ["replace", {}],
    ["resolve", { action: "REPLACE" }],
    // protects [Chains that differ] src/application/stages/1-create/prepare.ts, src/application/chain/gas-needed.ts
  ] as const)("refuses the call in the action %s too", async (action, more) => {
    const entry = await start();
    const ops = new OperatedWorld(world);
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const request = { ...more, payload: { to: TO, data: "0xa9059cbb", gas: 60_000 } };
    await expect(ops.act(entry, action, { txId, request })).rejects.toMatchObject(NO_CODE);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    await ops.act(entry, action, { txId, request: { ...request, allowNoCode: true } });
    expect(ops.kinds(txId)).toEqual(["initial", "replace"]);
  });

  // protects [Chains that differ] src/application/chain/chain-context.ts, src/application/stages/5-receipt/receipt.ts
  it("accepts the call if the same lane deploys the contract", async () => {
    const { node } = await start();
    world.holdBlocks();
    const deployment = { bytecode: "0x6000", gas: 100_000, maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1" };
    const { nonce, txId } = await world.settle(node.api.create(transfer({ payload: deployment })));
    const contract = createCodec().contractAddress(SIGNER, nonce as number);
    const request = () => transfer({ payload: calling({ to: contract }) });
    expect(await world.settle(node.api.create(request()))).toMatchObject({ outcome: "created" });
    world.releaseBlocks();
    await world.allSettled(3);
    const { receipt } = await world.settle(node.api.transaction(txId));
    expect(receipt?.contractAddress).toBe(contract);
    expect(world.chain.hasCode(contract), "as an endpoint that lags").toBe(false);
    expect(await world.settle(node.api.create(request()))).toMatchObject({ outcome: "created" });
  });
});
