import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import type { Faults } from "../../doubles/simulated-chain/faults.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

const SIGNER: Address = `0x${"5e".repeat(20)}`;
const SEND = "eth_sendTransaction";

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    await world.settle(entry.node.api.create(transfer({ signer: SIGNER })));
  }
}

async function knownLane(settings: NonNullable<ConstructorParameters<typeof World>[0]>["settings"] = {}) {
  world = new World({ signers: [], nodeSigners: [SIGNER], settings });
  const entry = await world.startNode();
  await create(entry, 1);
  await world.allSettled(1);
  world.holdBlocks();
  return entry;
}

function results(entry: WorldNode): readonly string[] {
  return entry.events.flatMap((event) => (event.type === "gray.zone" ? [event.result] : []));
}

function alerts(entry: WorldNode, code: string) {
  return entry.events.filter((event) => event.type === "alert" && event.code === code);
}

/** Requests that the signing node received: the nonce of each, and whether it was accepted. */
function signed() {
  return world.chain.nodeSigned.map(({ nonce, submission }) => [nonce, submission.accepted]);
}

describe("a signer whose key is in the chain node", () => {
  it("has attempts without a hash until the node returns the hash", async () => {
    world = new World({ signers: [], nodeSigners: [SIGNER] });
    const entry = await world.startNode();
    await create(entry, 5);
    await world.allSettled(5);
    expect(world.rows().map(({ state, nonce }) => [state, nonce])).toEqual(
      [0, 1, 2, 3, 4].map((nonce) => ["CONFIRMED", nonce]),
    );
    const [row] = world.rows();
    expect(row?.attempts).toMatchObject([{ kind: "initial", nodeSigned: true, rawTransaction: null }]);
    expect(row?.receipt?.txHash).toBe(row?.attempts[0]?.txHash);
    expect(world.chain.witness).toEqual([]);
    expect(results(entry)).toEqual([]);
  });

  it("has its nonce committed before the chain node receives the transaction", async () => {
    world = new World({ signers: [], nodeSigners: [SIGNER] });
    const entry = await world.startNode();
    const stored: boolean[] = [];
    const send = entry.rpc.sendUnsigned.bind(entry.rpc);
    entry.rpc.sendUnsigned = (from, transaction, mayLeave) => {
      const row = world.rows().find(({ nonce }) => nonce === transaction.nonce);
      stored.push(row?.attempts[0]?.firstSentAt !== null && row?.claim?.ordinal === 1);
      return send(from, transaction, mayLeave);
    };
    await create(entry, 3);
    await world.allSettled(3);
    expect(stored).toEqual([true, true, true]);
  });

  it("sends again after a refusal for insufficient funds", async () => {
    const entry = await knownLane();
    await create(entry, 1);
    world.chain.setBalance(SIGNER, 0n);
    await create(entry, 1);
    await world.until(() => world.rows()[2]?.lastError?.startsWith("insufficientFunds") === true);
    world.chain.setBalance(SIGNER, 10n ** 20n);
    world.releaseBlocks();
    await world.allSettled(3);
    expect(results(entry)).toEqual([]);
  });
});

describe("a second payload for a nonce of a key in the chain node", () => {
  it("is never signed", async () => {
    const entry = await knownLane({ resubmitIntervalMs: 5_000, holePolicy: "heal" });
    world.chain.setBaseFee(50_000_000_000n);
    await create(entry, 1);
    await world.until(() => world.rows()[1]?.subState === "BROADCAST");
    world.chain.mine(3);
    await world.clock.advance(60_000);
    const [, row] = world.rows();
    expect(row?.attempts).toHaveLength(1);
    expect(row?.submitAttempts).toBeGreaterThan(2);
    for (const action of ["cancel", "reprice"] as const) {
      const actionRequest = {
        action,
        txId: row?.txId as string,
        request: { reason: "why not" },
        actor: "operator:ops",
      };
      await expect(world.settle(entry.node.api.act(actionRequest))).rejects.toMatchObject({ code: "CONFLICT" });
    }
    expect(entry.events.filter((event) => event.type === "lane.stopped")).toEqual([]);
    world.chain.setBaseFee(1_000_000_000n);
    world.releaseBlocks();
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED" });
    expect(world.rows()[1]?.attempts).toHaveLength(1);
  });
});

describe("a nonce hole of a key in the chain node", () => {
  // protects [Keys of the node, other chains, comparison] src/application/detours/holes.ts
  it("makes the transaction above the hole STUCK even with holePolicy `heal`", async () => {
    const entry = await knownLane({ holePolicy: "heal" });
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: "2s" }));
    await create(entry, 1);
    await world.until(() => world.rows()[1]?.state === "STUCK");
    expect(world.rows()[1]?.history.at(-1)?.reason).toMatch(/nonce 1 below it is held by nothing/);
    expect(world.rows()).toHaveLength(2);
    expect(alerts(entry, "PASS_FAILED")).toEqual([]);
  });
});

describe("an eth_sendTransaction request with an unknown result", () => {
  it.each([
    ["in the pool", () => undefined],
    ["in the pool, by the node's own look-up", (faults: Faults) => faults.lookUpByNonce()],
    // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/note-answer.ts
  ])("is resolved if its payload is found %s", async (_, ability) => {
    const entry = await knownLane();
    ability(entry.faults);
    entry.faults.inject({ kind: "loseReply" }, { method: SEND, times: 1 });
    await create(entry, 3);
    await world.until(() => results(entry).includes("adopted"));
    expect(world.rows()[1]?.attempts[0]?.txHash).toBe(world.chain.nodeSigned[1]?.hash);
    world.releaseBlocks();
    await world.allSettled(4);
    expect(world.rows().every(({ state, attempts }) => state === "CONFIRMED" && attempts.length === 1)).toBe(true);
    expect(results(entry)).toEqual(["entered", "adopted"]);
    expect(alerts(entry, "GRAY_ZONE_ENTERED")).toHaveLength(1);
    expect(alerts(entry, "GRAY_ZONE_LEFT")).toHaveLength(1);
    expect(world.rows()[1]?.history.map(({ event }) => event)).toContain("adopt");
  });

  it.each([
    ["by the node's own look-up", (faults: Faults) => faults.lookUpByNonce()],
    ["by counts of old blocks", () => undefined],
    ["by scanning blocks if the node is pruned", (faults: Faults) => faults.prune(1)],
  ])("is resolved if the mined payload is found %s", async (_, ability) => {
    const entry = await knownLane();
    entry.faults.inject({ kind: "loseReply" }, { method: SEND, times: 1 });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
    await create(entry, 1);
    await world.until(() => world.rows()[1]?.subState === "UNKNOWN_SUBMIT_RESULT");
    world.chain.mine(80);
    await world.clock.advance(5_000);
    expect(world.rows()[1]?.subState).toBe("UNKNOWN_SUBMIT_RESULT");
    entry.faults.heal();
    ability(entry.faults);
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED" });
    expect(signed()).toEqual([
      [0, true],
      [1, true],
    ]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/note-answer.ts
  it("ends as NONCE_CONSUMED_EXTERNALLY if another program used the nonce", async () => {
    const entry = await knownLane();
    entry.faults.inject({ kind: "unavailable" }, { method: SEND, times: 1 });
    await create(entry, 1);
    await world.until(() => world.rows()[1]?.subState === "UNKNOWN_SUBMIT_RESULT");
    const foreign = world.chain.mineForeign(SIGNER).transactions[0]?.transaction.hash;
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", receipt: { txHash: foreign } });
    expect(results(entry)).toEqual(["entered", "foreign"]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/note-answer.ts
  it("is repeated only after the nonce stayed free for the whole timeout", async () => {
    const entry = await knownLane({ grayZoneTimeoutMs: 120_000 });
    entry.faults.inject({ kind: "unavailable" }, { method: SEND, times: 1 });
    await create(entry, 1);
    await world.until(() => results(entry).includes("entered"));
    await world.clock.advance(100_000);
    expect(world.rows()[1]?.subState).toBe("UNKNOWN_SUBMIT_RESULT");
    expect(world.chain.nodeSigned).toHaveLength(1);
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    expect(results(entry)).toEqual(["entered", "sentAnew"]);
    expect(alerts(entry, "GRAY_ZONE_TIMED_OUT")).toHaveLength(1);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(world.rows()[1]?.attempts).toHaveLength(1);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/note-answer.ts
  it("is never repeated if an unknown transaction used the nonce", async () => {
    const entry = await knownLane({ grayZoneLookback: 10, grayZoneTimeoutMs: 60_000, grayZoneIntervalMs: 10_000 });
    entry.faults.inject({ kind: "unavailable" }, { method: SEND, times: 1 });
    await create(entry, 1);
    await world.until(() => results(entry).includes("entered"));
    world.chain.mineForeign(SIGNER);
    world.chain.mine(50);
    entry.faults.prune(1);
    await world.clock.advance(200_000);
    expect(results(entry)).toEqual(["entered"]);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", subState: "UNKNOWN_SUBMIT_RESULT" });
    entry.faults.heal();
    await world.until(() => results(entry).includes("foreign"));
  });

  it("is not resolved while the node does not respond", async () => {
    const entry = await knownLane({ grayZoneTimeoutMs: 60_000 });
    entry.faults.inject({ kind: "loseReply" }, { method: SEND, times: 1 });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
    await create(entry, 1);
    await world.clock.advance(600_000);
    expect(world.rows()[1]?.subState).toBe("UNKNOWN_SUBMIT_RESULT");
    expect(signed()).toHaveLength(2);
    entry.faults.heal();
    await world.until(() => results(entry).includes("adopted"));
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/broadcast.ts
  it("blocks all later sends of the lane", async () => {
    const entry = await knownLane();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: SEND });
    await create(entry, 4);
    await world.clock.advance(30_000);
    expect(results(entry)).toEqual(["entered"]);
    expect(world.rows().filter(({ subState }) => subState === "UNKNOWN_SUBMIT_RESULT")).toHaveLength(1);
    heal();
    world.releaseBlocks();
    await world.allSettled(5, 900_000);
    expect(world.rows().map(({ nonce, state }) => [nonce, state])).toEqual(
      [0, 1, 2, 3, 4].map((nonce) => [nonce, "CONFIRMED"]),
    );
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/4-broadcast/broadcast.ts
  it("is assumed for payloads that the previous owner may have sent", async () => {
    const entry = await knownLane();
    entry.faults.inject({ kind: "hang", executed: true }, { method: SEND, times: 1 });
    await create(entry, 1);
    await world.until(() => world.chain.nodeSigned.length === 2);
    world.crash(entry);
    const next = await world.startNode();
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    expect(results(next)).toContain("adopted");
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(world.chain.nodeSigned.filter(({ submission }) => submission.accepted)).toHaveLength(2);
  });

  it("is repeated after one timeout in total, even after takeovers", async () => {
    const entry = await knownLane({ grayZoneTimeoutMs: 120_000, grayZoneIntervalMs: 5_000 });
    entry.faults.inject({ kind: "unavailable" }, { method: SEND, times: 1 });
    await create(entry, 1);
    await world.until(() => results(entry).includes("entered"));
    const enteredMs = world.clock.monotonicMs();
    let owner = entry;
    for (let term = 0; term < 3; term++) {
      await world.clock.advance(25_000);
      world.crash(owner);
      owner = await world.startNode();
      await world.until(() => owner.events.some(({ type }) => type === "lane.resumed"));
    }
    expect(world.rows()[1]?.subState).toBe("UNKNOWN_SUBMIT_RESULT");
    await world.until(() => results(owner).includes("sentAnew"));
    const waitedMs = world.clock.monotonicMs() - enteredMs;
    expect(waitedMs).toBeGreaterThanOrEqual(119_000);
    expect(waitedMs).toBeLessThan(130_000);
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", nonce: 1 });
  });

  it("is assumed after a crash between commit and send", async () => {
    world = new World({ signers: [], nodeSigners: [SIGNER], settings: { grayZoneTimeoutMs: 30_000 } });
    let crashed = false;
    const entry: WorldNode = await world.startNode({
      failpoint: (name) => {
        if (name !== "sign.committed" || crashed) return;
        crashed = true;
        world.crash(entry);
      },
    });
    void entry.node.api.create(transfer({ signer: SIGNER })).catch(() => undefined);
    await world.until(() => crashed);
    expect(world.chain.nodeSigned).toEqual([]);
    const next = await world.startNode();
    await world.allSettled(1, 300_000);
    expect(results(next)).toEqual(["entered", "sentAnew"]);
    expect(signed()).toEqual([[0, true]]);
  });
});
