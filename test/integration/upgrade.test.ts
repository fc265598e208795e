/** Upgrades go node by node: the first of the new version brings the schema forward while others of the old one run. */
import { describe, expect } from "vitest";
import { type Database, it } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";

const NEWEST = 'SELECT max(name COLLATE "C") AS name FROM fencepost.migration';

/** The state after the first node of a release with such a migration. */
async function bringForward(database: Database, name: string, worksWith: string): Promise<void> {
  const insert = "INSERT INTO fencepost.migration (name, checksum, works_with) VALUES ($1, 'x', $2)";
  await database.query(insert, [name, worksWith]);
}

describe("a schema that a newer version has brought forward", () => {
  it("lets a node start that is one release behind; one that is further behind says in one line what to do", async ({
    simulated,
    nodes,
    database,
  }) => {
    const running = await nodes.start(simulated.url);
    const [newest] = await database.query<{ name: string }>(NEWEST);
    await bringForward(database, "9001_next.sql", newest?.name ?? "");
    await database.query("ALTER TABLE fencepost.lane ADD COLUMN from_the_future text");
    const restarted = await nodes.start(simulated.url);
    running.signal("SIGTERM");
    expect(await running.exited).toEqual({ code: 0, signal: null });
    const { txId } = await restarted.client.send(transfer(0));
    expect((await restarted.client.waitFor(txId)).state).toBe("CONFIRMED");

    await bringForward(database, "9002_later.sql", "9001_next.sql");
    const late = nodes.spawn(simulated.url);
    expect(await late.exited).toEqual({ code: 1, signal: null });
    expect(late.stdout()).toBe("");
    const lines = late.stderr().trimEnd().split("\n");
    expect(lines).toEqual([expect.stringMatching(/^fencepost: .*9002_later\.sql.*too new.*9001_next\.sql.*upgrade$/)]);
    // Running nodes go on.
    const next = await restarted.client.send(transfer(1));
    expect((await restarted.client.waitFor(next.txId)).state).toBe("CONFIRMED");
  });
});
