/**
 * A signer that remembers what it signed for a nonce and refuses anything else. Fencepost still proceeds, even after
 * signatures that were never committed.
 */
import { afterEach, describe, expect, it } from "vitest";
import { OutcomeUnknown } from "../../../src/ports/lane-store.ts";
import { SignerAway } from "../../../src/ports/signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

/** Makes the first commit that contains a signed attempt fail, and runs `meanwhile` at that time. */
function loseFirstAttempt({ store }: WorldNode, meanwhile: () => void): void {
  const commit = store.commit.bind(store);
  let isLost = false;
  store.commit = async (writes) => {
    const isAttempt = writes.some(
      ({ kind, ...write }) => kind === "transition" && "items" in write && "attempt" in (write.items[0] ?? {}),
    );
    if (!isAttempt || isLost) return commit(writes);
    isLost = true;
    meanwhile();
    throw new OutcomeUnknown("the connection died at COMMIT");
  };
}

const codes = ({ events }: WorldNode) => events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
const reloads = ({ events }: WorldNode) => events.filter(({ type }) => type === "lane.stopped").length;

describe("a payload that was signed but never committed", () => {
  // protects [Signers] src/application/stages/3-sign/sign.ts, src/application/lane/backlog.ts
  it("is signed again at a new price", async () => {
    const node = await start();
    const { signer } = node;
    const sign = signer.sign.bind(signer);
    loseFirstAttempt(node, () => {
      // The signer is unreachable for a few blocks, during which the base fee rises.
      const untilMs = world.clock.monotonicMs() + 5_000;
      world.chain.setBaseFee(3_000_000_000n);
      signer.sign = async (...asked) => {
        if (world.clock.monotonicMs() > untilMs) return sign(...asked);
        throw new SignerAway("connection refused");
      };
    });
    const payload = { to: TO, value: "1", gas: 21_000 };
    const { txId } = await world.settle(node.node.api.create(transfer({ payload })));
    await world.allSettled(1);
    expect(node.signer.undeclared, "the other price was refused at first").toBe(1);
    expect(ops.row(txId)).toMatchObject({ state: "CONFIRMED", nonce: 0, attempts: [{ kind: "initial" }] });
    expect(codes(node)).toEqual(["SIGNER_AWAY", "SIGNER_BACK"]);
    checkInvariants(world);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/application/lane/backlog.ts
  it("frees its nonce if its transaction is given up", async () => {
    const node = await start();
    const payload = { ...(transfer().payload as object), value: "666" };
    loseFirstAttempt(node, () => node.signer.refuse(({ value }) => value === 666n));
    const { txId: given } = await world.settle(node.node.api.create(transfer({ payload })));
    await world.allSettled(1);
    expect(ops.row(given)).toMatchObject({ state: "FAILED_FINAL", nonce: null });
    const { txId } = await world.settle(node.node.api.create(transfer()));
    await world.allSettled(2);
    expect(node.signer.undeclared).toBe(1);
    expect(ops.row(txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    checkInvariants(world);
  });
});

describe("a signer that refuses to sign", () => {
  // protects [Signers] src/application/detours/reprice.ts, src/application/detours/another-attempt.ts, src/application/detours/holes.ts
  it("causes one CANNOT_RESIGN alert if it refuses a higher price", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 2_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    node.signer.refuse(() => true);
    world.chain.setBaseFee(40_000_000_000n);
    world.chain.mine();
    await world.until(() => codes(node).includes("CANNOT_RESIGN"));
    await world.clock.advance(30_000);
    expect(codes(node).filter((code) => code === "CANNOT_RESIGN")).toHaveLength(1);
    expect(reloads(node)).toBe(0);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    node.signer.refuse(() => false);
    await world.until(() => ops.kinds(txId).length === 2);
    world.releaseBlocks();
    await ops.settled(txId);
  });

  // protects [Signers] src/application/detours/reprice.ts, src/application/detours/another-attempt.ts, src/application/detours/holes.ts
  it("is named in the history of the transaction that becomes STUCK", async () => {
    const node = await start({ settings: { holePolicy: "heal" } });
    world.holdBlocks();
    await world.settle(node.node.api.create(transfer()));
    await world.settle(node.node.api.reserveNonce({ signer: SIGNER, ttl: "1s" }));
    const txId = await ops.sent(node);
    node.signer.refuse(() => true);
    world.releaseBlocks();
    await world.until(() => ops.row(txId).state === "STUCK", 120_000);
    expect(ops.row(txId).history.at(-1)?.reason).toMatch(/no placeholder takes it: the signer refused it/);
    expect(reloads(node)).toBe(0);
    node.signer.refuse(() => false);
    await world.allSettled(3, 240_000);
    checkInvariants(world);
  });
});
