/**
 * Events outside Fencepost: another program uses the key, an endpoint serves another chain, and a node signs with its
 * own key.
 */
import { describe, expect } from "vitest";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, type Database, it, SIGNER } from "../support/integration.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const LANE = SIGNER.toLowerCase() as `0x${string}`;
const OFTEN = { FENCEPOST_RECONCILIATION_INTERVAL: "300ms", FENCEPOST_STALE_RECEIPT_TIMEOUT: "500ms" };

interface Row {
  readonly nonce: string;
  readonly state: string;
  readonly sub_state: string | null;
  readonly receipt_hash: string | null;
}

function rowsOf(database: Database): Promise<readonly Row[]> {
  return database.query<Row>(
    `SELECT t.nonce, t.state, t.sub_state, r.tx_hash AS receipt_hash
     FROM fencepost.transaction AS t LEFT JOIN fencepost.receipt AS r ON r.tx_id = t.tx_id ORDER BY t.nonce`,
  );
}

/** Drops our transactions and mines another program's transaction at the next nonce. */
function usurp({ chain }: SimulatedServer): string | undefined {
  chain.dropAllTransactions();
  return chain.mineForeign(LANE).transactions[0]?.transaction.hash;
}

describe.concurrent("if another program uses the same key,", () => {
  it("the transaction that lost its nonce fails with the other transaction's hash", async ({
    simulated,
    nodes,
    database,
  }) => {
    const { client } = await nodes.start(simulated.url, OFTEN);
    await client.send(transfer(0));
    await untilSettled(database, 1);
    simulated.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const [lost] = await client.sendBatch(range(3).map((index) => pricedTransfer(index + 1)));
    const foreign = usurp(simulated);
    simulated.faults.heal();
    await untilSettled(database, 4);
    expect((await rowsOf(database)).map(({ nonce, state, sub_state }) => [nonce, state, sub_state])).toEqual([
      ["0", "CONFIRMED", null],
      ["1", "FAILED_FINAL", "NONCE_CONSUMED_EXTERNALLY"],
      ["2", "CONFIRMED", null],
      ["3", "CONFIRMED", null],
    ]);
    const shown = await client.get((lost as { txId: string }).txId);
    expect(shown).toMatchObject({
      txHash: foreign,
      receipt: { txHash: foreign },
      subState: "NONCE_CONSUMED_EXTERNALLY",
    });
    expect(shown.attempts.map(({ kind }) => kind)).toEqual(["initial", "external"]);
  });

  it("an operator can lower the lane's next nonce after a false count", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url, OFTEN);
    await client.send(transfer(0));
    await untilSettled(database, 1);
    simulated.faults.lieAboutNonce((honest) => honest + 600);
    const cursor = async () =>
      (
        await database.query<{ next_nonce: string }>("SELECT next_nonce FROM fencepost.lane WHERE signer = $1", [LANE])
      )[0]?.next_nonce;
    await waitUntil(async () => (await cursor()) === "601", "the lie is believed");
    simulated.faults.heal();
    const [lane] = await client.realign(SIGNER, { reason: "endpoint a was wrong" });
    expect(lane).toMatchObject({ cursor: 1 });
    expect((await client.send(transfer(1))).nonce).toBe(1);
    await untilSettled(database, 2);
  });
});

describe.concurrent("a wrong chain behind the endpoint's URL", () => {
  it.for([
    ["with another beginning", { seed: "another" }],
    ["with another number", { chainId: 999_331 }],
  ] as const)(
    "(%s) stops the lane and changes no outcome until the right chain is back",
    async ([, options], { simulated, nodes, database }) => {
      const node = await nodes.start(simulated.url, OFTEN);
      const { client, url } = node;
      await client.sendBatch(range(3).map((index) => transfer(index)));
      await untilSettled(database, 3);
      const port = Number(new URL(simulated.url).port);
      await simulated.close();
      const impostor = await startSimulatedServer({
        chain: new SimulatedChain(options),
        port,
        blockTimeMs: BLOCK_TIME_MS,
      });
      impostor.chain.mine(100);
      const body = JSON.stringify(pricedTransfer(7, "late"));
      const headers = { "content-type": "application/json" };
      const status = async () => (await fetch(`${url}/api/v1/tx`, { method: "POST", headers, body })).status;
      await waitUntil(() => node.stderr().includes("CHAIN_DISTRUSTED"), "the lane has stopped");
      expect(await status()).toBe(503);
      expect(impostor.chain.witness).toEqual([]);
      expect((await rowsOf(database)).slice(0, 3).every(({ state }) => state === "CONFIRMED")).toBe(true);
      const completed = await database.query<{ state: string }>("SELECT state FROM fencepost.completion ORDER BY seq");
      expect(completed.map(({ state }) => state)).toEqual(["CONFIRMED", "CONFIRMED", "CONFIRMED"]);
      await impostor.close();
      const back = await startSimulatedServer({ chain: simulated.chain, port, blockTimeMs: BLOCK_TIME_MS });
      try {
        await waitUntil(async () => (await status()) < 300, "creates are accepted again");
        await untilSettled(database, 4);
      } finally {
        await back.close();
      }
    },
  );
});

describe.concurrent("an Ethereum node that signs with its own key", () => {
  const KEY_OF_NODE = `0x${"5e".repeat(20)}` as const;
  const atNode = { FENCEPOST_NODE_SIGNERS: KEY_OF_NODE, FENCEPOST_GRAY_ZONE_INTERVAL: "200ms" };
  const sending = (index: number) => ({ ...pricedTransfer(index), signer: KEY_OF_NODE });

  it("receives unsigned payloads", async ({ simulated, nodes, database }) => {
    simulated.chain.holdKeys(KEY_OF_NODE);
    const { client } = await nodes.start(simulated.url, atNode);
    await client.sendBatch(range(5).map(sending));
    await untilSettled(database, 5);
    expect((await rowsOf(database)).every(({ state }) => state === "CONFIRMED")).toBe(true);
    expect(simulated.chain.nodeSigned.map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3, 4]);
    const hashes = await database.query<{ tx_hash: string; raw_transaction: null }>(
      "SELECT tx_hash, raw_transaction FROM fencepost.attempt ORDER BY created_at",
    );
    expect(new Set(hashes.map(({ tx_hash }) => tx_hash))).toEqual(
      new Set(simulated.chain.nodeSigned.map(({ hash }) => hash)),
    );
    expect(hashes.every(({ raw_transaction }) => raw_transaction === null)).toBe(true);
  });

  it("executes each transaction once even if responses are lost", async ({ simulated, nodes, database }) => {
    simulated.chain.holdKeys(KEY_OF_NODE);
    const node = await nodes.start(simulated.url, atNode);
    simulated.faults.inject({ kind: "loseReply" }, { method: "eth_sendTransaction", times: 3 });
    await node.client.sendBatch(range(5).map(sending));
    await untilSettled(database, 5);
    expect((await rowsOf(database)).every(({ state }) => state === "CONFIRMED")).toBe(true);
    expect(simulated.chain.account(KEY_OF_NODE).nonce).toBe(5);
    expect(simulated.chain.nodeSigned.filter(({ submission }) => submission.accepted)).toHaveLength(5);
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    expect(metrics).toContain('fencepost_gray_zone_total{result="adopted"} 3');
  });

  it("is queried block by block if the node has pruned its state", async ({ simulated, nodes, database }) => {
    simulated.chain.holdKeys(KEY_OF_NODE);
    const { client } = await nodes.start(simulated.url, atNode);
    simulated.faults.prune(1);
    simulated.faults.inject({ kind: "loseReply" }, { method: "eth_sendTransaction", times: 1 });
    await client.send(sending(0));
    await untilSettled(database, 1);
    expect((await rowsOf(database))[0]).toMatchObject({ state: "CONFIRMED" });
  });
});
