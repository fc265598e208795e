import { afterEach, expect, it } from "vitest";
import type { Address, Hash } from "../../../src/domain/lane.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

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

/** The node does what it is asked, or not, and names another hash the first time. */
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

it("a signing node that names a wrong hash: what it made at our nonce, saying what ours says, is ours", async () => {
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

it("a signing node that names a foreign transaction: that one's block confirms nothing", async () => {
  const entry = await open({ stuckAfterMs: 5_000 });
  const other: Address = `0x${"0d".repeat(20)}`;
  const { hash } = world.chain.injectForeign(other);
  misname(entry, { hash, does: false });
  const { txId } = await create(entry);
  await world.until(() => rowOf(txId)?.state === "STUCK");
  expect(rowOf(txId)?.history.at(-1)?.reason).toContain("is another transaction");
  expect(rowOf(txId)?.receipt).toBeNull();
});
