/** Callers use one port, operators and other nodes another. No API key exceeds its permissions. */
import { describe, expect } from "vitest";
import {
  batch,
  create,
  type Door,
  expectSplit,
  GREEDY,
  MODEST,
  operatorAt,
  RATE,
  SHARE,
  SPLIT,
} from "../support/admin-port.ts";
import { it, SIGNER } from "../support/integration.ts";
import { type Ready, spawnFencepost } from "../support/node-process.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("two nodes with a separate admin port", () => {
  // protects [Attacks] src/application/authority.ts, src/main/service.ts, src/main/cli.ts
  it("forward creates and kills over the admin port", async ({ simulated, nodes }) => {
    const pair = [await nodes.start(simulated.url, SPLIT), await nodes.start(simulated.url, SPLIT)];
    const doors = await Promise.all(pair.map(async (node) => ({ ...node, ...((await node.ready) as Ready & Door) })));
    const leases = await waitUntil(async () => {
      const found = await operatorAt(doors[0] as Door).leases();
      return new Set(found.map(({ nodeId }) => nodeId)).size === 2 ? found : null;
    }, "each node owns a lane");
    const ownerId = leases.find(({ signer }) => signer === SIGNER)?.nodeId;
    const owner = doors.find(({ nodeId }) => nodeId === ownerId) as (typeof doors)[number];
    const stranger = doors.find((door) => door !== owner) as (typeof doors)[number];
    const known = await operatorAt(owner).nodes();
    expect(known.map(({ url }) => url).sort()).toEqual(doors.map(({ adminUrl }) => adminUrl).sort());
    for (const door of doors) await expectSplit(door);
    const [port, adminPort] = [owner.url, owner.adminUrl].map((url) => new URL(url).port) as [string, string];
    const listing = spawnFencepost(["keys", "api", "list", "--json"], {
      variables: { ...SPLIT, FENCEPOST_PORT: port, FENCEPOST_ADMIN_PORT: adminPort },
    });
    expect(await listing.exited).toEqual({ code: 0, signal: null });
    expect(JSON.parse(listing.stdout())).toEqual({ items: [] });

    const { kills, nodes: notified } = await operatorAt(stranger).kill({ reason: "what is created waits" });
    expect(kills).toHaveLength(1);
    expect(notified).toMatchObject([{ nodeId: ownerId, told: true }]);

    const forwarded = await batch(stranger, GREEDY, RATE + 1);
    expect(forwarded).toEqual({
      statuses: [202, 202, 202, 202, 202, 429],
      left: expect.stringMatching(/^"createsPerSecond";r=\d;t=1$/),
    });
    expect((await batch(owner, GREEDY, RATE)).statuses).toEqual([202, 202, 202, 202, 202]);
    const full = await waitUntil(async () => {
      const { status, body } = await create(stranger, GREEDY);
      return status === 429 && body.rule === "queueShare" ? body : null;
    }, "the key has filled its part");
    expect(full).toMatchObject({ code: "QUOTA_EXCEEDED", limit: SHARE, retryAfterSeconds: 1 });
    for (const door of doors) expect((await create(door, MODEST)).status).toBe(202);

    await operatorAt(owner).endKill();
    await waitUntil(async () => {
      const { confirmed } = (await operatorAt(owner).signer(SIGNER))[0] ?? { confirmed: 0 };
      return confirmed === SHARE + 2;
    }, "everything is final");
    expect((await create(owner, GREEDY)).status).toBe(202);
  });
});
