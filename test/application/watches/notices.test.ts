import { afterEach, describe, expect, it } from "vitest";
import type { Notice } from "../../../src/domain/cluster/notices.ts";
import { ANYBODY, type Principal } from "../../../src/domain/keys/principal.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const HOUR = 3_600_000;
const OTHER = SIGNERS[1] as typeof SIGNER;

async function start(): Promise<WorldNode> {
  world = new World();
  return world.startNode();
}

const red = async (entry: WorldNode, code: string) => {
  await world.clock.advance(1_000);
  return (await world.settle(entry.node.api.attention())).items.filter((item) => item.code === code);
};
const notices = (entry: WorldNode, query = {}): Promise<readonly Notice[]> =>
  world.settle(entry.node.api.notices(query));
const acknowledge = (entry: WorldNode, noticeId: string, more = {}) =>
  world.settle(
    entry.node.api.acknowledge({
      ...{ noticeId, request: { reason: "our own wallet" }, actor: "operator:ada", ...more },
    }),
  );

/** One of our transactions waits at a node, and another program's transaction is mined at its nonce. */
async function losesNonce(entry: WorldNode): Promise<string> {
  world.holdBlocks();
  const { txId } = await world.settle(entry.node.api.create(transfer()));
  await world.until(() => world.chain.pool.size === 1);
  const block = world.chain.mineForeign(SIGNER, 1);
  world.releaseBlocks();
  await world.until(() => world.database.state.transactions.get(txId)?.state === "FAILED_FINAL");
  return block.transactions[0]?.transaction.hash as string;
}

describe("an operator notice about another program's use of a signer's key", () => {
  // protects [Everything at once] src/domain/ledger/apply.ts, src/domain/cluster/notices.ts, src/domain/troubles/find.ts
  it("is shown on every node until it is acknowledged", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    const hash = await losesNonce(entry);
    expect(await red(entry, "EXTERNAL_KEY_USE")).toMatchObject([
      { severity: "CRITICAL", signer: SIGNER, chainId: CHAIN_ID, nonce: 1, sentence: expect.stringContaining(hash) },
    ]);
    await world.clock.advance(HOUR);
    const other = await world.startNode();
    const [item] = await red(other, "EXTERNAL_KEY_USE");
    expect(item?.actions.map(({ action }) => action)).toEqual(["acknowledge", "suspendLane", "killSigner"]);
    const [open] = await notices(other, { signer: SIGNER, open: true });
    await acknowledge(other, open?.noticeId ?? "");
    expect(await red(entry, "EXTERNAL_KEY_USE")).toEqual([]);
    expect(await notices(entry)).toMatchObject([
      { acknowledged: { by: "operator:ada", why: "our own wallet", at: expect.any(Date) } },
    ]);
    await losesNonce(entry);
    expect(await red(entry, "EXTERNAL_KEY_USE")).toMatchObject([{ nonce: 2 }]);
    expect(await notices(entry)).toHaveLength(2);
  });

  it("is created even if no transaction of ours lost a nonce", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    world.chain.mineForeign(SIGNER, 2);
    await world.until(() => world.database.state.notices.size > 0, 24 * HOUR);
    expect(await red(entry, "EXTERNAL_KEY_USE")).toMatchObject([{ nonce: 1, signer: SIGNER }]);
    expect(await notices(entry)).toMatchObject([{ times: 2, evidence: [{ nonce: 1, through: 2, txHash: null }] }]);
  });

  it("is acknowledged once per idempotency key", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    await losesNonce(entry);
    const [open] = await notices(entry);
    const id = open?.noticeId ?? "";
    await expect(acknowledge(entry, id, { request: {} })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    await expect(acknowledge(entry, id, { request: { reason: "r", times: 7 } })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    for (const unknown of ["no id", "5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11"]) {
      await expect(acknowledge(entry, unknown)).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    const named = { idempotencyKey: "ack-1" };
    const first = await acknowledge(entry, id, named);
    expect(await acknowledge(entry, id, named)).toEqual(first);
    await expect(acknowledge(entry, id, { ...named, request: { reason: "another" } })).rejects.toMatchObject({
      code: "REQUEST_ID_REUSED",
    });
    await expect(acknowledge(entry, id, { actor: "operator:bob" })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("operator:ada"),
    });
  });

  // protects [Everything at once] src/application/operations/notices.ts, src/application/queries/sights.ts
  it("is hidden from API keys of other signers", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    await losesNonce(entry);
    const [open] = await notices(entry);
    const actionRequest = { noticeId: open?.noticeId ?? "", request: { reason: "r" }, actor: "operator:x" };
    const as = (signer: typeof SIGNER) => {
      const key: Principal = { ...ANYBODY, name: "x", signers: new Set([signer]) };
      return limitedTo(key, entry.node.api);
    };
    expect(await world.settle(as(OTHER).notices())).toEqual([]);
    await expect(world.settle(as(OTHER).notices({ signer: SIGNER }))).rejects.toMatchObject({ code: "FORBIDDEN" });
    await expect(world.settle(as(OTHER).acknowledge(actionRequest))).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await world.settle(as(OTHER).attention())).items).toEqual([]);
    expect(await world.settle(as(SIGNER).notices())).toHaveLength(1);
    expect(await world.settle(as(SIGNER).acknowledge(actionRequest))).toMatchObject({
      acknowledged: { by: "operator:x" },
    });
  });
});

describe("an operator notice about a vanished node", () => {
  it("is shown until the node is back", async () => {
    const entry = await start();
    const [lost, drained] = [await world.startNode(), await world.startNode()];
    await world.clock.advance(5_000);
    await world.settle(drained.node.close());
    world.crash(lost);
    await world.until(() => world.database.state.notices.size > 0);
    expect(await red(entry, "NODE_VANISHED")).toMatchObject([{ severity: "ERROR", nodeId: "node-2" }]);
    await world.clock.advance(HOUR);
    expect(await red(entry, "NODE_VANISHED")).toHaveLength(1);
    const said = entry.events.filter((event) => event.type === "alert" && event.code === "NODE_VANISHED");
    expect(said).toHaveLength(1);
    expect(world.database.state.notices.size, "only one node vanished").toBe(1);
    const [instance] = [...world.database.state.instances.values()].filter(({ nodeId }) => nodeId === "node-2");
    if (instance === undefined) throw new Error("there was no node-2");
    await world.settle(
      entry.store.registerInstance({
        ...{ ...instance, instanceId: crypto.randomUUID(), leaseDurationMs: 10_000, keyProof: null, publicKey: "k" },
      }),
    );
    expect(await red(entry, "NODE_VANISHED")).toEqual([]);
  });

  it("is closed for all users after one acknowledgement", async () => {
    const entry = await start();
    const lost = await world.startNode();
    await world.clock.advance(5_000);
    world.crash(lost);
    await world.until(() => world.database.state.notices.size > 0);
    const [open] = await notices(entry, { open: true });
    await acknowledge(entry, open?.noticeId ?? "", { request: { reason: "the machine was replaced", times: 1 } });
    expect(await red(entry, "NODE_VANISHED")).toEqual([]);
  });
});
