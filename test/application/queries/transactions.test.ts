import { afterEach, describe, expect, it } from "vitest";
import type { TransactionView } from "../../../src/application/api.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function settledWorld(count: number): Promise<WorldNode> {
  world = new World();
  const entry = await world.startNode();
  for (let n = 0; n < count; n++) {
    const signer = SIGNERS[n % 2];
    await world.settle(entry.node.api.create(transfer({ requestId: `r${n}`, signer })));
  }
  await world.allSettled(count);
  return entry;
}

const NOWHERE = "0190f5c2-0000-7000-8000-000000000000";

function ids(items: readonly TransactionView[]): readonly (string | null)[] {
  return items.map(({ requestId }) => requestId);
}

describe("the query for one transaction", () => {
  it("finds a transaction by its id in any casing", async () => {
    const { node } = await settledWorld(1);
    const txId = world.rows()[0]?.txId as string;
    const found = await world.settle(node.api.transaction(txId.toUpperCase()));
    expect(found).toMatchObject({ txId, requestId: "r0", nonce: 0, state: "CONFIRMED" });
    expect(found.txHash).toBe(found.receipt?.txHash);
    expect("history" in found || "confirmations" in found).toBe(false);
    const query = { signer: `0x${SIGNER.slice(2).toUpperCase()}`, requestId: "r0" };
    expect(await world.settle(node.api.transactionByRequest(query))).toEqual(found);
  });

  it("includes history and confirmations if requested", async () => {
    const { node } = await settledWorld(1);
    const txId = world.rows()[0]?.txId as string;
    const found = await world.settle(node.api.transaction(txId, ["history", "confirmations"]));
    expect(found.history?.length).toBe(5);
    expect(found.confirmations?.every(({ number }) => number > (found.receipt?.blockNumber ?? 0))).toBe(true);
  });

  it("returns the newest attempt's hash and no confirmations, if there is no receipt", async () => {
    world = new World();
    const { node } = await world.startNode();
    world.holdBlocks();
    const { txId } = await world.settle(node.api.create(transfer()));
    await world.until(() => world.rows()[0]?.subState === "BROADCAST");
    const found = await world.settle(node.api.transaction(txId, ["confirmations"]));
    expect(found).toMatchObject({ confirmations: [], txHash: found.attempts[0]?.txHash, receipt: null });
    expect(found.nextResubmitAt?.getTime()).toBe((found.lastSubmittedAt?.getTime() ?? 0) + 60_000);
  });

  it("returns the time of the next resubmission", async () => {
    world = new World({ settings: { resubmitIntervalMs: null } });
    const { node } = await world.startNode();
    world.holdBlocks();
    const { txId } = await world.settle(node.api.create(transfer()));
    await world.until(() => world.rows()[0]?.subState === "BROADCAST");
    expect((await world.settle(node.api.transaction(txId))).nextResubmitAt).toBeNull();
    world.releaseBlocks();
    await world.allSettled(1);
    expect((await world.settle(node.api.transaction(txId))).nextResubmitAt).toBeNull();
  });

  it.each(["", "x", NOWHERE, `${NOWHERE}0`, "../../etc/passwd"])("returns NOT_FOUND for the id %j", async (name) => {
    const { node } = await settledWorld(0);
    await expect(world.settle(node.api.transaction(name))).rejects.toMatchObject({ code: "NOT_FOUND", status: 404 });
  });

  it("returns NOT_FOUND for an unknown request id", async () => {
    const { node } = await settledWorld(0);
    const ask = (query: object) =>
      world.settle(node.api.transactionByRequest({ signer: SIGNER, requestId: "x", ...query }));
    await expect(ask({})).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(ask({ signer: "0x12" })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      extras: { path: "signer" },
    });
    await expect(ask({ requestId: "" })).rejects.toMatchObject({ extras: { path: "requestId" } });
    await expect(ask({ requestId: null })).rejects.toMatchObject({ extras: { path: "requestId" } });
    await expect(ask({ chainId: 5 })).rejects.toMatchObject({ code: "UNKNOWN_CHAIN" });
  });
});

describe("pages of the transaction list", () => {
  it("return every transaction once, for any page size", async () => {
    const { node } = await settledWorld(7);
    for (const [order, limit] of [
      ["newest", 3],
      ["oldest", 2],
      ["newest", 7],
      ["oldest", 100],
      ["newest", 1],
    ] as const) {
      const seen: (string | null)[] = [];
      let after: string | undefined;
      do {
        const page = await world.settle(
          node.api.transactions({ order, limit, ...(after === undefined ? {} : { after }) }),
        );
        expect(page.items.length).toBeLessThanOrEqual(limit);
        seen.push(...ids(page.items));
        after = page.next ?? undefined;
      } while (after !== undefined);
      const all = Array.from({ length: 7 }, (_, n) => `r${n}`);
      expect(seen).toEqual(order === "oldest" ? all : all.toReversed());
    }
  });

  it("have fifty items, newest first, by default", async () => {
    const { node } = await settledWorld(52);
    const page = await world.settle(node.api.transactions({}));
    expect(page.items.length).toBe(50);
    expect(page.items[0]?.requestId).toBe("r51");
    expect(page.next).toMatch(/^[\w-]+$/);
  });

  it("neither skip nor repeat items if a transaction is created between two pages", async () => {
    const { node } = await settledWorld(4);
    const first = await world.settle(node.api.transactions({ limit: 2 }));
    await world.settle(node.api.create(transfer({ requestId: "late" })));
    const second = await world.settle(node.api.transactions({ limit: 2, after: first.next as string }));
    expect([...ids(first.items), ...ids(second.items)]).toEqual(["r3", "r2", "r1", "r0"]);
  });

  it("can be filtered by signer, state, request id, hash and chain", async () => {
    const { node } = await settledWorld(4);
    const list = async (query: object) =>
      ids((await world.settle(node.api.transactions({ order: "oldest", ...query }))).items);
    const hash = world.rows().find(({ requestId }) => requestId === "r2")?.attempts[0]?.txHash as string;
    expect(await list({ signer: SIGNERS[1] })).toEqual(["r1", "r3"]);
    expect(await list({ state: "CONFIRMED" })).toHaveLength(4);
    expect(await list({ state: "TRACKING" })).toEqual([]);
    expect(await list({ requestId: "r3" })).toEqual(["r3"]);
    expect(await list({ txHash: hash.toUpperCase().replace("0X", "0x") })).toEqual(["r2"]);
    expect(await list({ chainId: 1 })).toEqual([]);
    expect(await list({ chainId: 31_337, signer: SIGNERS[0], state: "CONFIRMED" })).toEqual(["r0", "r2"]);
  });

  it.each([
    ["after", { after: "not a cursor" }],
    ["after", { after: "" }],
    ["after", { after: Buffer.alloc(15).toString("base64url") }],
    ["after", { after: Buffer.alloc(17).toString("base64url") }],
    ["txHash", { txHash: "0x12" }],
    ["signer", { signer: "0x12" }],
    ["requestId", { requestId: "\u0000" }],
  ])("are refused with the path %s if the query is invalid", async (path, query) => {
    const { node } = await settledWorld(0);
    await expect(world.settle(node.api.transactions(query))).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      extras: { path },
    });
  });
});
