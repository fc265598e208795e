/**
 * A lane is reloaded from the database while work on it is in progress: the owner's memory must not lose what the
 * database holds.
 */
import { afterEach, describe, expect, it } from "vitest";
import { findSkipped } from "../../../src/application/detours/skipped-nonces.ts";
import { quietly } from "../../../src/application/lane/term.ts";
import { createStageBench, trackedRecord } from "../../support/stage-bench.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world?.close());

async function startKnown(options: ConstructorParameters<typeof World>[0] = {}): Promise<WorldNode> {
  world = new World(options);
  const entry = await world.startNode();
  await world.settle(entry.node.api.create(transfer()));
  await world.allSettled(1);
  return entry;
}

/**
 * Makes the next call of that method wait. `asked` resolves when the method is called; `goOn` lets the call continue.
 */
function holdNext({ rpc }: WorldNode, method: "transactionCount") {
  const original = rpc[method].bind(rpc) as (...args: never[]) => Promise<never>;
  const held = { asked: false, goOn: (): void => undefined };
  const until = new Promise<void>((resolve) => {
    held.goOn = resolve;
  });
  Object.assign(rpc, {
    [method]: async (...args: never[]) => {
      if (held.asked) return original(...args);
      held.asked = true;
      await until;
      return original(...args);
    },
  });
  return held;
}

/** Causes a commit whose outcome is unknown. After it, the owner reloads the lane without losing ownership. */
async function readAgain(entry: WorldNode): Promise<void> {
  const resumed = () => entry.events.filter(({ type }) => type === "lane.resumed").length;
  const before = resumed();
  entry.store.failNextCommit("unknown-lost");
  await world.settle(entry.node.api.actOnLane(actionRequest("resume")).catch(() => undefined));
  await world.until(() => resumed() > before);
}

function actionRequest(action: "suspend" | "resume" | "realign") {
  return { action, signer: SIGNER, request: { reason: "test" }, actor: "operator:ops" } as const;
}

describe("a lane that is reloaded", () => {
  it("includes a nonce that was reserved during the reload", async () => {
    const entry = await startKnown({ settings: { holePolicy: "heal", nonceStateTimeoutMs: 0 } });
    const count = holdNext(entry, "transactionCount");
    const reserving = entry.node.api.reserveNonce({ signer: SIGNER, ttl: 5 });
    await world.until(() => count.asked);
    await readAgain(entry);
    count.goOn();
    const { reservation } = await world.settle(reserving);
    await world.settle(entry.node.api.create(transfer()));
    const expired = () => world.database.state.reservation(reservation.reservationId)?.state === "EXPIRED";
    await world.until(expired, 30_000);
    await world.allSettled(3);
  });

  it("is not changed by a search that began before the reload", async () => {
    const entry = await startKnown();
    world.holdBlocks();
    await world.settle(entry.node.api.create(transfer()));
    await world.until(() => world.chain.pool.size === 1);
    const { rpc } = entry;
    const ours = world.rows()[1]?.attempts[0]?.txHash;
    const foreign = world.chain.mineForeign(SIGNER, 1).transactions[0]?.transaction.hash;
    const original = rpc.receipts.bind(rpc);
    let isFound = false;
    let goOn: (() => void) | null = null;
    rpc.receipts = async (hashes) => {
      isFound ||= hashes.includes(foreign as never);
      if (isFound && goOn === null && hashes.includes(ours as never)) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
      return original(hashes);
    };
    await world.until(() => goOn !== null, 200_000);
    await readAgain(entry);
    const resumed = entry.events.length;
    (goOn as unknown as () => void)();
    await world.clock.advance(100);
    expect(world.rows()[1]?.subState).not.toBe("MINED");
    expect(entry.events.slice(resumed).filter(({ type }) => type === "lane.stopped")).toEqual([]);
    world.releaseBlocks();
    await world.allSettled(2, 200_000);
    expect(entry.events.slice(resumed).filter(({ type }) => type === "lane.stopped")).toEqual([]);
  });

  // protects [Operators] src/application/lane/between-owners.ts, src/application/lane/term.ts
  it("refuses a change of its next nonce that began before the reload", async () => {
    const entry = await startKnown({ node: { mode: "basic" } });
    const count = holdNext(entry, "transactionCount");
    const realigning = entry.node.api.actOnLane(actionRequest("realign"));
    await world.until(() => count.asked);
    await readAgain(entry);
    count.goOn();
    // Expect UNAVAILABLE, not NOT_LEADER. No other node has the signer's key, but NOT_LEADER would make the caller look
    // for such a node.
    await expect(world.settle(realigning)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("stores no nonce gaps found by a search that began before the reload", async () => {
    const bench = createStageBench({ cursor: 9, tracking: [trackedRecord(8)] });
    const look = () => findSkipped(bench);
    for (let looks = 0; looks < 2; looks++) {
      await look();
      await bench.clock.advance(60_000);
    }
    bench.lane.stop();
    await quietly(look() ?? Promise.resolve());
    expect(bench.writes).toEqual([]);
  });
});
