import { FencepostError } from "../../../../src/domain/errors.ts";
import { StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { Faults } from "../../../doubles/simulated-chain/faults.ts";
import type { WorldNode } from "../../world.ts";
import type { Calm } from "./calm.ts";

const REFUSED_MS = 20_000;
const STEP_MS = 1_000;
const TOO_MANY = 7;

/**
 * One of two endpoints counts more transactions than the chain has, for long, and the other stands still. Creates are
 * refused, and people are shown since when; it is over as soon as the liar is honest again.
 */
export async function falseCounts(calm: Calm): Promise<void> {
  const { world } = calm;
  const { entry, elsewhere } = await beginWithTwo(calm);
  entry.faults.lieAboutNonce((honest) => honest + TOO_MANY);
  elsewhere.pinHead(world.chain.head.number - 1);
  const endsMs = calm.nowMs + REFUSED_MS;
  let nonce = await nonceOf(calm, entry);
  const since = await drift(calm, entry);
  while (nonce === null && calm.nowMs < endsMs) {
    await world.clock.advance(STEP_MS);
    nonce = await nonceOf(calm, entry);
  }
  calm.expect(nonce === null, "no create gets a nonce while a count is not proved");
  calm.expect(since !== null && (await drift(calm, entry)) === since, `creates are refused since ${since}`);
  entry.faults.lieAboutNonce(null);
  elsewhere.pinHead(null);
  await world.clock.advance(2 * (world.settings.reconciliationIntervalMs ?? 0) + STEP_MS);
  calm.expect((await drift(calm, entry)) === null, "a count that nobody claims any more is no trouble");
  calm.expect((await nonceOf(calm, entry)) !== null, "creates go on once the endpoints agree");
  await world.allSettled(world.rows().length);
}

/**
 * One of two endpoints counts too many if it is asked alone, and the other is three blocks behind for ever. Once that one
 * has reached the block of the false count, both refute it: creates go on.
 */
export async function refutedCounts(calm: Calm): Promise<void> {
  const { world } = calm;
  const { entry, elsewhere } = await beginWithTwo(calm);
  const { rpc } = entry;
  const transactionCount = rpc.transactionCount.bind(rpc);
  rpc.transactionCount = async (...asked) => {
    const honest = await transactionCount(...asked);
    return { ...honest, count: honest.count + TOO_MANY };
  };
  elsewhere.trail(3);
  const endsMs = calm.nowMs + REFUSED_MS;
  let nonce = await nonceOf(calm, entry);
  while (nonce === null && calm.nowMs < endsMs) {
    await world.clock.advance(STEP_MS);
    nonce = await nonceOf(calm, entry);
  }
  calm.expect(nonce === 2, `two endpoints refute a false count within ${REFUSED_MS} ms`);
  rpc.transactionCount = transactionCount;
  elsewhere.trail(0);
  await world.allSettled(world.rows().length);
}

/** A batch fails: whatever was counted before it, the chain is asked again before the lane gives another nonce. */
export async function failedBatch(calm: Calm): Promise<void> {
  const { world } = calm;
  const entry = await calm.start();
  const { rpc, store } = entry;
  await calm.create(entry, 2);
  await world.allSettled(2);
  let asked = 0;
  const transactionCount = rpc.transactionCount.bind(rpc);
  rpc.transactionCount = (...how) => {
    asked++;
    return transactionCount(...how);
  };
  const commit = store.commit.bind(store);
  let isAway = true;
  store.commit = (writes) => {
    if (isAway && writes.some(({ kind }) => kind === "allocate"))
      return Promise.reject(new StoreUnavailable("the database does not answer this", { busy: false }));
    return commit(writes);
  };
  const refused = await nonceOf(calm, entry);
  isAway = false;
  const before = asked;
  const nonce = await nonceOf(calm, entry);
  calm.expect(refused === null && nonce === 2, `the next nonce is given once, not ${refused} and ${nonce}`);
  calm.expect(asked > before, "the chain is asked for its count after a failed batch");
  await world.allSettled(world.rows().length);
}

async function beginWithTwo(calm: Calm) {
  const elsewhere = new Faults();
  const entry = await calm.start(undefined, { elsewhere: { chain: calm.world.chain, faults: elsewhere } });
  await calm.create(entry, 2);
  await calm.world.allSettled(2);
  return { entry, elsewhere };
}

/** The nonce of a create; null if it is refused for now. */
function nonceOf(calm: Calm, { node }: WorldNode): Promise<number | null> {
  return calm.world.settle(node.api.create(calm.request()).then(({ nonce }) => nonce, refusal));
}

function refusal(error: unknown): null {
  if (error instanceof FencepostError && error.code === "UNAVAILABLE") return null;
  throw error;
}

/** Since when an unproved count is shown; null if none is. */
async function drift({ world }: Calm, { node }: WorldNode): Promise<number | null> {
  const { items } = await world.settle(node.api.attention({}));
  return items.find(({ code }) => code === "NONCE_DRIFT")?.since?.getTime() ?? null;
}
