import { chmod, chown, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { handOverTree, isRoot } from "../../../../src/main/dev/embedded/postgres/place.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../../../src/main/dev/embedded/postgres.ts";
import { findProcess, run } from "../../../../src/main/dev/embedded/processes.ts";
import { copyNativeWithoutLinks } from "../../../support/native-copy.ts";
import { POSTGRES_15, startPostgres15 } from "../../../support/postgres-15.ts";
import { query } from "../../../support/query.ts";
import { spawnEmbeddedPostgres } from "../../../support/spawn-embedded-postgres.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const NOBODY = { uid: 65_534, gid: 65_534 };

let temporary: TemporaryDirectory;
const started: EmbeddedPostgres[] = [];

beforeEach(async () => {
  temporary = await makeTemporaryDirectory();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
  await temporary.remove();
});

describe("a data directory for embedded PostgreSQL", () => {
  test("of another major version is refused in one line", async () => {
    const server = await start();
    await server.stop();
    const root = join(server.home, "postgres");
    await writeFile(join(root, "data", "PG_VERSION"), "17\n");
    await expect(start()).rejects.toMatchObject({
      code: "OTHER_VERSION",
      message: `the database in ${root} was made by PostgreSQL 17, this is ${server.version}: remove it to start afresh, or use the old version`,
    });
  });

  test("with other files is refused in one line", async () => {
    await mkdir(join(temporary.path, "postgres"));
    await expect(start()).rejects.toMatchObject({
      code: "DIRECTORY_UNUSABLE",
      message: `${join(temporary.path, "postgres")} holds no PostgreSQL database: remove it to start afresh`,
    });
  });

  test("is refused in one line if its password is lost", async () => {
    const server = await start();
    await server.stop();
    await rm(join(server.home, "postgres", "password"));
    await expect(start()).rejects.toMatchObject({
      code: "DIRECTORY_UNUSABLE",
      message: expect.stringMatching(/^the password file in .* is missing: remove the directory to start afresh$/),
    });
  });

  test("is refused in one line if its parent is a file", async () => {
    await writeFile(join(temporary.path, "file"), "");
    await expect(start({ directory: join(temporary.path, "file", "below") })).rejects.toMatchObject({
      code: "DIRECTORY_UNUSABLE",
      message: expect.stringMatching(/^cannot create .*file\/below: ENOTDIR/),
    });
  });

  test("is unlocked after it was refused", async () => {
    await mkdir(join(temporary.path, "postgres"));
    await expect(start()).rejects.toThrow();
    await rm(join(temporary.path, "postgres"), { recursive: true });
    const server = await start();
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

test("a failure of initdb is reported with its message, and leaves nothing behind", async () => {
  const native = join(temporary.path, "native");
  await mkdir(join(native, "bin"), { recursive: true });
  await writeFile(join(native, "bin", "postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'\n", { mode: 0o755 });
  await writeFile(
    join(native, "bin", "initdb"),
    "#!/bin/sh\necho 'a warning' >&2\necho 'initdb: error: no space left on device' >&2\nexit 1\n",
    { mode: 0o755 },
  );
  await expect(start({ native })).rejects.toMatchObject({
    code: "START_FAILED",
    message: "initdb failed: initdb: error: no space left on device",
  });
  expect((await readdir(temporary.path)).sort()).toEqual([".gitignore", "native", "supervisor.1"]);
});

test("Debian's PostgreSQL 15 is supervised like the embedded one, if it is installed", async () => {
  const server = await startPostgres15();
  const installed = await stat(POSTGRES_15).catch(() => null);
  expect(server === null).toBe(installed === null);
  if (server === null) return;
  await server.restart("immediate");
  expect(await query(server.url, "SHOW server_version_num")).toEqual([
    { server_version_num: expect.stringMatching(/^15/) },
  ]);
  await server.stop();
});

if (isRoot() && process.platform === "linux") {
  describe("if root starts embedded PostgreSQL,", () => {
    test("the server runs under the account `nobody`", async () => {
      const server = await start();
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(NOBODY.uid);
      expect((await stat(join(server.home, "postgres", "password"))).mode & 0o777).toBe(0o600);
    });

    test("the server runs as the owner of the data directory", async () => {
      await chown(temporary.path, 1, 1);
      const server = await start();
      expect((await stat(join(server.home, "postgres", "data"))).uid).toBe(1);
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(1);
    });

    test("the server runs as `nobody` for a directory owner without a user name", async () => {
      await chown(temporary.path, 54_321, 54_321);
      const server = await start();
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(NOBODY.uid);
    });

    test("data files of root are given back to the server's account", async () => {
      const first = await start();
      await query(first.url, "CREATE TABLE kept AS SELECT 1 AS n");
      await first.stop();
      await handOverTree(join(first.home, "postgres"), { uid: 0, gid: 0 });
      const second = await start();
      expect(await query(second.url, "SELECT n FROM kept")).toEqual([{ n: 1 }]);
    });

    test("data in a directory that only root can enter is kept elsewhere", async () => {
      await chmod(temporary.path, 0o700);
      const lines: string[] = [];
      const first = await start({ log: (line) => lines.push(line) });
      expect(first.home).toMatch(/^\/var\/tmp\/fencepost-/);
      expect(lines[0]).toBe(
        `PostgreSQL runs as uid ${NOBODY.uid}, which cannot enter ${temporary.path}: its files are in ${first.home}`,
      );
      await query(first.url, "CREATE TABLE kept AS SELECT 1 AS n");
      await first.stop();
      const second = await start();
      expect(second.home).toBe(first.home);
      expect(await query(second.url, "SELECT n FROM kept")).toEqual([{ n: 1 }]);
      await second.stop();
      await rm(first.home, { recursive: true });
      const third = await start();
      expect(third.home).not.toBe(first.home);
      expect(await query(third.url, "SELECT to_regclass('kept') AS kept")).toEqual([{ kept: null }]);
      await third.stop();
      await rm(third.home, { recursive: true });
    });

    test("binaries that only root can read are copied for the server", async () => {
      const hidden = join(temporary.path, "private");
      await mkdir(hidden, { mode: 0o700 });
      const native = await copyNativeWithoutLinks(hidden);
      const server = await start({ native });
      expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
      expect((await findProcess(server.pid))?.command).toContain(join(temporary.path, "postgres-native", "bin"));
    });
  });
}

const sources = dirname(fileURLToPath(import.meta.url));
const readable = await run(process.execPath, ["-e", `fs.readdirSync(${JSON.stringify(sources)})`], NOBODY);

/**
 * If the suite runs as root, this test repeats the start as an ordinary user. Otherwise the whole suite already runs as
 * an ordinary user.
 */
if (isRoot() && readable.code === 0) {
  test("embedded PostgreSQL runs as an ordinary user in a separate process", async () => {
    await chown(temporary.path, NOBODY.uid, NOBODY.gid);
    const supervisor = spawnEmbeddedPostgres({ directory: temporary.path, account: NOBODY });
    const { url, home, pid = 0 } = await supervisor.next("url");
    expect(home).toBe(temporary.path);
    expect(await query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await supervisor.kill();
    await waitUntil(async () => (await findProcess(pid)) === null, "the server has ended");
  });

  test("embedded PostgreSQL run by an ordinary user refuses data of another account", async () => {
    await (await start()).stop();
    await chown(join(temporary.path, "postgres"), 1, 1);
    await chown(temporary.path, NOBODY.uid, NOBODY.gid);
    const supervisor = spawnEmbeddedPostgres({ directory: temporary.path, account: NOBODY });
    expect((await supervisor.next("error")).error).toBe(
      `${join(temporary.path, "postgres")} belongs to uid 1: run as that user, or remove it to start afresh`,
    );
    expect(await readFile(join(temporary.path, "postgres", "password"), "utf8")).toHaveLength(48);
  });
}

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
