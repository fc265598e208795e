import { afterEach, describe, expect, it } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, World, type WorldNode } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const signer = new FakeSigner(SIGNERS);
const NEVER_SENT = `0x${"42".repeat(32)}`;

async function open(settings: ConstructorParameters<typeof World>[0] = {}): Promise<WorldNode> {
  world = new World(settings);
  ops = new OperatedWorld(world);
  return world.startNode();
}

async function reserve({ node }: WorldNode, ttl = "60s") {
  const { reservation } = await world.settle(node.api.reserveNonce({ signer: SIGNER, ttl }));
  return reservation;
}

async function signed(nonce: number, from = SIGNER): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
  const unsigned = {
    chainId: CHAIN_ID,
    nonce,
    to: TO,
    data: "0x",
    value: 5n,
    gas: 21_000n,
    fees,
    accessList: [],
  } as const;
  const [made] = await signer.sign(from, [unsigned]);
  return made?.rawTransaction as Hex;
}

const alerts = ({ events }: WorldNode) => events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
const explained = async ({ node }: WorldNode, txId: string) => {
  const { causes, help } = await world.settle(node.api.explain(txId));
  return { causes, codes: causes.map(({ code }) => code), helps: help.map(({ code }) => code) };
};

describe("a reserved nonce marked as used with an unknown hash", () => {
  const named = async (entry: WorldNode) => {
    const { reservationId } = await reserve(entry);
    const { txId } = await world.settle(entry.node.api.markUsed(reservationId, { txHash: NEVER_SENT }));
    return { txId, behind: await ops.create(entry) };
  };

  // protects [Reservations] src/application/detours/change-payload.ts
  it("is cancelled by an operator at the market's fee", async () => {
    const entry = await open({ settings: { stuckAfterMs: 5_000 } });
    const { txId, behind } = await named(entry);
    await world.until(() => ops.row(txId).state === "STUCK");
    await ops.act(entry, "cancel", { txId });
    await ops.settled(txId, behind);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    expect(ops.outcome(behind)).toBe("CONFIRMED");
    expect(ops.row(txId).attempts.at(-1)).toMatchObject({ kind: "cancel", fees: { type: "eip1559" } });
    checkInvariants(world);
  });

  it("is explained as waiting for a block", async () => {
    const entry = await open();
    const { txId } = await named(entry);
    const { causes } = await explained(entry, txId);
    expect(causes).toMatchObject([{ code: "WAITING_FOR_BLOCK", text: expect.stringContaining("by its hash") }]);
  });

  it("does not share that hash with a second reservation", async () => {
    const entry = await open();
    await named(entry);
    const { reservationId } = await reserve(entry);
    const again = world.settle(entry.node.api.markUsed(reservationId, { txHash: NEVER_SENT }));
    await expect(again).rejects.toMatchObject({ code: "CONFLICT" });
  });

  it("has cancel as the only suggested action", async () => {
    const entry = await open({ settings: { stuckAfterMs: 5_000 } });
    const { txId } = await named(entry);
    await world.until(() => ops.row(txId).state === "STUCK");
    const { codes, helps } = await explained(entry, txId);
    expect(codes).toContain("STUCK");
    expect(codes).not.toContain("FEE_BELOW_BASE_FEE");
    expect(codes).not.toContain("FEE_CEILING_REACHED");
    expect(helps).toEqual(["CANCEL"]);
  });
});

describe("a reserved nonce marked as used with a transaction hash", () => {
  const OTHER = SIGNERS[1] as typeof SIGNER;

  // protects [Reservations] src/application/operations/reservations.ts
  it("stays reserved if the hash is another signer's transaction", async () => {
    const entry = await open();
    const { reservationId } = await reserve(entry);
    const rawTransaction = await signed(0, OTHER);
    world.chain.submit(rawTransaction);
    const { txHash } = await createFakeCodec().decodeTransaction(rawTransaction);
    const used = world.settle(entry.node.api.markUsed(reservationId, { txHash }));
    await expect(used).rejects.toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "INVALID_INPUT" } });
    expect(world.database.state.reservation(reservationId)?.state).toBe("RESERVED");
  });

  it.each([
    ["of another signer", 0, OTHER],
    ["at another nonce", 7, SIGNER],
    // protects [Reservations] src/application/stages/5-receipt/receipt.ts
  ] as const)("becomes STUCK if the mined transaction is another one (%s)", async (...named) => {
    const [, nonce, from] = named;
    const entry = await open({ settings: { stuckAfterMs: 5_000 } });
    const { reservationId } = await reserve(entry);
    const rawTransaction = await signed(nonce, from);
    const { txHash } = await createFakeCodec().decodeTransaction(rawTransaction);
    const { txId } = await world.settle(entry.node.api.markUsed(reservationId, { txHash }));
    if (from === SIGNER) world.chain.setNonce(SIGNER, 7);
    world.chain.submit(rawTransaction);
    await world.until(() => world.chain.receipt(txHash) !== null);
    if (from === SIGNER) world.chain.setNonce(SIGNER, 0);
    const behind = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "STUCK");
    expect(ops.row(txId).history.at(-1)?.reason).toContain(`${txHash} is another transaction`);
    await ops.act(entry, "cancel", { txId });
    await ops.settled(txId, behind);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    expect(ops.outcome(behind)).toBe("CONFIRMED");
  });

  it("is not confirmed until the chain returns the transaction", async () => {
    const entry = await open();
    const before = await ops.create(entry);
    await ops.settled(before);
    const { reservationId, nonce } = await reserve(entry);
    const rawTransaction = await signed(nonce);
    const { txHash } = await createFakeCodec().decodeTransaction(rawTransaction);
    const { txId } = await world.settle(entry.node.api.markUsed(reservationId, { txHash }));
    const behind = await ops.create(entry);
    const back = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionByHash" });
    world.chain.submit(rawTransaction);
    await ops.settled(behind);
    expect(ops.row(txId)).toMatchObject({ state: "TRACKING", receipt: null });
    back();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });
});

describe("a nonce gap that another program filled", () => {
  // protects [Holes] src/application/lane/lane-nonces.ts
  it("raises an alert", async () => {
    const entry = await open({ settings: { expiredReservations: "hole" } });
    const { reservationId, nonce } = await reserve(entry, "2s");
    const above = await ops.sent(entry);
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
    await world.until(() => ops.row(above).state === "STUCK");
    world.chain.submit(await signed(nonce));
    await ops.settled(above);
    await world.until(() => alerts(entry).includes("HOLE_USED_ELSEWHERE"));
    world.chain.mine(70);
    await world.until(() => world.database.state.holes().length === 0);
  });

  it("is skipped by the next transaction", async () => {
    const entry = await open();
    const { reservationId, nonce } = await reserve(entry);
    world.holdBlocks();
    const above = await ops.sent(entry);
    await world.settle(entry.node.api.releaseNonce(reservationId));
    world.chain.submit(await signed(nonce));
    world.releaseBlocks();
    await ops.settled(above);
    const next = await ops.create(entry);
    expect(ops.row(next).nonce).toBe(nonce + 2);
    await ops.settled(next);
    expect(ops.outcome(next)).toBe("CONFIRMED");
  });

  it("is found by the next owner too", async () => {
    const first = await open();
    const { reservationId, nonce } = await reserve(first, "2s");
    const above = await ops.sent(first);
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
    world.crash(first);
    world.chain.submit(await signed(nonce));
    world.chain.mine(3);
    const second = await world.startNode();
    await ops.settled(above);
    await world.until(() => alerts(second).includes("HOLE_USED_ELSEWHERE"));
  });
});

// protects [Holes] src/application/detours/holes.ts
it("a nonce gap that one of two endpoints calls used stays open, and is filled when the false count ends", async () => {
  world = new World({ settings: { confirmations: 2, holePolicy: "heal" } });
  ops = new OperatedWorld(world);
  const entry = world.addNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
  await world.settle(entry.node.start());
  const { reservationId, nonce } = await reserve(entry);
  const above = await ops.sent(entry);
  entry.faults.lieAboutNonce(() => nonce + 7);
  await world.settle(entry.node.api.releaseNonce(reservationId));
  await world.clock.advance(10_000);
  world.chain.mine(80);
  await world.clock.advance(10_000);
  expect(world.database.state.holes()).toMatchObject([{ nonce }]);
  expect(ops.row(above).state).not.toBe("CONFIRMED");
  entry.faults.lieAboutNonce(null);
  await ops.settled(above);
  expect(ops.outcome(above)).toBe("CONFIRMED");
  checkInvariants(world);
});

describe("the explanation of a transaction above an unused nonce", () => {
  it("says that the nonce is reserved", async () => {
    const entry = await open();
    await reserve(entry);
    const { causes, codes, helps } = await explained(entry, await ops.sent(entry));
    expect(codes).toContain("RESERVED_BELOW");
    expect(codes).not.toContain("HOLE_BELOW");
    expect(causes.find(({ code }) => code === "RESERVED_BELOW")).toMatchObject({ data: { nonce: 0 } });
    expect(helps).toContain("USE_RESERVATION");
    expect(helps).not.toContain("FILL_HOLE");
  });

  it("says that the nonce's reservation expired", async () => {
    const entry = await open();
    const { reservationId } = await reserve(entry, "2s");
    const txId = await ops.sent(entry);
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
    const { causes, helps } = await explained(entry, txId);
    expect(causes.find(({ code }) => code === "HOLE_BELOW")?.text).toMatch(/nonce 0 .*expired/);
    // Fencepost fills the nonce gap by itself, so the only advice is to wait.
    expect(helps).toEqual(["WAIT"]);
  });
});

it("the explanation does not report the owner as silent if the chain responds slowly", async () => {
  const entry = await open();
  world.holdBlocks();
  const txId = await ops.sent(entry);
  entry.rpc.transactionCount = () => world.clock.sleep(15_000).then(() => ({ count: 0, endpoint: "slow" }));
  expect((await explained(entry, txId)).codes).not.toContain("OWNER_SILENT");
});

it("the explanation offers no resubmit for a transaction whose nonce the chain has already used", async () => {
  const entry = await open();
  world.holdBlocks();
  const txId = await ops.sent(entry);
  world.chain.dropAllTransactions();
  const asked = explained(entry, txId);
  world.chain.mineForeign(SIGNER);
  const { codes, helps } = await asked;
  expect(codes).toContain("NONCE_CONSUMED");
  expect(codes).not.toContain("NOT_IN_POOL");
  expect(helps).toEqual(["WAIT"]);
});
