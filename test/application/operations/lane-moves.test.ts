import { afterEach, describe, expect, it } from "vitest";
import { anIntent, nextUuid } from "../../support/lane-samples.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
afterEach(() => world.close());

const LANE = { chainId: CHAIN_ID, signer: SIGNER };
const reason = "a cell of its own";

/** A world whose signer has had this many transactions, all of them final. */
async function withFinal(count: number, options: WorldOptions = {}) {
  world = new World(options);
  entry = await world.startNode();
  const requests = Array.from({ length: count }, (_, at) => transfer({ requestId: `order-${at}` }));
  for (const request of requests) await create(request);
  await world.allSettled(count);
  return requests;
}

const create = (request: ReturnType<typeof transfer>) => world.settle(entry.node.api.create(request));
const refused = (request: ReturnType<typeof transfer>) => world.refusal(entry.node.api.create(request));
const move = (request: object) =>
  world.settle(entry.node.api.moveSigner(SIGNER, { reason, ...request }, "operator:anna"));

async function left() {
  const moveId = nextUuid();
  await world.until(() => world.rows().every(({ state }) => state === "CONFIRMED"));
  const answer = await move({ step: "leave", moveId });
  return { moveId, answer };
}

describe("a signer that leaves its cell", () => {
  // protects [Cells] src/application/stages/1-create/create.ts, src/application/stages/1-create/answer-existing.ts
  it("is refused for new requests, before anything asks the chain, and known ones are answered", async () => {
    const [known] = await withFinal(2);
    const { answer } = await left();
    expect(answer).toMatchObject({ place: "LEFT", page: { nextNonce: 2, requests: { length: 2 }, next: null } });
    expect(await refused(transfer())).toMatchObject({ code: "SIGNER_MOVED" });
    entry.faults.inject({ kind: "unavailable" });
    expect(await refused(transfer({ payload: { to: SIGNER, value: "1" } }))).toMatchObject({ code: "SIGNER_MOVED" });
    expect(await create(known as ReturnType<typeof transfer>)).toMatchObject({ outcome: "existing", nonce: 0 });
    expect(await world.refusal(entry.node.api.reserveNonce({ signer: SIGNER }))).toMatchObject({
      code: "SIGNER_MOVED",
    });
  });

  it("is leaving until its last transaction is final, and accepts nothing new meanwhile", async () => {
    await withFinal(1);
    world.holdBlocks();
    await create(transfer());
    const moveId = nextUuid();
    const leaving = await move({ step: "leave", moveId });
    expect(leaving).toMatchObject({ place: "LEAVING", waitsFor: { transactions: 1 } });
    expect(leaving).not.toHaveProperty("page");
    expect(await refused(transfer())).toMatchObject({ code: "SIGNER_MOVED" });
    world.releaseBlocks();
    await world.allSettled(2);
    expect(await move({ step: "leave", moveId })).toMatchObject({ place: "LEFT", page: { nextNonce: 2 } });
  });

  // protects [Cells] src/application/detours/intake.ts
  it("ends an intent that comes through a caller's own transaction once it has left", async () => {
    await withFinal(1);
    await left();
    const late = anIntent(LANE);
    world.database.insertIntake(late);
    await world.until(() => world.database.state.transactions.has(late.txId));
    expect(world.database.state.transactions.get(late.txId)).toMatchObject({
      ...{ state: "FAILED_FINAL", subState: "REJECTED", nonce: null },
      lastError: expect.stringContaining("has left this cell"),
    });
  });

  // protects [Cells] src/application/detours/reconcile.ts, src/domain/ledger/standing.ts
  it("raises no alert for the transactions of the other cell, and gives their nonces to nothing", async () => {
    await withFinal(1);
    const { moveId, answer } = await left();
    world.holdBlocks();
    world.chain.injectForeign(SIGNER);
    await world.clock.advance(10 * 60_000);
    world.releaseBlocks();
    world.chain.mineForeign(SIGNER, 8);
    await world.clock.advance(10 * 60_000);
    const codes = entry.events.map((event) => (event.type === "alert" ? event.code : event.type));
    expect(codes.filter((code) => ["nonce.drift", "FOREIGN_PENDING", "EXTERNAL_KEY_USE"].includes(code))).toEqual([]);
    expect(await move({ step: "leave", moveId })).toEqual(answer);
  });

  // protects [Cells] src/application/stages/2-allocate/allocate.ts
  it("is refused by an owner that has not noticed, which reports no use of the key", async () => {
    // The owner asks the chain for its count before each create.
    await withFinal(1, { settings: { nonceStateTimeoutMs: 0 } });
    await left();
    world.chain.mineForeign(SIGNER, 8);
    expect(await refused(transfer())).toMatchObject({ code: "SIGNER_MOVED" });
    expect(entry.events.filter(({ type }) => type === "nonce.drift")).toEqual([]);
  });

  it("comes back with what it used elsewhere, and goes on at the nonce of the other cell", async () => {
    await withFinal(1);
    const { answer } = await left();
    const expected = await move({ step: "expect" });
    expect(await refused(transfer())).toMatchObject({ code: "SIGNER_MOVED" });
    const page = { ...("page" in answer ? answer.page : {}), moveId: expected.moveId, nextNonce: 1 };
    const digits = JSON.parse(JSON.stringify(page, (_, value) => (typeof value === "bigint" ? `${value}` : value)));
    expect(await move({ step: "arrive", page: digits })).toMatchObject({ place: "HERE", after: null });
    expect(await refused(transfer())).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(await create(transfer())).toMatchObject({ nonce: 1 });
  });

  it.each([
    [{ step: "go" }, "step"],
    [{ step: "leave" }, "moveId"],
    [{ step: "expect", moveId: nextUuid() }, "moveId"],
    [{ step: "leave", moveId: nextUuid(), after: "../" }, "after"],
    [{ step: "arrive", page: { requests: ["x"] } }, "page.requests"],
    [{ step: "expect", reason: "" }, "reason"],
  ])("is not moved by %j", async (request, path) => {
    await withFinal(0);
    const answer = entry.node.api.moveSigner(SIGNER, { reason, ...request }, "operator:anna");
    expect(await world.refusal(answer)).toMatchObject({ code: "INVALID_REQUEST", extras: { path } });
  });
});
