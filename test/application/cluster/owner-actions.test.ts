import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import { CHAIN_ID, SIGNER, SIGNERS, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const LANE = { chainId: CHAIN_ID, signer: SIGNER };

/**
 * Starts two nodes with test actions. The action `echo` returns the node's URL, the lane's fencing token and the
 * request's body; all other actions fail.
 */
async function startNodes(mode: "basic" | "worker-queue" = "worker-queue"): Promise<readonly WorldNode[]> {
  world = new World({ node: { mode } });
  const nodes = [await world.startNode(), await world.startNode()];
  for (const { node, url } of nodes) {
    node.actions.register("echo", async (lane, { body }) => ({ url, token: lane.fence.token, body }));
    node.actions.register("refuse", async () => Promise.reject(new FencepostError("CONFLICT", "it is final")));
    node.actions.register("break", async () => Promise.reject(new Error("a mistake of ours")));
  }
  await world.until(() => nodes.every(({ node }) => node.gauges().lanesHeld > 0), 30_000);
  return nodes;
}

function split(nodes: readonly WorldNode[]): { readonly owner: WorldNode; readonly other: WorldNode } {
  const row = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === SIGNER);
  const url = world.database.state.instances.get(row?.owner ?? "")?.url;
  const [owner, other] = [nodes.find((node) => node.url === url), nodes.find((node) => node.url !== url)];
  return { owner: owner as WorldNode, other: other as WorldNode };
}

const ask = ({ node }: WorldNode, action: string, body = {}) =>
  world.settle(node.actions.forwardToOwner(LANE, { action, body, owner: null }).catch((error: unknown) => error));

describe("an action on a lane", () => {
  it("is performed by the lane's owner, whichever node receives it", async () => {
    const { owner, other } = split(await startNodes());
    for (const node of [owner, other]) {
      expect(await ask(node, "echo", { n: 1 })).toMatchObject({ url: owner.url, body: { n: 1 } });
    }
  });

  it("is refused with the owner's own error", async () => {
    const { owner, other } = split(await startNodes());
    for (const node of [owner, other]) expect(await ask(node, "refuse")).toMatchObject({ code: "CONFLICT" });
  });

  it("is refused in basic mode (nodes do not forward), with an error that contains the owner's URL", async () => {
    const { owner, other } = split(await startNodes("basic"));
    expect(await ask(other, "echo")).toMatchObject({ code: "NOT_LEADER", extras: { ownerUrl: owner.url } });
    expect(await ask(owner, "echo")).toMatchObject({ url: owner.url });
  });

  it("goes to the next owner when the owner shuts down", async () => {
    const { owner, other } = split(await startNodes());
    const closing = owner.node.close();
    await world.clock.advance(20);
    for (const node of [owner, other]) expect(await ask(node, "echo")).toMatchObject({ url: other.url });
    await world.settle(closing);
  });

  it.each(["lostRequest", "lostReply"] as const)(
    "is not retried after a network fault (%s), and its outcome is unknown",
    async (fault) => {
      const { owner, other } = split(await startNodes());
      let done = 0;
      owner.node.actions.register("count", async () => ++done);
      world.network.inject(fault);
      expect(await ask(other, "count")).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
      expect(done).toBe(fault === "lostReply" ? 1 : 0);
    },
  );

  it("is sent again if the connection was refused", async () => {
    const { owner, other } = split(await startNodes());
    world.network.inject("refused");
    expect(await ask(other, "echo")).toMatchObject({ url: owner.url });
  });

  it("is not performed if the owner's version does not support the action", async () => {
    const { other } = split(await startNodes());
    other.node.actions.register("brand-new", async () => "done");
    expect(await ask(other, "brand-new")).toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining('"brand-new"'),
    });
  });

  it("is refused if no node holds the signer's key", async () => {
    const [node] = await startNodes();
    const lane = { chainId: CHAIN_ID, signer: SIGNERS[0]?.replace("1", "9") as typeof SIGNER };
    const asked = node?.node.actions.forwardToOwner(lane, { action: "echo", body: {}, owner: null });
    await expect(world.settle(asked as Promise<unknown>)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("cannot be registered twice under the same name", async () => {
    const [node] = await startNodes();
    expect(() => node?.node.actions.register("echo", async () => null)).toThrow("already registered");
  });
});
