/** Approval by a second person over HTTP and on the command line, with two nodes and two keys; the database decides. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { it as base, SIGNER } from "../support/integration.ts";
import { spawnFencepost } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";

const MAKER = "s3cret-of-those-who-pay";
const CHECKER = "s3cret-of-those-who-check";

const it = base.extend<{ readonly directory: string }>({
  directory: async ({ task: _ }, use) => {
    const directory = await makeTemporaryDirectory();
    await use(directory.path);
    await directory.remove();
  },
});

describe("a transaction above the limit requireApproval", () => {
  it("is sent only after approval by another API key", async ({ nodes, simulated, database, directory }) => {
    const policies = join(directory, "policies.json");
    await writeFile(policies, JSON.stringify({ signers: { [SIGNER]: { requireApproval: { aboveValue: "2" } } } }));
    const variables = {
      FENCEPOST_AUTH: "keys",
      FENCEPOST_API_KEYS: `maker:${MAKER}:read+submit+approve,checker:${CHECKER}:read+approve`,
      FENCEPOST_POLICY_FILE: policies,
    };
    const [one, two] = [await nodes.start(simulated.url, variables), await nodes.start(simulated.url, variables)];
    const maker = createClient({ url: one.url, apiKey: MAKER });
    const checker = createClient({ url: two.url, apiKey: CHECKER });
    const command = async (...argv: readonly string[]) => {
      const child = spawnFencepost([...argv, "--url", two.url, "--api-key", CHECKER], { directory });
      return { ...(await child.exited), stdout: child.stdout(), stderr: child.stderr() };
    };

    const [small, big, wrong] = [0, 5, 6].map((index) => pricedTransfer(index));
    if (small === undefined || big === undefined || wrong === undefined) throw new Error("there are three");
    const { txId } = await maker.send(big);
    const { txId: unwanted } = await maker.send(wrong);
    expect(await maker.send(small)).toMatchObject({ nonce: 0 });
    expect(await maker.send(big)).toMatchObject({ txId, state: "CREATED", nonce: null });
    expect(await checker.explain(txId)).toMatchObject({ causes: [{ code: "AWAITING_APPROVAL" }] });
    const { items } = await checker.list({ state: "CREATED" });
    expect(items.map(({ subState }) => subState)).toEqual(["AWAITING_APPROVAL", "AWAITING_APPROVAL"]);

    await expect(maker.approve(txId, { reason: "mine" })).rejects.toMatchObject({
      status: 403,
      problem: { rule: "owner" },
    });
    await expect(checker.cancel(txId, { reason: "no" })).rejects.toMatchObject({ status: 403 });
    expect(
      await command("policy", "check", "--signer", SIGNER, "--payload", JSON.stringify(big.payload)),
    ).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^would wait for approval by signer.requireApproval/),
    });
    expect(await command("approve", txId, "--reason", "checked")).toMatchObject({ code: 0 });
    await checker.reject(unwanted, { reason: "unknown receiver" });
    const late = await command("approve", unwanted, "--reason", "late");
    expect(late).toMatchObject({ code: 3, stderr: expect.stringMatching(/was rejected by operator:checker/) });

    await untilSettled(database, 3);
    const { history, ...sent } = await maker.get(txId, { include: ["history"] });
    expect(sent).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(history?.slice(0, 4).map(({ event, actor }) => [event, actor])).toEqual([
      ["accept", null],
      ["await", null],
      ["approve", "operator:checker"],
      ["allocate", null],
    ]);
    expect(await maker.get(unwanted)).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    await audit({ database, rpcUrl: simulated.url, witnessed: simulated.chain.witness.map(({ hash }) => hash) });
  });
});
