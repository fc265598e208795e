import type { Calm } from "./calm.ts";

const FIVE_MINUTES_MS = 300_000;
/** An alert about five minutes is looked at once a second, and what is counted leaves in steps of ten seconds. */
const LATE_MS = 12_000;
const COUNT = 20;
const INTERVAL_MS = 1_000;
const SURGE = 50;
const ROUNDS = 2;

/**
 * Bytes are sent again and again while no block comes. Fifty repeats in five minutes are reported; five minutes after
 * the last, it is over; and the next time is reported too.
 */
export async function repeatedSends(calm: Calm): Promise<void> {
  const { world } = calm;
  const entry = await calm.start();
  for (let round = 1; round <= ROUNDS; round++) {
    world.holdBlocks();
    await calm.create(entry, COUNT);
    const before = calm.sends.length;
    await world.until(() => calm.sends.length >= before + SURGE, 20 * INTERVAL_MS);
    await world.clock.advance(10 * INTERVAL_MS);
    const raised = calm.alerts("RESUBMIT_SURGE").filter(({ isRaised }) => isRaised);
    calm.expect(raised.length === round, `${SURGE} repeats are reported in round ${round}: ${raised.length} alerts`);
    world.releaseBlocks();
    await world.allSettled(round * COUNT);
    world.holdBlocks();
    const lastMs = calm.sends.at(-1)?.atMs ?? 0;
    await world.clock.advance(lastMs + FIVE_MINUTES_MS + LATE_MS - calm.nowMs);
    const isOver = calm.alerts("RESUBMIT_SURGE").at(-1)?.isRaised === false;
    calm.expect(isOver, `five minutes after the last repeat of round ${round}, none is counted`);
    await world.clock.advance(FIVE_MINUTES_MS);
  }
}

/** A minute; the least backlog of each is compared. */
const STRETCH_MS = 60_000;
const RECEIPT_METHODS = ["eth_getBlockReceipts", "eth_getTransactionReceipt"] as const;
/** Blocks of a minute, each with a transaction of ours. */
const BLOCKS_EACH = 4;

/**
 * Blocks arrive faster than their receipts are read. It is reported when the least backlog rose for five minutes in a
 * row, and is over when a minute's is not higher. A backlog that is read now and then, or does not grow any more, is
 * none.
 */
export async function growingBacklog(calm: Calm): Promise<void> {
  const { world } = calm;
  const kind = calm.inTurn(["grows", "is read now and then", "is read once"] as const);
  const entry = await calm.start();
  world.holdBlocks();
  const beganMs = calm.nowMs;
  const fail = () => {
    const ends = RECEIPT_METHODS.map((method) => entry.faults.inject({ kind: "unavailable" }, { method }));
    return () => {
      for (const end of ends) end();
    };
  };
  let end = fail();
  const minutes = 7;
  for (let minute = 0; minute < minutes; minute++) {
    const isRead = kind === "is read now and then" || (kind === "is read once" && minute === 3);
    const blocks = kind === "is read now and then" ? BLOCKS_EACH + 2 * minute : BLOCKS_EACH;
    for (let block = 0; block < blocks; block++) {
      await calm.create(entry, 1);
      await world.clock.advance(STRETCH_MS / blocks);
      world.chain.mine();
    }
    if (!isRead) continue;
    end();
    await world.clock.advance(3 * world.settings.pollIntervalMs);
    end = fail();
  }
  const raised = calm.alerts("RECEIPT_BACKLOG_GROWING").filter(({ isRaised }) => isRaised);
  const [first] = raised;
  if (kind === "grows") {
    const afterMs = (first?.atMs ?? 0) - beganMs;
    const isInTime = afterMs >= 4.5 * STRETCH_MS && afterMs <= 7 * STRETCH_MS;
    calm.expect(isInTime, `a backlog that grew for five minutes is reported, not after ${afterMs} ms`);
    await world.clock.advance(3.5 * STRETCH_MS);
    const isOver = calm.alerts("RECEIPT_BACKLOG_GROWING").at(-1)?.isRaised === false;
    calm.expect(isOver, "a backlog that stays as it is does not grow any more");
  } else calm.expect(first === undefined, `a backlog that ${kind} does not grow`);
  end();
  world.releaseBlocks();
  await world.clock.advance(2.5 * STRETCH_MS);
  calm.expect(calm.alerts("RECEIPT_BACKLOG_GROWING").at(-1)?.isRaised !== true, "a backlog that was read is over");
  await world.allSettled(world.rows().length);
}
