import { readFile, rm, stat, truncate } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { freePort } from "../../../../src/main/dev/embedded/loopback-port.ts";
import { locateNative } from "../../../../src/main/dev/embedded/needed-packages.ts";
import { type Binaries, prepareBinaries } from "../../../../src/main/dev/embedded/postgres/binaries.ts";
import { type Cluster, openCluster } from "../../../../src/main/dev/embedded/postgres/cluster.ts";
import { choosePlace, type Place } from "../../../../src/main/dev/embedded/postgres/place.ts";
import { type ServerRequest, startServer } from "../../../../src/main/dev/embedded/postgres/server.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";

let temporary: TemporaryDirectory;
let place: Place;
let binaries: Binaries;
let cluster: Cluster;

beforeAll(async () => {
  temporary = await makeTemporaryDirectory();
  place = await choosePlace(temporary.path, () => undefined);
  binaries = await prepareBinaries(locateNative(), place);
  cluster = await openCluster({ place, binaries, log: () => undefined });
});

afterAll(() => temporary.remove());

describe("a PostgreSQL server that does not start", () => {
  test("is reported with the code PORT_TAKEN if the port is in use", async () => {
    const squatter = await listen();
    const { port } = squatter.address() as { port: number };
    await expect(startServer(await request({ port }))).rejects.toMatchObject({ code: "PORT_TAKEN" });
    await new Promise((resolve) => squatter.close(resolve));
  });

  test("is reported if the program is missing", async () => {
    await expect(startServer(await request({ postgres: join(temporary.path, "none") }))).rejects.toMatchObject({
      code: "START_FAILED",
      message: expect.stringMatching(/^PostgreSQL did not start: .*ENOENT/),
    });
  });

  test("is explained by the log of the current run only", async () => {
    await expect(startServer(await request({ settings: { shared_buffers: "nonsense" } }))).rejects.toThrow(
      /shared_buffers/,
    );
    await expect(startServer(await request({ settings: { wal_level: "nonsense" } }))).rejects.toThrow(/wal_level/);
  });
});

test("a PostgreSQL server log over ten megabytes is replaced by a new one", async () => {
  await (await startServer(await request({}))).stop("fast");
  await truncate(cluster.logFile, 10_000_001);
  const server = await startServer(await request({}));
  await server.stop("fast");
  expect((await stat(cluster.logFile)).size).toBeLessThan(10_000);
  expect(await readFile(cluster.logFile, "utf8")).toContain("database system is shut down");
});

test("a PostgreSQL server that ignores SIGINT and SIGQUIT is killed", async () => {
  const server = await startServer(await request({ clock: impatientClock() }));
  process.kill(server.pid, "SIGSTOP");
  await server.stop("fast");
  expect(await server.exited).toBe("signal SIGKILL");
  await rm(join(cluster.data, "postmaster.pid"), { force: true });
});

/** A clock on which waits of more than a second end at once, because only the escalation is under test. */
function impatientClock(): ServerRequest["clock"] {
  return { ...systemClock, after: (ms, callback) => systemClock.after(ms > 1_000 ? 0 : ms, callback) };
}

async function request(overrides: Partial<ServerRequest>): Promise<ServerRequest> {
  const { postgres } = binaries;
  const { account } = place;
  return { postgres, cluster, account, port: await freePort(), settings: {}, clock: systemClock, ...overrides };
}

function listen(): Promise<Server> {
  const server = createServer();
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}
