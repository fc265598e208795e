import type { Address } from "../../../domain/lane.ts";
import type { Signer } from "../../../ports/signer.ts";
import { BadKey } from "./errors.ts";
import { type KeystoreSource, loadKeystoreDirectory } from "./keystore.ts";
import type { MnemonicSource } from "./mnemonic.ts";
import { parsePrivateKeys, type SigningKey } from "./private-keys.ts";
import { type CurveKind, SigningThread, type StartWorker, startSignWorker } from "./signing-thread.ts";

/** Where keys come from; any combination, in the shape the configuration has. */
export interface KeySources {
  /** Hex, with or without prefix. */
  readonly privateKeys?: readonly string[];
  /** The phrase alone: its first account. */
  readonly mnemonic?: MnemonicSource | string | null;
  readonly keystore?: KeystoreSource | null;
  /** Accounts whose keys the chain node holds: named here, signed there. */
  readonly nodeSigners?: readonly Address[];
}

export interface LocalSignerOptions {
  readonly keys: KeySources;
  /** Signing threads; one signs several thousand transactions a second. */
  readonly workers?: number;
  /** `javascript` does without WebAssembly, at a fraction of the speed. */
  readonly curve?: "auto" | "javascript";
  readonly startWorker?: StartWorker;
}

export interface LocalSigner extends Signer {
  /** What signs: `javascript` where WebAssembly is not available, which is slower and worth a warning. */
  readonly curve: CurveKind;
}

/**
 * All keys that are held in this process, and the names of those that the chain node holds, behind one signer. Throws
 * `BadKey`, in one line, for a key that cannot be used. A key that two sources give is one key.
 */
export async function createLocalSigner(options: LocalSignerOptions): Promise<LocalSigner> {
  const keys = await loadKeys(options.keys);
  const { workers = 1, curve = "auto", startWorker = startSignWorker } = options;
  if (!Number.isInteger(workers) || workers < 1) throw new RangeError("workers must be a positive integer");
  const data = { keys: keys.map(({ privateKey }) => privateKey), curve };
  const nodeSigners = new Set(options.keys.nodeSigners);
  const twice = keys.find(({ address }) => nodeSigners.has(address));
  if (twice !== undefined) throw new BadKey(`${twice.address}: its key is held here and named as the chain node's`);
  const threads = Array.from({ length: workers }, () => new SigningThread(data, startWorker));
  const [kind] = await Promise.all(threads.map((thread) => thread.start()));
  const positions = new Map(keys.map(({ address }, position) => [address, position]));
  const idlest = () => threads.reduce((least, thread) => (thread.load < least.load ? thread : least));
  return {
    curve: kind ?? "javascript",
    addresses: () => [...positions.keys(), ...nodeSigners],
    custody: (address) => (nodeSigners.has(address) ? "node" : "local"),
    sign: async (address, transactions) => {
      const key = positions.get(address);
      if (key === undefined) throw new BadKey(`no key is held for ${address}`);
      return transactions.length === 0 ? [] : idlest().sign(key, transactions);
    },
    close: async () => void (await Promise.all(threads.map((thread) => thread.close()))),
  };
}

async function loadKeys({ privateKeys, mnemonic, keystore }: KeySources): Promise<readonly SigningKey[]> {
  const phrase = typeof mnemonic === "string" ? { phrase: mnemonic } : mnemonic;
  const keys = [
    ...parsePrivateKeys(privateKeys ?? []),
    ...(phrase ? await loadMnemonicKeys(phrase) : []),
    ...(keystore ? await loadKeystoreDirectory(keystore) : []),
  ];
  return [...new Map(keys.map((key) => [key.address, key])).values()];
}

/** Word lists and HD keys are loaded here and not above: a node without a phrase starts sooner. */
async function loadMnemonicKeys(source: MnemonicSource): Promise<readonly SigningKey[]> {
  const { deriveMnemonicKeys } = await import("./mnemonic.ts");
  return deriveMnemonicKeys(source);
}
