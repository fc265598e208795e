import { parsePrivateKeys } from "../../src/adapters/evm/signers/private-keys.ts";
import { PayloadMemory } from "../../src/adapters/evm/signers/process/payload-memory.ts";
import { loadCurve } from "../../src/adapters/evm/signers/worker/curve.js";
import {
  encodeTransaction,
  serialiseSigned,
  signDigest,
  signTransaction,
  toHex,
} from "../../src/adapters/evm/signers/worker/serialise.js";
import { keccak256, keccakLoaded } from "../../src/adapters/evm/threads/keccak.js";
import type { ToSign } from "../../src/domain/keys/signing.ts";
import type { Address, Hex } from "../../src/domain/lane.ts";
import type { MessageToSign } from "../../src/domain/messages/message.ts";
import type { UnsignedTransaction } from "../../src/domain/transaction/transaction.ts";
import { type SignedTransaction, type Signer, SigningRefused } from "../../src/ports/signer.ts";

/**
 * A signer that signs in the calling thread, so that a simulation needs no real time. Its bytes equal those of the real
 * signer.
 */
export class MemorySigner implements Signer {
  readonly #keys: ReadonlyMap<Address, Uint8Array>;

  constructor(privateKeys: readonly Hex[]) {
    this.#keys = new Map(parsePrivateKeys(privateKeys).map(({ address, privateKey }) => [address, privateKey]));
  }

  addresses(): readonly Address[] {
    return [...this.#keys.keys()];
  }

  custody(): "local" {
    return "local";
  }

  async sign(address: Address, transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]> {
    const privateKey = this.#keys.get(address);
    if (privateKey === undefined) throw new Error(`no key is held for ${address}`);
    return Promise.all(
      transactions.map((transaction) =>
        signTransaction(encodeTransaction(transaction), (hash) => curve.sign(privateKey, hash)),
      ),
    );
  }

  async signMessages(address: Address, messages: readonly MessageToSign[]): Promise<readonly Hex[]> {
    const privateKey = this.#keys.get(address);
    if (privateKey === undefined) throw new Error(`no key is held for ${address}`);
    return Promise.all(messages.map(({ digest }) => signDigest(digest, (hash) => curve.sign(privateKey, hash))));
  }

  async close(): Promise<void> {}
}

/** A function that returns 1, 2, 3 … */
export function counter(): () => number {
  let last = 0;
  return () => ++last;
}

const curve = await loadCurve();
await keccakLoaded;

/**
 * A fake signer that writes the sender's address in the place of `r`, without key or curve, in a tenth of the time.
 * Only a simulated chain with `recoverSender: senderFromFakeSignature` accepts such bytes.
 */
export class FakeSigner implements Signer {
  readonly #addresses: ReadonlySet<Address>;
  readonly #atNode: ReadonlySet<Address>;
  readonly #draw: () => number;
  #refuses: (transaction: UnsignedTransaction) => boolean = () => false;
  #memory: PayloadMemory | null = null;
  /**
   * Number of refused signatures: each would have been a second payload at the same nonce that the caller did not
   * declare as a replacement.
   */
  undeclared = 0;

  /**
   * `atNode` lists addresses whose keys the chain's node holds: this signer lists them but does not sign with them.
   * `draw` returns another number each time, so that a transaction signed twice gets different signatures, as with key
   * services.
   */
  constructor(addresses: readonly Address[], atNode: readonly Address[] = [], draw = counter()) {
    this.#draw = draw;
    this.#addresses = new Set([...addresses, ...atNode]);
    this.#atNode = new Set(atNode);
  }

  addresses(): readonly Address[] {
    return [...this.#addresses];
  }

  custody(address: Address): "local" | "node" {
    return this.#atNode.has(address) ? "node" : "local";
  }

  async sign(address: Address, transactions: readonly ToSign[], term = 0): Promise<readonly SignedTransaction[]> {
    if (!this.#addresses.has(address) || this.#atNode.has(address)) throw new Error(`no key is held for ${address}`);
    const refused = transactions.findIndex((transaction) => this.#refuses(transaction));
    if (refused !== -1) throw new SigningRefused(refused, "it is against the rules");
    const refusal = this.#memory?.admit(address, term, transactions) ?? null;
    if (refusal?.undeclared === true) this.undeclared++;
    if (refusal !== null) throw new SigningRefused(refusal.index, refusal.message, refusal.undeclared);
    return transactions.map((transaction) => {
      const raw = serialiseSigned(encodeTransaction(transaction), {
        r: address.slice(2).padStart(64, "0"),
        s: this.#draw().toString(16),
        yParity: 0,
      });
      return { rawTransaction: `0x${raw}`, txHash: toHex(keccak256(Buffer.from(raw, "hex"))) };
    });
  }

  /** Writes the signer's address and the digest in the place of a signature. */
  async signMessages(address: Address, messages: readonly MessageToSign[]): Promise<readonly Hex[]> {
    if (!this.#addresses.has(address)) throw new Error(`no key is held for ${address}`);
    return messages.map(({ digest }) => `0x${address.slice(2).padStart(64, "0")}${digest.slice(2)}1b` as const);
  }

  /**
   * From now on, the signer remembers what it signed for each nonce, as the real signing process does. Calling this
   * again clears the memory.
   */
  remember(): this {
    this.#memory = new PayloadMemory();
    return this;
  }

  /** Refuses to sign every transaction for which `refuses` returns true. */
  refuse(refuses: (transaction: UnsignedTransaction) => boolean): void {
    this.#refuses = refuses;
  }

  async close(): Promise<void> {}
}
