import { afterEach, describe, expect, it } from "vitest";
import { type Waiting, WORLDS } from "../../support/explained-worlds.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, World } from "../../support/world.ts";

let world: World | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

async function begin(name: string): Promise<Waiting> {
  const make = WORLDS[name];
  if (make === undefined) throw new Error(`there is no world where ${name}`);
  const waiting = await make();
  world = waiting.world;
  return waiting;
}

describe("the explanation of a queued transaction", () => {
  it.each([
    ["the head is stuck because it offers too little", "reprice"],
    ["the head was sent again too often", "reprice"],
    ["a node has forgotten the head", "resubmit"],
    ["the head is held back", "resume"],
    ["the first is held back before it is signed", "resume"],
    ["the window is full behind a head that offers too little", "reprice"],
    // protects [Explained, and said aloud] src/domain/troubles/explain.ts, src/application/queries/explain.ts
  ])("offers the actions that help the transaction ahead: %s", async (name, action) => {
    const { world: here, entry, txIds } = await begin(name);
    const [head = "", ...behind] = txIds;
    const of = await here.settle(entry.node.api.explain(head));
    expect(of.blockedBy).toBeUndefined();
    expect(of.actions[0]).toMatchObject({ action, path: `/api/v1/tx/${head}/${action}` });
    for (const txId of behind) {
      const { blockedBy, actions, help } = await here.settle(entry.node.api.explain(txId));
      expect(blockedBy).toEqual({ txId: head, nonce: 0 });
      expect(actions.map(({ path, body }) => ({ path, body }))).toEqual(
        of.actions.map(({ path, body }) => ({ path, body })),
      );
      expect(help.map(({ code }) => code)).toEqual(of.help.map(({ code }) => code));
    }
  });

  it.each([
    ["the lane is suspended", `/api/v1/signers/${SIGNER}/resume`],
    ["the signer is stopped", `/api/v1/signers/${SIGNER}/kill`],
    ["everything is stopped", "/api/v1/kill"],
  ])("offers the action that restarts the whole lane: %s", async (name, path) => {
    const { world: here, entry, txIds } = await begin(name);
    for (const txId of txIds.slice(1)) {
      const { blockedBy, actions } = await here.settle(entry.node.api.explain(txId));
      expect(blockedBy).toEqual({ txId: txIds[0], nonce: 0 });
      expect(actions.map((each) => each.path.toLowerCase())).toEqual([path.toLowerCase()]);
    }
  });

  it.each(["a hole is below, and the head is stuck for it", "a hole is below"])(
    "offers only the action that fills the missing nonce: %s",
    async (name) => {
      const { world: here, entry, txIds } = await begin(name);
      for (const txId of txIds) {
        const { blockedBy, actions } = await here.settle(entry.node.api.explain(txId));
        expect(blockedBy).toEqual({ nonce: 0 });
        expect(actions).toMatchObject([
          { path: `/api/v1/tx/${txIds[0]}/resolve`, body: { action: "PLACEHOLDER", nonce: 0 } },
        ]);
      }
    },
  );

  // protects [Explained, and said aloud] src/domain/troubles/explain.ts, src/application/queries/explain.ts
  it("names a transaction on hold that is in between", async () => {
    const { world: here, entry, txIds } = await begin("the second is held back");
    const [, held, third = ""] = txIds;
    const { blockedBy, actions } = await here.settle(entry.node.api.explain(third));
    expect(blockedBy).toEqual({ txId: held, nonce: 1 });
    expect(actions[0]).toMatchObject({ action: "resume", path: `/api/v1/tx/${held}/resume` });
  });

  it("hides the id of the transaction ahead from an API key without access", async () => {
    const { world: here, entry, txIds } = await begin("the head is held back");
    const { api } = entry.node;
    const explanation = await here.settle(api.explain(txIds[1] ?? "", { blockerByNonce: true }));
    expect(explanation).toMatchObject({ help: [{ code: "LOOK_AT_BLOCKER" }], actions: [] });
    expect(explanation.summary).toMatch(/whatever helps nonce 0 helps all behind it/);
    expect(explanation.summary).not.toMatch(/because/);
  });

  it("says who suspended the lane, and why", async () => {
    world = new World();
    const ops = new OperatedWorld(world);
    const entry = await world.startNode();
    await ops.lane(entry, "suspend");
    const { summary } = await world.settle(entry.node.api.explain(await ops.create(entry)));
    expect(summary).toContain("its lane is suspended (operator:ops: maintenance): nothing of it is sent");
  });
});
