/** Keys of `dev` on a terminal, each of which causes a failure of production. */

import { randomBytes } from "node:crypto";
import { messageOf } from "../../domain/text/thrown.ts";
import type { DevChain } from "./embedded/start-chain.ts";

export interface KeyActions {
  /** Null: the chain is the user's own, and is not touched. */
  readonly chain: DevChain | null;
  readonly blockTimeMs: number;
  /** Sends a small transfer through the API. Returns the result as text. */
  readonly send: () => Promise<string>;
  /** Kills the node's process and starts another. Returns the killed pid. */
  readonly restart: () => Promise<number | undefined>;
  readonly say: (line: string) => void;
}

interface Key {
  readonly key: string;
  readonly does: string;
  readonly onChain: boolean;
  press(): Promise<string>;
}

const REORG_DEPTH = 3;
const SPIKE = 50n;
const GWEI = 1_000_000_000n;
/** Empty blocks lower the base fee to a few wei, and fifty times that is no spike. */
const LEAST_SPIKE_WEI = 20n * GWEI;
const hex = (value: bigint | number): string => `0x${value.toString(16)}`;

export class DevKeys {
  private readonly keys: readonly Key[];
  private readonly actions: KeyActions;
  private isPaused = false;
  /** Snapshots of the chain with their heights, newest last. */
  private snapshots: { readonly id: unknown; readonly height: number }[] = [];
  private busy = false;

  constructor(actions: KeyActions) {
    this.actions = actions;
    const all: readonly Key[] = [
      { key: "s", does: "send a transfer", onChain: false, press: () => actions.send() },
      { key: "r", does: `reorg of ${REORG_DEPTH} blocks`, onChain: true, press: () => this.reorg() },
      { key: "f", does: "fee spike", onChain: true, press: () => this.spike() },
      { key: "p", does: "pause or resume mining", onChain: true, press: () => this.pause() },
      { key: "k", does: "kill the node and start another", onChain: false, press: () => this.restart() },
    ];
    this.keys = all.filter(({ onChain }) => !onChain || actions.chain !== null);
  }

  get help(): string {
    return `Keys: ${this.keys.map(({ key, does }) => `${key} ${does}`).join(", ")}, q quit`;
  }

  /** Unknown keys print the help. Keys pressed during an action are ignored. */
  async press(pressed: string): Promise<void> {
    const key = this.keys.find((each) => each.key === pressed);
    if (key === undefined) return this.actions.say(this.help);
    if (this.busy) return;
    this.busy = true;
    try {
      this.actions.say(await key.press());
    } catch (error) {
      this.actions.say(`${key.does}: ${messageOf(error)}`);
    } finally {
      this.busy = false;
    }
  }

  /** Takes a snapshot from time to time, for a reorg to return to. */
  async remember(): Promise<void> {
    const { chain } = this.actions;
    if (chain === null || this.busy) return;
    const height = await this.height(chain);
    if (height < (this.snapshots.at(-1)?.height ?? -REORG_DEPTH) + REORG_DEPTH) return;
    this.snapshots = [...this.snapshots, { id: await chain.rpc("evm_snapshot"), height }].slice(-2);
  }

  private async reorg(): Promise<string> {
    const chain = this.actions.chain as DevChain;
    const before = await this.height(chain);
    const back = this.snapshots.findLast(({ height }) => before - height >= REORG_DEPTH) ?? this.snapshots[0];
    if (back === undefined || back.height >= before) return "reorg: there are too few blocks yet";
    await chain.rpc("evm_revert", [back.id]);
    this.snapshots = this.snapshots.filter(({ height }) => height < back.height);
    // Changes the next blocks' hashes: within one second they would otherwise be identical to the replaced ones.
    await chain.rpc("hardhat_setPrevRandao", [`0x${randomBytes(32).toString("hex")}`]);
    await chain.mine(before - back.height + 1);
    return `reorg: blocks ${back.height + 1} to ${before} were replaced; what was in them is sent again`;
  }

  private async spike(): Promise<string> {
    const chain = this.actions.chain as DevChain;
    const { baseFeePerGas } = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { baseFeePerGas: string };
    const times = BigInt(baseFeePerGas) * SPIKE;
    const risen = times > LEAST_SPIKE_WEI ? times : LEAST_SPIKE_WEI;
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", [hex(risen)]);
    return `fee spike: the next block costs ${risen / GWEI} gwei, and empty blocks bring it down by an eighth each`;
  }

  private async pause(): Promise<string> {
    const chain = this.actions.chain as DevChain;
    this.isPaused = !this.isPaused;
    await chain.rpc("evm_setIntervalMining", [this.isPaused ? 0 : this.actions.blockTimeMs]);
    return this.isPaused ? "mining is paused: transactions wait; p resumes" : "mining is resumed";
  }

  private async restart(): Promise<string> {
    const pid = await this.actions.restart();
    return `kill -9 ${pid ?? "?"}: another node has taken over, and continues from the database`;
  }

  private async height(chain: DevChain): Promise<number> {
    return Number(await chain.rpc("eth_blockNumber"));
  }
}
