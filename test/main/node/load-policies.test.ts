import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../src/main/config/config.ts";
import { loadPolicies } from "../../../src/main/node/load-policies.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";

const SIGNER = `0x${"a".repeat(40)}`;

describe("the policies of a node", () => {
  let directory: TemporaryDirectory;
  beforeAll(async () => {
    directory = await makeTemporaryDirectory();
  });
  afterAll(() => directory.remove());

  it("are none by default", async () => {
    expect(await loadPolicies({ policies: { file: null, document: null } })).toBeNull();
  });

  it("are those of the configuration, or of the policy file", async () => {
    const document = { signers: { [SIGNER]: { chains: [1] } } };
    const file = join(directory.path, "policies.json");
    await writeFile(file, JSON.stringify(document));
    const said = await loadPolicies({ policies: { file: null, document } });
    const read = await loadPolicies({ policies: { file, document: null } });
    expect(said?.signers.get(SIGNER)?.chains).toEqual(new Set([1]));
    expect(read).toEqual(said);
  });

  it("prevent the node's start if they are unreadable or invalid", async () => {
    const file = join(directory.path, "broken.json");
    await writeFile(file, "{");
    for (const broken of [file, join(directory.path, "missing.json")]) {
      const loading = loadPolicies({ policies: { file: broken, document: null } });
      await expect(loading).rejects.toThrow(ConfigurationError);
    }
    const wrong = loadPolicies({ policies: { file: null, document: { signers: { [SIGNER]: { maxcost: {} } } } } });
    await expect(wrong).rejects.toThrow(`policies: signers.${SIGNER}.maxcost is not a known field`);
  });
});
