import { scryptSync } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decryptKeystoreJsonSync, scryptSync as ethersScrypt } from "ethers";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  encryptKeystore,
  importKey,
  listKeyFiles,
  loadKeystoreDirectory,
  newKey,
} from "../../../../src/adapters/evm/signers/keystore.ts";
import { parsePrivateKeys, type SigningKey } from "../../../../src/adapters/evm/signers/private-keys.ts";

// Use Node's scrypt: that of ethers is JavaScript and needs ten seconds of CPU time per key.
ethersScrypt.register((password, salt, N, r, p, length) =>
  scryptSync(password, salt, length, { N, r, p, maxmem: 2 ** 30 }),
);

const HEX = "3c".repeat(32);
const [KEY] = parsePrivateKeys([HEX]) as [SigningKey];
const NOW = new Date("2026-11-17T06:45:00.123Z");

async function keystore(password = "correct horse\n") {
  const root = await mkdtemp(join(tmpdir(), "fencepost-keys-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const source = { directory: join(root, "keys"), passwordFile: join(root, "password") };
  await writeFile(source.passwordFile, password, { mode: 0o600 });
  return source;
}

describe("an imported key", () => {
  // protects [Signers] src/adapters/evm/signers/keystore.ts
  it("becomes a file that ethers and a node can open", async () => {
    const source = await keystore();
    const { address, file } = await importKey(source, ` 0x${HEX}\n`, NOW);
    expect(address).toBe(KEY.address);
    expect(file).toBe(join(source.directory, `UTC--2026-11-17T06-45-00.123Z--${KEY.address.slice(2)}`));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(source.directory)).mode & 0o777).toBe(0o700);
    const text = await readFile(file, "utf8");
    expect(JSON.parse(text).crypto.kdfparams).toMatchObject({ n: 262_144, r: 8, p: 1 });
    expect(decryptKeystoreJsonSync(text, "correct horse").privateKey).toBe(`0x${HEX}`);
    expect(await loadKeystoreDirectory(source)).toEqual([KEY]);
    expect(await readdir(source.directory)).toHaveLength(1);
  });

  // protects [Signers] src/adapters/evm/signers/keystore.ts
  it("is refused if it is invalid", async () => {
    const source = await keystore();
    await importKey(source, HEX, NOW);
    await expect(importKey(source, HEX, new Date())).rejects.toThrow(`holds the key of ${KEY.address} already`);
    await expect(importKey(source, "hunter2", NOW)).rejects.toThrow(/^private key 1 is not 32 bytes of hex$/);
    await expect(importKey(await keystore("\n"), HEX, NOW)).rejects.toThrow(/is empty/);
    expect(await listKeyFiles(source)).toHaveLength(1);
  });
});

describe("a new key", () => {
  it("differs each time, and is listed by its address", async () => {
    const source = await keystore();
    const made = [await newKey(source, NOW), await newKey(source, NOW)];
    expect(new Set(made.map(({ address }) => address)).size).toBe(2);
    const byFile = (a: { file: string }, b: { file: string }) => a.file.localeCompare(b.file);
    expect([...(await listKeyFiles(source))].sort(byFile)).toEqual(made.sort(byFile));
  });
});

it("a keystore file is encrypted with a new salt, iv and id each time", async () => {
  const files = [await encryptKeystore(KEY, "p", 1_024), await encryptKeystore(KEY, "p", 1_024)].map((text) =>
    JSON.parse(text),
  );
  const secrets = files.map(({ id, crypto }) => [id, crypto.kdfparams.salt, crypto.cipherparams.iv, crypto.mac]);
  expect(new Set(secrets.flat()).size).toBe(8);
});
