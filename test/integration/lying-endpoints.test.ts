/** Endpoints that return genuine blocks but false receipts, in front of a real EVM. Each node is a separate process. */
import { getContractAddress } from "viem/utils";
import { describe, expect } from "vitest";
import { untilSettled } from "../support/audit.ts";
import { type Database, it, SIGNER } from "../support/integration.ts";
import { lieAboutReceipts } from "../support/lying-endpoints.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";
import { range, transfer } from "../support/transfers.ts";
import { LOGGING_INIT_CODE } from "../support/varied-block.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Outcome {
  readonly state: string;
  readonly status: string;
  readonly contract_address: string | null;
}

function outcomesOf(database: Database): Promise<readonly Outcome[]> {
  return database.query<Outcome>(
    `SELECT t.state, r.status, r.contract_address
     FROM fencepost.transaction AS t JOIN fencepost.receipt AS r USING (tx_id) ORDER BY t.nonce`,
  );
}

const completionsOf = (database: Database) =>
  database.query<{ state: string }>("SELECT state FROM fencepost.completion");

const CONTRACT = getContractAddress({ from: SIGNER, nonce: 0n }).toLowerCase();
const deployment = { ...transfer(0), payload: { bytecode: LOGGING_INIT_CODE } };

describe.concurrent("an endpoint that reports false receipts", () => {
  it.for([1, 2])("cannot decide an outcome with %i endpoint(s)", async (endpoints, { edr, nodes, database }) => {
    const proxies: readonly RpcProxy[] = await Promise.all(range(endpoints).map(() => startRpcProxy(edr.url)));
    try {
      const rule = lieAboutReceipts(proxies[0] as RpcProxy, null, (receipt) => ({ ...receipt, status: "0x0" }));
      const node = await nodes.start(proxies.map(({ url }) => url).join(","));
      const { txId } = await node.client.send(deployment);
      const causes = async () => (await node.client.explain(txId)).causes.map(({ code }) => code);
      await waitUntil(async () => (await causes()).includes("RPC_DISAGREES"), "the lie is explained");
      await waitUntil(() => node.stderr().includes("RPC_DISAGREES"), "the lie is told");
      expect(await completionsOf(database)).toEqual([]);
      rule.lift();
      await untilSettled(database, 1);
      const [outcome] = await outcomesOf(database);
      expect(outcome).toMatchObject({ state: "CONFIRMED", status: "success", contract_address: CONTRACT });
      expect((await completionsOf(database)).map(({ state }) => state)).toEqual(["CONFIRMED"]);
    } finally {
      await Promise.all(proxies.map((proxy) => proxy.close()));
    }
  });

  // protects [False receipts] src/application/lane/lane-writer.ts
  it("cannot cause a false contract address", async ({ edr, nodes, database }) => {
    const proxy = await startRpcProxy(edr.url);
    try {
      lieAboutReceipts(proxy, null, (receipt) => ({ ...receipt, contractAddress: `0x${"ee".repeat(20)}` }));
      const { client } = await nodes.start(proxy.url);
      await client.send(deployment);
      await untilSettled(database, 1);
      expect(await outcomesOf(database)).toMatchObject([{ state: "CONFIRMED", contract_address: CONTRACT }]);
    } finally {
      await proxy.close();
    }
  });
});
