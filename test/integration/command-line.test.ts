/** Runs `fencepost dev` and `fencepost start` as users do, and checks their messages when they fail. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { describe, expect } from "vitest";
import { type Address, createClient } from "../../src/client/index.ts";
import { DEV, isListening, it, linesOf, portIn } from "../support/command-line.ts";
import { KEYS, RECIPIENT } from "../support/integration.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("fencepost dev", () => {
  it("keeps its data when stopped with Ctrl-C", async ({ fencepost }) => {
    const dev = fencepost.run(DEV);
    const { url } = await dev.ready;
    expect(dev.stderr(), "no line for each account").not.toMatch(/0x[0-9a-f]{40}/i);
    const client = createClient({ url, repeat: false });
    const [lane] = await client.signers();
    const sent = await client.send({ signer: lane?.signer as Address, payload: { to: RECIPIENT, value: "1" } });
    expect(await client.waitFor(sent.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    // protects [The dashboard] src/main/dev/dev.ts, src/adapters/dashboard/files.ts
    expect(await (await fetch(url)).text(), "the dashboard, with transfers to try").toContain("<html data-dev ");
    const databasePort = portIn(dev.stderr(), /PostgreSQL \S+ on port (\d+)/);
    const chainPort = portIn(dev.stderr(), /chain \d+ at http:\/\/127\.0\.0\.1:(\d+)/);
    expect(await isListening(databasePort)).toBe(true);
    expect(await isListening(chainPort)).toBe(true);
    dev.signalGroup("SIGINT");
    expect(await dev.exited, dev.stderr()).toEqual({ code: 0, signal: null });
    expect(await isListening(databasePort)).toBe(false);
    expect(linesOf(dev.stdout()), "one line of standard output").toHaveLength(1);
    expect(readFileSync(join(fencepost.directory, ".fencepost/.gitignore"), "utf8"), "git ignores it").toBe("*\n");
    const again = fencepost.run(DEV);
    expect((await fetch(`${(await again.ready).url}/readyz`)).status).toBe(200);
  });

  it("suggests --port if the port is in use", async ({ seeded }) => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const dev = seeded.run(["dev", "--port", String(port)]);
    expect((await dev.exited).code).toBe(1);
    taken.close();
    const complaints = linesOf(dev.stderr()).filter((line) => line.startsWith("fencepost: "));
    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toMatch(new RegExp(`${port}.*--port`));
    const databasePort = portIn(dev.stderr(), /PostgreSQL \S+ on port (\d+)/);
    if (!Number.isNaN(databasePort)) expect(await isListening(databasePort)).toBe(false);
  });
});

describe("fencepost start", () => {
  const complete = (rpcUrl: string, databaseUrl: string): Record<string, string> => ({
    FENCEPOST_DATABASE_URL: databaseUrl,
    FENCEPOST_RPC_URL: rpcUrl,
    FENCEPOST_PRIVATE_KEYS: KEYS.join(","),
    FENCEPOST_API_KEYS: "orders:a-long-enough-secret-of-orders",
    FENCEPOST_PORT: "0",
  });

  it.for(["FENCEPOST_DATABASE_URL", "FENCEPOST_RPC_URL", "FENCEPOST_PRIVATE_KEYS", "FENCEPOST_API_KEYS"])(
    "exits with 2 and one line that names the missing setting if %s is missing",
    async (missing, { fencepost }) => {
      const { [missing]: _, ...rest } = complete("http://127.0.0.1:1", "postgres://u:p@127.0.0.1:1/d");
      const start = fencepost.run(["start"], rest);
      expect(await start.exited).toEqual({ code: 2, signal: null });
      expect(linesOf(start.stderr())).toEqual([
        expect.stringMatching(new RegExp(`^fencepost: ${missing}: .*required`)),
      ]);
      expect(start.stdout()).toBe("");
    },
  );

  it("prints one line for each required setting if all of them are missing", async ({ fencepost }) => {
    const start = fencepost.run(["start"]);
    expect((await start.exited).code).toBe(2);
    expect(linesOf(start.stderr())).toHaveLength(4);
  });

  it("requires an API key of every caller, except on public routes such as /healthz", async ({
    fencepost,
    simulated,
    database,
  }) => {
    const start = fencepost.run(["start"], complete(simulated.url, database.url));
    const { url } = await start.ready;
    const status = async (path: string, key?: string) => {
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
      return (await fetch(`${url}${path}`, { headers })).status;
    };
    expect(await status("/api/v1/signers")).toBe(401);
    expect(await status("/metrics")).toBe(401);
    expect(await status("/api/v1/signers", "another-secret-altogether")).toBe(401);
    expect(await status("/api/v1/signers", "a-long-enough-secret-of-orders")).toBe(200);
    for (const open of ["/healthz", "/readyz", "/openapi.json", "/docs", "/"])
      expect(await status(open), open).toBe(200);
    for (const secret of ["a-long-enough-secret-of-orders", ...KEYS])
      expect(start.stderr()).not.toContain(secret.replace("0x", ""));
  });

  // protects [Explained, and said aloud] src/main/node/await-database.ts, src/adapters/postgres/session/is-away.ts
  it("waits for a database that does not answer yet", async ({ fencepost, simulated, database }) => {
    const wire = await TcpProxy.start(Number(new URL(database.url).port));
    wire.refuse();
    const start = fencepost.run(["start"], complete(simulated.url, wire.through(database.url)));
    const waits = () => linesOf(start.stderr()).filter((line) => line.includes("waiting for it"));
    await waitUntil(() => waits().length > 0, "it says that it waits");
    expect(JSON.parse(waits()[0] ?? "")).toMatchObject({ level: "warn", reason: expect.any(String) });
    await waitUntil(() => wire.refused >= 3, "it has tried again");
    expect(start.stdout()).toBe("");
    wire.admit();
    const { url } = await start.ready;
    // The lease is short. On a crowded machine a renewal may be late; the node then becomes ready again with the next
    // renewal.
    await waitUntil(async () => (await fetch(`${url}/readyz`)).ok, "it serves");
    expect(waits()).toHaveLength(1);
    start.signal("SIGTERM");
    await start.exited;
    await wire.close();
  });

  // protects [Explained, and said aloud] src/main/node/compose-node.ts, src/application/lane/lanes.ts, src/adapters/postgres/session/is-away.ts
  it("keeps waiting while the first database transactions time out", async ({ fencepost, simulated, database }) => {
    const keeper = new pg.Client({ connectionString: database.url });
    await keeper.connect();
    keeper.on("error", () => undefined);
    // A registering node waits for this lock until the server ends the wait, as on a machine that is too busy.
    await keeper.query("SELECT pg_advisory_lock(hashtextextended('fencepost registration', 0))");
    const start = fencepost.run(["start"], {
      ...complete(simulated.url, database.url),
      FENCEPOST_LEASE_DURATION: "1s",
      FENCEPOST_LEASE_RENEW_INTERVAL: "300ms",
      FENCEPOST_CLOCK_SKEW_ALLOWANCE: "100ms",
    });
    const waits = () => linesOf(start.stderr()).filter((line) => line.includes("waiting for it"));
    const ended = start.exited.then(() => "ended");
    expect(await Promise.race([ended, waitUntil(() => waits().length > 0, "it says that it waits")])).not.toBe("ended");
    expect(start.stdout()).toBe("");
    await keeper.end();
    const { url } = await start.ready;
    // The lease is short. On a crowded machine a renewal may be late; the node then becomes ready again with the next
    // renewal.
    await waitUntil(async () => (await fetch(`${url}/readyz`)).ok, "it serves");
    expect(waits()).toHaveLength(1);
    start.signal("SIGTERM");
    await start.exited;
  });

  it("exits with 0 if stopped while the database is unavailable", async ({ fencepost, simulated }) => {
    const start = fencepost.run(["start"], complete(simulated.url, "postgres://u:hunter2hunter2@127.0.0.1:1/d"));
    await waitUntil(() => start.stderr().includes("waiting for it"), "it says that it waits");
    start.signal("SIGTERM");
    expect(await start.exited).toEqual({ code: 0, signal: null });
    expect(start.stdout()).toBe("");
    expect(start.stderr()).not.toContain("hunter2");
  });

  it("exits with one line if the database does not exist", async ({ fencepost, simulated, database }) => {
    const missing = new URL(database.url);
    missing.pathname = "/nobody_made_this";
    const noDatabase = fencepost.run(["start"], complete(simulated.url, missing.href));
    expect((await noDatabase.exited).code).toBe(1);
    expect(linesOf(noDatabase.stderr())).toEqual([expect.stringMatching(/^fencepost: .*nobody_made_this.*create it/)]);
    const noChain = fencepost.run(["start"], complete("http://127.0.0.1:1", database.url));
    expect((await noChain.exited).code).toBe(1);
    expect(linesOf(noChain.stderr()).at(-1)).toMatch(/^fencepost: .*127\.0\.0\.1:1/);
    expect(noChain.stdout() + noDatabase.stdout()).toBe("");
  });

  it("exits with one line if its port is in use, before it writes to the database", async ({
    fencepost,
    simulated,
    database,
  }) => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const start = fencepost.run(["start", "--port", String(port)], complete(simulated.url, database.url));
    expect((await start.exited).code).toBe(1);
    taken.close();
    expect(start.stderr()).toMatch(new RegExp(`^fencepost: .*EADDRINUSE.*${port}.*\n$`));
    expect(await database.query("SELECT 1 FROM fencepost.node_instance")).toEqual([]);
  });

  it("uses at most 250 MiB while idle", async ({ fencepost, simulated, database }) => {
    const quick = { FENCEPOST_POLL_INTERVAL: "100ms", FENCEPOST_CONFIRMATIONS: "2", FENCEPOST_LOG_LEVEL: "info" };
    const start = fencepost.run(["start"], { ...complete(simulated.url, database.url), ...quick });
    const { pid } = start;
    const { url } = await start.ready;
    const beats = async () =>
      Number(((await (await fetch(`${url}/readyz`)).json()) as { chains: { head: number }[] }).chains[0]?.head);
    const first = await beats();
    await waitUntil(async () => (await beats()) > first + 40, "it has followed the chain for a while");
    expect(residentKib(pid)).toBeLessThan(250 * 1024);
  });
});

/** Resident memory of a process in KiB, from /proc on Linux and from ps elsewhere. */
function residentKib(pid: number): number {
  const status = `/proc/${pid}/status`;
  if (!existsSync(status)) return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }));
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8"))?.[1]);
}
