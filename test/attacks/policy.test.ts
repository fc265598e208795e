/** Policies on a cluster of real nodes: every node obeys the policy document in the database immediately. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { it as base, RECIPIENT, SIGNER, SIGNER_KEY } from "../support/integration.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const PAYER = "s3cret-of-those-who-pay";
const ADMIN = "s3cret-of-those-who-rule";
const KEYS = {
  FENCEPOST_AUTH: "keys",
  FENCEPOST_API_KEYS: `payer:${PAYER}:read+submit,admin:${ADMIN}:read+admin`,
};

const it = base.extend<{ readonly policyFile: string }>({
  policyFile: async ({ task: _ }, use) => {
    const directory = await makeTemporaryDirectory();
    const file = join(directory.path, "policies.json");
    await writeFile(file, JSON.stringify({ signers: { [SIGNER]: { maxValue: { perTransaction: "2" } } } }));
    await use(file);
    await directory.remove();
  },
});

const GWEI = 1_000_000_000n;

/** A signed transaction with one blob, at a blob fee of at most one gwei; the chain charges half of that. */
function signedBlob(nonce: number): Promise<`0x${string}`> {
  const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, maxFeePerBlobGas: GWEI };
  const blobVersionedHashes = [`0x01${"00".repeat(31)}` as const];
  const call = { chainId: 31337, nonce, to: RECIPIENT, value: 0n, gas: 21_000n, type: "eip4844" } as const;
  return privateKeyToAccount(SIGNER_KEY).signTransaction({ ...call, ...fees, blobVersionedHashes } as never);
}

describe("a node without the policy file", () => {
  // protects [Attacks] src/application/operations/policies.ts, src/adapters/postgres/commit/commit.ts
  it("enforces the policy that another node stored from its file", async ({ nodes, simulated, policyFile }) => {
    const ruled = await nodes.start(simulated.url, { ...KEYS, FENCEPOST_POLICY_FILE: policyFile });
    const bare = await nodes.start(simulated.url, KEYS);
    // Kill the node that has the policy file, so that the lane moves to the node without one.
    ruled.signal("SIGKILL");
    await ruled.exited;
    const payer = createClient({ url: bare.url, apiKey: PAYER });
    expect(await payer.send(pricedTransfer(0))).toMatchObject({ nonce: 0 });
    await expect(payer.send(pricedTransfer(5))).rejects.toMatchObject({
      status: 403,
      problem: { rule: "signer.maxValue.perTransaction" },
    });
  });
});

describe("a policy document that is applied at run time", () => {
  // protects [Attacks] src/adapters/postgres/commit/commit.ts, src/adapters/postgres/statements/lane.ts
  it("is enforced by every node at once", async ({ nodes, simulated, database, policyFile }) => {
    const start = (variables = {}) => nodes.start(simulated.url, { ...KEYS, ...variables });
    const [one, two] = [await start({ FENCEPOST_POLICY_FILE: policyFile }), await start()];
    const clients = [one, two].map(({ url }) => ({
      payer: createClient({ url, apiKey: PAYER }),
      admin: createClient({ url, apiKey: ADMIN }),
    }));
    const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]];
    expect(await second.admin.policies()).toMatchObject({ version: 1, changedBy: expect.stringMatching(/^node:/) });
    await expect(first.payer.applyPolicies({ policies: {}, reason: "mine" })).rejects.toMatchObject({ status: 403 });

    // The policy is changed through one node and tested at the other immediately. Then the nodes swap roles, so that
    // both the lane's owner and the other node are tested.
    const none = { signers: { [SIGNER]: { maxValue: { perTransaction: "0" } } } };
    for (const [round, [by, at]] of [
      [first, second],
      [second, first],
    ].entries()) {
      const index = round * 10;
      expect(await by?.admin.applyPolicies({ policies: {}, reason: "open" })).toMatchObject({ version: 2 + round * 2 });
      expect(await at?.payer.send(pricedTransfer(index + 5))).toMatchObject({ nonce: round });
      await by?.admin.applyPolicies({ policies: none, reason: "shut" });
      const sent = [first, second].flatMap(({ payer }, n) =>
        [1, 2, 3].map((i) => payer.send(pricedTransfer(100 + index + n * 3 + i))),
      );
      const refused = { status: 403, problem: { rule: "signer.maxValue.perTransaction" } };
      for (const each of await Promise.allSettled(sent)) expect(each).toMatchObject({ reason: refused });
    }
    const late = { policies: {}, reason: "late", expectedVersion: 2 };
    await expect(first.admin.applyPolicies(late)).rejects.toMatchObject({ status: 409, code: "CONFLICT" });
    const differs = async () => (await second.admin.attention()).items.some(isDifferent);
    const isDifferent = ({ code, nodeId }: { readonly code: string; readonly nodeId?: string | null }) =>
      code === "POLICY_FILE_DIFFERS" && nodeId === one.nodeId;
    await waitUntil(differs, "the node whose file differs says so to the others");
    const audit = await database.query("SELECT version, actor, reason FROM fencepost.policy_change ORDER BY change_id");
    expect(audit).toMatchObject([
      { version: "1", actor: `node:${one.nodeId}` },
      ...["open", "shut", "open", "shut"].map((reason, n) => ({
        version: `${n + 2}`,
        actor: "operator:admin",
        reason,
      })),
    ]);
  });
});

describe("blob transactions", () => {
  it("have their blob cost counted against the daily limit, before and after finality", async ({
    nodes,
    simulated,
    policyFile,
  }) => {
    const worst = 21_000n * 20n * GWEI + 131_072n * GWEI;
    // After one final transaction, the rest of the daily limit covers the gas of a second one, but not its blob.
    const perDay = `${worst + 60_000n * GWEI}`;
    await writeFile(policyFile, JSON.stringify({ signers: { [SIGNER]: { maxCost: { perDay } } } }));
    const node = await nodes.start(simulated.url, { ...KEYS, FENCEPOST_POLICY_FILE: policyFile });
    const payer = createClient({ url: node.url, apiKey: PAYER });
    const send = async (nonce: number) => {
      const params = [await signedBlob(nonce)];
      const answer = await fetch(`${node.url}/rpc`, {
        method: "POST",
        headers: { authorization: `Bearer ${PAYER}`, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params }),
      });
      return (await answer.json()) as { result?: string; error?: { message: string } };
    };
    expect(await send(0)).toMatchObject({ result: expect.stringMatching(/^0x/) });
    expect(await send(1)).toMatchObject({ error: { message: expect.stringMatching(/maxCost.perDay/) } });
    await waitUntil(async () => (await payer.list({ state: "CONFIRMED" })).items.length === 1, "the first is final");
    expect(await send(1)).toMatchObject({ error: { message: expect.stringMatching(/maxCost.perDay/) } });
  });
});
