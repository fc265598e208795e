/** The workers of one machine share the port for callers and the port for operators. */
import { describe, expect } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { type Door, expectSplit, MODEST, operatorAt, SPLIT } from "../../support/admin-port.ts";
import { it, OTHER_SIGNER, QUICK, SIGNER } from "../../support/integration.ts";
import { type Ready, spawnFencepost } from "../../support/node-process.ts";
import { pricedTransfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

describe("workers with a separate admin port", () => {
  it("share the API port and the admin port", async ({ simulated, database }) => {
    const child = spawnFencepost(["start", "--workers", "2"], {
      variables: {
        ...{ ...QUICK, ...SPLIT },
        FENCEPOST_DATABASE_URL: database.url,
        FENCEPOST_RPC_URL: simulated.url,
      },
    });
    const door = (await child.ready) as Ready & Door;
    const client = operatorAt(door);
    await waitUntil(async () => {
      return new Set((await client.leases()).map(({ nodeId }) => nodeId)).size === 2;
    }, "each worker owns a lane");
    await expectSplit(door);
    const own = (await client.nodes()).map(({ url }) => url);
    expect(new Set([...own, door.url, door.adminUrl]).size).toBe(4);
    const callers = createClient({ url: door.url, apiKey: MODEST });
    for (const signer of [SIGNER, OTHER_SIGNER]) {
      const { txId } = await callers.send({ ...pricedTransfer(signer === SIGNER ? 1 : 2), signer });
      expect(await callers.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    }
    expect((await client.kill({ reason: "all of them" })).nodes).toMatchObject([{ told: true }]);
    child.signal("SIGTERM");
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });
});
