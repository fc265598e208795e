import { afterEach, describe, expect, it } from "vitest";
import { deferred } from "../../support/deferred.ts";
import { holdCommits } from "../../support/hold-commits.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { slowWire } from "../../support/slow-wire.ts";
import {
  NODE_SETTINGS,
  SIGNER,
  SIGNERS,
  transfer,
  World,
  type WorldNode,
  type WorldOptions,
} from "../../support/world.ts";

const OTHER_SIGNER = SIGNERS.find((signer) => signer !== SIGNER) as (typeof SIGNERS)[number];
const ACTOR = "operator:ops";
const COUNT = 20;
const EVERY_MS = 100;
/** Time in ms that is longer than all sends of a test would take one after the other. */
const A_WHILE_MS = 2 * COUNT * EVERY_MS;
const ANSWERED_WITHIN_MS = 250;

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  const entry = await world.startNode();
  await ops.settled(await ops.create(entry));
  world.holdBlocks();
  return entry;
}

const begun = () => world.chain.witness.length;
const begunFor = (txId: string) => world.chain.witness.filter(({ hash }) => hashesOf(txId).includes(hash)).length;
const hashesOf = (txId: string) => ops.row(txId).attempts.map(({ txHash }) => txHash);
const kill = ({ node }: WorldNode) => node.api.kill({ signer: null, request: undefined, actor: ACTOR });
const endKill = ({ node }: WorldNode) => node.api.endKill({ signer: null, request: undefined, actor: ACTOR });
const onLane = ({ node }: WorldNode, action: "suspend" | "resume") =>
  node.api.actOnLane({ action, signer: SIGNER, request: { reason: "because" }, actor: ACTOR });
const hold = ({ node }: WorldNode, txId: string) =>
  node.api.act({ action: "suspend", txId, request: { reason: "because" }, actor: ACTOR });

/** Sends twenty transactions to an endpoint that accepts one at a time; resolves when three of the sends have begun. */
async function threeOfTwenty(entry: WorldNode): Promise<readonly string[]> {
  slowWire(world, entry, EVERY_MS);
  const before = begun();
  const created = await world.settle(
    Promise.all(Array.from({ length: COUNT }, () => entry.node.api.create(transfer()))),
  );
  await world.until(() => begun() === before + 3);
  return created.map(({ txId }) => txId);
}

/** Waits for a request to end, and returns its duration by the simulated clock. */
async function timed(request: Promise<unknown>): Promise<number> {
  const atMs = world.clock.monotonicMs();
  await world.settle(request);
  return world.clock.monotonicMs() - atMs;
}

const STOPS: readonly (readonly [
  string,
  (entry: WorldNode) => Promise<unknown>,
  (entry: WorldNode) => Promise<unknown>,
])[] = [
  ["a kill", kill, endKill],
  ["a suspended lane", (entry) => onLane(entry, "suspend"), (entry) => onLane(entry, "resume")],
];

describe.each(STOPS)("the stop (%s) after three of twenty sends", (_, stop, goOn) => {
  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("prevents every later send", async () => {
    const entry = await start();
    await threeOfTwenty(entry);
    expect(await timed(stop(entry))).toBeLessThanOrEqual(ANSWERED_WITHIN_MS);
    const before = begun();
    await world.clock.advance(A_WHILE_MS);
    expect(begun()).toBe(before);
  });

  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts, src/domain/chain/answers.ts
  it("leaves unsent transactions their right to send", async () => {
    const entry = await start();
    const created = await threeOfTwenty(entry);
    await world.settle(stop(entry));
    await world.clock.advance(A_WHILE_MS);
    const waiting = created.filter((txId) => begunFor(txId) === 0);
    expect(waiting.length).toBeGreaterThanOrEqual(COUNT - 5);
    for (const txId of waiting) {
      expect(ops.row(txId)).toMatchObject({
        state: "TRACKING",
        subState: "PENDING",
        lastError: null,
        submitAttempts: 1,
      });
    }
    expect(entry.events.filter((event) => event.type === "submit.answered" && event.answer === "unknown")).toEqual([]);
    await world.settle(goOn(entry));
    world.releaseBlocks();
    await ops.settled(...created);
    expect(created.map((txId) => ops.row(txId).submitAttempts)).toEqual(created.map(() => 1));
    checkInvariants(world);
  });

  // protects [The kill switch] src/application/operations/lane-actions.ts, src/application/operations/transaction-actions.ts, src/application/cluster/kill-switch.ts
  it("is acknowledged within 250 ms while a send hangs", async () => {
    const entry = await start();
    slowWire(world, entry, EVERY_MS, () => world.clock.sleep(8_000));
    const before = begun();
    await ops.create(entry);
    await world.until(() => begun() > before);
    expect(await timed(stop(entry))).toBeLessThanOrEqual(ANSWERED_WITHIN_MS);
  });
});

describe("a transaction that is held before its send has finished", () => {
  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("is not sent if its send has not begun", async () => {
    const entry = await start();
    const created = await threeOfTwenty(entry);
    const held = created[10] as string;
    expect(await timed(hold(entry, held))).toBeLessThanOrEqual(ANSWERED_WITHIN_MS);
    await world.clock.advance(A_WHILE_MS);
    expect(created.filter((txId) => begunFor(txId) === 0)).toEqual([held]);
    expect(ops.row(held)).toMatchObject({ lastError: null, submitAttempts: 1 });
    await ops.act(entry, "resume", { txId: held });
    world.releaseBlocks();
    await ops.settled(...created);
    checkInvariants(world);
  });

  it.each([
    ["while its request is waiting", 0],
    ["if it was left out of its request", A_WHILE_MS],
  ])("is not sent until the resume is durable, %s", async (_, afterMs) => {
    const entry = await start();
    const created = await threeOfTwenty(entry);
    const held = created[10] as string;
    await world.settle(hold(entry, held));
    await world.clock.advance(afterMs);
    const written = deferred();
    const isHeldUp = holdCommits(entry, written.promise);
    const actionRequest = { action: "resume", txId: held, request: { reason: "because" }, actor: ACTOR } as const;
    const releasing = entry.node.api.act(actionRequest);
    await world.until(isHeldUp);
    await world.clock.advance(A_WHILE_MS);
    expect(begunFor(held)).toBe(0);
    written.resolve();
    await world.settle(releasing);
    world.releaseBlocks();
    await ops.settled(...created);
    checkInvariants(world);
  });

  // protects [The kill switch] src/application/operations/lane-actions.ts, src/application/operations/transaction-actions.ts, src/application/cluster/kill-switch.ts
  it("has its hold acknowledged even if the send hangs", async () => {
    const entry = await start();
    slowWire(world, entry, EVERY_MS, () => world.clock.sleep(8_000));
    const before = begun();
    const txId = await ops.create(entry);
    await world.until(() => begun() > before);
    expect(await timed(hold(entry, txId))).toBeLessThanOrEqual(ANSWERED_WITHIN_MS);
  });
});

describe("a signed transaction that was not sent", () => {
  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts, src/domain/chain/answers.ts
  it("keeps its nonce after its validUntil", async () => {
    const entry = await start();
    slowWire(world, entry, EVERY_MS);
    const validUntil = new Date(world.clock.now().getTime() + 1_000).toISOString();
    const txId = await ops.create(entry, { validUntil });
    await world.until(() => ops.row(txId).attempts.length === 1);
    await world.settle(kill(entry));
    await world.clock.advance(A_WHILE_MS);
    expect(begunFor(txId)).toBe(0);
    const { nonce } = ops.row(txId);
    expect(ops.row(txId)).toMatchObject({ state: "TRACKING", nonce: 1, lastError: null });
    const later = await ops.create(entry);
    expect(ops.row(later).nonce).toBe(2);
    await world.settle(endKill(entry));
    world.releaseBlocks();
    await ops.settled(txId, later);
    expect(ops.row(txId).nonce).toBe(nonce);
    checkInvariants(world);
  });
});

describe("a send that waits for a connection", () => {
  /**
   * Makes a transaction that is signed and whose send is stored as claimed, but that waits for a connection. Calling
   * `connect` lets its bytes be sent.
   */
  async function waiting(entry: WorldNode): Promise<{ readonly txId: string; readonly connect: () => Promise<void> }> {
    const { promise: connected, resolve } = deferred();
    const submit = entry.rpc.submit.bind(entry.rpc);
    entry.rpc.submit = async (sends) => {
      await connected;
      return submit(sends);
    };
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).attempts.length === 1);
    const connect = () => {
      resolve();
      return world.clock.advance(0);
    };
    return { txId, connect };
  }

  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("does not start after the lease deadline", async () => {
    const entry = await start();
    const { txId, connect } = await waiting(entry);
    entry.store.pause();
    await world.clock.advance(NODE_SETTINGS.lease.durationMs - NODE_SETTINGS.lease.clockSkewMs);
    await connect();
    expect(begunFor(txId)).toBe(0);
  });

  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("does not start while the node's database session lock is lost", async () => {
    const entry = await start({ sessionLocks: true });
    const { txId, connect } = await waiting(entry);
    entry.store.pause();
    entry.lock?.cut();
    await connect();
    expect(begunFor(txId)).toBe(0);
  });

  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("does not start once the transaction was found mined", async () => {
    const entry = await start();
    const { txId, connect } = await waiting(entry);
    world.chain.submit(ops.row(txId).attempts[0]?.rawTransaction as `0x${string}`);
    world.releaseBlocks();
    await world.until(() => ops.row(txId).receipt !== null);
    await connect();
    expect(begunFor(txId)).toBe(1);
  });
});

describe("a batch with sends of two lanes", () => {
  // protects [The kill switch] src/adapters/evm/rpc/transport.ts
  it("loses only the sends of a lane that is suspended", async () => {
    const entry = await start();
    slowWire(world, entry, EVERY_MS);
    const before = begun();
    const created = await world.settle(
      Promise.all([SIGNER, OTHER_SIGNER].map((signer) => entry.node.api.create(transfer({ signer })))),
    );
    await world.until(() => created.every(({ txId }) => ops.row(txId).attempts.length === 1));
    await world.settle(onLane(entry, "suspend"));
    await world.clock.advance(A_WHILE_MS);
    expect(begun()).toBe(before + 1);
    expect(created.map(({ txId }) => begunFor(txId))).toEqual([0, 1]);
  });
});
