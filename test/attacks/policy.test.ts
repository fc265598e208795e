/** Policies against a cluster of real nodes: the document in the database binds every one of them, at once. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { it as base, SIGNER } from "../support/integration.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";

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

describe("a node without the policy file", () => {
  it("refuses what the document of another node's file forbids", async ({ nodes, simulated, policyFile }) => {
    const ruled = await nodes.start(simulated.url, { ...KEYS, FENCEPOST_POLICY_FILE: policyFile });
    const bare = await nodes.start(simulated.url, KEYS);
    // The lane goes to the node that has no file.
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

describe("a document that is applied at run time", () => {
  it("is obeyed by every node at once, is audited, and is not overwritten unseen", async ({
    nodes,
    simulated,
    database,
    policyFile,
  }) => {
    const start = (variables = {}) => nodes.start(simulated.url, { ...KEYS, ...variables });
    const [one, two] = [await start({ FENCEPOST_POLICY_FILE: policyFile }), await start()];
    const clients = [one, two].map(({ url }) => ({
      payer: createClient({ url, apiKey: PAYER }),
      admin: createClient({ url, apiKey: ADMIN }),
    }));
    const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]];
    expect(await second.admin.policies()).toMatchObject({ version: 1, changedBy: expect.stringMatching(/^node:/) });
    await expect(first.payer.applyPolicies({ policies: {}, reason: "mine" })).rejects.toMatchObject({ status: 403 });

    // Through either node, and asked of the other in the same breath: one of the two owns the lane.
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
    const { items } = await second.admin.attention();
    expect(items).toContainEqual(expect.objectContaining({ code: "POLICY_FILE_DIFFERS", nodeId: one.nodeId }));
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
