/**
 * Follows docs/traces.md as a reader would (`npm run test:docs`): with the packed package, an OpenTelemetry SDK
 * installed next to it, and a node that records traces.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFencepost } from "fencepost/testing";
import { expect, it, onTestFinished } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { blocksOf } from "../../architecture/rules/vocabulary.ts";
import { readText } from "../../architecture/tree.ts";
import { spawnProgram } from "../../support/node-process.ts";
import { npmInstall, pack } from "../../support/packed.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";

const page = readText("docs/traces.md");

it("the setup in docs/traces.md makes a node record the stages of a transaction", { timeout: 300_000 }, async () => {
  const stack = await startFencepost();
  onTestFinished(() => stack.stop());
  const directory = await makeTemporaryDirectory();
  onTestFinished(directory.remove);
  const [install = "", start = ""] = (blocksOf(page, "sh")[0] ?? "").split("\n");
  writeFileSync(join(directory.path, "package.json"), JSON.stringify({ name: "app", private: true }));
  writeFileSync(join(directory.path, "tracing.mjs"), blocksOf(page, "js")[0] ?? "");
  npmInstall(directory.path, [pack(directory.path), ...install.split(" ").slice(2)]);

  const [account] = stack.strangers;
  const node = spawnProgram("bash", ["-c", `exec ${start}`], {
    directory: directory.path,
    variables: {
      OTEL_TRACES_EXPORTER: "console",
      FENCEPOST_AUTH: "none",
      FENCEPOST_PORT: "0",
      FENCEPOST_DATABASE_URL: stack.databaseUrl,
      FENCEPOST_RPC_URL: stack.rpcUrl,
      FENCEPOST_CONFIRMATIONS: "1",
      FENCEPOST_PRIVATE_KEYS: account?.privateKey ?? "",
    },
  });
  const signer = account?.address ?? "0x";
  const client = createClient({ url: (await node.ready).url });
  await client.waitFor((await client.send({ signer, payload: { to: signer, value: "1" } })).txId);
  await waitUntil(() => node.stdout().includes("fencepost.finality"), "the last span was exported");
  for (const stage of ["create", "sign", "broadcast", "receipt"]) expect(node.stdout()).toContain(`fencepost.${stage}`);
  node.signal("SIGTERM");
  expect(await node.exited).toMatchObject({ code: 0 });
});
