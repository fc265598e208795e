import { afterEach, describe, expect, it } from "vitest";
import type { Include, TransactionView } from "../../../src/application/api.ts";
import { ANYBODY } from "../../../src/domain/keys/principal.ts";
import type { ShownOutcome } from "../../../src/ports/chain.ts";
import { deferred } from "../../support/deferred.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const OUTCOME = { logs: [], more: 0, revert: null };

/** Starts a node and records every request that it sends to the chain on behalf of API readers. */
async function start(answer: (asked: number) => Promise<Partial<ShownOutcome> | null> = async () => ({})) {
  world = new World();
  ops = new OperatedWorld(world);
  const entry = await world.startNode();
  const asked: unknown[] = [];
  entry.rpc.outcome = async (question) => {
    asked.push(question);
    const outcome = await answer(asked.length);
    const mined = world.rows().find(({ receipt }) => receipt?.txHash === question.txHash);
    return outcome && { blockHash: mined?.receipt?.blockHash ?? "0x", ...OUTCOME, ...outcome };
  };
  return { entry, asked };
}

const LOGS: readonly Include[] = ["logs"];
const look = async ({ node }: WorldNode, txId: string): Promise<TransactionView["onChain"]> =>
  (await world.settle(node.api.transaction(txId, LOGS))).onChain;

describe("the on-chain details of a transaction", () => {
  // protects [Everything at once] src/application/queries/transactions.ts, src/application/authority.ts
  it("are read from the chain only if the caller requests them", async () => {
    const { entry, asked } = await start();
    const txId = await ops.create(entry);
    expect(await look(entry, txId)).toMatchObject({ kind: "unmined", logs: [] });
    await ops.settled(txId);
    const { api } = entry.node;
    expect(await world.settle(api.transaction(txId, ["history", "confirmations"]))).not.toHaveProperty("onChain");
    await world.settle(api.explain(txId));
    expect(asked).toEqual([]);
    expect(await look(entry, txId)).toMatchObject({ kind: "shown", more: 0, blockHash: expect.any(String) });
    expect(asked).toEqual([{ txHash: ops.row(txId).receipt?.txHash, replay: null }]);
  });

  // protects [Everything at once] src/application/queries/transactions.ts, src/application/authority.ts
  it("are requested at most once in five seconds, for any number of callers", async () => {
    const { entry, asked } = await start();
    const txId = await ops.create(entry);
    await ops.settled(txId);
    await Promise.all([look(entry, txId), look(entry, txId)]);
    await world.clock.advance(4_000);
    await look(entry, txId);
    expect(asked).toHaveLength(1);
    await world.clock.advance(1_000);
    await look(entry, txId);
    expect(asked).toHaveLength(2);
  });

  it.each<[string, Partial<ShownOutcome> | null]>([
    ["differs", { blockHash: `0x${"ee".repeat(32)}` }],
    ["unknown", null],
    // protects [Everything at once] src/application/queries/transactions.ts
  ])("are empty, with the kind `%s`, if the chain does not confirm the stored block", async (kind, outcome) => {
    const { entry } = await start(async () => outcome);
    const txId = await ops.create(entry);
    await ops.settled(txId);
    expect(await look(entry, txId)).toMatchObject({ kind, logs: [], revert: null });
  });

  // protects [Everything at once] src/application/queries/transactions.ts, src/application/authority.ts
  it("time out after five seconds", async () => {
    const never = deferred<null>();
    const { entry, asked } = await start(() => never.promise);
    const ids = await Promise.all(Array.from({ length: 5 }, () => ops.create(entry)));
    await ops.settled(...ids);
    const [hanging, refused] = [ids.slice(0, 4), ids[4] as string];
    const looks = hanging.map((txId) => look(entry, txId));
    await world.until(() => asked.length === 4);
    await expect(look(entry, refused)).rejects.toMatchObject({ code: "QUEUE_FULL" });
    await world.clock.advance(5_000);
    for (const answered of await Promise.all(looks)) expect(answered).toMatchObject({ kind: "silent" });
    never.resolve(null);
  });

  // protects [Everything at once] src/application/queries/transactions.ts, src/application/authority.ts
  it("are not requested for an API key that may not see the transaction", async () => {
    const { entry, asked } = await start();
    const { txId } = await world.settle(entry.node.api.create(transfer({ requestId: "mine" })));
    await ops.settled(txId);
    const theirs = limitedTo({ ...ANYBODY, signers: new Set([SIGNERS[1] as `0x${string}`]) }, entry.node.api);
    await expect(world.settle(theirs.transaction(txId, LOGS))).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(asked).toEqual([]);
  });
});
