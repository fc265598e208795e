import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createFencepost, type TelemetryEvent } from "../../src/index.ts";
import { foreignFile } from "../support/foreign-file.ts";
import { waitUntil } from "../support/wait-until.ts";

it("a key file that other users can read and another user owns raises an alert with the file's name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fencepost-open-key-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = await foreignFile(folder);
  const events: TelemetryEvent[] = [];
  const starting = createFencepost({
    databaseUrl: "postgres://nobody@127.0.0.1:1/none",
    chains: [{ rpc: "http://127.0.0.1:1" }],
    privateKeyFiles: [file],
    onEvent: (event) => events.push(event),
  });
  // The start fails because the file contains no key and there is no database or chain.
  await expect(starting).rejects.toThrow();
  const alert = () => events.find((event) => event.type === "alert" && event.code === "KEY_FILE_OPEN");
  await waitUntil(() => alert() !== undefined, "the file is judged");
  expect(alert()).toMatchObject({ severity: "WARNING", message: expect.stringContaining(file) });
});
