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
