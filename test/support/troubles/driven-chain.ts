import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { DevChain } from "../../../src/main/dev/embedded/start-chain.ts";

export interface ReorgOptions {
  /** The transactions of the new branch's blocks, in order. Empty blocks by default. */
  readonly branch?: readonly (readonly Hex[])[];
  /** Called after the old blocks were removed, before the first block of the new branch is mined. */
  readonly before?: () => Promise<void>;
}

const BEAT_MS = 40;
/** Number of snapshots to keep: more than the depth of any reorg in the tests. */
const KEPT_SNAPSHOTS = 32;

/**
 * A real EVM whose blocks, prices and history a test controls. While it is not paused, it mines at a fixed interval.
 */
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

  /** Stops automatic mining. */
  async pause(): Promise<void> {
    this.running = false;
    await this.turn;
  }

  resume(): void {
    this.running = true;
  }

  /** Fixes the base fee of every block from the next one on; null returns to the chain's own rule. */
  async holdBaseFee(wei: bigint | null): Promise<void> {
    await this.turn;
    this.baseFeeWei = wei;
  }

  async mine(blocks = 1): Promise<void> {
    for (let mined = 0; mined < blocks; mined++) await this.inTurn(() => this.mineOne());
  }

  /** Sends bytes directly to the chain, past every node and proxy. */
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

  /** Removes the last `depth` blocks and their transactions, and mines another branch that is one block longer. */
  async reorg(depth: number, { branch = [], before }: ReorgOptions = {}): Promise<void> {
    await this.inTurn(async () => {
      const [snapshot] = this.beforeBlock.splice(-depth);
      await this.node.rpc("evm_revert", [snapshot]);
      // Reverting to the snapshot also restored the mempool of that time, so empty it.
      await this.dropAll();
      // Use another coinbase, so that an empty block on the new branch has another hash than the one it replaces.
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

  /** Runs tasks one after the other, so that blocks and reorgs never overlap. */
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
