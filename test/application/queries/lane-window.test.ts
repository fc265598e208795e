import { afterEach, describe, expect, it } from "vitest";
import type { ChainSettings } from "../../../src/application/settings.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(settings: Partial<ChainSettings> = {}): Promise<WorldNode> {
  world = new World({ settings: { inFlightWindow: 3, ...settings } });
  ops = new OperatedWorld(world);
  const entry = await world.startNode();
  await ops.settled(await ops.create(entry));
  world.holdBlocks();
  return entry;
}

const create = (entry: WorldNode, count: number) =>
  world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(transfer()))));
const windowOf = async ({ node }: WorldNode, signer = SIGNER) =>
  (await world.settle(node.api.signer(signer)))[0]?.window;

describe("the in-flight window of a lane", () => {
  it("reports what limits the next transaction", async () => {
    const entry = await start();
    expect(await windowOf(entry)).toEqual({ configured: 3, open: 3, inFlight: 0, limitedBy: null });
    await create(entry, 2);
    await world.until(() => world.chain.pool.size === 2);
    expect(await windowOf(entry)).toEqual({ configured: 3, open: 3, inFlight: 2, limitedBy: null });
    await create(entry, 4);
    await world.until(() => world.chain.pool.size === 3);
    expect(await windowOf(entry)).toEqual({ configured: 3, open: 3, inFlight: 3, limitedBy: "FULL" });
    world.releaseBlocks();
    await world.allSettled(7);
    expect(await windowOf(entry)).toEqual({ configured: 3, open: 3, inFlight: 0, limitedBy: null });
  });

  it("shrinks to one transaction if the endpoint refuses future nonces", async () => {
    const entry = await start();
    world.chain.pool.change({ futureNonces: "refuseUnmined" });
    await create(entry, 6);
    await world.until(() =>
      entry.events.some((event) => event.type === "submit.answered" && event.answer === "nonceTooHigh"),
    );
    await world.clock.advance(1_000);
    expect(await windowOf(entry)).toMatchObject({ configured: 3, open: 1, limitedBy: "NO_FUTURE_NONCES" });
  });

  it("reports a suspended lane or a held transaction as the limit", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    const { txId } = await world.settle(entry.node.api.create(transfer()));
    expect(await windowOf(entry)).toMatchObject({ inFlight: 0, limitedBy: "SUSPENDED" });
    await ops.act(entry, "suspend", { txId });
    await ops.lane(entry, "resume");
    expect(await windowOf(entry)).toMatchObject({ limitedBy: "HELD" });
    entry.signer.sign = () => Promise.reject(new Error("connection refused"));
    await ops.act(entry, "resume", { txId });
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "SIGNER_AWAY"));
    expect(await windowOf(entry)).toMatchObject({ inFlight: 0, limitedBy: "SIGNER_AWAY" });
  });

  it("is reported only by the node that owns the lane", async () => {
    const entry = await start();
    expect(await windowOf(entry, SIGNERS[1])).not.toBeUndefined();
    const other = await world.startNode();
    await world.until(() => SIGNERS.some((signer) => world.ownerOf(signer) === "node-2"));
    const theirs = SIGNERS.find((signer) => world.ownerOf(signer) === "node-2");
    expect([await windowOf(entry, theirs), await windowOf(other, theirs)]).toEqual([null, expect.any(Object)]);
  });
});
