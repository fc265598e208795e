import { afterEach, describe, expect, it } from "vitest";
import { FAILPOINTS, type Failpoint } from "../../src/ports/failpoints.ts";
import { checkInvariants } from "./invariants.ts";
import { BESIDE_THE_ROAD } from "./nonce-failpoints.ts";
import { transfer, World, type WorldNode } from "./world.ts";

/**
 * Calls `crash` when the failpoint is passed for the n-th time. The returned promise then never resolves, so that the
 * crashed node does nothing more.
 */
function crashAt(target: Failpoint, nth: number, crash: () => void): (name: Failpoint) => Promise<void> | void {
  let passed = 0;
  return (name) => {
    if (name !== target || ++passed !== nth) return undefined;
    crash();
    return new Promise(() => undefined);
  };
}

/** Resends a request until it is answered, as a client with an idempotent request would. */
async function createSurely(world: World, node: () => WorldNode, requestId: string): Promise<void> {
  for (;;) {
    const attempt = node().node.api.create(transfer({ requestId }));
    const outcome = await Promise.race([
      attempt.then(
        () => "done",
        () => "again",
      ),
      world.clock.sleep(2_000).then(() => "again"),
    ]);
    if (outcome === "done") return;
    await world.clock.sleep(500);
  }
}

/** Failpoints that an ordinary transaction passes. The other failpoints are tested in crash-nonces.test.ts. */
const WALKED = FAILPOINTS.filter((name) => !BESIDE_THE_ROAD.includes(name));

/** Tests a crash at each failpoint when it is passed for the n-th time. Each n has a separate test file. */
export function walkCrashes(nth: 1 | 2 | 5): void {
  let world: World;
  afterEach(() => world.close());

  describe.each(WALKED)("a crash right after the effect %s", (failpoint) => {
    it(`(occurrence number ${nth}) causes no lost or repeated transaction`, async () => {
      world = new World({ settings: { resubmitIntervalMs: 2_000, confirmations: 2 } });
      await crashAndFinish(world, failpoint, nth);
    });
  });
}

async function crashAndFinish(world: World, failpoint: Failpoint, nth: number): Promise<void> {
  // The base fee exceeds the first offered fee, so the transaction is repriced. Later a reorg drops mined transactions.
  // So the test also covers their return to the unmined state and their resubmission.
  world.chain.setBaseFee(30_000_000_000n);
  reorganiseOnceMined(world);
  let crashed = false;
  const first = await startCrashing(world, failpoint, nth, () => {
    crashed = true;
  });
  const second = { current: null as WorldNode | null };
  const alive = (): WorldNode => (crashed && second.current !== null ? second.current : first());
  const requests = Promise.all(
    Array.from({ length: 20 }, (_, index) => createSurely(world, alive, `${failpoint}-${nth}-${index}`)),
  );
  await world.until(() => crashed || world.rows().filter(({ state }) => state === "CONFIRMED").length === 20);
  second.current = await world.startNode();
  await world.settle(requests, 300_000);
  await world.allSettled(20, 300_000);
  await world.clock.advance(30_000);
  checkInvariants(world);
  expect(world.rows().length).toBe(20);
  if (nth === 1) expect(crashed, "the failpoint was never passed").toBe(true);
}

function reorganiseOnceMined(world: World): void {
  const mined = world.rows().some(({ subState }) => subState === "MINED");
  if (mined) world.chain.reorg(2, { drop: "all", keepInPool: false });
  else world.clock.after(100, () => reorganiseOnceMined(world));
}

/**
 * Starts a node that crashes at the failpoint. The crash may happen during the start, so the node is returned as an
 * entry of `nodes`, not as the result of the start.
 */
async function startCrashing(
  world: World,
  failpoint: Failpoint,
  nth: number,
  onCrash: () => void,
): Promise<() => WorldNode> {
  const entry = (): WorldNode => world.nodes[0] as WorldNode;
  const starting = world.startNode({
    failpoint: crashAt(failpoint, nth, () => {
      onCrash();
      world.crash(entry());
    }),
  });
  await Promise.race([starting.catch(() => undefined), world.clock.advance(5_000)]);
  return entry;
}
