import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { expectConsecutive, isOwner, startNodes, TWENTY } from "../../support/spread-lanes.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("creates sent to any node", () => {
  it("reach the lane's owner", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 3);
    const entropy = createSeededEntropy(7);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(entropy.random() * list.length)] as T;
    for (let round = 0; round < 25; round++) {
      const creates = Array.from({ length: 50 }, () => pick(nodes).node.api.create(transfer({ signer: pick(TWENTY) })));
      await world.settle(Promise.all(creates));
    }
    await world.allSettled(1_250, 600_000);
    expectConsecutive(world, TWENTY);
    checkInvariants(world);
    const forwards = nodes.flatMap(({ events }) => events.filter((event) => event.type === "forward"));
    expect(forwards.length).toBeGreaterThan(500);
    expect(forwards.filter(({ result }) => result === "hit").length / forwards.length).toBeGreaterThanOrEqual(0.95);
  });

  it("are redirected by the client to the owner's URL in basic mode", async () => {
    world = new World({ signers: TWENTY, node: { mode: "basic" } });
    const nodes = await startNodes(world, 3);
    const byUrl = new Map(nodes.map((node) => [node.url, node]));
    const send = async (node: WorldNode, signer: Address): Promise<void> => {
      const answer = await node.node.api.create(transfer({ signer })).catch((error: FencepostError) => error);
      if (!(answer instanceof FencepostError)) return;
      expect(answer.code).toBe("NOT_LEADER");
      await send(byUrl.get(answer.extras.ownerUrl ?? "") as WorldNode, signer);
    };
    await world.settle(
      Promise.all(Array.from({ length: 300 }, (_, n) => send(nodes[n % 3] as WorldNode, TWENTY[n % 20] as Address))),
    );
    await world.allSettled(300, 600_000);
    expectConsecutive(world, TWENTY);
  });

  it("create one transaction each if a request or reply between nodes is lost", async () => {
    world = new World();
    const nodes = await startNodes(world, 2);
    for (const requestId of ["named", undefined]) {
      for (const fault of ["lostReply", "lostRequest"] as const) {
        const away = nodes.find((node) => !isOwner(world, node, SIGNER)) as WorldNode;
        world.network.inject(fault);
        const { requestId: _, ...bare } = transfer();
        const request = requestId === undefined ? bare : { ...bare, requestId: `${requestId}-${fault}` };
        expect(await world.settle(away.node.api.create(request))).toMatchObject({ outcome: "created" });
      }
    }
    expect(world.rows().length).toBe(4);
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("are refused if no node holds the signer's key", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    await world.startNode({ signers: SIGNERS.slice(1, 2) });
    await world.clock.advance(1_000);
    await world.settle(first.node.api.create(transfer({ signer: SIGNERS[1] })));
    const unknown = first.node.api.create(transfer({ signer: SIGNERS[2] }));
    await expect(world.settle(unknown)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect(world.rows().length).toBe(1);
  });

  it.each(["basic", "worker-queue"] as const)(
    "find the signer of a node that has just joined, without delay (mode %s)",
    async (mode) => {
      world = new World({ node: { mode } });
      const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
      const joined = await world.startNode({ signers: SIGNERS.slice(1, 2) });
      const answer = await world
        .settle(first.node.api.create(transfer({ signer: SIGNERS[1] })))
        .catch((error: FencepostError) => error);
      const expected =
        mode === "basic" ? { code: "NOT_LEADER", extras: { ownerUrl: joined.url } } : { outcome: "created" };
      expect(answer).toMatchObject(expected);
    },
  );

  it("get UNAVAILABLE while the signers of other nodes cannot be read from the database", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    first.store.cut();
    const asked = first.node.api.create(transfer({ signer: SIGNERS[1] }));
    await expect(world.settle(asked)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
