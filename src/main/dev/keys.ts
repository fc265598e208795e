/** Keys to play with, while `dev` runs on a terminal: what goes wrong in production, at the press of one. */
import { randomBytes } from "node:crypto";
import type { DevChain } from "./embedded/start-chain.ts";

export interface PlayGround {
  /** Null: the chain is the user's own, and is left alone. */
  readonly chain: DevChain | null;
  readonly blockTimeMs: number;
  /** Sends a transfer of nothing much through the API; what came of it, in words. */
  readonly send: () => Promise<string>;
  /** Kills the node's process, and starts another. The pid that was. */
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
/** Empty blocks have brought the base fee down to a few wei: fifty times that is no spike. */
const LEAST_SPIKE_WEI = 20n * GWEI;
const hex = (value: bigint | number): string => `0x${value.toString(16)}`;

export class PlayKeys {
  private readonly keys: readonly Key[];
  private readonly ground: PlayGround;
  private isPaused = false;
  /** Of the chain, newest last, each with the height at which it was taken. */
  private snapshots: { readonly id: unknown; readonly height: number }[] = [];
  private busy = false;

  constructor(ground: PlayGround) {
    this.ground = ground;
    const all: readonly Key[] = [
      { key: "s", does: "send a transfer", onChain: false, press: () => ground.send() },
      { key: "r", does: `reorg of ${REORG_DEPTH} blocks`, onChain: true, press: () => this.reorg() },
      { key: "f", does: "fee spike", onChain: true, press: () => this.spike() },
      { key: "p", does: "pause mining, or go on", onChain: true, press: () => this.pause() },
      { key: "k", does: "kill the node and start another", onChain: false, press: () => this.restart() },
    ];
    this.keys = all.filter(({ onChain }) => !onChain || ground.chain !== null);
  }

  get help(): string {
    return `Keys: ${this.keys.map(({ key, does }) => `${key} ${does}`).join(", ")}, q quit`;
  }

  /** Unknown keys show the help; what a key does is done before the next is heard. */
  async press(pressed: string): Promise<void> {
    const key = this.keys.find((each) => each.key === pressed);
    if (key === undefined) return this.ground.say(this.help);
    if (this.busy) return;
    this.busy = true;
    try {
      this.ground.say(await key.press());
    } catch (error) {
      this.ground.say(`${key.does}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.busy = false;
    }
  }

  /** Taken now and then, so that there is something to go back to. */
  async remember(): Promise<void> {
    const { chain } = this.ground;
    if (chain === null || this.busy) return;
    const height = await this.height(chain);
    if (height < (this.snapshots.at(-1)?.height ?? -REORG_DEPTH) + REORG_DEPTH) return;
    this.snapshots = [...this.snapshots, { id: await chain.rpc("evm_snapshot"), height }].slice(-2);
  }

  private async reorg(): Promise<string> {
    const chain = this.ground.chain as DevChain;
    const before = await this.height(chain);
    const back = this.snapshots.findLast(({ height }) => before - height >= REORG_DEPTH) ?? this.snapshots[0];
    if (back === undefined || back.height >= before) return "reorg: there are too few blocks yet";
    await chain.rpc("evm_revert", [back.id]);
    this.snapshots = this.snapshots.filter(({ height }) => height < back.height);
    // Within a second the same blocks would be made again, to the last byte.
    await chain.rpc("hardhat_setPrevRandao", [`0x${randomBytes(32).toString("hex")}`]);
    await chain.mine(before - back.height + 1);
    return `reorg: blocks ${back.height + 1} to ${before} were replaced; what was in them is sent again`;
  }

  private async spike(): Promise<string> {
    const chain = this.ground.chain as DevChain;
    const { baseFeePerGas } = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { baseFeePerGas: string };
    const times = BigInt(baseFeePerGas) * SPIKE;
    const risen = times > LEAST_SPIKE_WEI ? times : LEAST_SPIKE_WEI;
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", [hex(risen)]);
    return `fee spike: the next block asks for ${risen / GWEI} gwei, and empty blocks bring it down by an eighth each`;
  }

  private async pause(): Promise<string> {
    const chain = this.ground.chain as DevChain;
    this.isPaused = !this.isPaused;
    await chain.rpc("evm_setIntervalMining", [this.isPaused ? 0 : this.ground.blockTimeMs]);
    return this.isPaused ? "mining is paused: what is sent waits; p goes on" : "mining goes on";
  }

  private async restart(): Promise<string> {
    const pid = await this.ground.restart();
    return `kill -9 ${pid ?? "?"}: another node has taken over, and goes on with what the database has`;
  }

  private async height(chain: DevChain): Promise<number> {
    return Number(await chain.rpc("eth_blockNumber"));
  }
}
