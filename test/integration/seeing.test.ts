/** Reads one real node's overview, attention list and other views through the SDK and the command line. */
import { describe, expect } from "vitest";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { runCommand } from "../support/command.ts";
import { BLOCK_TIME_MS, it as base, OTHER_SIGNER, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import { shellWords } from "../support/shell-words.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A chain that mines only when the test says so. */
const it = base.extend<{ readonly held: SimulatedServer }>({
  held: async ({ task: _ }, use) => {
    const chain = new SimulatedChain();
    chain.mine(3);
    const server = await startSimulatedServer({ chain });
    await use(server);
    await server.close();
  },
});

describe("the overview of a node", () => {
  it("lists a stuck transaction until an operator repairs the transaction", async ({ held, nodes }) => {
    const node = await nodes.start(held.url, { ...SHORT_LEASE, FENCEPOST_STUCK_AFTER: "1s", FENCEPOST_REPRICE: "off" });
    const { client } = node;
    expect(await client.attention()).toMatchObject({ items: [], more: 0 });
    const { revision } = await client.attention();
    const waiting = client.attention({ revision, wait: 30 });
    const head = await client.send({ ...pricedTransfer(0), requestId: "order-1" });
    const next = await client.send({ ...pricedTransfer(1), requestId: "order-2" });
    await waitUntil(async () => (await client.get(head.txId)).state === "STUCK", "the head is stuck");

    const answer = await waiting;
    expect(answer.revision).not.toBe(revision);
    const { items } = await client.attention();
    expect(items).toMatchObject([
      { id: `tx:${head.txId}`, severity: "ERROR", txId: head.txId, nonce: 0, signer: SIGNER, waiting: 1 },
    ]);
    expect(items[0]?.sentence).toMatch(/waits? behind it/);

    expect((await client.search({ q: "order-1" }))[0]).toMatchObject({ kind: "transaction", txId: head.txId });
    const { txHash } = await client.get(next.txId);
    expect((await client.search({ q: txHash ?? "" }))[0]).toMatchObject({ txId: next.txId });
    const ruler = await client.nonceRuler(SIGNER);
    expect(ruler).toMatchObject({
      cursor: 2,
      final: 0,
      spans: [{ kind: "stuck", txId: head.txId }, { kind: "inFlight" }],
    });

    const overview = await client.overview();
    expect(overview).toMatchObject({
      ...{ states: { STUCK: 1, TRACKING: 1, CONFIRMED: 0 }, createdPerMinute: 0.4, completedPerMinute: 0 },
      oldestPending: { txId: head.txId, signer: SIGNER },
      chains: [{ reachable: true, endpoints: [{ url: new URL(held.url).origin, status: "up" }] }],
    });
    expect((await client.signersPage({ needs: "attention" })).items.map(({ signer }) => signer)).toEqual([SIGNER]);
    expect((await client.signersPage({ owner: node.nodeId })).items.map(({ signer }) => signer)).toContain(
      OTHER_SIGNER,
    );

    const miner = await startSimulatedServer({ chain: held.chain, blockTimeMs: BLOCK_TIME_MS });
    await waitUntil(async () => (await client.get(next.txId)).state === "CONFIRMED", "both are final");
    await waitUntil(async () => (await client.attention()).items.length === 0, "nothing needs anybody");
    await miner.close();
    expect((await client.nonceRuler(SIGNER)).spans).toEqual([{ from: 0, to: 1, kind: "final" }]);
    // The overview may be up to one second old.
    await waitUntil(async () => (await client.overview()).timeToFinalitySeconds !== null, "outcomes are timed");
  });

  it("is available from the command line, as text and as JSON", async ({ held, nodes }) => {
    const node = await nodes.start(held.url, SHORT_LEASE);
    await node.client.suspend(SIGNER, { reason: "audit" });
    const run = async (...argv: readonly string[]) => {
      const { code, stdout, stderr } = await runCommand(argv, {
        actions: { connect: async () => node.client },
        real: true,
      });
      expect(code, stderr).toBe(0);
      return stdout;
    };
    const attention = await run("attention");
    expect(attention).toMatch(/WARNING +LANE_SUSPENDED .*\n.*audit/);
    const [command = ""] = /fencepost resume .*/.exec(attention) ?? [];
    await run(...shellWords(command).slice(1));
    await waitUntil(async () => (await run("attention")).startsWith("nothing"), "the printed command has helped");
    expect(JSON.parse(await run("overview", "--json"))).toMatchObject({ lanes: 2 });
    expect(await run("search", SIGNER)).toContain("signer");
    expect(await run("ruler", SIGNER)).toContain("no nonce was assigned here");
    expect(await run("history")).toMatch(new RegExp(`${node.nodeId} +alive`));
  });
});
