import { systemClock } from "../../adapters/system/clock.ts";
import type { DevChain } from "../dev/embedded/start-chain.ts";

/** Deeper than any reorg that a test asks for; each costs the chain a snapshot. */
const MOST_DEPTH = 64;

/** Makes the blocks of a chain that makes none by itself, each after a snapshot: that is what a reorg goes back to. */
export class BlockMaker {
  private readonly chain: Pick<DevChain, "rpc" | "mine">;
  private readonly blockTimeMs: number | null;
  /** `number`: the head when it was taken. */
  private snapshots: { readonly number: number; readonly id: unknown }[] = [];
  private baseFeeWei: string | null = null;
  private branches = 0;
  /** Grows with every beat and every pause: a beat that is no longer the last sets no other. */
  private beats = 0;
  private cancelBeat = () => {};
  /** Blocks and reorgs never overlap. */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(chain: Pick<DevChain, "rpc" | "mine">, blockTimeMs: number | null) {
    this.chain = chain;
    this.blockTimeMs = blockTimeMs;
    this.beat();
  }

  mine(blocks: number): Promise<void> {
    return this.inTurn(async () => {
      for (let mined = 0; mined < blocks; mined++) await this.mineOne();
    });
  }

  /** Resolves when the block that was being made is there. */
  pause(): Promise<void> {
    return this.inTurn(async () => {
      this.beats++;
      this.cancelBeat();
    });
  }

  async resume(): Promise<void> {
    await this.pause();
    this.beat();
  }

  /** For every block from the next one on; null: the price follows the chain's own rule again (EIP-1559). */
  setBaseFee(wei: string | null): Promise<void> {
    return this.inTurn(async () => {
      this.baseFeeWei = wei;
    });
  }

  /** The last blocks are gone, with all they held and what waited; another branch, one block longer, is there instead. */
  reorg(depth: number): Promise<void> {
    return this.inTurn(async () => {
      const target = (await this.head()) - depth;
      const snapshot = this.snapshots.find(({ number }) => number === target);
      if (depth < 1 || snapshot === undefined) {
        throw new RangeError(`reorg(${depth}): the last 1 to ${this.snapshots.length} blocks can be replaced`);
      }
      await this.chain.rpc("evm_revert", [snapshot.id]);
      this.snapshots = this.snapshots.filter(({ number }) => number < target);
      await this.dropPool();
      // Another miner: an empty block in place of an empty one must not have the same hash.
      await this.chain.rpc("hardhat_setCoinbase", [`0x${(++this.branches).toString(16).padStart(40, "c")}`]);
      for (let block = 0; block <= depth; block++) await this.mineOne();
    });
  }

  private async mineOne(): Promise<void> {
    this.snapshots.push({ number: await this.head(), id: await this.chain.rpc("evm_snapshot") });
    if (this.snapshots.length > MOST_DEPTH) this.snapshots.shift();
    if (this.baseFeeWei !== null) {
      await this.chain.rpc("hardhat_setNextBlockBaseFeePerGas", [`0x${BigInt(this.baseFeeWei).toString(16)}`]);
    }
    await this.chain.mine();
  }

  private async head(): Promise<number> {
    return Number(await this.chain.rpc("eth_blockNumber"));
  }

  /** A snapshot brings the pool of its time back. */
  private async dropPool(): Promise<void> {
    const pending = (await this.chain.rpc("eth_pendingTransactions")) as readonly { readonly hash: string }[];
    for (const { hash } of pending) await this.chain.rpc("hardhat_dropTransaction", [hash]);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  private beat(): void {
    if (this.blockTimeMs === null) return;
    const beat = ++this.beats;
    this.cancelBeat = systemClock.after(this.blockTimeMs, () => {
      void this.inTurn(() => this.mineOne())
        // A block that could not be made is no reason to make no other.
        .catch(() => undefined)
        .then(() => {
          if (this.beats === beat) this.beat();
        });
    });
  }
}
