import { systemClock } from "../../adapters/system/clock.ts";
import type { DevChain } from "../dev/embedded/start-chain.ts";

/** Deepest reorg of a test; each level costs the chain a snapshot. */
const MOST_DEPTH = 64;

/** Makes the blocks of a chain without mining of its own, each after a snapshot that a reorg can return to. */
export class BlockMaker {
  private readonly chain: Pick<DevChain, "rpc" | "mine">;
  private readonly blockTimeMs: number | null;
  /** `number`: the head at the snapshot. */
  private snapshots: { readonly number: number; readonly id: unknown }[] = [];
  private baseFeeWei: string | null = null;
  private branches = 0;
  /** Increases with every timer and every pause: only the latest timer sets the next. */
  private beats = 0;
  private cancelBeat = () => {};
  /** Serialises blocks and reorgs. */
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

  /** Resolves when the block in progress is made. */
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

  /** Base fee of every block from the next one on; null: the chain's own rule (EIP-1559). */
  setBaseFee(wei: string | null): Promise<void> {
    return this.inTurn(async () => {
      this.baseFeeWei = wei;
    });
  }

  /** Replaces the last blocks by a branch that is one block longer. Their transactions and the pool are dropped. */
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
      // Another coinbase: the new empty blocks must not have the hashes of the old ones.
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

  /** A snapshot restores its transaction pool too. */
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
        // A failed block does not stop the timer.
        .catch(() => undefined)
        .then(() => {
          if (this.beats === beat) this.beat();
        });
    });
  }
}
