/** Upgrades go node by node: the first of the new version brings the schema forward while others of the old one run. */
import { describe, expect } from "vitest";
import { it } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";

describe("a schema that a newer version has brought forward", () => {
  it("keeps a node from starting, in one line that says what to do; one that runs goes on", async ({
    simulated,
    nodes,
    database,
  }) => {
    const running = await nodes.start(simulated.url);
    await running.client.waitFor((await running.client.send(transfer(0))).txId);
    await database.query("INSERT INTO fencepost.migration (name, checksum) VALUES ('9999_from_the_future.sql', 'x')");
    await database.query("ALTER TABLE fencepost.lane ADD COLUMN from_the_future text");

    const late = nodes.spawn(simulated.url);
    expect(await late.exited).toEqual({ code: 1, signal: null });
    expect(late.stdout()).toBe("");
    const lines = late.stderr().trimEnd().split("\n");
    expect(lines).toEqual([expect.stringMatching(/^fencepost: .*9999_from_the_future\.sql.*upgrade$/)]);

    const { txId } = await running.client.send(transfer(1));
    expect((await running.client.waitFor(txId)).state).toBe("CONFIRMED");
    running.signal("SIGTERM");
    expect(await running.exited).toEqual({ code: 0, signal: null });
  });
});
