import type { WorldNode } from "../../world.ts";
import type { Calm } from "./calm.ts";

const HALF_A_MINUTE_MS = 30_000;
const TWO_MINUTES_MS = 120_000;
/** A chain that has shown as many blocks has a usual interval, if it is regular. */
const ENOUGH_BLOCKS = 10;
/** Alerts about a chain are looked at once a second, and its newest block is read once in a poll. */
const LATE_MS = 2_500;

/** How a chain makes its blocks: all intervals in ms, in turn, and the number of blocks. */
interface Rhythm {
  readonly intervalsMs: readonly number[];
  readonly blocks: number;
}

const RHYTHMS: readonly Rhythm[] = [
  { intervalsMs: [2_000], blocks: ENOUGH_BLOCKS },
  { intervalsMs: [8_000], blocks: ENOUGH_BLOCKS },
  { intervalsMs: [2_000], blocks: 4 },
  { intervalsMs: [500, 500, 500, 9_000], blocks: 2 * ENOUGH_BLOCKS },
];

/**
 * A chain makes no block any more, while its endpoint answers. It is called stalled after ten times its usual interval,
 * and at least half a minute. If it has no usual interval, only after two minutes in which a sent transaction waits. The
 * next block ends it.
 */
export async function standstill(calm: Calm): Promise<void> {
  const { world } = calm;
  const rhythm = calm.inTurn(RHYTHMS);
  world.holdBlocks();
  const entry = await calm.start();
  let lastMs = calm.nowMs;
  world.chain.subscribe(({ type }) => {
    if (type === "block") lastMs = calm.nowMs;
  });
  await beat(calm, rhythm);
  const isRegular = rhythm.blocks >= ENOUGH_BLOCKS && rhythm.intervalsMs.length === 1;
  const [usualMs = 0] = rhythm.intervalsMs;
  if (isRegular) await expectStall(calm, lastMs + Math.max(10 * usualMs, HALF_A_MINUTE_MS));
  else await irregular(calm, entry);
  world.releaseBlocks();
  await world.until(() => !isStalled(calm), LATE_MS + world.settings.pollIntervalMs);
  await world.allSettled(world.rows().length);
}

async function beat({ world }: Calm, { intervalsMs, blocks }: Rhythm) {
  for (let count = 0; count < blocks; count++) {
    await world.clock.advance(intervalsMs[count % intervalsMs.length] ?? 0);
    world.chain.mine();
  }
}

const SHAKEN_MS = 9_000;
const USUAL_FEE = 1_000_000_000n;
/** Nobody pays this. */
const DEAR_FEE = 500n * USUAL_FEE;

/**
 * A chain gains one block in nine seconds, and replaces its newest blocks by fewer in between. That is its usual pace:
 * if it stands still, it is called stalled after ten of these at the latest, as any other.
 */
export async function shakenChain(calm: Calm): Promise<void> {
  const { world } = calm;
  world.holdBlocks();
  const entry = await calm.start();
  // Blocks in which nothing of ours can be are not all read: so something of ours waits for one.
  world.chain.setBaseFee(DEAR_FEE);
  await calm.create(entry, 1);
  for (let count = 0; count < ENOUGH_BLOCKS; count++) {
    world.chain.mine(3);
    for (let times = 0; times < 2; times++) {
      await world.clock.advance(SHAKEN_MS / 3);
      world.chain.reorg(2, { newBlocks: 1 });
    }
    await world.clock.advance(SHAKEN_MS / 3);
  }
  calm.expect(!isStalled(calm), "a chain with reorgs is not called stalled while it moves");
  await world.until(() => isStalled(calm), 10 * SHAKEN_MS);
  world.chain.setBaseFee(USUAL_FEE);
  world.releaseBlocks();
  await world.allSettled(1);
}

/** Nobody waits for a chain without a usual interval: then it may rest. Once somebody does, two minutes are too long. */
async function irregular(calm: Calm, entry: WorldNode) {
  await calm.world.clock.advance(TWO_MINUTES_MS + calm.dice.int(5_000, 30_000));
  calm.expect(!isStalled(calm), "a chain that makes blocks on demand may rest while nobody waits");
  await calm.create(entry, 1);
  await expectStall(calm, calm.nowMs + TWO_MINUTES_MS);
}

async function expectStall(calm: Calm, dueMs: number) {
  await calm.world.until(() => isStalled(calm), dueMs + LATE_MS - calm.nowMs);
  const atMs = calm.alerts("CHAIN_STALLED").at(-1)?.atMs ?? 0;
  calm.expect(
    atMs >= dueMs - calm.world.settings.pollIntervalMs,
    `the chain is called stalled at ${atMs}, not ${dueMs} ms`,
  );
}

function isStalled(calm: Calm): boolean {
  return calm.alerts("CHAIN_STALLED").at(-1)?.isRaised === true;
}

/**
 * The head of a lane is not mined, and its owner dies. The next owner calls it stuck when the first one would have: its
 * waiting time does not start anew.
 */
export async function oldHead(calm: Calm): Promise<void> {
  const { world, dice } = calm;
  const { stuckAfterMs, resubmitIntervalMs } = world.settings;
  world.holdBlocks();
  const first = await calm.start();
  await calm.create(first, 2);
  const sentMs = calm.nowMs;
  await world.clock.advance(dice.int(5_000, 15_000));
  world.crash(first);
  await calm.start();
  const [head] = world.rows();
  await world.until(() => world.rows()[0]?.state === "STUCK", stuckAfterMs);
  const lateMs = calm.nowMs - (sentMs + stuckAfterMs);
  calm.expect(lateMs >= -LATE_MS, `${head?.txId} is called stuck ${-lateMs} ms too early`);
  calm.expect(lateMs <= (resubmitIntervalMs ?? 0) + LATE_MS, `${head?.txId} is called stuck ${lateMs} ms too late`);
  world.releaseBlocks();
  await world.allSettled(2);
}
