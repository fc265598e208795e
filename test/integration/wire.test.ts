/**
 * Faults between node and endpoint during a send: lost responses, and endpoints that hang, respond with HTML or are
 * gone.
 */
import { describe, expect } from "vitest";
import { FencepostApiError, type FencepostClient } from "../../src/client/index.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, type Database, it, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const COUNT = 5;
const GWEI = 1_000_000_000n;
const SEND = "eth_sendRawTransaction";

const auditOf = (database: Database, { chain, url }: SimulatedServer) =>
  audit({ database, rpcUrl: url, witnessed: chain.witness.map(({ hash }) => hash) });

async function problemOf(sending: Promise<unknown>): Promise<FencepostApiError> {
  return sending.then(
    (answer) => expect.fail(`was answered ${JSON.stringify(answer)}`),
    (error: unknown) => error as FencepostApiError,
  );
}

async function cursorOf(database: Database, signer: string): Promise<string | null> {
  const rows = await database.query<{ next_nonce: string | null }>(
    "SELECT next_nonce FROM fencepost.lane WHERE signer = $1",
    [signer.toLowerCase()],
  );
  return rows[0]?.next_nonce ?? null;
}

const untilReady = (url: string, ready: boolean) =>
  waitUntil(async () => (await fetch(`${url}/readyz`)).ok === ready, `readyz says ${ready}`);

describe.concurrent("a broadcast whose response is lost", () => {
  it("leads to one transaction with one nonce", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url);
    // The base fee keeps the first sends unmined in the mempool, so that the node's resends find them there.
    simulated.chain.setBaseFee(30n * GWEI);
    simulated.faults.inject({ kind: "loseReply" }, { method: SEND, times: COUNT });
    const results = await client.sendBatch(range(COUNT).map((index) => pricedTransfer(index)));
    expect(results.map(({ status }) => status)).toEqual(range(COUNT).map(() => 202));
    const known = () => simulated.chain.witness.filter(({ submission }) => !submission.accepted);
    await waitUntil(() => known().length >= COUNT, "every one of them was sent again");
    simulated.chain.setBaseFee(GWEI);
    await untilSettled(database, COUNT);
    const { stored } = await auditOf(database, simulated);
    expect(known().map(({ submission }) => submission)).toEqual(
      expect.arrayContaining([{ accepted: false, refusal: expect.objectContaining({ message: "already known" }) }]),
    );
    expect(new Set(simulated.chain.witness.map(({ raw }) => raw)).size, "no other bytes").toBe(COUNT);
    expect(stored.every(({ hashes }) => hashes.length === 1)).toBe(true);
  });

  it("is found by its receipt if already mined", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url);
    simulated.faults.inject({ kind: "loseReply" }, { method: SEND });
    await client.sendBatch(range(COUNT).map((index) => transfer(index)));
    await untilSettled(database, COUNT);
    simulated.faults.heal();
    await auditOf(database, simulated);
    expect(new Set(simulated.chain.witness.map(({ raw }) => raw)).size).toBe(COUNT);
  });

  it("is executed once if the endpoint hung after accepting the bytes", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url);
    simulated.faults.inject({ kind: "hang", executed: true }, { method: SEND, times: 1 });
    await client.send(transfer(0));
    await client.send(transfer(1));
    await untilSettled(database, 2);
    await auditOf(database, simulated);
  });
});

describe.concurrent("an endpoint that is down", () => {
  it("blocks only creates that need the endpoint", async ({ simulated, nodes, database }) => {
    const { client, url } = await nodes.start(simulated.url);
    await client.waitFor((await client.send(transfer(0))).txId);
    await simulated.close();
    await untilReady(url, false);
    const unpriced = await problemOf(client.send(transfer(1)));
    expect(unpriced).toMatchObject({ status: 503, code: "UNAVAILABLE" });
    const newLane = await problemOf(client.send({ ...pricedTransfer(1), signer: OTHER_SIGNER }));
    expect(newLane).toMatchObject({ status: 503, code: "UNAVAILABLE" });
    expect(await cursorOf(database, SIGNER)).toBe("1");
    expect(await cursorOf(database, OTHER_SIGNER)).toBeNull();
    const accepted = await client.send(pricedTransfer(2));
    expect(accepted).toMatchObject({ nonce: 1 });
    const back = await startSimulatedServer({
      chain: simulated.chain,
      port: Number(new URL(simulated.url).port),
      blockTimeMs: BLOCK_TIME_MS,
    });
    try {
      expect(await client.waitFor(accepted.txId)).toMatchObject({ state: "CONFIRMED" });
      await untilReady(url, true);
      const later = await client.send({ ...transfer(3), signer: OTHER_SIGNER });
      expect(later.nonce).toBe(0);
      await untilSettled(database, 3);
      await auditOf(database, simulated);
    } finally {
      await back.close();
    }
  });
});

describe.concurrent("an endpoint that does not work correctly", () => {
  const faults = [
    ["answers 502 in HTML", { kind: "httpError", status: 502 }],
    ["cuts every connection", { kind: "unavailable" }],
    ["answers every call with an internal error", { kind: "error", code: -32603, message: "Internal error" }],
  ] as const;
  it.for(faults)(
    "(%s) causes no failed transaction and decides no outcome",
    async ([, fault], { simulated, nodes, database }) => {
      const { client, url } = await nodes.start(simulated.url);
      await client.waitFor((await client.send(transfer(0))).txId);
      simulated.faults.inject(fault);
      await untilReady(url, false);
      const refused = await problemOf(client.send(transfer(1)));
      expect(refused).toMatchObject({ status: 503, problem: { retryAfterSeconds: expect.any(Number) } });
      const { txId } = await client.send(pricedTransfer(2));
      const waiting = await client.get(txId);
      expect(waiting).toMatchObject({ nonce: 1, receipt: null });
      expect(["ALLOCATED", "TRACKING"]).toContain(waiting.state);
      simulated.faults.heal();
      expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED", nonce: 1 });
      await auditOf(database, simulated);
    },
  );

  it("blocks no caller forever if the endpoint hangs", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url);
    await client.waitFor((await client.send(transfer(0))).txId);
    simulated.faults.inject({ kind: "hang" });
    const [refused, accepted] = await Promise.all([
      problemOf(client.send(transfer(1))),
      client.send(pricedTransfer(2)),
    ]);
    expect(refused).toMatchObject({ status: 503 });
    simulated.faults.heal();
    expect(await client.waitFor(accepted.txId)).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    await auditOf(database, simulated);
  });
});

describe.concurrent("two endpoints of one configured chain", () => {
  it("can each serve while the other endpoint is down", async ({ simulated, nodes, database }) => {
    const second = await startSimulatedServer({ chain: simulated.chain });
    try {
      const { client } = await nodes.start(`${simulated.url},${second.url}`);
      const send = async (index: number) => client.waitFor((await sendPatiently(client, index)).txId);
      await send(0);
      simulated.faults.inject({ kind: "unavailable" });
      expect(await send(1)).toMatchObject({ state: "CONFIRMED" });
      simulated.faults.heal();
      second.faults.inject({ kind: "httpError", status: 502 });
      expect(await send(2)).toMatchObject({ state: "CONFIRMED" });
      await auditOf(database, simulated);
    } finally {
      await second.close();
    }
  });

  it("are refused if they serve two different chains", async ({ simulated, nodes }) => {
    const foreign = await startSimulatedServer({ chain: new SimulatedChain({ chainId: 5 }) });
    try {
      const node = nodes.spawn(`${simulated.url},${foreign.url}`);
      expect((await node.exited).code).toBe(1);
      expect(node.stderr()).toMatch(/^fencepost: .*chain.*\n$/);
      expect(node.stdout()).toBe("");
    } finally {
      await foreign.close();
    }
  });
});

/** Retries, because a create may get a 503 until the node has noticed the failed endpoint. */
function sendPatiently(client: FencepostClient, index: number) {
  const once = () =>
    client.send(transfer(index)).catch((error: unknown) => {
      if (error instanceof FencepostApiError && error.status === 503) return null;
      throw error;
    });
  return waitUntil(once, "an endpoint serves");
}
