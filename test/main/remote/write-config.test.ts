import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/main/config/load.ts";
import { writeConfig } from "../../../src/main/remote/write-config.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "fencepost-init-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("fencepost init", () => {
  it("writes a valid configuration file with the defaults", async () => {
    expect(await writeConfig(directory)).toEqual({ file: "fencepost.config.ts" });
    const request = { command: "config", variables: {}, workingDirectory: directory, nodeId: "n" } as const;
    const { config } = await loadConfig(request);
    expect(config).toMatchObject({ host: "127.0.0.1", port: 3000, chains: [{ rpcUrls: ["http://127.0.0.1:8545"] }] });
  });

  it("writes only names of existing settings, also in comments", async () => {
    await writeConfig(directory);
    const path = join(directory, "fencepost.config.ts");
    const text = readFileSync(path, "utf8");
    const keys = text.replace(/^ {2}\/\/ ((?:[a-zA-Z]+: |\]| {2}).*)$/gm, "  $1").replace(/^ {2}rpcUrl.*$/m, "");
    expect(keys).toContain('\n  keystoreDir: "./keys"');
    expect(keys).toContain("\n  chains: [");
    writeFileSync(path, keys);
    const request = { command: "config", variables: {}, workingDirectory: directory, nodeId: "n" } as const;
    const { config } = await loadConfig(request);
    expect(config).toMatchObject({ advertiseUrl: "http://10.0.0.1:3000", chains: [{ chainId: 1 }, { chainId: 8453 }] });
  });

  // protects [The command line] src/main/remote/write-config.ts
  it.each(["fencepost.config.ts", "fencepost.config.js", "fencepost.config.json"])(
    "does not overwrite %s",
    async (name) => {
      writeFileSync(join(directory, name), "mine");
      await expect(writeConfig(directory)).rejects.toThrow(`${name} exists already`);
      expect(readFileSync(join(directory, name), "utf8")).toBe("mine");
    },
  );
});
