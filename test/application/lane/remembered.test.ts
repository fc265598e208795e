/**
 * Tests that the owner's memory of a lane's rows equals the database after unfinished steps of every kind. Memory is
 * updated only from acknowledged commits.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { checkRemembered } from "../../support/remembered.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

const AT_NODE: Address = `0x${"5e".repeat(20)}`;
const HASH = `0x${"42".repeat(32)}`;

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function open(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  const entry = await world.startNode();
  const signer = options.nodeSigners?.[0] ?? SIGNER;
  await world.settle(entry.node.api.create(transfer({ signer })));
  await world.allSettled(1);
  world.holdBlocks();
  return entry;
}

const row = () => world.rows().at(-1);
const sent = (entry: WorldNode, overrides = {}) => ops.sent(entry, overrides);

/**
 * Each entry brings a transaction into an unfinished state. It returns the fields that the database must then hold for
 * the transaction.
 */
const ROADS: Readonly<Record<string, () => Promise<object>>> = {
  async "is signed and sent"() {
    await sent(await open());
    return { subState: "BROADCAST", submitAttempts: 1, acceptedOrdinal: 1 };
  },
  async "is sent again after no answer"() {
    const entry = await open();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction", times: 3 });
    await sent(entry);
    return { subState: "BROADCAST", submitAttempts: 4, lastError: null };
  },
  async "is refused"() {
    const entry = await open();
    await sent(entry);
    world.chain.setBalance(SIGNER, 0n);
    await ops.create(entry);
    await world.until(() => row()?.lastError !== null);
    return { subState: "PENDING", acceptedOrdinal: null, lastError: expect.stringContaining("insufficientFunds") };
  },
  async "is cancelled"() {
    const entry = await open();
    await ops.act(entry, "cancel", { txId: await sent(entry) });
    await world.until(() => row()?.subState === "BROADCAST");
    return { acceptedOrdinal: 2, submitAttempts: 2, attempts: [{ kind: "initial" }, { kind: "cancel" }] };
  },
  async "is mined"() {
    await sent(await open());
    world.chain.mine(1);
    await world.until(() => row()?.subState === "MINED");
    return { receipt: { status: "success" } };
  },
  async "was mined in a block that left the chain"() {
    await sent(await open());
    world.chain.mine(1);
    await world.until(() => row()?.subState === "MINED");
    world.chain.reorg(1, { drop: "all", keepInPool: false });
    await world.until(() => row()?.subState === "BROADCAST");
    return { receipt: null, submitAttempts: 2 };
  },
  async "was final in a block that left the chain"() {
    await sent(await open());
    world.releaseBlocks();
    await world.allSettled(2);
    world.holdBlocks();
    const depth = world.chain.head.number - (row()?.receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false });
    await world.until(() => row()?.subState === "BROADCAST");
    return { receipt: null, submitAttempts: 2 };
  },
  // protects [Reads] src/domain/ledger/kept-transaction.ts, src/application/lane/owned-lane.ts
  async "lost its nonce to another program"() {
    await sent(await open());
    world.chain.mineForeign(SIGNER);
    await world.until(() => row()?.subState === "MINED");
    return { attempts: [{ kind: "initial" }, { kind: "external", foreign: true }] };
  },
  async "is a hash that its caller named"() {
    const { node } = await open();
    const { reservation } = await world.settle(node.api.reserveNonce({ signer: SIGNER, ttl: 60 }));
    await world.settle(node.api.markUsed(reservation.reservationId, { txHash: HASH }));
    return { subState: "PENDING", submitAttempts: 0, attempts: [{ kind: "external", txHash: HASH }] };
  },
  // protects [Reads] src/domain/ledger/kept-transaction.ts, src/application/lane/owned-lane.ts
  async "is signed by the chain node"() {
    await sent(await open({ signers: [], nodeSigners: [AT_NODE] }), { signer: AT_NODE });
    return { acceptedOrdinal: 1, attempts: [{ nodeSigned: true, txHash: expect.any(String) }] };
  },
  async "is signed by a chain node whose answer was lost"() {
    const entry = await open({ signers: [], nodeSigners: [AT_NODE] });
    entry.faults.inject({ kind: "loseReply" }, { method: "eth_sendTransaction", times: 1 });
    await ops.create(entry, { signer: AT_NODE });
    await world.until(() => row()?.subState === "BROADCAST", 600_000);
    return { acceptedOrdinal: 1, lastError: null, attempts: [{ nodeSigned: true, txHash: expect.any(String) }] };
  },
  async "was stuck when a chain node accepted it without returning a hash"() {
    const settings = { stuckAfterMs: 5_000, grayZoneTimeoutMs: 20_000, grayZoneIntervalMs: 5_000 };
    const entry = await open({ signers: [], nodeSigners: [AT_NODE], settings });
    entry.rpc.sendUnsigned = async () => ({ answer: "accepted", detail: null, txHash: null });
    await ops.create(entry, { signer: AT_NODE });
    await world.until(() => row()?.state === "STUCK" && (row()?.submitAttempts ?? 0) > 1, 600_000);
    return { state: "STUCK", acceptedOrdinal: null, lastError: expect.stringContaining("said no hash") };
  },
};

describe("the owner's memory equals the database row of a transaction that", () => {
  it.each(Object.entries(ROADS))("%s", async (_, walk) => {
    const held = await walk();
    await world.clock.advance(1_000);
    expect(row()).toMatchObject(held);
    checkRemembered(world);
  });
});
