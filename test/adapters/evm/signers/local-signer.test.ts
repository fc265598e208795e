import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { mnemonicToAccount } from "viem/accounts";
import { afterEach, describe, expect, it } from "vitest";
import {
  createLocalSigner,
  type LocalSignerOptions,
  SigningFailed,
  type StartWorker,
  startSignWorker,
} from "../../../../src/adapters/evm/signers/local-signer.ts";
import { BadKey } from "../../../../src/adapters/evm/signers/private-keys.ts";
import { loadCurve } from "../../../../src/adapters/evm/signers/worker/curve.js";
import type { Hex } from "../../../../src/domain/lane.ts";
import type { UnsignedTransaction } from "../../../../src/domain/transaction/transaction.ts";
import type { Signer } from "../../../../src/ports/signer.ts";
import { addressOf, describeSignerContract } from "../../../contracts/signer.contract.ts";
import { MESSAGES } from "../../../support/messages.ts";
import { failure } from "../../../support/signer-away.ts";

describeSignerContract("worker thread, WebAssembly", (privateKeys) => createLocalSigner({ keys: { privateKeys } }));
describeSignerContract(
  "worker thread, pure JavaScript",
  (privateKeys) => createLocalSigner({ keys: { privateKeys }, curve: "javascript" }),
  { runs: 50 },
);

const key: Hex = `0x${"11".repeat(32)}`;
const address = addressOf(key);
const transfer: UnsignedTransaction = {
  chainId: 1,
  nonce: 0,
  to: address,
  data: "0x",
  value: 0n,
  gas: 21_000n,
  fees: { type: "eip1559", maxFeePerGas: 2n, maxPriorityFeePerGas: 1n },
  accessList: [],
};

const open: Signer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((signer) => signer.close()));
});

async function start(options: Partial<LocalSignerOptions> = {}) {
  const signer = await createLocalSigner({ keys: { privateKeys: [key] }, ...options });
  open.push(signer);
  return signer;
}

function recordingWorkers(): { readonly startWorker: StartWorker; readonly workers: Worker[] } {
  const workers: Worker[] = [];
  const startWorker: StartWorker = (data) => {
    const worker = startSignWorker(data);
    workers.push(worker);
    return worker;
  };
  return { startWorker, workers };
}

describe("the signing thread", () => {
  it("rejects all pending requests when the thread dies", async () => {
    const { startWorker, workers } = recordingWorkers();
    const signer = await start({ startWorker });
    const before = await signer.sign(address, [transfer]);
    const batch = Array.from({ length: 500 }, (_, nonce) => ({ ...transfer, nonce }));
    const owed = [signer.sign(address, batch), signer.sign(address, batch)];
    const settled = Promise.allSettled(owed);
    await workers[0]?.terminate();
    for (const result of await settled) {
      expect(result).toMatchObject({ status: "rejected", reason: expect.any(SigningFailed) });
      expect(String((result as PromiseRejectedResult).reason)).toMatch(/signing thread ended \(exit code 1\)/);
    }
    expect(await signer.sign(address, [transfer])).toEqual(before);
    expect(workers).toHaveLength(2);
  });

  // protects [Many lanes] src/adapters/evm/signers/local-signer.ts, src/adapters/evm/signers/process/signing-process.ts
  it("gets the requests of a thousand lanes in one message", async () => {
    const { startWorker, workers } = recordingWorkers();
    const signer = await start({ startWorker });
    const [worker] = workers as [Worker];
    let [asked, answered] = [0, 0];
    const postMessage = worker.postMessage.bind(worker);
    worker.postMessage = (message: unknown) => {
      asked++;
      postMessage(message);
    };
    worker.on("message", () => answered++);
    const alone = await signer.sign(address, [{ ...transfer, nonce: 999 }]);
    expect([asked, answered]).toEqual([1, 1]);
    const signed = await Promise.all(
      Array.from({ length: 1_000 }, (_, nonce) => signer.sign(address, [{ ...transfer, nonce }])),
    );
    expect(signed[999]).toEqual(alone);
    expect(new Set(signed.flat().map(({ txHash }) => txHash)).size).toBe(1_000);
    expect([asked, answered]).toEqual([2, 17]);
  });

  // protects [Many lanes] src/adapters/evm/signers/worker/serialise.js, src/adapters/evm/threads/keccak.js
  it("gets transactions as text, because text needs no conversion between threads", async () => {
    const { startWorker, workers } = recordingWorkers();
    const signer = await start({ startWorker });
    const [worker] = workers as [Worker];
    const crossed: unknown[] = [];
    const postMessage = worker.postMessage.bind(worker);
    worker.postMessage = (message: unknown) => {
      crossed.push(message);
      postMessage(message);
    };
    worker.on("message", (message: unknown) => crossed.push(message));
    const [signed] = await signer.sign(address, [transfer]);
    // RLP of the fields: chain 1, nonce 0, tip 1, fee cap 2, gas 21,000, receiver, no value, no data, no access list.
    const fields = `0180010282520894${address.slice(2)}8080c0`;
    expect(crossed).toEqual([[[0, [0, [[2, 1, fields]]]]], [[0, [[signed?.rawTransaction, signed?.txHash]]]]]);
  });

  it("refuses new requests after it was closed", async () => {
    const signer = await createLocalSigner({ keys: { privateKeys: [key] } });
    const interrupted = signer.sign(address, [transfer]);
    const rejection = expect(interrupted).rejects.toThrow(/closed before it answered the request/);
    await signer.close();
    await rejection;
    await expect(signer.sign(address, [transfer])).rejects.toThrow(/signing thread is closed/);
  });

  // protects [Signers] src/adapters/evm/signers/local-signer.ts, src/adapters/evm/signers/recovery.ts
  it("returns no signature of a message that is not its key's", async () => {
    const { Worker: Thread } = await import("node:worker_threads");
    const broken = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", (asked) =>
        parentPort.postMessage(asked.map(([id, [, items]]) => [id, items.map((digest) => ["0x" + "1".repeat(128) + "1b", digest])])));
      parentPort.postMessage({ ready: "wasm" });`;
    const signer = await start({ startWorker: () => new Thread(broken, { eval: true }) });
    const refused = await failure(signer.signMessages(address, MESSAGES));
    expect(refused).toMatchObject({ lies: true, message: expect.stringMatching(/the signing thread signed another/) });
  });

  it("makes the creation of the signer fail if the thread cannot run", async () => {
    const { Worker: Thread } = await import("node:worker_threads");
    const startWorker: StartWorker = () => new Thread("throw new Error('no such luck')", { eval: true });
    await expect(createLocalSigner({ keys: { privateKeys: [key] }, startWorker })).rejects.toThrow(SigningFailed);
  });
});

describe("the signer's elliptic curve code", () => {
  it("is WebAssembly if WebAssembly is available", async () => {
    expect((await start()).curve).toBe("wasm");
    expect((await start({ curve: "javascript" })).curve).toBe("javascript");
  });

  it("falls back to JavaScript if WebAssembly fails", async () => {
    const failing = () => Promise.reject(new Error("Wasm code generation disallowed by embedder"));
    const [wasm, fallback] = [await loadCurve(), await loadCurve(failing)];
    expect([wasm.kind, fallback.kind]).toEqual(["wasm", "javascript"]);
    const privateKey = Buffer.from(key.slice(2), "hex");
    for (let i = 0; i < 20; i++) {
      const hash = Buffer.alloc(32, i + 1);
      expect(await fallback.sign(privateKey, hash)).toEqual(await wasm.sign(privateKey, hash));
    }
  });
});

describe("loading the keys of the local signer", () => {
  const phrase = "test test test test test test test test test test test junk";

  const path = "m/44'/60'/0'/0";

  it("derives the first account of a mnemonic as every wallet does", async () => {
    const signer = await start({ keys: { mnemonic: { phrase: ` ${phrase.toUpperCase()}\n`, count: 1, path } } });
    expect(signer.addresses()).toEqual(["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"]);
  });

  it.each<[string, (index: number) => `m/44'/60'/${string}`]>([
    [path, (index) => `m/44'/60'/0'/0/${index}`],
    ["m/44'/60'/{index}'/0/0", (index) => `m/44'/60'/${index}'/0/0`],
  ])("derives accounts at the derivation paths of wallets: %s", async (wanted, pathOf) => {
    const signer = await start({ keys: { mnemonic: { phrase, count: 3, path: wanted } } });
    const expected = [0, 1, 2].map((index) => mnemonicToAccount(phrase, { path: pathOf(index) }).address.toLowerCase());
    expect(signer.addresses()).toEqual(expected);
  });

  it("reads key files with one key per line", async ({ onTestFinished }) => {
    const folder = await mkdtemp(join(tmpdir(), "fencepost-keys-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "keys");
    await writeFile(file, `${key}\r\n\n${"22".repeat(32)}\n`, { mode: 0o600 });
    const signer = await start({ keys: { privateKeyFiles: [file] } });
    expect(signer.addresses()).toEqual([address, addressOf(`0x${"22".repeat(32)}`)]);
    await writeFile(file, `${key}\n0x12\n`);
    const broken = createLocalSigner({ keys: { privateKeyFiles: [file] } });
    await expect(broken).rejects.toThrow(`${file}: private key 2 is not 32 bytes of hex`);
    await writeFile(file, "\n");
    await expect(createLocalSigner({ keys: { privateKeyFiles: [file] } })).rejects.toThrow(`${file}: holds no key`);
  });

  it("treats a key that is given twice as one signer", async () => {
    const first = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    const signer = await start({
      keys: { privateKeys: [key, first], mnemonic: { phrase, count: 1, path }, keystore: null },
    });
    expect(signer.addresses()).toEqual([address, "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"]);
  });

  it("includes accounts whose keys the chain node holds", async () => {
    const atNode: Hex = `0x${"5e".repeat(20)}`;
    const signer = await start({ keys: { privateKeys: [key], nodeSigners: [atNode] } });
    expect(signer.addresses()).toEqual([address, atNode]);
    expect([signer.custody(address), signer.custody(atNode)]).toEqual(["local", "node"]);
    await expect(signer.sign(atNode, [transfer])).rejects.toThrow(BadKey);
    const alone = await start({ keys: { nodeSigners: [atNode] } });
    expect(alone.addresses()).toEqual([atNode]);
    await expect(createLocalSigner({ keys: { privateKeys: [key], nodeSigners: [address] } })).rejects.toThrow(BadKey);
  });

  it.each([
    [["0x1234"], /^private key 1 is not 32 bytes of hex$/],
    [[key, `${key}00`], /^private key 2 is not 32 bytes of hex$/],
    [[`0x${"00".repeat(32)}`], /^private key 1 is not a valid secp256k1 key$/],
    [["ff".repeat(32)], /^private key 1 is not a valid secp256k1 key$/],
    [[""], /^private key 1 is not 32 bytes of hex$/],
  ])("reports a bad private key by position, never by content", async (privateKeys, message) => {
    const failure = await createLocalSigner({ keys: { privateKeys } }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BadKey);
    expect((failure as Error).message).toMatch(message);
  });

  it.each([
    ["test test", /has 2 words/],
    ["test test test test test test test test test test test tset", /^word 12 of the mnemonic is not in the English/],
    ["test test test test test test test test test test test test", /checksum/],
  ])("detects a mistyped mnemonic: %s", async (mistyped, message) => {
    await expect(createLocalSigner({ keys: { mnemonic: { phrase: mistyped, count: 1, path } } })).rejects.toThrow(
      message,
    );
  });
});
