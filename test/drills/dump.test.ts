/** Runs docs/operations/backup.md and restore.md with pg_dump and pg_restore, through the scripts in deploy/drills. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { migrate } from "../../src/adapters/postgres/schema/migrate.ts";
import type { EmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { fencepost, NO_POSTGRES_15, runDrill } from "../support/drill-scripts.ts";
import { connect, it, nodesOn, SIGNER } from "../support/integration.ts";
import { startPostgres15 } from "../support/postgres-15.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer, range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("a database dump", () => {
  let server: EmbeddedPostgres | null;
  let directory: TemporaryDirectory;
  let nodes: ReturnType<typeof nodesOn>;

  beforeEach(async () => {
    server = await startPostgres15();
    directory = await makeTemporaryDirectory();
    nodes = nodesOn(server?.url ?? "");
    if (server !== null) await migrate({ databaseUrl: server.url });
  });
  afterEach(async () => {
    await nodes.killAll();
    await server?.stop();
    await directory.remove();
  });

  const file = () => join(directory.path, "fencepost.dump");
  const drill = (script: "backup.sh" | "restore.sh", from = file()) =>
    runDrill(script, from, { databaseUrl: server?.url ?? "", directory: directory.path });

  it("leaves lanes suspended and lists lost transactions if it is restored over newer data", async ({
    simulated,
    skip,
  }) => {
    skip(server === null, NO_POSTGRES_15);
    const node = await nodes.start(simulated.url);
    const confirm = async (index: number) => node.client.waitFor((await node.client.send(pricedTransfer(index))).txId);
    for (const index of range(3)) await confirm(index);
    expect(await drill("backup.sh")).toMatchObject({ code: 0, output: expect.stringContaining("kept ") });
    for (const index of range(2)) await confirm(3 + index);

    expect(await drill("restore.sh")).toMatchObject({
      code: 1,
      output: expect.stringContaining("stop every node first"),
    });
    node.signal("SIGTERM");
    await node.exited;
    const restored = await drill("restore.sh");
    expect(restored, restored.output).toMatchObject({ code: 0 });
    expect(restored.output).toContain("2 transactions are not in the dump");
    const report = (await readdir(directory.path)).find((name) => name.startsWith("lost-")) ?? "";
    const lost = (await readFile(join(directory.path, report), "utf8")).trimEnd().split("\n");
    expect(lost.slice(1).map((line) => line.split(",").slice(3, 5))).toEqual([
      ["3", "request-3"],
      ["4", "request-4"],
    ]);
    const hashes = simulated.chain.witness.map(({ hash }) => hash);
    expect(lost.slice(1).map((line) => hashes.includes(line.split(",").at(-1) as `0x${string}`))).toEqual([true, true]);

    const heir = await nodes.start(simulated.url);
    const lane = () => heir.client.signer(SIGNER).then(([only]) => only);
    await waitUntil(async () => (await lane())?.cursor === 5, "the lane was compared with the chain");
    expect(await lane()).toMatchObject({ suspendedBy: "HISTORY" });
    await expect(heir.client.send(pricedTransfer(3))).rejects.toMatchObject({ status: 503 });
    await fencepost(["resume", SIGNER, "--reason", "the drill", "--url", heir.url], {});
    const { nonce } = await waitUntil(() => heir.client.send(pricedTransfer(9)).catch(() => null), "it goes on");
    expect(nonce).toBe(5);
  });

  it("that is truncated leaves the database unchanged", async ({ simulated, skip }) => {
    skip(server === null, NO_POSTGRES_15);
    const node = await nodes.start(simulated.url);
    await node.client.waitFor((await node.client.send(pricedTransfer(0))).txId);
    expect((await drill("backup.sh")).code).toBe(0);
    node.signal("SIGTERM");
    await node.exited;
    const whole = await readFile(file());
    const torn = join(directory.path, "torn.dump");
    await writeFile(torn, whole.subarray(0, whole.length - 2_000));
    const said = await drill("restore.sh", torn);
    expect(said.code, said.output).not.toBe(0);
    const database = connect(server?.url ?? "");
    const rows = await database.query("SELECT state FROM fencepost.transaction");
    await database.end();
    expect(rows).toEqual([{ state: "CONFIRMED" }]);
    expect((await drill("restore.sh", join(directory.path, "absent"))).code).not.toBe(0);
  });
});
