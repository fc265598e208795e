import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Address } from "../../../domain/lane.ts";
import type { MessageToSign } from "../../../domain/messages/message.ts";
import type { Signer } from "../../../ports/signer.ts";
import { threadOptions, workerThread } from "../threads/worker-thread.ts";
import { type KeystoreSource, loadKeystoreDirectory } from "./keystore.ts";
import type { MnemonicSource } from "./mnemonic.ts";
import { BadKey, parsePrivateKeys, readSecretFile, type SigningKey, type Warn } from "./private-keys.ts";
import { provenSignature } from "./recovery.ts";
import { encodeTransaction } from "./worker/serialise.js";
import { openSigning, type Signed, type SignRequest, type WorkerData } from "./worker/signing.js";

/** Signing failed, and nothing was signed. The same request may succeed later. */
export class SigningFailed extends Error {
  override readonly name = "SigningFailed";
}

/** Sources of private keys, in any combination, as in the configuration. */
export interface KeySources {
  /** Private keys in hex, with or without prefix. */
  readonly privateKeys?: readonly string[];
  /** Paths of files with one private key per line, in hex. */
  readonly privateKeyFiles?: readonly string[];
  /** Mnemonic phrase (BIP-39, English word list) to derive keys from. */
  readonly mnemonic?: MnemonicSource | null;
  readonly keystore?: KeystoreSource | null;
  /** Addresses of accounts whose keys the chain node holds; the node signs for them. */
  readonly nodeSigners?: readonly Address[];
}

export type StartWorker = (data: WorkerData) => Worker;

export interface LocalSignerOptions {
  readonly keys: KeySources;
  /** Implementation of the curve. `javascript` avoids WebAssembly and is several times slower. */
  readonly curve?: "auto" | "javascript";
  /** Starts the signing thread. Null: sign in the current thread, for a process that does nothing else. */
  readonly startWorker?: StartWorker | null;
  /**
   * Receives a warning for each secret file that other users can read and whose permissions this process cannot change.
   */
  readonly warn?: Warn | undefined;
}

export const startSignWorker: StartWorker = (data) =>
  new Worker(new URL("./worker/sign-worker.js", import.meta.url), {
    ...threadOptions(),
    workerData: data,
    name: "fencepost-sign",
  });

/**
 * A signer with the kind of its curve implementation. `javascript`, used if WebAssembly is not available, is slower and
 * worth a warning.
 */
export type LocalSigner = Signer & Curve;

type Curve = { readonly curve: "wasm" | "javascript" };

/**
 * Creates one signer for all keys of this process, and for the accounts whose keys the chain node holds. Throws a
 * one-line `BadKey` for an unusable key. A key from two sources counts once. One thread signs several thousand
 * transactions a second. If the thread dies, none of its pending transactions was sent, so nothing is lost.
 */
export async function createLocalSigner(options: LocalSignerOptions): Promise<LocalSigner> {
  const keys = await loadKeys(options);
  const { curve = "auto", startWorker = startSignWorker } = options;
  const data = { keys: keys.map(({ privateKey }) => privateKey), curve };
  const nodeSigners = new Set(options.keys.nodeSigners);
  const twice = keys.find(({ address }) => nodeSigners.has(address));
  if (twice !== undefined)
    throw new BadKey(`${twice.address}: it is configured with its key and as an account of the chain node; keep one`);
  const signing =
    startWorker === null
      ? { ...(await openSigning(data)), close: async () => undefined }
      : await signingThread(() => startWorker(data), keys.length > 0);
  const positions = new Map(keys.map(({ address }, position) => [address, position]));
  const sign = async (address: Address, items: SignRequest[1]) => {
    const key = positions.get(address);
    if (key === undefined) throw new BadKey(`no key is held for ${address}`);
    return items.length === 0 ? [] : signing.sign([key, items]);
  };
  return {
    curve: signing.curve,
    addresses: () => [...positions.keys(), ...nodeSigners],
    custody: (address) => (nodeSigners.has(address) ? "node" : "local"),
    sign: async (address, transactions) => {
      const signed = await sign(address, transactions.map(encodeTransaction));
      return signed.map(([rawTransaction, txHash]) => ({ rawTransaction, txHash }));
    },
    signMessages: async (address, messages) => {
      const signed = await sign(
        address,
        messages.map(({ digest }) => digest),
      );
      const proven = signed.map(([signature], at) => {
        const { digest } = messages[at] as MessageToSign;
        return provenSignature(signature, { address, digest, label: "the signing thread" });
      });
      return Promise.all(proven);
    },
    close: () => signing.close(),
  };
}

async function signingThread(start: () => Worker, hasKeys: boolean) {
  const failure = (message: string, options?: ErrorOptions) => new SigningFailed(message, options);
  const thread = workerThread<SignRequest, readonly Signed[]>({ name: "the signing thread", start, failure });
  // Without keys, no signing thread is started: the chain node or a key service signs.
  const curve = hasKeys ? await curveOf(thread.worker) : "wasm";
  return { curve, sign: thread.ask, close: thread.close };
}

/** Starts the signing thread before the first request; its first message names the curve implementation. */
async function curveOf(start: () => Worker) {
  try {
    const worker = start();
    worker.ref();
    const [{ ready }] = (await once(worker, "message")) as [{ readonly ready: Curve["curve"] }];
    worker.unref();
    return ready;
  } catch (cause) {
    throw new SigningFailed("the signing thread cannot be started", { cause });
  }
}

async function loadKeys({ keys, warn }: LocalSignerOptions): Promise<readonly SigningKey[]> {
  const { privateKeys = [], privateKeyFiles = [], mnemonic = null, keystore = null } = keys;
  const all = [...parsePrivateKeys(privateKeys)];
  for (const file of privateKeyFiles) all.push(...(await loadKeyFile(file, warn)));
  // Load word lists and HD keys only if a mnemonic phrase is configured, so that other nodes start sooner.
  if (mnemonic !== null) all.push(...(await (await import("./mnemonic.ts")).deriveMnemonicKeys(mnemonic)));
  if (keystore !== null) all.push(...(await loadKeystoreDirectory(keystore, warn)));
  return [...new Map(all.map((key) => [key.address, key])).values()];
}

async function loadKeyFile(path: string, warn: Warn | undefined) {
  const lines = (await readSecretFile(path, "key file", warn)).split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new BadKey(`${path}: holds no key`);
  return parsePrivateKeys(lines, `${path}: `);
}
