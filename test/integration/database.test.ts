/** The database becomes unreachable, crashes and returns while the node keeps running. */
import { describe, expect } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { crowding } from "../support/crowding.ts";
import { it as base, connect, type Database, nodesOn, SHORT_LEASE } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import { type OwnPostgres, startOwnPostgres } from "../support/own-postgres.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { type CommitFault, TcpProxy } from "../support/tcp-proxy.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const it = base.extend<{ readonly postgres: OwnPostgres; readonly database: Database }>({
  postgres: async ({ task: _ }, use) => {
    const postgres = await startOwnPostgres();
    await use(postgres);
    await postgres.remove();
  },
  database: async ({ postgres }, use) => {
    const database = connect(postgres.url);
    await use(database);
    await database.end();
  },
});

/** Creates must be accepted within this time in ms after a restarted database server is back. */
const ACCEPTING_WITHIN_MS = 2_000;

const post = (url: string, body: unknown) =>
  fetch(`${url}/api/v1/tx`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

describe("a database outage", () => {
  it("causes 503 responses with Retry-After for reads and writes", async ({ postgres, database, simulated, nodes }) => {
    const { url, client } = await nodes.start(simulated.url);
    const { txId } = await client.send(transfer(0));
    await postgres.stop();
    const refused = await post(url, pricedTransfer(1));
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "UNAVAILABLE" });
    const unread = await fetch(`${url}/api/v1/tx/${txId}`);
    expect(unread.status).toBe(503);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/healthz`)).status, "it is alive all the same").toBe(200);
    await postgres.start();
    const backMs = systemClock.monotonicMs();
    const accepted = await waitUntil(async () => {
      const answer = await post(url, pricedTransfer(1));
      return answer.status === 202 || answer.status === 200 ? answer : null;
    }, "creates are accepted again");
    expect(systemClock.monotonicMs() - backMs, "soon after").toBeLessThan(ACCEPTING_WITHIN_MS * crowding());
    expect(await accepted.json()).toMatchObject({ nonce: 1 });
    await untilSettled(database, 2);
    await audit({ database, rpcUrl: simulated.url });
  });

  it("that is longer than the lease makes the node continue as a new instance", async ({
    postgres,
    database,
    simulated,
    nodes,
  }) => {
    // Without a clock skew allowance, the node's own deadline equals the end of the lease.
    const { client } = await nodes.start(simulated.url, { ...SHORT_LEASE, FENCEPOST_CLOCK_SKEW_ALLOWANCE: "0ms" });
    await client.sendBatch(range(3).map((index) => transfer(index)));
    await postgres.stop();
    await waitUntil(async () => {
      const problem = await client.send(pricedTransfer(3)).catch((error: unknown) => error as Error);
      return String(problem).includes("lease is not renewed");
    }, "the node's own deadline has passed");
    await postgres.start();
    const backMs = systemClock.monotonicMs();
    const caller = new PersistentCaller(() => client);
    await caller.send(pricedTransfer(3));
    expect(systemClock.monotonicMs() - backMs, "soon after").toBeLessThan(ACCEPTING_WITHIN_MS * crowding());
    await untilSettled(database, 4);
    await audit({ database, rpcUrl: simulated.url });
    const instances = await database.query<{ dead: boolean }>(
      "SELECT dead FROM fencepost.node_instance ORDER BY started_at",
    );
    expect(instances.length).toBe(2);
    expect(instances[1]).toEqual({ dead: false });
  });
});

describe("a database crash under load", () => {
  it("loses no accepted request", async ({ postgres, database, simulated, nodes }) => {
    const { client } = await nodes.start(simulated.url, { FENCEPOST_IN_FLIGHT_WINDOW: "512" });
    const caller = new PersistentCaller(() => client);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    for (const _ of range(2)) {
      const before = load.accepted.length;
      await waitUntil(() => load.accepted.length > before + 100, "the load is in full swing");
      await postgres.crash();
      const backMs = systemClock.monotonicMs();
      const answered = load.accepted.length;
      await waitUntil(() => load.accepted.length > answered, "accepting again");
      expect(systemClock.monotonicMs() - backMs, "soon after").toBeLessThan(ACCEPTING_WITHIN_MS * crowding());
    }
    await load.stop();
    // Few requests may be refused: a commit that the crash interrupted is looked up when the server is back, and is
    // retried if it is missing.
    const codes = new Set(caller.refusals.map(({ status, code }) => `${status} ${code}`));
    expect(
      [...codes].filter((code) => code !== "503 UNAVAILABLE"),
      "a caller that is refused is told so by status and code",
    ).toEqual([]);
    const count = load.accepted.length;
    expect(new Set(load.accepted.map(({ txId }) => txId)).size).toBe(count);
    await untilSettled(database, count);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
    const byId = new Map(stored.map((row) => [row.tx_id, row]));
    for (const { txId, nonce, requestId } of load.accepted) {
      expect(byId.get(txId)).toMatchObject({ nonce: String(nonce), request_id: requestId });
    }
  });
});

describe("a database connection that breaks at COMMIT", () => {
  const FAULTS: readonly CommitFault[] = ["cut-after", "cut-before", "hold-answer", "stall-before"];

  it("loses and duplicates no request, whatever response the caller got", async ({ postgres, database, simulated }) => {
    const proxy = await TcpProxy.start(Number(new URL(postgres.url).port));
    const nodes = nodesOn(proxy.through(postgres.url));
    try {
      const { client } = await nodes.start(simulated.url, { ...SHORT_LEASE, FENCEPOST_IN_FLIGHT_WINDOW: "512" });
      const caller = new PersistentCaller(() => client);
      const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
      for (const fault of range(3).flatMap(() => FAULTS)) {
        const before = load.accepted.length;
        await waitUntil(() => load.accepted.length > before, "requests are accepted");
        await proxy.atNextCommit(fault);
      }
      const before = load.accepted.length;
      await waitUntil(() => load.accepted.length > before + 20, "and again");
      await load.stop();
      for (const { status, code } of caller.refusals) expect(`${status} ${code}`).toBe("503 UNAVAILABLE");
      const count = load.accepted.length;
      await untilSettled(database, count);
      const witnessed = simulated.chain.witness.map(({ hash }) => hash);
      const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
      expect(new Set(load.accepted.map(({ txId }) => txId))).toEqual(new Set(stored.map(({ tx_id }) => tx_id)));
    } finally {
      await nodes.killAll();
      await proxy.close();
    }
  });
});
