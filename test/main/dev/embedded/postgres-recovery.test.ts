import { spawn } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { locateNative } from "../../../../src/main/dev/embedded/needed-packages.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../../../src/main/dev/embedded/postgres.ts";
import { findProcess, run, sendSignal } from "../../../../src/main/dev/embedded/processes.ts";
import { everyCommand } from "../../../support/every-command.ts";
import { query } from "../../../support/query.ts";
import { seedCluster } from "../../../support/seed-cluster.ts";
import { type PostgresProcess, spawnEmbeddedPostgres } from "../../../support/spawn-embedded-postgres.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { waitUntil } from "../../../support/wait-until.ts";

let temporary: TemporaryDirectory;
const started: EmbeddedPostgres[] = [];
const spawned: PostgresProcess[] = [];

beforeEach(async () => {
  temporary = await makeTemporaryDirectory();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
  await Promise.all(spawned.splice(0).map((process) => process.kill()));
  await waitUntil(async () => (await processesHere()).length === 0, "nothing runs in the directory");
  await temporary.remove();
});

describe("on one data directory of embedded PostgreSQL,", () => {
  beforeEach(() => seedCluster(temporary.path));

  test("a second start in the same process is refused in one line", async () => {
    await start();
    await expect(start()).rejects.toMatchObject({
      code: "ALREADY_RUNNING",
      message: `another Fencepost is already running on this directory (pid ${process.pid})`,
    });
  });

  test("a second process is refused with the pid of the first process", async () => {
    const server = await start();
    await query(server.url, "CREATE TABLE undisturbed AS SELECT 1 AS n");
    const second = spawnPostgres();
    expect((await second.next("error")).error).toBe(
      `another Fencepost is already running on this directory (pid ${process.pid})`,
    );
    expect(await query(server.url, "SELECT n FROM undisturbed")).toEqual([{ n: 1 }]);
  });

  test("exactly one of two simultaneous starts succeeds", async () => {
    const outcomes = await Promise.allSettled([start(), start(), start()]);
    expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
  });
});

describe("a killed supervisor of embedded PostgreSQL", () => {
  test("leaves no server running", async () => {
    await seedCluster(temporary.path);
    const supervisor = spawnPostgres();
    const { pid = 0 } = await supervisor.next("url");
    expect(await findProcess(pid)).not.toBeNull();
    await supervisor.kill();
    await waitUntil(async () => (await findProcess(pid)) === null, "the server has ended");
  });

  test("leaves a directory that can be used again at once, with all data", async () => {
    await seedCluster(temporary.path);
    const supervisor = spawnPostgres();
    const { url } = await supervisor.next("url");
    await query(url, "CREATE TABLE kept AS SELECT 1 AS n");
    await supervisor.kill();
    const server = await start();
    expect(await query(server.url, "SELECT n FROM kept")).toEqual([{ n: 1 }]);
  });

  test("leaves no incomplete database", async () => {
    const supervisor = spawnPostgres();
    const draft = await waitUntil(findDraft, "initdb is at work");
    await waitUntil(() => stat(join(draft, "data", "PG_VERSION")).catch(() => null), "initdb has begun to write");
    await supervisor.kill();
    const server = await start();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await findDraft()).toBeNull();
  });
});

describe("a start of embedded PostgreSQL after an earlier run", () => {
  beforeEach(() => seedCluster(temporary.path));

  test("stops an orphaned server cleanly and replaces it", async () => {
    const before = await start();
    await query(before.url, "CREATE TABLE kept AS SELECT 1 AS n");
    await before.stop();
    const orphan = await startOrphan(before);
    const lines: string[] = [];
    const server = await start({ log: (line) => lines.push(line) });
    expect(lines).toEqual([`stopping the PostgreSQL server (pid ${orphan}) that an earlier run left behind`]);
    expect(await findProcess(orphan)).toBeNull();
    expect(await query(server.url, "SELECT n FROM kept")).toEqual([{ n: 1 }]);
    expect(await readLog(server)).not.toContain("was not properly shut down");
  });

  test("reports an orphaned server that does not stop", async () => {
    const before = await start();
    await before.stop();
    const orphan = await startOrphan(before);
    process.kill(orphan, "SIGSTOP");
    await expect(start({ clock: hastyClock() })).rejects.toMatchObject({
      code: "ALREADY_RUNNING",
      message: `a PostgreSQL server (pid ${orphan}) holds this directory and does not stop`,
    });
    process.kill(orphan, "SIGCONT");
    await waitUntil(async () => (await findProcess(orphan)) === null, "the orphan heard us at last");
  });

  test("succeeds if another process now has the old pid", async () => {
    const before = await start();
    await before.stop();
    const bystander = spawn("sleep", ["600"], { stdio: "ignore" });
    const ended = new Promise((resolve) => bystander.on("exit", resolve));
    const { data, file } = await leavePidFile(before, `${bystander.pid}`);
    const server = await start();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await readFile(file, "utf8")).toContain(`${server.pid}\n${data}\n`);
    expect(bystander.exitCode).toBeNull();
    expect(bystander.signalCode).toBeNull();
    bystander.kill();
    await ended;
  });

  test("succeeds if the old pid is also the new pid", async () => {
    const before = await start();
    await before.stop();
    await leavePidFile(before, `${process.pid}`);
    const server = await start();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("waits for the backends of a killed server to end", async () => {
    const server = await start();
    const client = new Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    // A loop that neither reads from its client nor waits: a backend in it does not notice that its postmaster is gone.
    const busy = client.query(
      "DO $$ BEGIN WHILE clock_timestamp() < statement_timestamp() + interval '1.5 s' LOOP END LOOP; END $$",
    );
    busy.catch(() => undefined);
    await waitUntil(async () => {
      const rows = await query(
        server.url,
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO $$%' AND state = 'active'",
      );
      return rows.length > 0;
    }, "the backend is busy");
    process.kill(server.pid, "SIGKILL");
    await server.restart();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await readLog(server)).toContain("pre-existing shared memory block");
    await client.end().catch(() => undefined);
  });
});

describe("an interrupt (Ctrl-C) of embedded PostgreSQL", () => {
  test("during initdb rejects the start with the reason", async () => {
    const controller = new AbortController();
    const starting = start({ signal: controller.signal });
    const outcome = expect(starting).rejects.toThrow("interrupted");
    await waitUntil(findDraft, "initdb is at work");
    controller.abort(new Error("interrupted"));
    await outcome;
    expect(await processesHere()).toEqual([]);
    expect(await findDraft()).toBeNull();
    const server = await start();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("while the server starts rejects the start with the reason", async () => {
    await seedCluster(temporary.path);
    const controller = new AbortController();
    // `start` reads the clock once before it launches the server and once afterwards, however fast the server is. Abort
    // at the second read: then the server is running, but `start` has not returned.
    let readings = 0;
    const clock: EmbeddedPostgresOptions["clock"] = {
      ...systemClock,
      monotonicMs: () => {
        if (++readings === 2) controller.abort(new Error("interrupted"));
        return systemClock.monotonicMs();
      },
    };
    await expect(start({ signal: controller.signal, clock })).rejects.toThrow("interrupted");
    expect(await processesHere()).toEqual([]);
  });

  test("rejects the start at once if it came before the start", async () => {
    await expect(start({ signal: AbortSignal.abort(new Error("interrupted")) })).rejects.toThrow("interrupted");
    expect((await readdir(temporary.path)).sort()).toEqual([".gitignore", "supervisor.1"]);
  });

  test("reaches only the supervisor", async () => {
    await seedCluster(temporary.path);
    const supervisor = spawnPostgres();
    const { url, pid = 0 } = await supervisor.next("url");
    // A terminal sends SIGINT to every process of the foreground group.
    process.kill(-(supervisor.child.pid ?? 0), "SIGINT");
    await supervisor.next("interrupted");
    expect(await query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await findProcess(pid)).not.toBeNull();
  });
});

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    directory: temporary.path,
    clock: systemClock,
    log: () => undefined,
    settings: { fsync: "off" },
    ...options,
  });
  started.push(server);
  return server;
}

/** A clock on which ten seconds pass between any two readings. */
function hastyClock(): EmbeddedPostgresOptions["clock"] {
  let nowMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => {
      nowMs += 10_000;
      return nowMs;
    },
  };
}

function spawnPostgres(): PostgresProcess {
  const supervisor = spawnEmbeddedPostgres({ directory: temporary.path });
  spawned.push(supervisor);
  return supervisor;
}

async function findDraft(): Promise<string | null> {
  const name = (await readdir(temporary.path)).find((entry) => entry.startsWith("postgres.draft-"));
  return name === undefined ? null : join(temporary.path, name);
}

/** Command lines of the server processes that use the directory. */
async function processesHere(): Promise<string[]> {
  const commands = (await everyCommand()).filter((command) => command.includes(temporary.path));
  return commands.filter((command) => /postgres|initdb/.test(command.split(" ")[0] ?? ""));
}

/** Starts a server without a supervisor. */
async function startOrphan({ home, port }: EmbeddedPostgres): Promise<number> {
  const data = join(home, "postgres", "data");
  const { uid, gid } = await stat(data);
  const args = ["-D", data, "-c", `port=${port}`, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
  const child = spawn(join(locateNative(), "bin", "postgres"), args, {
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
    detached: true,
    env: { LC_ALL: "C" },
    stdio: "ignore",
  });
  const pid = child.pid ?? 0;
  const file = join(data, "postmaster.pid");
  await waitUntil(async () => {
    return (await readFile(file, "utf8").catch(() => "")).includes("ready");
  }, "the orphan is ready").catch((error: unknown) => {
    sendSignal(pid, "SIGKILL");
    throw error;
  });
  return pid;
}

async function leavePidFile({ home }: EmbeddedPostgres, pid: string): Promise<{ data: string; file: string }> {
  const data = join(home, "postgres", "data");
  const file = join(data, "postmaster.pid");
  await writeFile(file, `${pid}\n${data}\n1700000000\n5432\n\n127.0.0.1\n  1234567     98765\nready   \n`);
  const { uid, gid } = await stat(data);
  if (process.getuid?.() === 0) await run("chown", [`${uid}:${gid}`, file]);
  return { data, file };
}

function readLog(server: EmbeddedPostgres): Promise<string> {
  return readFile(join(server.home, "postgres", "server.log"), "utf8");
}
