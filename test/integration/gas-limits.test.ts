/**
 * The gas limit of transactions on a real EVM with the cap of EIP-7825, through endpoints that may report false
 * estimates.
 */
import { describe, expect } from "vitest";
import type { Address } from "../../src/domain/lane.ts";
import { FencepostError, type Transaction } from "../../src/index.ts";
import { SIGNER } from "../support/integration.ts";
import { pretend, type RpcProxy } from "../support/rpc-proxy.ts";
import { it, type Scene } from "../support/troubles/scene.ts";

const CAP = 16_777_216n;
const FURNACE: Address = `0x${"f0".repeat(20)}`;
const ACCOUNT: Address = `0x${"ac".repeat(20)}`;
/** Number of memory words. Using that many costs 14,170,000 gas. */
const NEARLY_ALL = 84_412;
const HIGH_ESTIMATE = "0xd88a42"; // 14,191,170 gas. Fencepost adds a fifth to an estimate, and the sum is above the cap.

/**
 * Deploys a contract that writes to the last of `words` memory words. The EVM charges 3 gas per memory word plus the
 * square of the number of words divided by 512, so this one write can cost any amount. Code: PUSH1 0, PUSH3 offset,
 * MSTORE, STOP.
 */
async function placeFurnace({ chain }: Scene, words: number): Promise<void> {
  const offset = ((words - 1) * 32).toString(16).padStart(6, "0");
  await chain.node.rpc("hardhat_setCode", [FURNACE, `0x600062${offset}5200`]);
}

async function sent({ fencepost }: Scene, payload: Record<string, unknown>): Promise<string> {
  return (await fencepost.send({ signer: SIGNER, payload: payload as never })).txId;
}

async function confirmed(scene: Scene, txId: string): Promise<Transaction> {
  const view = () => scene.fencepost.get(txId);
  await scene.until(async () => (await view()).state === "CONFIRMED", `${txId} is confirmed`);
  return view();
}

async function gasOf({ database }: Scene, txId: string): Promise<readonly bigint[]> {
  const rows = await database.query<{ gas: string }>(
    "SELECT gas::text AS gas FROM fencepost.attempt WHERE tx_id = $1 ORDER BY ordinal",
    [txId],
  );
  return rows.map(({ gas }) => BigInt(gas));
}

async function neverStuck({ database }: Scene): Promise<void> {
  const states = await database.query("SELECT DISTINCT state FROM fencepost.completion");
  expect(states).toEqual([{ state: "CONFIRMED" }]);
}

const overstate = (proxy: RpcProxy) =>
  proxy.rule(
    { methods: ["eth_estimateGas"] },
    pretend(() => HIGH_ESTIMATE),
  );

describe("a call near the gas cap per transaction", () => {
  // protects [Holes] src/application/chain/chain-context.ts, src/domain/fees/gas.ts
  it("uses the cap as its gas limit if the cap is configured", async ({ stage }) => {
    const scene = await stage({ chain: { maxTransactionGas: Number(CAP) } }, "move");
    await placeFurnace(scene, NEARLY_ALL);
    const txId = await sent(scene, { to: FURNACE });
    const { receipt } = await confirmed(scene, txId);
    expect(await gasOf(scene, txId)).toEqual([CAP]);
    expect(BigInt(receipt?.gasUsed ?? 0)).toBeGreaterThan(14_000_000n);
  });

  it("is signed again with less gas if the cap was unknown", async ({ stage }) => {
    const scene = await stage({}, "move");
    await placeFurnace(scene, NEARLY_ALL);
    const txId = await sent(scene, { to: FURNACE });
    const behind = await sent(scene, { to: ACCOUNT, value: 1 });
    await confirmed(scene, behind);
    const [refused, taken] = await gasOf(scene, txId);
    expect(refused).toBeGreaterThan(CAP);
    expect(taken).toBe(CAP);
    expect((await confirmed(scene, txId)).attempts.map(({ kind }) => kind)).toEqual(["initial", "reprice"]);
    const next = await sent(scene, { to: FURNACE });
    await confirmed(scene, next);
    expect(await gasOf(scene, next)).toEqual([CAP]);
    await neverStuck(scene);
  });

  it("is refused without a nonce if the needed gas exceeds the cap", async ({ stage, database }) => {
    const scene = await stage({ chain: { maxTransactionGas: Number(CAP) } }, "move");
    const beyond = scene.proxy.rule(
      { methods: ["eth_estimateGas"] },
      pretend(() => `0x${(CAP + 1n).toString(16)}`),
    );
    await placeFurnace(scene, 10);
    const refused = await sent(scene, { to: FURNACE }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(FencepostError);
    expect(refused).toMatchObject({ code: "SUBMISSION_REJECTED", reason: "GAS_OVER_BLOCK" });
    const own = await sent(scene, { to: FURNACE, gas: Number(CAP) + 1 }).catch((error: unknown) => error);
    expect(own).toMatchObject({ code: "SUBMISSION_REJECTED", reason: "GAS_OVER_BLOCK" });
    beyond.lift();
    expect(await database.query("SELECT 1 FROM fencepost.transaction")).toEqual([]);
  });
});

describe("a false gas estimate for a plain transfer", () => {
  // protects [Holes] src/adapters/evm/reads/simulate-call.ts, src/domain/fees/gas.ts
  it.for([1, 2] as const)("has no effect, with %i endpoint(s)", async (endpoints, { stage }) => {
    const scene = await stage(endpoints === 2 ? { spare: true } : {}, "move");
    const lie = overstate(scene.proxy);
    const txId = await sent(scene, { to: ACCOUNT, value: 1 });
    expect((await confirmed(scene, txId)).receipt?.gasUsed).toBe("21000");
    expect(await gasOf(scene, txId)).toEqual([21_000n]);
    expect(lie.struck, "it was told").toBeGreaterThan(0);
    await neverStuck(scene);
  });
});

describe("a transfer to a contract", () => {
  it("is confirmed with an estimated gas limit", async ({ stage }) => {
    const scene = await stage({}, "move");
    await placeFurnace(scene, 2_000);
    const txId = await sent(scene, { to: FURNACE, value: 1 });
    expect(Number((await confirmed(scene, txId)).receipt?.gasUsed)).toBeGreaterThan(30_000);
  });
});

describe("a false gas estimate for a call", () => {
  it("is not trusted if a second endpoint contradicts it", async ({ stage }) => {
    const scene = await stage({ spare: true, chain: { maxGasCostWei: "1000000000000000" } }, "move");
    await placeFurnace(scene, 10);
    const lie = overstate(scene.proxy);
    const refused = await sent(scene, { to: FURNACE }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("14191170") });
    lie.lift();
    await confirmed(scene, await sent(scene, { to: FURNACE }));
  });
});
