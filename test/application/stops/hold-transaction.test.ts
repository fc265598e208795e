import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { ANYBODY, type Scope } from "../../../src/domain/keys/principal.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { OperatedWorld, startTwo } from "../../support/operations.ts";
import { forSigner } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

const within = (ms: number) => new Date(world.clock.now().getTime() + ms).toISOString();
const sends = (txId: string) => ops.row(txId).submitAttempts;
const events = (txId: string) => ops.row(txId).history.map(({ event }) => event);
const refusal = (request: Promise<unknown>) => world.refusal(request);

/** A transaction that was sent and that an operator then put on hold. */
async function held(entry: WorldNode, overrides: Parameters<typeof transfer>[0] = {}): Promise<string> {
  const txId = await ops.sent(entry, overrides);
  await ops.act(entry, "suspend", { txId });
  return txId;
}

/** Counts signatures from now on. */
function countSignatures({ signer }: WorldNode): () => number {
  const sign = signer.sign.bind(signer);
  let signatures = 0;
  signer.sign = (address, unsigned) => {
    signatures += unsigned.length;
    return sign(address, unsigned);
  };
  return () => signatures;
}

describe("a sent transaction that is held", () => {
  // protects [Times and holds] src/application/lane/tracked.ts, src/application/detours/another-attempt.ts, src/application/loops/stuck-watch.ts, src/application/loops/tend.ts
  it("is not resent, repriced or marked stuck", async () => {
    const settings = { stuckAfterMs: 120_000, alertHeadAgeMs: 60_000, alertOldestAgeMs: 60_000 };
    const entry = await start({ settings });
    world.holdBlocks();
    const txId = await held(entry);
    const before = sends(txId);
    world.chain.dropAllTransactions();
    world.chain.setBaseFee(50_000_000_000n);
    await world.clock.advance(600_000);
    expect(sends(txId)).toBe(before);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(ops.row(txId)).toMatchObject({ state: "TRACKING", heldSince: expect.any(Date) });
    expect(entry.events.filter((event) => event.type === "alert")).toEqual([]);
    await ops.act(entry, "resume", { txId });
    await world.clock.advance(10_000);
    // After a hold, the time until the transaction counts as STUCK starts anew; the time on hold is not counted.
    expect(ops.row(txId).state).toBe("TRACKING");
    world.chain.setBaseFee(1_000_000_000n);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(ops.decisions(txId)).toEqual(["hold by operator:ops: suspend", "unhold by operator:ops: resume"]);
    checkInvariants(world);
  });

  it("may still be mined and confirmed", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await held(entry);
    const { causes, help } = await world.settle(entry.node.api.explain(txId));
    expect(causes[0]).toMatchObject({ code: "HELD", text: expect.stringMatching(/may still be mined/) });
    expect(help.map(({ code }) => code)).toContain("RESUME_TRANSACTION");
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(await refusal(entry.node.api.act(actionRequest("suspend", txId)))).toMatchObject({ code: "CONFLICT" });
  });

  it("is held once, even if the hold is requested repeatedly", async () => {
    const two = await startTwo();
    ({ world, ops } = two);
    world.holdBlocks();
    const txId = await ops.sent(two.owner);
    for (const entry of [two.other, two.owner, two.other]) await ops.act(entry, "suspend", { txId });
    expect(events(txId).filter((event) => event === "hold")).toHaveLength(1);
    const before = sends(txId);
    world.crash(two.owner);
    await world.until(() => world.ownerOf(SIGNER) !== undefined && world.tokenOf(SIGNER) > 1);
    world.chain.dropAllTransactions();
    await world.clock.advance(300_000);
    expect(sends(txId)).toBe(before);
    const third = await world.startNode();
    await ops.act(third, "resume", { txId });
    await ops.act(third, "resume", { txId });
    expect(events(txId).filter((event) => event === "unhold")).toHaveLength(1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  it("is not cancelled when its validUntil passes", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await held(entry, { validUntil: within(5_000) });
    await world.clock.advance(120_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    await ops.act(entry, "resume", { txId });
    await world.until(() => ops.kinds(txId).length > 1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
  });

  it("causes no signature when its validUntil passes", async () => {
    const entry = await start();
    world.holdBlocks();
    await held(entry, { validUntil: within(5_000) });
    const term = world.tokenOf(SIGNER);
    const signatures = countSignatures(entry);
    await world.clock.advance(120_000);
    expect({ signatures: signatures(), term: world.tokenOf(SIGNER) }).toEqual({ signatures: 0, term });
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("is not cancelled before the resume if the hold came after its validUntil", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    await ops.lane(entry, "suspend");
    // The deadline passes, so a cancel is due; but the suspended lane sends nothing, so the cancel waits.
    await world.clock.advance(30_000);
    await ops.act(entry, "suspend", { txId });
    const signatures = countSignatures(entry);
    await ops.lane(entry, "resume");
    await world.clock.advance(20_000);
    expect({ signatures: signatures(), kinds: ops.kinds(txId) }).toEqual({ signatures: 0, kinds: ["initial"] });
    await ops.act(entry, "resume", { txId });
    await world.until(() => ops.row(txId).expiredAt !== null);
  });

  // protects [Times and holds] src/domain/pace/transaction-pace.ts
  it("can still be resubmitted or cancelled by an operator", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await held(entry);
    world.chain.dropAllTransactions();
    const before = sends(txId);
    await ops.act(entry, "resubmit", { txId });
    await world.until(() => sends(txId) > before);
    await world.clock.advance(200_000);
    expect(sends(txId)).toBe(before + 1);
    await ops.act(entry, "cancel", { txId });
    await world.clock.advance(200_000);
    expect(sends(txId)).toBe(before + 2);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    checkInvariants(world);
  });

  it("is named in the explanations of the transactions behind it", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await held(entry);
    world.chain.dropAllTransactions();
    const behind = await ops.create(entry);
    await world.clock.advance(5_000);
    const { blockedBy, summary } = await world.settle(entry.node.api.explain(behind));
    expect(blockedBy).toEqual({ txId, nonce: 0 });
    expect(summary).toMatch(
      /waits behind nonce 0, which is TRACKING: it is held back \(operator:ops: because\).*let nonce 0 go on/,
    );
    // Transactions behind one that is on hold are signed and sent as far as the in-flight window allows, as behind any
    // unmined transaction.
    expect(sends(behind)).toBeGreaterThan(0);
    await ops.act(entry, "resume", { txId });
    world.releaseBlocks();
    await ops.settled(txId, behind);
  });

  it("is not sent if the hold arrives during the commit of a resubmission", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    entry.store.pause();
    const asked = entry.node.api.act(actionRequest("suspend", txId));
    await world.clock.advance(100);
    entry.store.resume();
    await world.settle(asked);
    const before = sends(txId);
    await world.clock.advance(200_000);
    expect(sends(txId)).toBe(before);
  });
});

describe("a held transaction with a nonce but no signature", () => {
  // protects [Times and holds] src/application/lane/backlog.ts
  it("is not signed until it is resumed", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    const [txId, behind] = [await ops.create(entry), await ops.create(entry)];
    await ops.act(entry, "suspend", { txId });
    await ops.lane(entry, "resume");
    await world.clock.advance(60_000);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", attempts: [] });
    expect(ops.row(behind)).toMatchObject({ state: "ALLOCATED", attempts: [] });
    await ops.act(entry, "resume", { txId });
    await ops.settled(txId, behind);
    expect([ops.row(txId).nonce, ops.row(behind).nonce]).toEqual([0, 1]);
    checkInvariants(world);
  });

  // protects [Times and holds] src/application/stages/3-sign/sign.ts, src/application/detours/expiry.ts
  it("is not sent after the resume if its validUntil has passed", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    await ops.act(entry, "suspend", { txId });
    await ops.lane(entry, "resume");
    await world.clock.advance(90_000);
    await ops.act(entry, "resume", { txId });
    await ops.settled(txId);
    expect(ops.row(txId)).toMatchObject({ subState: "EXPIRED", nonce: null, attempts: [] });
  });

  it("does not expire during the hold", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    await ops.act(entry, "suspend", { txId });
    await world.clock.advance(90_000);
    expect(ops.row(txId).state).toBe("ALLOCATED");
    await ops.act(entry, "resume", { txId });
    await ops.settled(txId);
    expect(ops.row(txId)).toMatchObject({ subState: "EXPIRED", nonce: null });
  });
});

describe("a held unsigned transaction below a nonce that may have been used", () => {
  it("is not replaced by a cancellation during the hold", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: "10m" }));
    await ops.act(entry, "suspend", { txId });
    await ops.lane(entry, "resume");
    await world.clock.advance(90_000);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", expiredAt: null });
    expect(events(txId)).not.toContain("amend");
    await ops.act(entry, "resume", { txId });
    await world.until(() => ops.row(txId).expiredAt !== null);
  });
});

describe("a held transaction without a nonce", () => {
  it("gets no nonce during the hold", async () => {
    const entry = await start({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    const [txId, other] = [await ops.create(entry), await ops.create(entry)];
    for (const each of [txId, other, txId]) await ops.act(entry, "suspend", { txId: each });
    const view = await world.settle(entry.node.api.transaction(txId, ["history"]));
    expect(view).toMatchObject({ state: "CREATED", subState: "AWAITING_APPROVAL", heldSince: expect.any(Date) });
    expect(view.history?.map(({ event, ordinal }) => [ordinal, event])).toEqual([
      [1, "accept"],
      [2, "await"],
      [3, "hold"],
    ]);
    const { causes } = await world.settle(entry.node.api.explain(txId));
    expect(causes.map(({ code }) => code)).toEqual(["HELD", "AWAITING_APPROVAL"]);
    await ops.act(entry, "approve", { txId });
    await world.clock.advance(60_000);
    expect(world.database.state.transactions.has(txId)).toBe(false);
    await ops.act(entry, "cancel", { txId: other });
    expect(ops.outcome(other)).toBe("FAILED_FINAL/CANCELLED");
    await ops.act(entry, "resume", { txId });
    await world.until(() => world.database.state.transactions.has(txId));
    await ops.settled(txId);
    expect(events(txId).slice(0, 6)).toEqual(["accept", "await", "hold", "approve", "unhold", "allocate"]);
    checkInvariants(world);
  });

  it("does not delay later transactions", async () => {
    const entry = await start();
    world.holdBlocks();
    const ports = { codec: createCodec(), entropy: createSeededEntropy(9, world.clock), chainIds: [CHAIN_ID] };
    const [first, second] = [
      normalise(ports, transfer({ payload: { to: SIGNER, value: 1 } })),
      normalise(ports, transfer()),
    ];
    world.database.insertIntake(first);
    await ops.act(entry, "suspend", { txId: first.txId });
    world.database.insertIntake(second);
    await world.until(() => world.database.state.transactions.has(second.txId));
    expect(world.database.state.transactions.has(first.txId)).toBe(false);
    await ops.act(entry, "cancel", { txId: first.txId });
    expect(ops.outcome(first.txId)).toBe("FAILED_FINAL/CANCELLED");
    expect(events(first.txId)).toEqual(["accept", "hold", "callOff"]);
  });
});

describe("permission to hold a transaction", () => {
  // protects [Times and holds] src/contract/scopes.ts, src/application/authority.ts
  it("requires an API key with the scope `operate`", async () => {
    const entry = await start();
    world.holdBlocks();
    const { txId } = await world.settle(entry.node.api.create(transfer(), "ann"));
    const asKey = (name: string, ...scopes: readonly Scope[]) =>
      limitedTo({ ...ANYBODY, name, scopes: new Set(scopes) }, entry.node.api);
    for (const action of ["suspend", "resume"] as const) {
      expect(await refusal(asKey("ann", "read", "submit").act(actionRequest(action, txId)))).toMatchObject({
        code: "FORBIDDEN",
        extras: { rule: "scope:operate" },
      });
    }
    expect(await world.settle(asKey("bob", "operate").act(actionRequest("suspend", txId)))).toHaveProperty("heldSince");
  });
});

function actionRequest(action: "suspend" | "resume", txId: string) {
  return { action, txId, request: { reason: `${action} it` }, actor: "operator:ops" };
}
