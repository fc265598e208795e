/**
 * Upgrades go node by node: the first node of the new version migrates the schema while nodes of the old version run.
 */
import { describe, expect } from "vitest";
import { type Database, it } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";

const NEWEST = 'SELECT max(name COLLATE "C") AS name FROM fencepost.migration';

/** Records a migration as the first node of a later release would. */
async function bringForward(database: Database, name: string, worksWith: string): Promise<void> {
  const insert = "INSERT INTO fencepost.migration (name, checksum, works_with) VALUES ($1, 'x', $2)";
  await database.query(insert, [name, worksWith]);
}

describe("a database schema of a newer version", () => {
  it("allows a node of the previous release to start", async ({ simulated, nodes, database }) => {
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
    // Nodes that are already running continue to work.
    const next = await restarted.client.send(transfer(1));
    expect((await restarted.client.waitFor(next.txId)).state).toBe("CONFIRMED");
  });
});
