/**
 * An endpoint that returns a genuine block and a false receipt. The false receipt decides nothing, with or without a
 * second endpoint.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { Faults, type ReceiptLie } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { TO, World, type WorldNode } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const LIES: Readonly<Record<string, ReceiptLie>> = {
  "it reverted": (honest) => ({ ...honest, status: "reverted" }),
  "it used other gas": (honest) => ({ ...honest, gasUsed: honest.gasUsed + 1n }),
  "it made a contract": (honest) => ({ ...honest, contractAddress: `0x${"ee".repeat(20)}` }),
  "it has no receipt": () => null,
};

/**
 * Opens either one endpoint whose block hashes can be recomputed, or two endpoints. The endpoint that lies is the
 * preferred one, unless a test says otherwise.
 */
async function open(endpoints: 1 | 2): Promise<WorldNode & { readonly elsewhere: Faults }> {
  world = new World();
  ops = new OperatedWorld(world);
  const elsewhere = new Faults();
  const second = endpoints === 2 ? { elsewhere: { chain: world.chain, faults: elsewhere } } : {};
  return { ...(await world.startNode(second)), elsewhere };
}

const disagreements = ({ events }: WorldNode) =>
  events.filter((event) => event.type === "alert" && event.code === "RPC_DISAGREES");

describe.each([1, 2] as const)("a false receipt, with %i endpoints,", (endpoints) => {
  it.each(Object.entries(LIES))(
    // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
    "decides no outcome (claim: %s)",
    async (_, lie) => {
      const entry = await open(endpoints);
      entry.faults.lieAboutReceipts(lie);
      const txId = await ops.create(entry);
      await world.clock.advance(20_000);
      expect(world.database.state.completions).toEqual([]);
      entry.faults.lieAboutReceipts(null);
      await ops.settled(txId);
      checkInvariants(world);
      expect(world.database.state.completions.map(({ state }) => state)).toEqual(["CONFIRMED"]);
    },
  );

  // protects [False receipts] src/application/chain/disputes.ts, src/application/queries/explain.ts
  it("raises one alert if the receipt reports a revert", async () => {
    const entry = await open(endpoints);
    const { faults } = entry;
    faults.lieAboutReceipts(LIES["it reverted"] as ReceiptLie);
    const txIds = [await ops.create(entry), await ops.create(entry)];
    await world.until(() => disagreements(entry).length > 0);
    await world.clock.advance(20_000);
    expect(disagreements(entry)).toHaveLength(1);
    expect(ops.row(txIds[0] as string).receipt?.status, "found, and not believed").toBe("reverted");
    const reader = await world.startNode({ signers: [TO] });
    reader.faults.lieAboutReceipts(LIES["it reverted"] as ReceiptLie);
    for (const node of [entry, reader]) {
      const { causes, help } = await world.settle(node.node.api.explain(txIds[0] as string));
      expect(causes[0]).toMatchObject({ code: "RPC_DISAGREES" });
      expect(help.map(({ code }) => code)).toContain("CHECK_RPC");
    }
  });
});

describe("with two endpoints", () => {
  it("a false receipt from the second endpoint decides no outcome", async () => {
    const entry = await open(2);
    entry.elsewhere.lieAboutReceipts(LIES["it reverted"] as ReceiptLie);
    const txId = await ops.create(entry);
    await world.clock.advance(20_000);
    expect(world.database.state.completions).toEqual([]);
    entry.elsewhere.lieAboutReceipts(null);
    await ops.settled(txId);
    checkInvariants(world);
  });

  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("finality waits for an endpoint that lags behind, without an alert", async () => {
    const entry = await open(2);
    entry.elsewhere.pinHead(world.chain.head.number);
    const txId = await ops.create(entry);
    await world.clock.advance(10_000);
    expect(ops.row(txId).subState).toBe("MINED");
    expect(disagreements(entry)).toEqual([]);
    entry.elsewhere.pinHead(null);
    await ops.settled(txId);
  });

  // protects [False receipts] src/application/chain/disputes.ts, src/application/stages/6-finality/finality.ts
  it("an endpoint that returns no blocks causes an alert after a minute", async () => {
    const entry = await open(2);
    const heal = entry.elsewhere.inject(
      { kind: "error", code: -32_000, message: "no" },
      { method: "eth_getBlockByNumber" },
    );
    const txId = await ops.create(entry);
    await world.clock.advance(90_000);
    expect(world.database.state.completions).toEqual([]);
    const alerts = entry.events.filter((event) => event.type === "alert" && event.code === "RPC_BEHIND");
    expect(alerts).toHaveLength(1);
    const { causes, help } = await world.settle(entry.node.api.explain(txId));
    expect([causes[0]?.code, help[0]?.code]).toEqual(["RPC_BEHIND", "CHECK_RPC"]);
    heal();
    await ops.settled(txId);
    checkInvariants(world);
  });

  it("a false receipt for one transaction does not delay others of the same block", async () => {
    const entry = await open(2);
    world.holdBlocks();
    const txIds = [await ops.sent(entry), await ops.sent(entry)] as const;
    const lied = ops.row(txIds[0]).attempts[0]?.txHash;
    entry.faults.lieAboutReceipts((honest: Receipt) =>
      honest.txHash === lied ? { ...honest, status: "reverted" } : honest,
    );
    world.releaseBlocks();
    await ops.settled(txIds[1]);
    expect(ops.row(txIds[0]).state).toBe("TRACKING");
    entry.faults.lieAboutReceipts(null);
    await ops.settled(txIds[0]);
    checkInvariants(world);
  });

  it("a mined cancel is not final while one endpoint denies its receipt", async () => {
    const entry = await open(2);
    world.holdBlocks();
    const txId = await ops.sent(entry);
    await ops.act(entry, "cancel", { txId });
    await world.until(() => ops.kinds(txId).includes("cancel"));
    entry.elsewhere.lieAboutReceipts(() => null);
    world.releaseBlocks();
    await world.clock.advance(10_000);
    expect(world.database.state.completions).toEqual([]);
    entry.elsewhere.lieAboutReceipts(null);
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
  });
});
