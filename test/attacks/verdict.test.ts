/**
 * An endpoint gives a real node false responses that would make an accepted request fail. Three cases: a request that
 * was just approved, a request in the intake table, and a node that has no other endpoint.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { describe, expect } from "vitest";
import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import { insertIntake } from "../../src/adapters/postgres/insert-intake.ts";
import { normalise } from "../../src/application/requests/normalise.ts";
import { createClient } from "../../src/client/index.ts";
import type { Intent } from "../../src/domain/transaction/transaction.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { untilSettled } from "../support/audit.ts";
import { type Database, it, RECIPIENT, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { pretend, type RpcProxy, refuseWith, startRpcProxy } from "../support/rpc-proxy.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const MAKER = "s3cret-of-those-who-pay-it";
const CHECKER = "s3cret-of-those-who-check-it";
const CONTRACT = `0x${"cc".repeat(20)}` as const;
const entropy = createSeededEntropy(3);

async function behindProxies<T>(url: string, count: number, work: (proxies: readonly RpcProxy[]) => Promise<T>) {
  const proxies = await Promise.all(range(count).map(() => startRpcProxy(url)));
  try {
    return await work(proxies);
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.close()));
  }
}

const urlsOf = (proxies: readonly RpcProxy[]) => proxies.map(({ url }) => url).join(",");
const lieAboutBalance = (proxy: RpcProxy) =>
  proxy.rule(
    { methods: ["eth_getBalance"] },
    pretend(() => "0x0"),
  );
const lieAboutReverts = (proxy: RpcProxy, to: string) =>
  proxy.rule(
    {
      methods: ["eth_call", "eth_estimateGas"],
      when: ({ params }) => (params[0] as { readonly to?: string }).to?.toLowerCase() === to,
    },
    refuseWith("execution reverted", 3),
  );

function intentTo(to: string): Intent {
  const payload = { to, value: "1", gas: 60_000 };
  const request = { signer: SIGNER, requestId: entropy.uuid(), payload, chainId: 31_337 };
  return normalise({ codec: createCodec(), entropy, chainIds: [31_337] }, request);
}

/** Inserts the intents through the caller's own database connection. */
async function writeIntake(database: Database, ...intents: readonly Intent[]): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  for (const intent of intents) await insertIntake(client, intent);
  await client.end();
}

const stateOf = async ({ client }: Pick<NodeProcess, "client">, txId: string) => (await client.get(txId)).state;
const waitsFor = async ({ client }: Pick<NodeProcess, "client">, txId: string) =>
  (await client.explain(txId)).causes.find(({ code }) => code === "REFUSAL_UNCONFIRMED")?.data?.waitsFor;

describe("one of two endpoints", () => {
  it("that falsely reports balance 0 after an approval only delays the transaction", async ({
    edr,
    nodes,
    database,
  }) => {
    const directory = await makeTemporaryDirectory();
    const file = join(directory.path, "policies.json");
    await writeFile(file, JSON.stringify({ signers: { [SIGNER]: { requireApproval: { aboveValue: "2" } } } }));
    await behindProxies(edr.url, 2, async (proxies) => {
      const node = await nodes.start(urlsOf(proxies), {
        FENCEPOST_AUTH: "keys",
        FENCEPOST_API_KEYS: `maker:${MAKER}:read+submit,checker:${CHECKER}:read+approve`,
        FENCEPOST_POLICY_FILE: file,
      });
      const maker = createClient({ url: node.url, apiKey: MAKER });
      const checker = createClient({ url: node.url, apiKey: CHECKER });
      const { txId } = await maker.send({ signer: SIGNER, requestId: "big", payload: { to: RECIPIENT, value: "5" } });
      const lie = lieAboutBalance(proxies[0] as RpcProxy);
      await checker.approve(txId, { reason: "checked" });
      await waitUntil(
        async () => (await waitsFor({ client: checker }, txId)) === "agreement",
        "it waits for the other",
      );
      await waitUntil(() => node.stderr().includes("RPC_DISAGREES"), "people are told");
      await waitUntil(() => lie.struck >= 6, "it was looked at again at later blocks");
      expect(await stateOf({ client: checker }, txId)).toBe("CREATED");
      expect(await database.query("SELECT 1 FROM fencepost.completion")).toEqual([]);
      lie.lift();
      await untilSettled(database, 1);
      expect(await stateOf({ client: checker }, txId)).toBe("CONFIRMED");
    }).finally(() => directory.remove());
  });

  it("that falsely reports a revert delays only the affected transaction", async ({ edr, nodes, database }) => {
    await behindProxies(edr.url, 2, async (proxies) => {
      const node = await nodes.start(urlsOf(proxies));
      const lie = lieAboutReverts(proxies[0] as RpcProxy, CONTRACT);
      const [refused, behind] = [intentTo(CONTRACT), intentTo(RECIPIENT)];
      await writeIntake(database, refused, behind);
      await waitUntil(async () => (await stateOf(node, behind.txId)) === "CONFIRMED", "the one behind is mined");
      await waitUntil(async () => (await waitsFor(node, refused.txId)) === "agreement", "it waits for the other");
      expect(await stateOf(node, refused.txId)).toBe("CREATED");
      lie.lift();
      await waitUntil(async () => (await stateOf(node, refused.txId)) === "CONFIRMED", "it is mined");
    });
  });
});

describe("the only endpoint", () => {
  it("causes REJECTED only if it refuses the transaction again at a later block", async ({ edr, nodes, database }) => {
    await behindProxies(edr.url, 1, async (proxies) => {
      const [proxy] = proxies as readonly [RpcProxy];
      const node = await nodes.start(proxy.url);
      // Each check of the intake reads the balance twice: to prepare the transaction, and to confirm the refusal.
      const once = proxy.rule(
        { methods: ["eth_getBalance"], times: 2 },
        pretend(() => "0x0"),
      );
      const accepted = intentTo(RECIPIENT);
      await writeIntake(database, accepted);
      await waitUntil(async () => (await stateOf(node, accepted.txId)) === "CONFIRMED", "it is mined");
      expect(once.struck).toBeGreaterThan(0);
      lieAboutReverts(proxy, CONTRACT);
      const doomed = intentTo(CONTRACT);
      await writeIntake(database, doomed);
      await waitUntil(async () => (await stateOf(node, doomed.txId)) === "FAILED_FINAL", "it ends");
      expect(await node.client.get(doomed.txId)).toMatchObject({ subState: "REJECTED", nonce: null });
    });
  });
});
