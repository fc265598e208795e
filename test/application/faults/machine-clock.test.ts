/** A node's machine clock is an hour off. No decision that depends on an age may use that clock. */
import { afterEach, expect, it } from "vitest";
import type { StuckContext } from "../../../src/ports/stuck-hook.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const HOUR_MS = 3_600_000;
const PATIENCE_MS = 30_000;
const AGES = { alertHeadAgeMs: PATIENCE_MS, alertOldestAgeMs: PATIENCE_MS, stuckAfterMs: PATIENCE_MS };

/**
 * Makes a transaction that an earlier node created, so that its age follows the database's clock. The machine clock of
 * its present owner is wrong.
 */
async function sentByAnother(aheadMs: number) {
  world = new World({ settings: { ...AGES, repricing: null } });
  const ops = new OperatedWorld(world);
  const first = await world.startNode();
  world.holdBlocks();
  await ops.sent(first);
  await world.settle(first.node.abandon());
  const asked: StuckContext[] = [];
  const decide = (context: StuckContext) => {
    asked.push(context);
    return { action: "NOOP", reason: "seen" } as const;
  };
  const node = await world.startNode({ aheadMs, stuckHook: { decide } });
  await world.until(() => node.node.gauges().pendingDepth === 1);
  const codes = () => node.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
  return { asked, node, codes };
}

it.each([
  ["ahead", HOUR_MS],
  ["behind", -HOUR_MS],
])(
  // protects [The fence] src/application/database-clock.ts
  "with a machine clock an hour %s, a transaction's age follows the database's clock",
  async (_, aheadMs) => {
    const { asked, node, codes } = await sentByAnother(aheadMs);
    expect(node.node.gauges().oldestPendingAgeSeconds).toBeLessThan(PATIENCE_MS / 1_000);
    const takenOverMs = world.clock.monotonicMs();
    const left = PATIENCE_MS - 1_000 - (world.clock.now().getTime() - (world.rows()[0]?.createdAt.getTime() ?? 0));
    await world.clock.advance(left);
    // The only alert is about the earlier node, which really vanished. There is no alert about the transaction.
    expect([codes(), asked, world.rows()[0]?.state]).toEqual([["NODE_VANISHED"], [], "TRACKING"]);
    await world.until(() => asked.length > 0 && codes().includes("PENDING_OLD"));
    expect(world.clock.monotonicMs() - takenOverMs).toBeLessThan(2 * PATIENCE_MS);
    expect(asked[0]?.ageSeconds).toBeLessThan((3 * PATIENCE_MS) / 1_000);
  },
);
