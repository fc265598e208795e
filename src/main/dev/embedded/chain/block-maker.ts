import type { Clock } from "../../../../ports/clock.ts";
import { type Handle, resultOf } from "./json-rpc.ts";

/** Maximum depth of a reorg in tests; each level costs the chain a snapshot. */
const MOST_DEPTH = 64;
const CONTROLS = ["mine", "reorg", "pause", "resume", "setBaseFee"] as const;

export type Control = (typeof CONTROLS)[number];

/**
 * Makes the blocks of a chain that does not mine by itself, and handles the calls that control its blocks:
 * `fencepost_mine`, `fencepost_reorg` and so on.
 */
export function controlledBlocks(handle: Handle, blockTimeMs: number | null, after: Clock["after"]): Handle {
  const rpc = async (method: string, ...params: readonly unknown[]) => resultOf(method, await handle(method, params));
  const blocks = makeBlocks(rpc, blockTimeMs, after);
  return async (method, params) => {
    const control = CONTROLS.find((each) => method === `fencepost_${each}`);
    if (control === undefined) return handle(method, params);
    await blocks[control]((params as readonly never[])[0] as never);
    return { result: null };
  };
}

type Rpc = (method: string, ...params: readonly unknown[]) => Promise<unknown>;

/** Makes blocks. Before each block it takes a snapshot, to which a reorg can return. */
function makeBlocks(rpc: Rpc, blockTimeMs: number | null, after: Clock["after"]) {
  /** Snapshots of the chain. `number`: height of the newest block at the snapshot. */
  let snapshots: { readonly number: number; readonly id: unknown }[] = [];
  let baseFee: string | null = null;
  let branches = 0;
  /**
   * Counter that every timer and every pause increases. Only the timer with the latest number schedules the next block.
   */
  let beats = 0;
  let cancelBeat = () => {};
  /** Queue that serialises blocks and reorgs. */
  let turn: Promise<unknown> = Promise.resolve();

  const inTurn = (work: () => Promise<void>) => {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  };
  const head = async () => Number(await rpc("eth_blockNumber"));
  const mineOne = async () => {
    snapshots = [...snapshots, { number: await head(), id: await rpc("evm_snapshot") }].slice(-MOST_DEPTH);
    if (baseFee !== null) await rpc("hardhat_setNextBlockBaseFeePerGas", baseFee);
    await rpc("hardhat_mine", "0x1");
  };
  const mineMany = async (blocks: number) => {
    for (let mined = 0; mined < blocks; mined++) await mineOne();
  };
  const beat = () => {
    if (blockTimeMs === null) return;
    const own = ++beats;
    // A failed block does not stop the timer.
    const next = () => void (beats === own && beat());
    cancelBeat = after(blockTimeMs, () => void inTurn(mineOne).then(next, next));
  };
  const pause = () =>
    inTurn(async () => {
      beats++;
      cancelBeat();
    });
  beat();
  return {
    mine: (blocks: number) => inTurn(() => mineMany(blocks)),
    /** `pause` resolves when the block in progress is made. */
    pause,
    resume: () => pause().then(beat),
    /** Base fee of every block from the next one on, in hex; null: the chain's own rule (EIP-1559). */
    setBaseFee: (wei: string | null) =>
      inTurn(async () => {
        baseFee = wei;
      }),
    /**
     * Replaces the last blocks by a branch that is one block longer. The transactions of the replaced blocks and those
     * in the pool are dropped.
     */
    reorg: (depth: number) =>
      inTurn(async () => {
        const target = (await head()) - depth;
        const snapshot = snapshots.find(({ number }) => number === target);
        if (depth < 1 || snapshot === undefined) {
          throw new RangeError(`reorg(${depth}): the depth must be from 1 to ${snapshots.length} blocks`);
        }
        await rpc("evm_revert", snapshot.id);
        snapshots = snapshots.filter(({ number }) => number < target);
        await dropPool(rpc);
        // Use another coinbase: the new empty blocks must not have the hashes of the old ones.
        await rpc("hardhat_setCoinbase", `0x${(++branches).toString(16).padStart(40, "c")}`);
        await mineMany(depth + 1);
      }),
  };
}

/**
 * Drops all pending transactions. Needed after a reorg, because restoring a snapshot also restores its transaction
 * pool.
 */
async function dropPool(rpc: Rpc) {
  const pending = (await rpc("eth_pendingTransactions")) as readonly { readonly hash: string }[];
  for (const { hash } of pending) await rpc("hardhat_dropTransaction", hash);
}
