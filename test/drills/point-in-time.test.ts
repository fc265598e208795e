/**
 * Runs docs/operations/backup.md and restore.md with a base backup and archived WAL, and with a copy of the data
 * directory.
 */
import { execFile } from "node:child_process";
import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { migrate } from "../../src/adapters/postgres/schema/migrate.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { fencepost, NO_POSTGRES_15, tool } from "../support/drill-scripts.ts";
import { connect, it, type Nodes, nodesOn, SIGNER } from "../support/integration.ts";
import { POSTGRES_15 } from "../support/postgres-15.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer, range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);
type Settings = Readonly<Record<string, string>>;

describe("a restored PostgreSQL 15 server (Debian)", () => {
  let directory: TemporaryDirectory;
  let server: EmbeddedPostgres | null = null;
  let nodes: Nodes & { killAll(): Promise<void> };
  const archive = () => join(directory.path, "archive");
  const data = () => join(server?.home ?? "", "postgres", "data");
  const start = async (settings: Settings = {}) => {
    const port = server?.port;
    const options = { directory: directory.path, native: POSTGRES_15, clock: systemClock, log: () => undefined };
    server = await startEmbeddedPostgres({ ...options, port, settings: { wal_level: "replica", ...settings } });
  };

  beforeEach(async ({ skip }) => {
    skip(!(await stat(tool("initdb")).catch(() => null)), NO_POSTGRES_15);
    directory = await makeTemporaryDirectory();
    await mkdir(archive(), { mode: 0o777 });
    await run("chmod", ["0777", archive()]);
    await start({ archive_mode: "on", archive_command: `cp %p ${archive()}/%f` });
    await migrate({ databaseUrl: server?.url ?? "" });
    nodes = nodesOn(server?.url ?? "");
  });
  afterEach(async () => {
    await nodes?.killAll();
    await server?.stop();
    if (server !== null) await rm(server.home, { recursive: true, force: true });
    server = null;
    await directory?.remove();
  });

  const ask = async <Row>(sql: string): Promise<Row> => {
    const database = connect(server?.url ?? "");
    return (await database.query<Row>(sql).finally(() => database.end()))[0] as Row;
  };

  async function confirmAll(rpcUrl: string, indexes: readonly number[]): Promise<void> {
    const node = await nodes.start(rpcUrl);
    for (const index of indexes) await node.client.waitFor((await node.client.send(pricedTransfer(index))).txId);
    node.signal("SIGTERM");
    expect(await node.exited).toMatchObject({ code: 0 });
  }

  /**
   * Checks that after a restore lanes wait, no nonce that the network already has is assigned again, and one action of
   * an operator resumes them.
   */
  async function expectToWait(rpcUrl: string, cursor: number): Promise<void> {
    const node = await nodes.start(rpcUrl);
    const lane = () => node.client.signer(SIGNER).then(([only]) => only);
    await waitUntil(async () => (await lane())?.cursor === cursor, "the lane was compared with the chain");
    expect(await lane()).toMatchObject({ suspendedBy: "HISTORY" });
    await expect(node.client.send(pricedTransfer(50))).rejects.toMatchObject({ status: 503 });
    await fencepost(["resume", SIGNER, "--reason", "the drill", "--url", node.url], {});
    const { nonce } = await waitUntil(() => node.client.send(pricedTransfer(50)).catch(() => null), "it goes on");
    expect(nonce).toBe(cursor);
  }

  it("is detected by its new timeline after a recovery", async ({ simulated }) => {
    await confirmAll(simulated.url, range(2));
    const base = join(directory.path, "base");
    await run(tool("pg_basebackup"), ["--dbname", server?.url ?? "", "--pgdata", base, "--checkpoint", "fast"]);
    await confirmAll(simulated.url, [2]);
    const { now } = await ask<{ now: string }>("SELECT clock_timestamp()::text AS now");
    await confirmAll(simulated.url, [3, 4]);
    await ask("SELECT pg_switch_wal()");
    const { uid, gid } = await stat(data());
    await server?.stop();
    await rm(data(), { recursive: true });
    await rename(base, data());
    await writeFile(join(data(), "recovery.signal"), "");
    await run("chown", ["-R", `${uid}:${gid}`, data()]);
    await start({
      restore_command: `cp ${archive()}/%f %p`,
      recovery_target_time: now,
      recovery_target_action: "promote",
    });
    await waitUntil(async () => (await ask<{ over: boolean }>("SELECT NOT pg_is_in_recovery() AS over")).over, "over");
    expect(await ask("SELECT count(*)::int AS kept FROM fencepost.transaction")).toEqual({ kept: 3 });
    await expectToWait(simulated.url, 5);
  });

  it("needs migrate --after-restore if the data directory was copied", async ({ simulated }) => {
    await confirmAll(simulated.url, range(2));
    await server?.stop();
    const copy = `${data()}.copy`;
    await run("cp", ["-a", data(), copy]);
    await start();
    await confirmAll(simulated.url, [2, 3]);
    await server?.stop();
    await rm(data(), { recursive: true });
    await rename(copy, data());
    await start();
    const said = await fencepost(["migrate", "--after-restore"], { FENCEPOST_DATABASE_URL: server?.url ?? "" });
    expect(said).toContain("every lane waits");
    await expectToWait(simulated.url, 4);
  });
});
