/** On SIGTERM a node drains, releases its lanes and exits with 0 in time; no accepted request is lost. */
import { describe, expect } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { createClient, type FencepostApiError } from "../../src/client/index.ts";
import { audit, storedTransactions, untilSettled } from "../support/audit.ts";
import { crowding } from "../support/crowding.ts";
import { connect, type Database, it, nodesOn, SHORT_LEASE } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const AT_MOST_MS = 10_000;

/** Terminates a node, checks that it ended in time, and returns its exit code. */
async function terminate(node: NodeProcess): Promise<{ readonly code: number | null }> {
  const startedMs = systemClock.monotonicMs();
  node.signal("SIGTERM");
  const { code } = await node.exited;
  expect(systemClock.monotonicMs() - startedMs, "in time").toBeLessThan(AT_MOST_MS * crowding());
  return { code };
}

async function expectReleased(database: Database): Promise<void> {
  const lanes = await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL");
  const alive = await database.query("SELECT 1 FROM fencepost.node_instance WHERE NOT dead");
  expect({ held: lanes.length, alive: alive.length }).toEqual({ held: 0, alive: 0 });
}

describe("SIGTERM", () => {
  it("ends an idle node at once, with exit code 0 and all lanes released", async ({ simulated, nodes, database }) => {
    const node = await nodes.start(simulated.url);
    expect(await terminate(node)).toEqual({ code: 0 });
    await expectReleased(database);
    expect(node.stdout().trimEnd().split("\n"), "the ready line is all of standard output").toHaveLength(1);
  });

  it("causes no loss of accepted requests under load", async ({ simulated, nodes, database }) => {
    const node = await nodes.start(simulated.url);
    let serving: NodeProcess["client"] | null = node.client;
    const caller = new PersistentCaller(() => serving);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    await waitUntil(() => load.accepted.length > 100, "the load is in full swing");
    expect(await terminate(node)).toEqual({ code: 0 });
    serving = null;
    await expectReleased(database);
    const answered = [...load.accepted];
    const stored = new Map((await storedTransactions(database)).map((row) => [row.tx_id, row]));
    for (const { txId, nonce } of answered) expect(stored.get(txId)).toMatchObject({ nonce: String(nonce) });
    serving = (await nodes.start(simulated.url)).client;
    await waitUntil(() => load.accepted.length > answered.length, "the next node accepts at once", { giveUpMs: 8_000 });
    await load.stop();
    const codes = new Set(caller.refusals.map(({ code }) => code));
    for (const code of codes) expect(["UNAVAILABLE", "UNREACHABLE"]).toContain(code);
    await untilSettled(database, load.accepted.length);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    await audit({ database, rpcUrl: simulated.url, witnessed });
  });

  it("makes /readyz report draining, while the node answers requests in progress and ends long polls", async ({
    simulated,
    nodes,
  }) => {
    const node = await nodes.start(simulated.url);
    const polling = node.client.completionsPage({ after: 0, wait: 30 });
    // The chain does not answer until it is healed, so these creates are in progress when the signal comes.
    simulated.faults.inject({ kind: "hang" }, { method: "eth_estimateGas", times: 1 });
    const inHand = node.client.send(transfer(0)).catch((error: FencepostApiError) => error);
    await waitUntil(() => simulated.calls("eth_estimateGas") > 0, "a create is under way");
    const ended = terminate(node);
    const readiness = await waitUntil(async () => {
      const answer = await fetch(`${node.url}/readyz`).catch(() => null);
      return answer?.status === 503 ? ((await answer.json()) as { draining: boolean }) : null;
    }, "readyz says no");
    expect(readiness.draining).toBe(true);
    expect((await polling).items).toEqual([]);
    expect(await ended).toEqual({ code: 0 });
    expect(await inHand, "not accepted, and told so").toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });

  // protects [The feed] src/adapters/http/streams/feed-stream.ts, src/client/outcomes.ts
  it("ends streams at once, and their readers continue at the next node, as after SIGKILL", async ({
    simulated,
    nodes,
    database,
  }) => {
    const [drained, killed, last] = await Promise.all([1, 2, 3].map(() => nodes.start(simulated.url, SHORT_LEASE)));
    if (drained === undefined || killed === undefined || last === undefined)
      throw new Error("three nodes were started");
    const received: { readonly seq: number; readonly txId: string }[] = [];
    const reader = new AbortController();
    const client = createClient({ url: [drained.url, killed.url, last.url] });
    const reading = (async () => {
      for await (const outcome of client.outcomes({ after: 0 }, { signal: reader.signal })) received.push(outcome);
    })().catch(() => undefined);
    const send = (from: number) => Promise.all(range(10).map((index) => client.send(pricedTransfer(from + index))));
    await send(0);
    await waitUntil(() => received.length >= 5, "outcomes arrive");
    expect(await terminate(drained)).toEqual({ code: 0 });
    await send(10);
    await waitUntil(() => received.length >= 15, "outcomes arrive from another node");
    killed.signal("SIGKILL");
    await send(20);
    await waitUntil(() => received.length === 30, "every outcome has arrived");
    reader.abort();
    await reading;
    const rows = await database.query<{ seq: string; tx_id: string }>(
      "SELECT seq, tx_id FROM fencepost.completion ORDER BY seq",
    );
    expect(received.map(({ seq, txId }) => [seq, txId])).toEqual(rows.map(({ seq, tx_id }) => [Number(seq), tx_id]));
  });

  it("ends the node in time while the chain hangs", async ({ simulated, nodes, database }) => {
    const node = await nodes.start(simulated.url);
    await node.client.waitFor((await node.client.send(transfer(0))).txId);
    simulated.faults.inject({ kind: "hang" });
    await Promise.all(range(5).map((index) => node.client.send(pricedTransfer(index + 1)).catch(() => null)));
    expect(await terminate(node)).toEqual({ code: 0 });
    await expectReleased(database);
    simulated.faults.heal();
    await nodes.start(simulated.url);
    await untilSettled(database, (await storedTransactions(database)).length);
    await audit({ database, rpcUrl: simulated.url });
  });

  it("ends the node in time, even if the database is down", async ({ simulated }) => {
    const postgres = await startOwnPostgres();
    const nodes = nodesOn(postgres.url);
    try {
      const node = await nodes.start(simulated.url, SHORT_LEASE);
      await node.client.send(transfer(0));
      await postgres.stop();
      const sending = range(5).map((index) => node.client.send(pricedTransfer(index + 1)).catch(() => null));
      expect((await terminate(node)).code).toBe(0);
      expect(await Promise.all(sending), "none of these was accepted").toEqual(range(5).map(() => null));
      await postgres.start();
      await nodes.start(simulated.url, SHORT_LEASE);
      const database = connect(postgres.url);
      await untilSettled(database, 1).finally(() => database.end());
    } finally {
      await nodes.killAll();
      await postgres.remove();
    }
  });

  it("ends the node in time while the database hangs, and no further request is accepted", async ({
    simulated,
    database,
  }) => {
    const proxy = await TcpProxy.start(Number(new URL(database.url).port));
    const nodes = nodesOn(proxy.through(database.url));
    try {
      const node = await nodes.start(simulated.url);
      await node.client.send(transfer(0));
      proxy.freeze();
      const sending = range(5).map((index) => node.client.send(pricedTransfer(index + 1)).catch(() => null));
      const reading = node.client.list().catch((error: FencepostApiError) => error);
      expect((await terminate(node)).code).toBe(0);
      expect(await Promise.all(sending)).toEqual(range(5).map(() => null));
      expect(await reading).toBeInstanceOf(Error);
    } finally {
      await nodes.killAll();
      await proxy.close();
    }
  });

  it("ends a starting node in time while the chain hangs", async ({ simulated, nodes }) => {
    simulated.faults.inject({ kind: "hang" });
    const node = nodes.spawn(simulated.url);
    await waitUntil(() => simulated.requests() > 0, "it asks the chain who it is");
    const startedMs = systemClock.monotonicMs();
    node.signal("SIGTERM");
    expect((await node.exited).code).toBe(0);
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(AT_MOST_MS * crowding());
  });

  it("ends the node at once, with exit code 143, if it is sent twice", async ({ simulated, nodes }) => {
    const node = await nodes.start(simulated.url);
    simulated.faults.inject({ kind: "hang" }, { method: "eth_estimateGas" });
    void node.client.send(transfer(0)).catch(() => undefined);
    await waitUntil(() => simulated.calls("eth_estimateGas") > 0, "it is busy");
    node.signal("SIGTERM");
    await waitUntil(async () => {
      const answer = await fetch(`${node.url}/readyz`).catch(() => null);
      return answer?.status === 503;
    }, "it drains");
    node.signal("SIGTERM");
    expect(await node.exited).toEqual({ code: 143, signal: null });
  });
});
