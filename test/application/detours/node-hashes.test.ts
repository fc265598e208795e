import { afterEach, expect, it } from "vitest";
import type { Address, Hash } from "../../../src/domain/lane.ts";
import type { ChainTransaction } from "../../../src/ports/chain.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { TO, transfer, World, type WorldNode } from "../../support/world.ts";

const SIGNER: Address = `0x${"5e".repeat(20)}`;
const NOBODYS: Hash = `0x${"77".repeat(32)}`;

let world: World;
afterEach(() => world.close());

async function open(
  settings: NonNullable<ConstructorParameters<typeof World>[0]>["settings"] = {},
): Promise<WorldNode> {
  world = new World({ signers: [], nodeSigners: [SIGNER], settings });
  return world.startNode();
}

/**
 * Makes the next send through the signing node return a wrong hash. The node really sends the transaction only if
 * `does` is true.
 */
function misname(entry: WorldNode, { hash, does }: { readonly hash: Hash; readonly does: boolean }): void {
  const send = entry.rpc.sendUnsigned.bind(entry.rpc);
  entry.rpc.sendUnsigned = async (from, transaction, mayLeave) => {
    entry.rpc.sendUnsigned = send;
    if (does) await send(from, transaction, mayLeave);
    return { answer: "accepted", detail: null, txHash: hash };
  };
}

const create = (entry: WorldNode) => world.settle(entry.node.api.create(transfer({ signer: SIGNER })));
const rowOf = (txId: string) => world.rows().find((row) => row.txId === txId);

// protects [Keys of the node, other chains, comparison] src/application/stages/5-receipt/receipt.ts
it("a mined transaction is recognised even if the chain node that signed it returned a wrong hash", async () => {
  const entry = await open({ staleReceiptTimeoutMs: 5_000 });
  misname(entry, { hash: NOBODYS, does: true });
  const { txId } = await create(entry);
  await world.allSettled(1);
  expect(rowOf(txId)).toMatchObject({ state: "CONFIRMED", subState: null });
  expect(world.chain.nodeSigned).toHaveLength(1);
  expect(rowOf(txId)?.receipt?.txHash).toBe(world.chain.nodeSigned[0]?.hash);
  expect(entry.events).not.toContainEqual(expect.objectContaining({ code: "EXTERNAL_KEY_USE" }));
  checkInvariants(world);
});

// protects [Keys of the node, other chains, comparison] src/application/stages/5-receipt/receipt.ts
it("a transaction is not confirmed if the chain node returned the hash of another program's transaction", async () => {
  const entry = await open({ stuckAfterMs: 5_000 });
  const other: Address = `0x${"0d".repeat(20)}`;
  const { hash } = world.chain.injectForeign(other);
  misname(entry, { hash, does: false });
  const { txId } = await create(entry);
  await world.until(() => rowOf(txId)?.state === "STUCK");
  expect(rowOf(txId)?.history.at(-1)?.reason).toContain("is another transaction");
  expect(rowOf(txId)?.receipt).toBeNull();
});

/** Starts a node with two endpoints. The first one reports false contents for this signer's transactions in a block. */
async function openBesideLiar(lie: Partial<ChainTransaction>): Promise<WorldNode> {
  world = new World({ signers: [], nodeSigners: [SIGNER], settings: { staleReceiptTimeoutMs: 5_000 } });
  const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
  const honest = entry.rpc.sentInBlock.bind(entry.rpc);
  entry.rpc.sentInBlock = async (...asked) => (await honest(...asked))?.map((each) => ({ ...each, ...lie })) ?? null;
  return entry;
}

// protects [Another program at the key] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
it("a mined transaction is recognised even if one of two endpoints reports false contents", async () => {
  const entry = await openBesideLiar({ value: 999n });
  misname(entry, { hash: NOBODYS, does: true });
  const { txId } = await create(entry);
  await world.allSettled(1);
  expect(rowOf(txId)).toMatchObject({ state: "CONFIRMED", subState: null });
});

// protects [Another program at the key] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
it("another program's transaction at our nonce is recognised even if one endpoint reports false contents", async () => {
  const entry = await openBesideLiar({ to: TO, value: 1n, data: "0x" });
  misname(entry, { hash: NOBODYS, does: false });
  world.holdBlocks();
  const { txId } = await create(entry);
  await world.until(() => rowOf(txId)?.state === "TRACKING");
  world.chain.mineForeign(SIGNER);
  world.releaseBlocks();
  await world.allSettled(1, 300_000);
  expect(rowOf(txId)).toMatchObject({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY" });
});
