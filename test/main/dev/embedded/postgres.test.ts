import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../../../src/main/dev/embedded/postgres.ts";
import { everyCommand } from "../../../support/every-command.ts";
import { query } from "../../../support/query.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { waitUntil } from "../../../support/wait-until.ts";

let temporary: TemporaryDirectory;
const started: EmbeddedPostgres[] = [];

beforeAll(async () => {
  temporary = await makeTemporaryDirectory();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

afterAll(() => temporary.remove());

describe("an embedded PostgreSQL", () => {
  test("keeps its data across stop and start, on any port", async () => {
    const first = await start();
    await query(first.url, "CREATE TABLE kept_over_stop (n int)");
    await query(first.url, "INSERT INTO kept_over_stop VALUES (42)");
    await first.stop();
    const second = await start();
    expect(await query(second.url, "SELECT n FROM kept_over_stop")).toEqual([{ n: 42 }]);
  });

  test("is durable by default", async () => {
    const server = await start({ settings: { work_mem: "7MB" } });
    const settings = await query(
      server.url,
      `SELECT name, setting FROM pg_settings
       WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_directories',
                      'work_mem', 'server_encoding', 'TimeZone')`,
    );
    expect(Object.fromEntries(settings.map((row) => [row.name, row.setting]))).toEqual({
      fsync: "on",
      synchronous_commit: "on",
      full_page_writes: "on",
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      work_mem: "7168",
      server_encoding: "UTF8",
      TimeZone: "UTC",
    });
    expect(server.version).toMatch(/^18\./);
  });

  test("refuses connections without the password", async () => {
    const server = await start();
    const wrong = new URL(server.url);
    wrong.password = "guess";
    await expect(query(wrong.href, "SELECT 1")).rejects.toThrow(/password authentication failed/);
  });

  test("ignores the user's PostgreSQL environment variables", async () => {
    process.env.PGDATA = "/nowhere";
    process.env.PGPORT = "1";
    try {
      const server = await start();
      expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    } finally {
      delete process.env.PGDATA;
      delete process.env.PGPORT;
    }
  });

  test("works in a directory with spaces, quotes and a very long name", async () => {
    const server = await start({ directory: join(temporary.path, `it's "here" ${"x".repeat(120)}`, "päth") });
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

test("stop of embedded PostgreSQL leaves neither the server nor its guard process running", async () => {
  const server = await start();
  const pattern = new RegExp(`guard ${server.pid} INT|${temporary.path}`);
  expect((await everyCommand()).filter((command) => pattern.test(command)).length).toBeGreaterThanOrEqual(2);
  await server.stop();
  await waitUntil(async () => !(await everyCommand()).some((command) => pattern.test(command)), "all of it has ended");
});

describe("a restart of embedded PostgreSQL", () => {
  test.each(["fast", "immediate"] as const)("(%s) keeps port, URL and committed data", async (mode) => {
    const exits: string[] = [];
    const server = await start({ onUnexpectedExit: (line) => exits.push(line) });
    await query(server.url, `CREATE TABLE kept_${mode} AS SELECT 1 AS n`);
    const logged = await readLog(server);
    const before = server.pid;
    await server.restart(mode);
    expect(server.pid).not.toBe(before);
    expect(await query(server.url, `SELECT n FROM kept_${mode}`)).toEqual([{ n: 1 }]);
    expect(exits).toEqual([]);
    const log = (await readLog(server)).slice(logged.length);
    expect(log.includes("was not properly shut down")).toBe(mode === "immediate");
  });

  test("closes open connections, including busy ones", async () => {
    const server = await start();
    const client = new Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    const sleeping = client.query("SELECT pg_sleep(600)");
    const cut = expect(sleeping).rejects.toThrow();
    await server.restart();
    await cut;
  });

  test("runs twice in sequence if it is requested twice at once", async () => {
    const server = await start();
    await Promise.all([server.restart("immediate"), server.restart("fast")]);
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("is refused after stop", async () => {
    const server = await start();
    await server.stop();
    await expect(server.restart()).rejects.toThrow("this PostgreSQL has been stopped");
  });
});

describe("an embedded PostgreSQL server that is killed", () => {
  test("loses no commit", async () => {
    const exit = watchExit();
    const server = await start({ onUnexpectedExit: exit.report });
    await query(server.url, "CREATE TABLE kept_over_kill AS SELECT 1 AS n");
    const { pid } = server;
    process.kill(pid, "SIGKILL");
    expect(await exit.first).toMatch(
      new RegExp(`^PostgreSQL \\(pid ${pid}\\) ended: signal SIGKILL; its log is /.*server\\.log$`),
    );
    await server.restart();
    expect(await query(server.url, "SELECT n FROM kept_over_kill")).toEqual([{ n: 1 }]);
    expect(exit.lines).toHaveLength(1);
  });

  test("can still be stopped, and unlocks its directory", async () => {
    const exit = watchExit();
    const server = await start({ onUnexpectedExit: exit.report });
    process.kill(server.pid, "SIGKILL");
    await exit.first;
    await server.stop();
    const next = await start();
    expect(await query(next.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

describe("ports of embedded PostgreSQL", () => {
  test("are refused in one line if in use", async () => {
    const squatter = createServer();
    const port = await new Promise<number>((resolve) => {
      squatter.listen(0, "127.0.0.1", () => resolve((squatter.address() as { port: number }).port));
    });
    await expect(start({ port })).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: `port ${port} is already in use: choose another one, or stop what listens there`,
    });
    await new Promise((resolve) => squatter.close(resolve));
    const server = await start({ port });
    expect(server.port).toBe(port);
    expect(new URL(server.url).port).toBe(String(port));
  });

  test("differ between two servers in two directories", async () => {
    const [one, two] = await Promise.all([
      start({ directory: join(temporary.path, "one") }),
      start({ directory: join(temporary.path, "two") }),
    ]);
    expect(one.port).not.toBe(two.port);
  });
});

test("an unknown setting of embedded PostgreSQL is reported with the server's message", async () => {
  await expect(start({ settings: { no_such_setting: "1" } })).rejects.toMatchObject({
    code: "START_FAILED",
    message: expect.stringMatching(/^PostgreSQL did not start: .*no_such_setting/),
  });
});

function watchExit(): { lines: string[]; first: Promise<string>; report: (line: string) => void } {
  const lines: string[] = [];
  const resolvers: Array<(line: string) => void> = [];
  const first = new Promise<string>((resolve) => resolvers.push(resolve));
  const report = (line: string) => {
    lines.push(line);
    for (const resolve of resolvers) resolve(line);
  };
  return { lines, first, report };
}

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    directory: temporary.path,
    clock: systemClock,
    log: () => undefined,
    ...options,
  });
  started.push(server);
  return server;
}

function readLog(server: EmbeddedPostgres): Promise<string> {
  return readFile(join(server.home, "postgres", "server.log"), "utf8");
}
