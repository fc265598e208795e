import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { BadKey, judgeOpenness, readSecretFile } from "../../../../src/adapters/evm/signers/private-keys.ts";
import { foreignFile } from "../../../support/foreign-file.ts";

const OURS = 1_000;
const ROOT = 0;

describe("a file with a private key or password", () => {
  it.each([
    ["owned by this user only", { uid: OURS, mode: 0o600 }, "fine"],
    ["owned by this user, read-only", { uid: OURS, mode: 0o400 }, "fine"],
    ["owned by this user, readable by the group", { uid: OURS, mode: 0o640 }, "refused"],
    ["owned by this user, readable by all", { uid: OURS, mode: 0o604 }, "refused"],
    ["owned by this user, writable by the group", { uid: OURS, mode: 0o620 }, "refused"],
    ["owned by this user, on a read-only mount", { uid: OURS, mode: 0o644, readOnly: true }, "warned"],
    ["owned by root, as Kubernetes mounts a secret", { uid: ROOT, mode: 0o644, readOnly: true }, "warned"],
    ["owned by root, as in an image", { uid: ROOT, mode: 0o444 }, "warned"],
    ["owned by root, writable by all", { uid: ROOT, mode: 0o646 }, "refused"],
    ["owned by another user, closed to all others", { uid: 1_001, mode: 0o600 }, "fine"],
    ["on a system without users", { uid: 0, mode: 0o666, ownUid: undefined }, "fine"],
    // protects [Signers] src/adapters/evm/signers/private-keys.ts
  ] as const)("is accepted or refused by its owner and mode: %s", (_, file, expected) => {
    expect(judgeOpenness({ ownUid: OURS, readOnly: false, ...file })).toBe(expected);
  });

  // protects [Signers] src/adapters/evm/signers/private-keys.ts
  it("of this user is refused if other users can read the file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fencepost-secret-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "key");
    await writeFile(path, "content", { mode: 0o600 });
    expect(await readSecretFile(path, "key file")).toBe("content");
    await chmod(path, 0o644);
    const refusal = await readSecretFile(path, "key file").catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(BadKey);
    expect((refusal as Error).message).toBe(
      `${path}: the key file is open to other users of this machine (mode 0644); make it yours alone: chmod 600 ${path}`,
    );
  });

  // protects [Signers] src/adapters/evm/signers/private-keys.ts
  it("is read with a warning if another user made the file readable to all", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fencepost-secret-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = await foreignFile(folder);
    const warnings: string[] = [];
    expect(await readSecretFile(path, "key file", (line) => warnings.push(line))).not.toBe("");
    expect(warnings).toEqual([expect.stringContaining(`${path}: the key file is open to other users of this machine`)]);
  });
});
