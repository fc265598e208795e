import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { DevChain } from "../../../src/main/dev/embedded/start-chain.ts";

export interface ReorgOptions {
  /** The other branch, block by block from its first one. Empty blocks by default. */
  readonly branch?: readonly (readonly Hex[])[];
  /** Runs on the old state, before the first block of the other branch. */
  readonly before?: () => Promise<void>;
}

const BEAT_MS = 40;
/** Deeper than any reorg here. */
const KEPT_SNAPSHOTS = 32;

/** A real EVM whose blocks, prices and history a test has in hand. While it runs, there is a block on every beat. */
export class DrivenChain {
  readonly node: DevChain;
  private readonly beforeBlock: unknown[] = [];
  private baseFeeWei: bigint | null = null;
  private running = true;
  private branches = 0;
  private stopped = false;
  private cancelBeat = () => {};
  private turn: Promise<void> = Promise.resolve();

  constructor(node: DevChain) {
    this.node = node;
    this.beat();
  }

  /** No more blocks by themselves. */
  async pause(): Promise<void> {
    this.running = false;
    await this.turn;
  }

  resume(): void {
    this.running = true;
  }

  /** Every block from the next one on asks this price; null: the price follows the chain's own rule again. */
  async holdBaseFee(wei: bigint | null): Promise<void> {
    await this.turn;
    this.baseFeeWei = wei;
  }

  async mine(blocks = 1): Promise<void> {
    for (let mined = 0; mined < blocks; mined++) await this.inTurn(() => this.mineOne());
  }

  /** Hands the chain bytes directly, past every node and proxy. */
  async inject(raw: Hex): Promise<void> {
    await this.node.rpc("eth_sendRawTransaction", [raw]);
  }

  async drop(hash: string): Promise<void> {
    await this.node.rpc("hardhat_dropTransaction", [hash]);
  }

  async dropAll(): Promise<void> {
    for (const hash of await this.pool()) await this.drop(hash);
  }

  async pool(): Promise<readonly string[]> {
    const pending = (await this.node.rpc("eth_pendingTransactions")) as { hash: string }[];
    return pending.map(({ hash }) => hash);
  }

  /** The last `depth` blocks are gone, with all they held; another branch, one block longer, is there instead. */
  async reorg(depth: number, { branch = [], before }: ReorgOptions = {}): Promise<void> {
    await this.inTurn(async () => {
      const [snapshot] = this.beforeBlock.splice(-depth);
      await this.node.rpc("evm_revert", [snapshot]);
      // The snapshot has brought the pool of its time back.
      await this.dropAll();
      // Another miner: an empty block in place of an empty one must not have the same hash.
      const miner = (++this.branches).toString(16).padStart(40, "c");
      await this.node.rpc("hardhat_setCoinbase", [`0x${miner}`]);
      await before?.();
      for (let block = 0; block <= depth; block++) {
        for (const raw of branch[block] ?? []) await this.inject(raw);
        await this.mineOne();
      }
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.cancelBeat();
    await this.turn;
    await this.node.stop();
  }

  private async mineOne(): Promise<void> {
    this.beforeBlock.push(await this.node.rpc("evm_snapshot"));
    if (this.beforeBlock.length > KEPT_SNAPSHOTS) this.beforeBlock.shift();
    if (this.baseFeeWei !== null) {
      await this.node.rpc("hardhat_setNextBlockBaseFeePerGas", [`0x${this.baseFeeWei.toString(16)}`]);
    }
    await this.node.mine();
  }

  /** Blocks and reorgs never overlap. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  private beat(): void {
    this.cancelBeat = systemClock.after(BEAT_MS, () => {
      const block = this.running ? this.mine() : Promise.resolve();
      void block.then(() => this.stopped || this.beat());
    });
  }
}
