/**
 * The built SDK on runtimes other than Node: `npm run test:clients` installs them. A runtime that cannot be installed
 * is reported.
 */
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { bun, deno, installed, program } from "../../support/clients/install.ts";
import { it, RECIPIENT, SIGNER } from "../../support/integration.ts";

const SCRIPT = fileURLToPath(new URL("../../support/clients/with-sdk.mjs", import.meta.url));
const SDK = new URL("../../../dist/client/index.js", import.meta.url).href;

interface Runtime {
  readonly name: string;
  readonly install: () => Promise<string>;
  readonly run: readonly string[];
}

const RUNTIMES: readonly Runtime[] = [
  { name: "Node", install: async () => process.execPath, run: [] },
  { name: "Deno", install: deno, run: ["run", "--no-config", "--allow-net=127.0.0.1", "--allow-read"] },
  { name: "Bun", install: bun, run: ["run"] },
];

describe("the SDK", () => {
  it.for(RUNTIMES)(
    "sends, repeats a request, follows the outcome and reports a refusal on $name",
    { timeout: 300_000 },
    async (runtime, { edr, nodes }) => {
      const binary = await installed(runtime.name, runtime.install);
      if (binary === null) return;
      const { url } = await nodes.start(edr.url);
      const { stdout } = await program(binary, [...runtime.run, SCRIPT, SDK, url, SIGNER, RECIPIENT]);
      expect(JSON.parse(stdout)).toEqual({
        same: true,
        last: "CONFIRMED",
        refused: "INVALID_REQUEST",
        delivered: true,
      });
    },
  );
});
