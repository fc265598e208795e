import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../src/main/config/config.ts";
import { loadAbis } from "../../../src/main/node/load-abis.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";

const TOKEN = `0x${"a".repeat(40)}`;
const document = { items: [{ name: "Payouts", addresses: [TOKEN], abi: ["function pay(address to)"] }] };

describe("the ABIs of a node's configuration", () => {
  let directory: TemporaryDirectory;
  beforeAll(async () => {
    directory = await makeTemporaryDirectory();
  });
  afterAll(() => directory.remove());

  it("are none by default", async () => {
    expect(await loadAbis({ abis: { file: null, document: null } })).toEqual([]);
  });

  it("are those of the configuration, or of the ABI file, in the form of PUT /abis", async () => {
    const file = join(directory.path, "abis.json");
    await writeFile(file, JSON.stringify(document));
    expect(await loadAbis({ abis: { file, document: null } })).toEqual(document.items);
    expect(await loadAbis({ abis: { file: null, document } })).toEqual(document.items);
  });

  it("prevent the node's start if they are unreadable or invalid, with the path of the mistake", async () => {
    const file = join(directory.path, "broken.json");
    await writeFile(file, "{");
    for (const broken of [file, join(directory.path, "missing.json")]) {
      const loading = loadAbis({ abis: { file: broken, document: null } });
      await expect(loading).rejects.toThrow(ConfigurationError);
      await expect(loading).rejects.toThrow(/FENCEPOST_ABI_FILE: .* cannot be read/);
    }
    const wrong = { items: [{ name: "Payouts", abi: ["function ("] }] };
    await expect(loadAbis({ abis: { file: null, document: wrong } })).rejects.toThrow(
      /abis: items\.0\.abi: is not an ABI/,
    );
    await writeFile(file, "[]");
    await expect(loadAbis({ abis: { file, document: null } })).rejects.toThrow(/items: must be a list/);
  });
});
