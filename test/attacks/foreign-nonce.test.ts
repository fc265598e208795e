/**
 * Another program uses our nonce, or one of two endpoints falsely reports so: nothing is paid twice, and a false report
 * decides nothing.
 */
import { describe, expect } from "vitest";
import { untilSettled } from "../support/audit.ts";
import { type Database, it, RECIPIENT, SIGNER } from "../support/integration.ts";
import type { Json } from "../support/lying-endpoints.ts";
import { type RpcProxy, rewrite, startRpcProxy } from "../support/rpc-proxy.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

type Low = `0x${string}`;
const LANE = SIGNER.toLowerCase() as Low;
const STRANGER: Low = `0x${"0d".repeat(20)}`;
const OFTEN = {
  FENCEPOST_RECONCILIATION_INTERVAL: "300ms",
  FENCEPOST_STALE_RECEIPT_TIMEOUT: "500ms",
  FENCEPOST_GRAY_ZONE_INTERVAL: "300ms",
};

interface Row {
  readonly nonce: string;
  readonly state: string;
  readonly sub_state: string | null;
}

const rowsOf = (database: Database) =>
  database.query<Row>("SELECT nonce, state, sub_state FROM fencepost.transaction ORDER BY nonce");
const settledOf = (database: Database) =>
  database.query<{ state: string }>("SELECT state FROM fencepost.completion ORDER BY seq");

async function twoEndpoints(url: string, work: (proxies: readonly [RpcProxy, RpcProxy]) => Promise<void>) {
  const proxies = (await Promise.all(range(2).map(() => startRpcProxy(url)))) as [RpcProxy, RpcProxy];
  try {
    await work(proxies);
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.close()));
  }
}

/**
 * Makes the endpoint report this transaction as sent by our signer at that nonce, in every response that contains it.
 */
function claim(proxy: RpcProxy, hash: string, as: { readonly from: Low; readonly nonce: number }) {
  const said = { from: as.from, nonce: `0x${as.nonce.toString(16)}` };
  const lied = (each: unknown) => ((each as Json | null)?.hash === hash ? { ...(each as Json), ...said } : each);
  const methods = ["eth_getTransactionByHash", "eth_getBlockByNumber", "eth_getBlockByHash"];
  return proxy.rule(
    { methods },
    rewrite((result) => {
      const { transactions } = (result ?? {}) as { readonly transactions?: readonly unknown[] };
      return Array.isArray(transactions) ? { ...(result as Json), transactions: transactions.map(lied) } : lied(result);
    }),
  );
}

/** Makes the endpoint report this transaction count for our signer, now and in old blocks from `fromBlock` on. */
function count(proxy: RpcProxy, counted: number, fromBlock: number) {
  const isOurs = ([address, block]: readonly unknown[]) =>
    String(address).toLowerCase() === LANE && !(Number(block) < fromBlock);
  const when = ({ params }: { readonly params: readonly unknown[] }) => isOurs(params);
  return proxy.rule({ methods: ["eth_getTransactionCount"], when }, async () => ({
    result: `0x${counted.toString(16)}`,
  }));
}

describe.concurrent("a nonce of our transaction", () => {
  // protects [Another program at the key] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  it("is not given up if only one endpoint reports that another program used the nonce", async ({
    simulated,
    nodes,
    database,
  }) => {
    await twoEndpoints(simulated.url, async ([liar, honest]) => {
      const node = await nodes.start(`${liar.url},${honest.url}`, OFTEN);
      await node.client.send(transfer(0));
      await untilSettled(database, 1);
      simulated.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
      // Create the transaction before the false report begins: while endpoints disagree on the signer's transaction
      // count, a create is refused.
      const { txId } = await node.client.send(pricedTransfer(1));
      const { number, transactions } = simulated.chain.mineForeign(STRANGER);
      const hash = transactions[0]?.transaction.hash as string;
      const lies = [claim(liar, hash, { from: LANE, nonce: 1 }), count(liar, 2, number)];
      await waitUntil(() => node.stderr().includes("EXTERNAL_KEY_USE"), "the lie is believed for now");
      await waitUntil(() => node.stderr().includes("RPC_DISAGREES"), "the other endpoint contradicts it");
      expect(await settledOf(database)).toHaveLength(1);
      for (const lie of lies) lie.lift();
      simulated.faults.heal();
      await untilSettled(database, 2);
      expect(await node.client.get(txId)).toMatchObject({ state: "CONFIRMED", subState: null, nonce: 1 });
      expect(await settledOf(database)).toEqual([{ state: "CONFIRMED" }, { state: "CONFIRMED" }]);
    });
  });

  // protects [Another program at the key] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  it("is given up only once both endpoints report that another program used the nonce", async ({
    simulated,
    nodes,
    database,
  }) => {
    await twoEndpoints(simulated.url, async ([honest, liar]) => {
      const node = await nodes.start(`${honest.url},${liar.url}`, OFTEN);
      await node.client.send(transfer(0));
      await untilSettled(database, 1);
      simulated.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
      const { txId } = await node.client.send(pricedTransfer(1));
      const hash = simulated.chain.mineForeign(LANE).transactions[0]?.transaction.hash as string;
      const lie = claim(liar, hash, { from: STRANGER, nonce: 7 });
      simulated.faults.heal();
      await waitUntil(() => node.stderr().includes("RPC_DISAGREES"), "the second endpoint contradicts the first");
      expect(await settledOf(database)).toHaveLength(1);
      lie.lift();
      await untilSettled(database, 2);
      const ended = { state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1, txHash: hash };
      expect(await node.client.get(txId)).toMatchObject(ended);
    });
  });

  it("causes no late payment if another program uses the nonce after a cancellation", async ({
    simulated,
    nodes,
    database,
  }) => {
    const node = await nodes.start(simulated.url, OFTEN);
    await node.client.send(transfer(0));
    await untilSettled(database, 1);
    const paid = simulated.chain.account(RECIPIENT.toLowerCase() as Low).balance;
    simulated.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const { txId } = await node.client.send(pricedTransfer(1));
    await waitUntil(async () => (await node.client.get(txId)).attempts.length === 1, "it is signed");
    await node.client.cancel(txId, { reason: "called off" });
    simulated.chain.mineForeign(LANE);
    simulated.faults.heal();
    await untilSettled(database, 2);
    const { nonce } = await node.client.send({ signer: SIGNER, payload: { to: STRANGER, value: "1" } });
    await untilSettled(database, 3);
    expect(nonce).toBe(2);
    expect((await rowsOf(database)).map(({ nonce, state, sub_state }) => [nonce, state, sub_state])).toEqual([
      ["0", "CONFIRMED", null],
      ["1", "FAILED_FINAL", "NONCE_CONSUMED_EXTERNALLY"],
      ["2", "CONFIRMED", null],
    ]);
    expect(simulated.chain.account(RECIPIENT.toLowerCase() as Low).balance).toBe(paid);
  });

  it("is never exchanged for a new nonce: the setting `requeue` is refused at start", async ({ simulated, nodes }) => {
    const node = nodes.spawn(simulated.url, { FENCEPOST_EXTERNAL_USE_POLICY: "requeue" });
    const { code } = await node.exited;
    expect(code).not.toBe(0);
    expect(node.stderr()).toContain("ends as FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY");
  });
});
