import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decryptKeystoreJson, encryptKeystoreJsonSync } from "ethers";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decryptKeystore, loadKeystoreDirectory } from "../../../../src/adapters/evm/signers/keystore.ts";
import { BadKey, parsePrivateKeys, type SigningKey } from "../../../../src/adapters/evm/signers/private-keys.ts";
import type { Hex } from "../../../../src/domain/lane.ts";
import { encryptKeystore } from "../../../support/keystore-writer.ts";

/** A low scrypt cost, so that tests of the file format are fast. One test below uses the real cost. */
const LIGHT = 1_024;
const PASSWORD = "correct horse battery staple";

function keyOf(hex: Hex): SigningKey {
  const [key] = parsePrivateKeys([hex]);
  if (key === undefined) throw new Error("unreachable");
  return key;
}

const KEY_HEX: Hex = `0x${"3c".repeat(32)}`;
const KEY = keyOf(KEY_HEX);

function byEthers(privateKey: Hex, password: string): string {
  return encryptKeystoreJsonSync({ address: keyOf(privateKey).address, privateKey }, password, {
    scrypt: { N: LIGHT, r: 8, p: 1 },
  });
}

describe("a keystore file", () => {
  it("can be opened if ethers wrote it, with a password in any script", async () => {
    const hex = fc
      .uint8Array({ minLength: 31, maxLength: 31 })
      .map((b): Hex => `0x01${Buffer.from(b).toString("hex")}`);
    await fc.assert(
      fc.asyncProperty(hex, fc.string({ unit: "grapheme", maxLength: 20 }), async (privateKey, password) => {
        expect(await decryptKeystore(byEthers(privateKey, password), password, "a.json")).toEqual(keyOf(privateKey));
      }),
      { numRuns: 20 },
    );
  });

  it.each(["scrypt", "pbkdf2"] as const)("can be opened by ethers if Fencepost wrote it (%s)", async (kdf) => {
    const text = encryptKeystore(KEY, PASSWORD, { kdf, cost: LIGHT });
    expect((await decryptKeystoreJson(text, PASSWORD)).privateKey).toBe(KEY_HEX);
    expect(await decryptKeystore(text, PASSWORD, "a.json")).toEqual(KEY);
  });

  it("can be opened if it is a published test vector", async () => {
    expect(await decryptKeystore(PBKDF2_VECTOR, "testpassword", "vector")).toEqual(
      keyOf("0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"),
    );
    const { address } = await decryptKeystore(GETH_VECTOR, "foobar", "vector");
    expect(address).toBe("0x7ef5a6135f1fd6a02593eedc869c6d41d934aef8");
  });

  it("can be opened within the allowed memory if it has geth's scrypt cost", async () => {
    const text = encryptKeystore(KEY, PASSWORD);
    expect(JSON.parse(text).crypto.kdfparams).toMatchObject({ n: 262_144, r: 8, p: 1 });
    expect(await decryptKeystore(text, PASSWORD, "a.json")).toEqual(KEY);
  });

  it("can be opened if an old client wrote the file", async () => {
    const { crypto, ...rest } = JSON.parse(encryptKeystore(KEY, PASSWORD, { cost: LIGHT }));
    const { address: _, ...anonymous } = rest;
    expect(await decryptKeystore(JSON.stringify({ ...anonymous, Crypto: crypto }), PASSWORD, "old")).toEqual(KEY);
    const prefixed = { ...crypto, mac: `0x${crypto.mac}`, ciphertext: `0x${crypto.ciphertext}` };
    const text = JSON.stringify({ ...rest, address: KEY.address.toUpperCase().replace("0X", "0x"), crypto: prefixed });
    expect(await decryptKeystore(text, PASSWORD, "old")).toEqual(KEY);
  });
});

describe("a keystore file is refused if it has", () => {
  async function failure(text: string, password = PASSWORD): Promise<string> {
    const error = await decryptKeystore(text, password, "keys/a.json").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BadKey);
    const { message } = error as Error;
    expect(message).toMatch(/^keys\/a\.json: [^\n]+$/);
    return message;
  }

  it("another password than the given one", async () => {
    expect(await failure(byEthers(KEY_HEX, PASSWORD), `${PASSWORD}!`)).toBe(
      "keys/a.json: wrong password, or the file is damaged",
    );
  });

  it("a wrong bit in the ciphertext", async () => {
    const file = JSON.parse(encryptKeystore(KEY, PASSWORD, { cost: LIGHT }));
    const first = Number.parseInt(file.crypto.ciphertext.slice(0, 2), 16) ^ 1;
    file.crypto.ciphertext = first.toString(16).padStart(2, "0") + file.crypto.ciphertext.slice(2);
    expect(await failure(JSON.stringify(file))).toMatch(/damaged/);
  });

  it("the address of another key", async () => {
    const file = JSON.parse(encryptKeystore(KEY, PASSWORD, { cost: LIGHT }));
    const text = JSON.stringify({ ...file, address: "99".repeat(20) });
    expect(await failure(text)).toContain(`holds the key of ${KEY.address}, not of 0x${"99".repeat(20)}`);
  });

  it.each<[string, (file: KeystoreFile) => unknown, RegExp]>([
    ["version 1", (file) => ({ ...file, version: 1 }), /version 1 instead of 3/],
    ["an array", () => [], /not a JSON object/],
    ["no crypto", ({ crypto: _, ...rest }) => rest, /crypto is missing/],
    ["another cipher", (file) => withCrypto(file, { cipher: "aes-128-cbc" }), /cipher aes-128-cbc/],
    ["another kdf", (file) => withCrypto(file, { kdf: "argon2" }), /kdf argon2/],
    ["a short iv", (file) => withCrypto(file, { cipherparams: { iv: "00" } }), /iv must be 16 bytes/],
    ["a long key", (file) => withCrypto(file, { ciphertext: "00".repeat(33) }), /ciphertext must be 32 bytes/],
    ["odd hex", (file) => withCrypto(file, { mac: "abc" }), /mac is not hex/],
    ["n not a power of two", (file) => withParams(file, { n: 1_000 }), /power of two/],
    ["n that takes the machine down", (file) => withParams(file, { n: 2 ** 26 }), /more than 1 GiB/],
    ["p that takes the machine down", (file) => withParams(file, { p: 2 ** 26 }), /more than 1 GiB/],
    ["p that takes an hour", (file) => withParams(file, { p: 2 ** 16 }), /n × r × p is above 16777216/],
    ["n too large for r", (file) => withParams(file, { n: 2 ** 18, r: 1 }), /below 2\^16 if r is 1/],
    ["n as text", (file) => withParams(file, { n: "1024" }), /n is not a positive integer/],
    ["a short derived key", (file) => withParams(file, { dklen: 16 }), /dklen must be/],
    ["a strange address", (file) => ({ ...file, address: "0x1234" }), /address is not an address/],
    [
      "another prf",
      (file) => withCrypto(file, { kdf: "pbkdf2", kdfparams: { ...PBKDF2_PARAMS, prf: "md5" } }),
      /prf md5/,
    ],
    [
      "endless rounds",
      (file) => withCrypto(file, { kdf: "pbkdf2", kdfparams: { ...PBKDF2_PARAMS, c: 1e9 } }),
      /rounds/,
    ],
    // protects [Attacks] src/adapters/evm/signers/keystore.ts
  ])("%s", async (_, damage, expected) => {
    const file = JSON.parse(encryptKeystore(KEY, PASSWORD, { cost: LIGHT })) as KeystoreFile;
    expect(await failure(JSON.stringify(damage(file)))).toMatch(expected);
  });

  it("content that is not JSON", async () => {
    expect(await failure("{")).toMatch(/not a JSON object/);
  });
});

describe("a keystore directory", () => {
  let root: string;
  let directory: string;
  let passwordFile: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "fencepost-keystore-"));
    directory = join(root, "keys");
    passwordFile = join(root, "password");
    await mkdir(directory);
    await writeFile(passwordFile, `${PASSWORD}\r\n`, { mode: 0o600 });
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  async function store(name: string, hex: Hex, password = PASSWORD): Promise<void> {
    await writeFile(join(directory, name), encryptKeystore(keyOf(hex), password, { cost: LIGHT }), { mode: 0o600 });
  }

  it("is read completely: every key file is opened, and no other file", async () => {
    const other: Hex = `0x${"4d".repeat(32)}`;
    const linked: Hex = `0x${"5e".repeat(32)}`;
    await store("UTC--2026-01-01T00-00-00.000Z--abc", KEY_HEX);
    await store("b.json", other);
    await store("linked", linked);
    await symlink(join(directory, "linked"), join(directory, "c.json"));
    await mkdir(join(directory, "folder.json"));
    await writeFile(join(directory, "README"), "not a key");
    await writeFile(join(directory, ".hidden.json"), "not a key");
    const keys = await loadKeystoreDirectory({ directory, passwordFile });
    expect(keys).toEqual([KEY_HEX, other, linked].map(keyOf));
  });

  // protects [Signers] src/adapters/evm/signers/private-keys.ts
  it("is refused if other users can read a key file or the password file", async () => {
    await store("a.json", KEY_HEX);
    for (const file of [join(directory, "a.json"), passwordFile]) {
      await chmod(file, 0o640);
      await expect(loadKeystoreDirectory({ directory, passwordFile })).rejects.toThrow(
        /is open to other users of this machine \(mode 0640\); make it yours alone: chmod 600/,
      );
      await chmod(file, 0o600);
    }
    expect(await loadKeystoreDirectory({ directory, passwordFile })).toEqual([KEY]);
  });

  it("is refused with the name of a file that has another password", async () => {
    await store("a.json", KEY_HEX);
    await store("b.json", `0x${"4d".repeat(32)}`, "another");
    await expect(loadKeystoreDirectory({ directory, passwordFile })).rejects.toThrow(
      `${join(directory, "b.json")}: wrong password`,
    );
  });

  it("is refused with an error that names the missing part", async () => {
    await expect(loadKeystoreDirectory({ directory, passwordFile })).rejects.toThrow(/holds no keystore file/);
    await expect(loadKeystoreDirectory({ directory, passwordFile: join(root, "none") })).rejects.toThrow(
      /none: the keystore password file cannot be read \(ENOENT\)/,
    );
    await expect(loadKeystoreDirectory({ directory: join(root, "none"), passwordFile })).rejects.toThrow(
      /none: the keystore directory cannot be read \(ENOENT\)/,
    );
  });
});

interface KeystoreFile {
  readonly crypto: { readonly kdfparams: object };
}

function withCrypto(file: KeystoreFile, change: object): object {
  return { ...file, crypto: { ...file.crypto, ...change } };
}

function withParams(file: KeystoreFile, change: object): object {
  return withCrypto(file, { kdfparams: { ...file.crypto.kdfparams, ...change } });
}

const PBKDF2_PARAMS = { c: LIGHT, dklen: 32, prf: "hmac-sha256", salt: "00" };

const PBKDF2_VECTOR = JSON.stringify({
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
    ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    kdf: "pbkdf2",
    kdfparams: {
      c: 262144,
      dklen: 32,
      prf: "hmac-sha256",
      salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
    },
    mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
  },
  id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  version: 3,
});

const GETH_VECTOR = JSON.stringify({
  address: "7ef5a6135f1fd6a02593eedc869c6d41d934aef8",
  crypto: {
    cipher: "aes-128-ctr",
    ciphertext: "1d0839166e7a15b9c1333fc865d69858b22df26815ccf601b28219b6192974e1",
    cipherparams: { iv: "8df6caa7ff1b00c4e871f002cb7921ed" },
    kdf: "scrypt",
    kdfparams: {
      dklen: 32,
      n: 8,
      p: 16,
      r: 8,
      salt: "e5e6ef3f4ea695f496b643ebd3f75c0aa58ef4070e90c80c5d3fb0241bf1595c",
    },
    mac: "6d16dfde774845e4585357f24bce530528bc69f4f84e1e22880d34fa45c273e5",
  },
  id: "950077c7-71e3-4c44-a4a1-143919141ed4",
  version: 3,
});
