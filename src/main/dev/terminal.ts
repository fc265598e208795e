/** The terminal of `dev`: prompts, and keys that each cause a typical failure of production. */
import { randomBytes } from "node:crypto";
import { wrapped } from "../../adapters/cli/shorten.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { createClient } from "../../client/index.ts";
import type { Checksummed } from "../../domain/text/checksum.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type Ask, askOnTerminal } from "../ask.ts";
import { screenOf } from "../process-output.ts";
import type { DevChain } from "./embedded/start-chain.ts";

export interface DevTerminal {
  readonly ask: Ask;
  /** Width of the terminal. */
  columns(): number;
  /** Reads key presses until the returned function is called. */
  onKey(pressed: (key: string) => void): () => void;
}

interface KeyActions {
  /** The embedded chain; null: the chain is the user's own, and key presses do not change it. */
  readonly chain: DevChain | null;
  readonly blockTimeMs: number;
  /** Sends a small transfer through the API. Returns the result as text. */
  readonly send: () => Promise<string>;
  /** Kills the node's process and starts another. Returns the killed pid. */
  readonly restart: () => Promise<number | undefined>;
  readonly say: (line: string) => void;
}

interface DevSession extends Omit<KeyActions, "send"> {
  readonly node: { readonly url: string; readonly signers: readonly Checksummed[] };
}

const USUAL_COLUMNS = 80;
const REMEMBER_EVERY_MS = 1_000;
const CTRL_C = "\u0003";

/** Opens the terminal; null if standard input or standard error is no terminal. */
export function openTerminal(): DevTerminal | null {
  const { stdin } = process;
  const ask = askOnTerminal();
  if (ask === null) return null;
  return {
    ask,
    columns: () => screenOf(process.stderr, process.env)?.columns ?? USUAL_COLUMNS,
    onKey: (pressed) => {
      const listen = (bytes: Buffer) => pressed(bytes.toString());
      stdin.setRawMode(true).resume().on("data", listen);
      return () => void stdin.off("data", listen).setRawMode(false).pause();
    },
  };
}

/** Handles key presses until the returned function is called. */
export function handleKeys(terminal: DevTerminal, { node, ...actions }: DevSession): () => Promise<void> {
  const say = (text: string) => actions.say(wrapped(text, terminal.columns()).join("\n"));
  const keys = devKeys({ ...actions, say, send: () => sendTransfer(node) });
  const stop = new AbortController();
  const silent = terminal.onKey((key) => {
    // Send SIGINT to this process: in raw mode the terminal does not do that for Ctrl-C.
    if (key === CTRL_C || key === "q") process.kill(process.pid, "SIGINT");
    else void keys.press(key);
  });
  const snapshots = takeSnapshots(keys.remember, stop.signal);
  say(keys.help);
  return async () => {
    silent();
    stop.abort();
    await snapshots;
  };
}

async function takeSnapshots(remember: () => Promise<void>, signal: AbortSignal) {
  while (!signal.aborted) {
    await remember().catch(() => undefined);
    await systemClock.sleep(REMEMBER_EVERY_MS, signal).catch(() => undefined);
  }
}

async function sendTransfer({ url, signers: [signer = "0x", to = signer] }: DevSession["node"]) {
  const sending = createClient({ url, repeat: false }).send({ signer, payload: { to, value: 1n } });
  return sending.then(
    ({ txId, nonce }) => `sent ${txId} with nonce ${nonce}`,
    (error: unknown) => `not sent: ${messageOf(error)}`,
  );
}

type Key = readonly [key: string, does: string, press: () => Promise<string>];

const REORG_DEPTH = 3;
const SPIKE = 50n;
const GWEI = 1_000_000_000n;
/**
 * Minimum base fee of a simulated spike: empty blocks lower the base fee to a few wei, and fifty times that is no
 * spike.
 */
const LEAST_SPIKE_WEI = 20n * GWEI;

export function devKeys({ chain, blockTimeMs, send, restart, say }: KeyActions) {
  const onChain = chain === null ? null : chainKeys(chain, blockTimeMs);
  const kill = async () => {
    const pid = await restart();
    return `kill -9 ${pid ?? "?"}: another node has taken over, and continues from the database`;
  };
  const keys: readonly Key[] = [
    ["s", "send a transfer", send],
    ...(onChain?.keys ?? []),
    ["k", "kill the node and start another", kill],
  ];
  const help = `Keys: ${keys.map(([key, does]) => `${key} ${does}`).join(", ")}, q quit`;
  let busy = false;
  return {
    help,
    /** Runs the action of a key. Unknown keys print the help. Keys pressed during an action are ignored. */
    press: async (pressed: string) => {
      const [, does, press] = keys.find(([key]) => key === pressed) ?? [];
      if (press === undefined) return say(help);
      if (busy) return;
      busy = true;
      try {
        say(await press());
      } catch (error) {
        say(`${does}: ${messageOf(error)}`);
      } finally {
        busy = false;
      }
    },
    /** Takes a snapshot of the chain from time to time, so that a simulated reorg can return to it. */
    remember: async () => {
      if (!busy) await onChain?.remember();
    },
  };
}

function chainKeys(chain: DevChain, blockTimeMs: number) {
  let isPaused = false;
  /** Snapshots of the chain with their heights, newest last. */
  let snapshots: { readonly id: unknown; readonly height: number }[] = [];
  const headHeight = async () => Number(await chain.rpc("eth_blockNumber"));
  const remember = async () => {
    const height = await headHeight();
    if (height < (snapshots.at(-1)?.height ?? -REORG_DEPTH) + REORG_DEPTH) return;
    snapshots = [...snapshots, { id: await chain.rpc("evm_snapshot"), height }].slice(-2);
  };
  const reorg = async () => {
    const before = await headHeight();
    const back = snapshots.findLast(({ height }) => before - height >= REORG_DEPTH) ?? snapshots[0];
    if (back === undefined || back.height >= before) return "reorg: there are too few blocks yet";
    await chain.rpc("evm_revert", [back.id]);
    snapshots = snapshots.filter(({ height }) => height < back.height);
    // Changes the hashes of the next blocks: within one second they would otherwise be identical to the replaced
    // blocks.
    await chain.rpc("hardhat_setPrevRandao", [`0x${randomBytes(32).toString("hex")}`]);
    await chain.mine(before - back.height + 1);
    return `reorg: blocks ${back.height + 1} to ${before} were replaced; what was in them is sent again`;
  };
  const spike = async () => {
    const { baseFeePerGas } = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { baseFeePerGas: string };
    const times = BigInt(baseFeePerGas) * SPIKE;
    const risen = times > LEAST_SPIKE_WEI ? times : LEAST_SPIKE_WEI;
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", [`0x${risen.toString(16)}`]);
    return `fee spike: the next block costs ${risen / GWEI} gwei, and empty blocks bring it down by an eighth each`;
  };
  const pause = async (): Promise<string> => {
    isPaused = !isPaused;
    await chain.rpc("evm_setIntervalMining", [isPaused ? 0 : blockTimeMs]);
    return isPaused ? "mining is paused: transactions wait; p resumes" : "mining is resumed";
  };
  const keys: readonly Key[] = [
    ["r", `reorg of ${REORG_DEPTH} blocks`, reorg],
    ["f", "fee spike", spike],
    ["p", "pause or resume mining", pause],
  ];
  return { keys, remember };
}
