import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import { planShiftDown } from "../../../src/domain/nonces/holes.ts";
import {
  BatchRefused,
  type BindWrite,
  type ReserveResult,
  type ReserveWrite,
  type WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  BY_ANYBODY,
  commitOne,
  holdLane,
  nonces,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const MINUTE = 60_000;

/**
 * Contract for reservations and unused nonces (holes): each nonce is held by at most one transaction, reservation or
 * hole at a time.
 */
export function nonceContract(context: LaneStoreContext): void {
  const hold = () => holdLane(context.store);
  const commit = (write: Parameters<typeof commitOne>[1]) => commitOne(context.store, write);
  const snapshot = async (fence: Fence) => {
    const found = await context.store.loadLane(fence);
    if (found === null) throw new Error("the lane is lost");
    return found;
  };
  const reserve = async (fence: Fence, wishes: Partial<ReserveWrite> = {}): Promise<ReserveResult> => {
    const base = {
      kind: "reserve",
      fence,
      floor: 0,
      reservationId: randomUUID(),
      requestId: null,
      ...BY_ANYBODY,
    } as const;
    const outcome = await commit({ ...base, ttlMs: MINUTE, ...wishes });
    if (outcome.status !== "reserved") throw new Error(`the reservation ended as ${outcome.status}`);
    return outcome.result;
  };
  const reserved = async (fence: Fence, wishes: Partial<ReserveWrite> = {}) => {
    const result = await reserve(fence, wishes);
    if (result.result !== "created") throw new Error(`the reservation ended as ${result.result}`);
    return result.reservation;
  };
  const release = (fence: Fence, reservationId: string) => commit({ kind: "release", fence, reservationId });
  const bind = (fence: Fence, nonce: number, more: Partial<BindWrite> = {}): Promise<WriteOutcome> =>
    commit({
      ...{ kind: "bind", fence, nonce, intent: anIntent(fence.lane), attempt: anAttempt(), reason: "test", ...more },
    });
  const fill = (fence: Fence, wanted: readonly number[], floor: number | null = null) =>
    commit({ kind: "allocate", fence, floor, fill: wanted, items: [{ intent: anIntent(fence.lane) }] });
  const givenUp = async (fence: Fence, floor = 0) => {
    const intent = anIntent(fence.lane);
    const [nonce] = nonces(await allocate(context.store, fence, [intent], floor));
    const completion = { state: "FAILED_FINAL", subState: "REJECTED", settled: true, txHash: null } as const;
    const item = step(intent.txId, AT.allocated, "giveUp", { reason: "the signer refused", completion });
    expect(await apply(context.store, fence, [item])).toEqual(["applied"]);
    return { txId: intent.txId, nonce: nonce as number };
  };

  // protects [JSON-RPC] src/domain/ledger/bind.ts, src/application/operations/reservations.ts
  it("a raw transaction of a caller is accepted only at the next nonce above all others", async () => {
    const fence = await hold();
    const chosen = { floor: 4 };
    expect(await bind(fence, 5, { chosen })).toMatchObject({ result: "conflict", next: 4 });
    expect(await bind(fence, 3, { chosen })).toMatchObject({ result: "conflict", next: 4 });
    expect(await bind(fence, 4, { chosen })).toMatchObject({ status: "bound", result: "settled" });
    expect((await snapshot(fence)).cursor).toBe(5);
    expect(await bind(fence, 4, { chosen: { floor: null } })).toMatchObject({ result: "conflict", next: 5 });
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], null))).toEqual([5]);
    expect(await bind(fence, 5, { chosen: { floor: null } })).toMatchObject({ result: "conflict", next: 6 });
  });

  it("a raw transaction of a caller is accepted at a nonce that this caller reserved", async () => {
    const fence = await hold();
    const { nonce, reservationId } = await reserved(fence, { owner: "mine" });
    const as = (owner: string | null) => ({
      chosen: { floor: null },
      intent: anIntent(fence.lane, { owner }),
    });
    for (const owner of ["other", null]) {
      expect(await bind(fence, nonce, as(owner))).toMatchObject({ result: "conflict", next: nonce + 1 });
    }
    const mine = as("mine");
    expect(await bind(fence, nonce, mine)).toMatchObject({ result: "settled" });
    expect(await context.store.reservation(reservationId)).toMatchObject({
      state: "SUBMITTED",
      txId: mine.intent.txId,
    });
    expect(await bind(fence, nonce, as("mine"))).toMatchObject({ result: "conflict" });
  });

  it("a raw transaction of a caller is refused at a released nonce, since later transactions may have moved there", async () => {
    const fence = await hold();
    const { nonce, reservationId } = await reserved(fence);
    await allocate(context.store, fence, [anIntent(fence.lane)], null);
    await release(fence, reservationId);
    expect(await bind(fence, nonce, { chosen: { floor: null } })).toMatchObject({
      result: "conflict",
      next: nonce + 2,
    });
  });

  it("a reservation takes the lane's next nonce, and no transaction gets that nonce", async () => {
    const fence = await hold();
    expect(await reserve(fence, { floor: 4 })).toMatchObject({ result: "created", recycled: false });
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], null))).toEqual([5]);
    expect(await snapshot(fence)).toMatchObject({ cursor: 6, reservations: [{ nonce: 4 }], holes: [] });
  });

  it("a reservation keeps the name of the API key that made it", async () => {
    const fence = await hold();
    const { reservationId } = await reserved(fence, { owner: "wallet" });
    expect(await context.store.reservation(reservationId)).toMatchObject({ owner: "wallet" });
    const { reservationId: nobodys } = await reserved(fence);
    expect(await context.store.reservation(nobodys)).toMatchObject({ owner: null });
  });

  it("a reservation on a new lane without a floor is refused", async () => {
    const fence = await hold();
    expect(await reserve(fence, { floor: null })).toEqual({ result: "noCursor" });
    expect(await snapshot(fence)).toMatchObject({ cursor: null, reservations: [] });
  });

  it("a reservation is stored with all its fields", async () => {
    const fence = await hold();
    const made = await reserved(fence, { requestId: "mine", floor: 2 });
    expect(made).toMatchObject({ lane: fence.lane, nonce: 2, requestId: "mine", state: "RESERVED", txId: null });
    const read = await context.store.reservation(made.reservationId);
    expect(read).toMatchObject({ ...made, expiresAt: expect.any(Date) });
    expect(Math.abs((read?.expiresAt.getTime() ?? 0) - made.expiresAt.getTime())).toBeLessThanOrEqual(1);
    const [open] = (await snapshot(fence)).reservations;
    expect(open?.leftMs).toBeGreaterThan(0);
    expect(open?.leftMs).toBeLessThanOrEqual(MINUTE);
    expect(await context.store.reservation(randomUUID())).toBeNull();
    expect(await context.store.reservation("no uuid")).toBeNull();
    expect(await context.store.lanes(fence.lane.signer)).toMatchObject([{ reserved: 1, holes: [] }]);
  });

  // protects [Reservations] src/domain/ledger/reserve.ts
  it("a repeated request id returns the same reservation, even after it has ended", async () => {
    const fence = await hold();
    const first = await reserved(fence, { requestId: "again" });
    expect(await reserve(fence, { requestId: "again" })).toMatchObject({
      result: "existing",
      reservation: { reservationId: first.reservationId, nonce: first.nonce, state: "RESERVED" },
    });
    await release(fence, first.reservationId);
    expect(await reserve(fence, { requestId: "again" })).toMatchObject({
      result: "existing",
      reservation: { state: "RELEASED" },
    });
    expect((await snapshot(fence)).cursor).toBe(first.nonce + 1);
  });

  it("request ids of reservations are separate per lane", async () => {
    const [one, two] = [await hold(), await hold()];
    await reserved(one, { requestId: "shared" });
    expect(await reserve(two, { requestId: "shared" })).toMatchObject({ result: "created" });
    const intent = anIntent(one.lane, { requestId: "a transaction's" });
    await allocate(context.store, one, [intent]);
    expect(await reserve(one, { requestId: "a transaction's" })).toEqual({
      result: "requestTaken",
      txId: intent.txId,
      owner: null,
    });
  });

  it("a released nonce is given to the next transaction, then allocation continues at the lane's next nonce", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence, { floor: 7 });
    await allocate(context.store, fence, [anIntent(fence.lane)], null);
    expect(await release(fence, reservationId)).toMatchObject({
      status: "released",
      result: "settled",
      hole: { nonce, why: "released", reservationId },
    });
    expect((await snapshot(fence)).holes).toMatchObject([{ nonce: 7, why: "released", reservationId }]);
    expect(await fill(fence, [7])).toMatchObject({
      items: [{ result: "created", nonce: 7, recycled: true }],
      cursor: 9,
    });
    expect(await fill(fence, [7])).toMatchObject({ items: [{ result: "created", nonce: 9 }], cursor: 10 });
    expect((await snapshot(fence)).holes).toEqual([]);
  });

  it("a free nonce is given to only one of several requests in the same commit", async () => {
    const fence = await hold();
    const { reservationId } = await reserved(fence);
    await release(fence, reservationId);
    const want = { kind: "allocate", fence, floor: null, fill: [0] } as const;
    const outcomes = await outcomesOf(context.store, [
      { ...want, items: [{ intent: anIntent(fence.lane) }] },
      { ...want, items: [{ intent: anIntent(fence.lane) }] },
      {
        kind: "reserve",
        fence,
        floor: null,
        fill: [0],
        reservationId: randomUUID(),
        requestId: null,
        ttlMs: MINUTE,
        ...BY_ANYBODY,
      },
    ]);
    expect(outcomes).toMatchObject([
      { items: [{ nonce: 0, recycled: true }] },
      { items: [{ nonce: 1 }] },
      { result: { result: "created", recycled: false, reservation: { nonce: 2 } } },
    ]);
  });

  // protects [Reservations] src/domain/ledger/allocate.ts, src/application/operations/reservations.ts
  it("a reservation takes the lowest free nonce first", async () => {
    const fence = await hold();
    const [low, high] = [await reserved(fence), await reserved(fence)];
    await release(fence, high.reservationId);
    await release(fence, low.reservationId);
    expect(await reserve(fence, { fill: [1, 0] })).toMatchObject({ recycled: true, reservation: { nonce: 0 } });
  });

  it("a nonce hole below the floor is not used, since another program has used that nonce", async () => {
    const fence = await hold();
    const { reservationId } = await reserved(fence);
    await release(fence, reservationId);
    expect(await fill(fence, [0], 1)).toMatchObject({ items: [{ nonce: 1 }] });
    expect((await snapshot(fence)).holes).toMatchObject([{ nonce: 0 }]);
  });

  it("a repeated request gets no free nonce", async () => {
    const fence = await hold();
    const first = anIntent(fence.lane, { requestId: "once" });
    await allocate(context.store, fence, [first]);
    const { reservationId } = await reserved(fence);
    await release(fence, reservationId);
    const items = [{ intent: anIntent(fence.lane, { requestId: "once" }) }, { intent: anIntent(fence.lane) }];
    expect(await commit({ kind: "allocate", fence, floor: null, fill: [1], items })).toMatchObject({
      items: [{ result: "duplicate" }, { result: "created", nonce: 1 }],
    });
  });

  it("a reservation is released only once", async () => {
    const [fence, other] = [await hold(), await hold()];
    const { reservationId } = await reserved(fence);
    const refused = { status: "released", result: "conflict", hole: null };
    expect(await release(other, reservationId)).toEqual(refused);
    expect(await release(fence, randomUUID())).toEqual(refused);
    expect(await release(fence, reservationId)).toMatchObject({ result: "settled" });
    expect(await release(fence, reservationId)).toEqual(refused);
    expect((await snapshot(fence)).holes).toHaveLength(1);
    expect((await snapshot(other)).holes).toEqual([]);
  });

  // protects [Reservations] src/domain/ledger/reserve.ts, src/application/requests/normalise.ts
  it("a reservation expires by the database's clock", async () => {
    const fence = await hold();
    const open = await reserved(fence, { floor: 3 });
    const late = await reserved(fence, { ttlMs: 0 });
    expect(await context.store.reservation(late.reservationId)).toMatchObject({ state: "EXPIRED" });
    expect(await release(fence, late.reservationId)).toMatchObject({ result: "conflict", hole: null });
    expect(await commit({ kind: "expire", fence })).toMatchObject({
      status: "expired",
      holes: [{ nonce: 4, why: "expired", reservationId: late.reservationId }],
    });
    expect(await commit({ kind: "expire", fence })).toEqual({ status: "expired", holes: [] });
    expect(await fill(fence, [4])).toMatchObject({ items: [{ nonce: 5 }] });
    expect(await snapshot(fence)).toMatchObject({
      holes: [{ nonce: 4, why: "expired" }],
      reservations: [{ reservationId: open.reservationId }],
    });
    expect(await context.store.lanes(fence.lane.signer)).toMatchObject([
      { reserved: 1, holes: [{ nonce: 4, why: "expired", since: expect.any(Date) }] },
    ]);
  });

  it("a reservation becomes a signed transaction in one state change", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence, { requestId: "raw", floor: 9 });
    const intent = anIntent(fence.lane, { requestId: "raw", metadata: { by: "caller" } });
    const attempt = anAttempt();
    const reservation = { reservationId, becomes: "SUBMITTED" } as const;
    expect(await bind(fence, nonce, { reservation, intent, attempt })).toMatchObject({
      status: "bound",
      result: "settled",
      requestId: "raw",
    });
    expect(await context.store.transaction(intent.txId)).toMatchObject({
      nonce: 9,
      state: "TRACKING",
      subState: "PENDING",
      requestId: "raw",
      metadata: { by: "caller" },
      submitAttempts: 1,
      attempts: [{ ordinal: 1, kind: "initial", txHash: attempt.txHash, firstSentAt: expect.any(Date) }],
    });
    expect(await context.store.history(intent.txId)).toMatchObject([
      { ordinal: 1, event: "allocate" },
      { ordinal: 2, event: "sign", fromState: "ALLOCATED", state: "TRACKING", reason: "test", token: fence.token },
    ]);
    expect(await context.store.loadRawTransactions([{ txId: intent.txId, ordinal: 1 }])).toEqual([
      attempt.rawTransaction,
    ]);
    expect(await context.store.reservation(reservationId)).toMatchObject({ state: "SUBMITTED", txId: intent.txId });
    expect(await snapshot(fence)).toMatchObject({ tracking: [{ txId: intent.txId }], reservations: [], allocated: 0 });
    expect(await context.store.transactionByRequest(fence.lane, "raw")).toMatchObject({ txId: intent.txId });
  });

  it("a transaction that the caller sent itself is tracked by its hash alone", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence);
    const attempt = anAttempt(1, { kind: "external", rawTransaction: null });
    const intent = anIntent(fence.lane);
    const reservation = { reservationId, becomes: "USED" } as const;
    expect(await bind(fence, nonce, { reservation, intent, attempt })).toMatchObject({ result: "settled" });
    expect(await context.store.transaction(intent.txId)).toMatchObject({
      state: "TRACKING",
      submitAttempts: 0,
      attempts: [{ kind: "external", firstSentAt: null }],
    });
    expect(await context.store.reservation(reservationId)).toMatchObject({ state: "USED" });
  });

  // protects [Reservations] src/domain/ledger/bind.ts, src/domain/ledger/reserve.ts
  it("a reservation becomes a transaction only once, at its own nonce and on its own lane", async () => {
    const [fence, other] = [await hold(), await hold()];
    const { reservationId, nonce } = await reserved(fence, { floor: 5 });
    const reservation = { reservationId, becomes: "SUBMITTED" } as const;
    const intent = anIntent(fence.lane);
    expect(await bind(fence, nonce + 1, { reservation, intent })).toMatchObject({ result: "conflict" });
    expect(await bind(other, nonce, { reservation })).toMatchObject({ result: "conflict" });
    expect(await context.store.transaction(intent.txId)).toBeNull();
    expect(await bind(fence, nonce, { reservation })).toMatchObject({ result: "settled" });
    expect(await bind(fence, nonce, { reservation, intent })).toMatchObject({ result: "conflict" });
    expect(await release(fence, reservationId)).toMatchObject({ result: "conflict" });
    expect(await context.store.transaction(intent.txId)).toBeNull();
  });

  it.each(["SUBMITTED", "USED"] as const)(
    // protects [Reservations] src/domain/ledger/reserve.ts, src/domain/ledger/bind.ts
    "an expired reservation can still become %s while its nonce is unused",
    async (becomes) => {
      const fence = await hold();
      const [unnoticed, noticed] = [await reserved(fence, { ttlMs: 0 }), await reserved(fence, { ttlMs: 0 })];
      const use = ({ reservationId, nonce }: typeof noticed) =>
        bind(fence, nonce, { reservation: { reservationId, becomes }, intent: anIntent(fence.lane) });
      expect(await use(unnoticed), "past, and not written down as such").toMatchObject({ result: "settled" });
      expect(await commit({ kind: "expire", fence })).toMatchObject({ holes: [{ nonce: noticed.nonce }] });
      expect(await use(noticed)).toMatchObject({ result: "settled" });
      expect(await context.store.reservation(noticed.reservationId)).toMatchObject({ state: becomes });
      expect((await snapshot(fence)).holes, "it is no hole any more").toEqual([]);
      expect(await use(noticed)).toMatchObject({ result: "conflict" });
    },
  );

  // protects [Reservations] src/domain/ledger/reserve.ts, src/domain/ledger/bind.ts
  it("an expired reservation cannot become a transaction once a placeholder has its nonce", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence, { ttlMs: 0 });
    await commit({ kind: "expire", fence });
    const intent = anIntent(fence.lane);
    const placed = await bind(fence, nonce, { reservation: { reservationId, becomes: "EXPIRED" }, intent });
    expect(placed).toMatchObject({ result: "settled" });
    const late = await bind(fence, nonce, { reservation: { reservationId, becomes: "SUBMITTED" } });
    expect(late).toMatchObject({ result: "conflict" });
    expect(await context.store.reservation(reservationId)).toMatchObject({ state: "EXPIRED", txId: intent.txId });
  });

  it("a nonce hole names the reservation that left it, and the reservation's time to live", async () => {
    const fence = await hold();
    const owner = "payouts";
    const kept = await reserved(fence, { ttlMs: 12_345, owner });
    expect(await context.store.reservation(kept.reservationId)).toMatchObject({ owner, ttlMs: 12_345 });
    const { reservationId } = await reserved(fence, { ttlMs: 0, owner });
    const holes = [{ why: "expired", reservationId, expired: { owner, ttlMs: 0 } }];
    expect(await commit({ kind: "expire", fence })).toMatchObject({ holes });
    expect((await snapshot(fence)).holes).toMatchObject(holes);
  });

  // protects [Reservations] src/domain/ledger/reserve.ts
  it("an API key has a limited number of nonces per lane, counting open and expired reservations", async () => {
    const [fence, elsewhere] = [await hold(), await hold()];
    const wish = { owner: "greedy", most: 2 };
    const open = await reserved(fence, wish);
    const expired = await reserved(fence, { ...wish, ttlMs: 0 });
    expect(await reserve(fence, wish), "past, and not written down as such").toEqual({ result: "tooMany" });
    await commit({ kind: "expire", fence });
    expect(await reserve(fence, wish)).toEqual({ result: "tooMany" });
    expect(await reserve(fence, { ...wish, owner: "other" }), "another key").toMatchObject({ result: "created" });
    expect(await reserve(fence, { ...wish, owner: null }), "no key").toMatchObject({ result: "created" });
    expect(await reserve(elsewhere, wish), "another lane").toMatchObject({ result: "created" });
    await bind(fence, expired.nonce, { reservation: { reservationId: expired.reservationId, becomes: "EXPIRED" } });
    expect(await reserve(fence, wish), "its nonce was taken").toMatchObject({ result: "created" });
    expect(await reserve(fence, wish)).toEqual({ result: "tooMany" });
    await release(fence, open.reservationId);
    expect(await reserve(fence, wish), "one was given back").toMatchObject({ result: "created" });
  });

  // protects [Reservations] src/domain/ledger/bind.ts, src/application/detours/holes.ts
  it("a lane fills a limited number of nonce holes of expired reservations per hour", async () => {
    const fence = await hold();
    const reserveLate = () => reserved(fence, { ttlMs: 0 });
    const [first, second, third, fourth] = [
      await reserveLate(),
      await reserveLate(),
      await reserveLate(),
      await reserveLate(),
    ];
    await commit({ kind: "expire", fence });
    const fill = ({ reservationId, nonce }: typeof first, limit: { mostPerHour?: number }) =>
      bind(fence, nonce, { reservation: { reservationId, becomes: "EXPIRED", ...limit } });
    expect(await fill(first, { mostPerHour: 0 })).toMatchObject({ result: "limited" });
    expect(await fill(first, { mostPerHour: 2 })).toMatchObject({ result: "settled" });
    expect(await fill(second, { mostPerHour: 2 })).toMatchObject({ result: "settled" });
    expect(await fill(third, { mostPerHour: 2 })).toMatchObject({ result: "limited" });
    expect(await fill(third, {}), "by a person's decision").toMatchObject({ result: "settled" });
    expect(await fill(fourth, { mostPerHour: 3 }), "which is not counted").toMatchObject({ result: "settled" });
    const other = await hold();
    const elsewhere = await reserved(other, { ttlMs: 0 });
    await commit({ kind: "expire", fence: other });
    const reservation = { reservationId: elsewhere.reservationId, becomes: "EXPIRED", mostPerHour: 1 } as const;
    expect(await bind(other, elsewhere.nonce, { reservation }), "of another lane").toMatchObject({ result: "settled" });
  });

  it("a request id stays with the first transaction that used the id", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence, { requestId: "raced" });
    const winner = anIntent(fence.lane, { requestId: "raced" });
    await allocate(context.store, fence, [winner]);
    const intent = anIntent(fence.lane, { requestId: "raced" });
    const reservation = { reservationId, becomes: "SUBMITTED" } as const;
    expect(await bind(fence, nonce, { reservation, intent })).toMatchObject({ result: "settled", requestId: null });
    expect(await context.store.transactionByRequest(fence.lane, "raced")).toMatchObject({ txId: winner.txId });
    expect(await context.store.transaction(intent.txId)).toMatchObject({ requestId: null, nonce });
  });

  it("a nonce can be reserved again in the same commit that releases it", async () => {
    const fence = await hold();
    const { reservationId: stored } = await reserved(fence);
    const [second, third] = [randomUUID(), randomUUID()];
    const wish = {
      kind: "reserve",
      fence,
      floor: 0,
      fill: [0],
      requestId: null,
      ttlMs: MINUTE,
      ...BY_ANYBODY,
    } as const;
    const { outcomes } = await context.store.commit([
      { kind: "release", fence, reservationId: stored },
      { ...wish, reservationId: second },
      { kind: "release", fence, reservationId: second },
      { ...wish, reservationId: third },
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["released", "reserved", "released", "reserved"]);
    expect((await snapshot(fence)).reservations).toMatchObject([{ reservationId: third, nonce: 0 }]);
    expect(await context.store.reservation(second)).toMatchObject({ state: "RELEASED", nonce: 0 });
  });

  it("a nonce hole is closed by a placeholder, and the expired reservation then names the placeholder", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence, { ttlMs: 0 });
    await commit({ kind: "expire", fence });
    const intent = anIntent(fence.lane);
    const decision = { actor: "policy", audit: { policy: "heal" } };
    const attempt = anAttempt(1, { kind: "placeholder" });
    const reservation = { reservationId, becomes: "EXPIRED" } as const;
    expect(await bind(fence, nonce, { intent, attempt, decision, reservation })).toMatchObject({ result: "settled" });
    expect(await bind(fence, nonce)).toMatchObject({ result: "conflict" });
    expect((await snapshot(fence)).holes).toEqual([]);
    expect(await context.store.reservation(reservationId)).toMatchObject({ state: "EXPIRED", txId: intent.txId });
    expect((await context.store.history(intent.txId)).at(-1)).toMatchObject({ event: "sign", decision });
    expect((await context.store.transaction(intent.txId))?.attempts).toMatchObject([{ kind: "placeholder" }]);
  });

  it("a placeholder at a nonce that is not a hole is refused", async () => {
    const fence = await hold();
    await allocate(context.store, fence, [anIntent(fence.lane)]);
    expect(await bind(fence, 0)).toMatchObject({ result: "conflict" });
    expect(await bind(fence, 17)).toMatchObject({ result: "conflict" });
  });

  it("a hash that another transaction already has is refused, and the reservation is kept", async () => {
    const fence = await hold();
    const { txHash } = anAttempt();
    const [one, two] = [await reserved(fence), await reserved(fence)];
    const becomes = "USED" as const;
    const attempt = anAttempt(1, { kind: "external", rawTransaction: null, txHash });
    await bind(fence, one.nonce, { reservation: { reservationId: one.reservationId, becomes }, attempt });
    await expect(
      bind(fence, two.nonce, { reservation: { reservationId: two.reservationId, becomes }, attempt }),
    ).rejects.toBeInstanceOf(BatchRefused);
    expect(await context.store.reservation(two.reservationId)).toMatchObject({ state: "RESERVED" });
  });

  // protects [Holes] src/adapters/postgres/commit/rows.ts
  it("a transaction that is given up is final at once", async () => {
    const fence = await hold();
    const failedAndLive = async () => (await context.store.census()).watched.FAILED_FINAL;
    const before = await failedAndLive();
    const { txId, nonce } = await givenUp(fence, 6);
    expect(await context.store.transaction(txId)).toMatchObject({
      nonce: null,
      state: "FAILED_FINAL",
      subState: "REJECTED",
    });
    const hole = { nonce, why: "givenUp", detail: `${txId} gave it up: the signer refused` };
    expect(await snapshot(fence)).toMatchObject({ holes: [hole], allocated: 0, cursor: 7 });
    expect(await context.store.lanes(fence.lane.signer)).toMatchObject([{ holes: [hole] }]);
    const { lastSeq } = await context.store.feed(0, 1);
    expect((await context.store.feed(lastSeq - 1, 1)).items).toMatchObject([{ txId, nonce: null, settled: true }]);
    expect(await fill(fence, [nonce])).toMatchObject({ items: [{ nonce, recycled: true }] });
    expect(await failedAndLive()).toBe(before);
  });

  it("a nonce that is given up can be allocated in the same commit", async () => {
    const fence = await hold();
    const [first, next] = [anIntent(fence.lane), anIntent(fence.lane)];
    await allocate(context.store, fence, [first]);
    const completion = { state: "FAILED_FINAL", subState: "REJECTED", settled: true, txHash: null } as const;
    const items = [step(first.txId, AT.allocated, "giveUp", { completion })];
    const outcomes = await outcomesOf(context.store, [
      { kind: "transition", fence, items },
      { kind: "allocate", fence, floor: null, fill: [0], items: [{ intent: next }] },
    ]);
    expect(outcomes).toMatchObject([{ items: ["applied"] }, { items: [{ nonce: 0, recycled: true }], cursor: 1 }]);
    expect(await snapshot(fence)).toMatchObject({ holes: [], allocated: 1, cursor: 1 });
    expect(await context.store.transaction(next.txId)).toMatchObject({ nonce: 0, state: "ALLOCATED" });
    const [shortLived, last] = [anIntent(fence.lane), anIntent(fence.lane)];
    await context.store.commit([
      { kind: "allocate", fence, floor: null, items: [{ intent: shortLived }] },
      { kind: "transition", fence, items: [step(shortLived.txId, AT.allocated, "giveUp", { completion })] },
      { kind: "allocate", fence, floor: null, fill: [1], items: [{ intent: last }] },
    ]);
    expect(await context.store.transaction(shortLived.txId)).toMatchObject({ nonce: null, subState: "REJECTED" });
    expect(await context.store.transaction(last.txId)).toMatchObject({ nonce: 1, state: "ALLOCATED" });
  });

  it("transactions move down together in order, which leaves the nonce holes on top", async () => {
    const fence = await hold();
    const { nonce } = await givenUp(fence, 0);
    const intents = [1, 2, 3].map(() => anIntent(fence.lane));
    await allocate(context.store, fence, intents);
    const items = intents.map(({ txId }, index) =>
      step(txId, AT.allocated, "shiftDown", { nonce: nonce + index, reason: `from nonce ${nonce + index + 1}` }),
    );
    expect(await apply(context.store, fence, items)).toEqual(["applied", "applied", "applied"]);
    expect((await context.store.loadAllocated(fence.lane, 0, 10)).map((row) => [row.txId, row.nonce])).toEqual(
      intents.map(({ txId }, index) => [txId, index]),
    );
    expect(await snapshot(fence)).toMatchObject({ holes: [{ nonce: 3, why: "shiftedDown" }], cursor: 4 });
    const [{ txId }] = intents as [(typeof intents)[number]];
    expect((await context.store.history(txId)).at(-1)).toMatchObject({ event: "shiftDown", reason: "from nonce 1" });
    expect(await context.store.transactionAt(fence.lane, 3)).toBeNull();
  });

  // protects [Holes] src/domain/ledger/move.ts
  it("a transaction never moves to a nonce that is not free, nor upwards", async () => {
    const fence = await hold();
    await reserved(fence, { ttlMs: 0 });
    await commit({ kind: "expire", fence });
    const [low, high] = [anIntent(fence.lane), anIntent(fence.lane)];
    await allocate(context.store, fence, [low, high]);
    const shift = (txId: string, nonce: number) =>
      apply(context.store, fence, [step(txId, AT.allocated, "shiftDown", { nonce })]);
    expect(await shift(high.txId, 0)).toEqual(["conflict"]);
    expect(await shift(high.txId, 1)).toEqual(["conflict"]);
    const { nonce } = await givenUp(fence);
    expect(await shift(low.txId, nonce)).toEqual(["conflict"]);
    expect(await context.store.transaction(high.txId)).toMatchObject({ nonce: 2, state: "ALLOCATED" });
    expect((await snapshot(fence)).holes).toMatchObject([{ nonce: 0 }, { nonce }]);
  });

  it("a signed transaction is never moved or given up", async () => {
    const fence = await hold();
    await givenUp(fence);
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent]);
    const sign = step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } });
    await apply(context.store, fence, [sign]);
    const shift = step(intent.txId, AT.allocated, "shiftDown", { nonce: 0 });
    expect(await apply(context.store, fence, [shift])).toEqual(["conflict"]);
    expect(await context.store.transaction(intent.txId)).toMatchObject({ nonce: 1 });
  });

  it("nonce holes that foreign transactions closed are removed", async () => {
    const fence = await hold();
    await givenUp(fence);
    await givenUp(fence, 1);
    expect(await commit({ kind: "closeHoles", fence, nonces: [0, 40] })).toEqual({ status: "done" });
    expect((await snapshot(fence)).holes).toMatchObject([{ nonce: 1 }]);
  });

  it("skipped nonces are found once, only below the lane's next nonce and in the given range", async () => {
    const fence = await hold();
    await allocate(context.store, fence, [anIntent(fence.lane)]);
    const { nonce: kept } = await reserved(fence);
    expect(kept).toBe(1);
    await allocate(context.store, fence, [anIntent(fence.lane)], 4);
    await allocate(context.store, fence, [anIntent(fence.lane)], 7);
    const find = (from: number, below: number) => commit({ kind: "findSkipped", fence, from, below });
    expect(await find(0, 4)).toMatchObject({ status: "skipped", holes: [{ nonce: 2 }, { nonce: 3 }] });
    expect(await find(0, 4)).toEqual({ status: "skipped", holes: [] });
    expect(await find(6, 40)).toMatchObject({ holes: [{ nonce: 6, why: "givenUp", reservationId: null }] });
    const { holes, cursor } = await snapshot(fence);
    expect(holes.map(({ nonce }) => nonce)).toEqual([2, 3, 6]);
    expect(cursor).toBe(8);
    expect(await fill(fence, [2])).toMatchObject({ items: [{ result: "created", nonce: 2, recycled: true }] });
    expect(await bind(fence, 3)).toMatchObject({ status: "bound", result: "settled" });
  });

  it("skipped nonces are found once if one commit searches twice, and never on another lane", async () => {
    const fence = await hold();
    const other = await hold();
    for (const each of [fence, other]) await allocate(context.store, each, [anIntent(each.lane)], 2);
    const find = { kind: "findSkipped", fence, from: 0, below: 2 } as const;
    const outcomes = await outcomesOf(context.store, [find, find]);
    expect(outcomes).toMatchObject([{ holes: [{ nonce: 0 }, { nonce: 1 }] }, { holes: [] }]);
    expect((await snapshot(other)).holes).toEqual([]);
    const take = {
      kind: "allocate",
      fence,
      floor: null,
      fill: [0],
      items: [{ intent: anIntent(fence.lane) }],
    } as const;
    expect(await outcomesOf(context.store, [take, find])).toMatchObject([{ items: [{ nonce: 0 }] }, { holes: [] }]);
    expect((await snapshot(fence)).holes).toMatchObject([{ nonce: 1 }]);
  });

  it("every nonce below the lane's next nonce has exactly one holder after any operations", async () => {
    const deed = fc.constantFrom(
      "allocate",
      "allocate",
      "reserve",
      "forget",
      "release",
      "bind",
      "giveUp",
      "shift",
      "fill",
    );
    const property = fc.asyncProperty(fc.array(deed, { minLength: 5, maxLength: 25 }), async (deeds) => {
      const fence = await hold();
      await commit({ kind: "align", fence, floor: 0 });
      for (const [index, name] of deeds.entries()) await perform(fence, name, index);
      await expectWhole(fence);
    });
    await fc.assert(property, { numRuns: 12, seed: 20_261_115 });
  }, 60_000);

  const perform = async (fence: Fence, deed: string, index: number): Promise<void> => {
    const { holes, reservations } = await snapshot(fence);
    const waiting = await context.store.loadAllocated(fence.lane, 0, 100);
    const [reservation] = reservations.slice(index % Math.max(1, reservations.length));
    const [record] = waiting.slice(index % Math.max(1, waiting.length));
    const free = holes.filter(({ why }) => why !== "expired").map(({ nonce }) => nonce);
    if (deed === "allocate") await fill(fence, free);
    if (deed === "reserve") await reserve(fence, { floor: null, fill: free });
    if (deed === "forget") {
      await reserve(fence, { floor: null, fill: free, ttlMs: 0 });
      await commit({ kind: "expire", fence });
    }
    if (deed === "release" && reservation !== undefined) await release(fence, reservation.reservationId);
    if (deed === "bind" && reservation !== undefined) {
      const { reservationId, nonce } = reservation;
      await bind(fence, nonce, { reservation: { reservationId, becomes: "SUBMITTED" } });
    }
    if (deed === "giveUp" && record !== undefined) {
      await apply(context.store, fence, [step(record.txId, AT.allocated, "giveUp", { reason: "test" })]);
    }
    if (deed === "shift") {
      const holders = waiting.map(({ txId, nonce }) => ({ txId, nonce, movable: true }));
      const items = planShiftDown(free, holders).map(({ txId, to }) =>
        step(txId, AT.allocated, "shiftDown", { nonce: to }),
      );
      expect(await apply(context.store, fence, items)).not.toContain("conflict");
    }
    const [hole] = holes.filter(({ why }) => why === "expired");
    if (deed === "fill" && hole !== undefined) await bind(fence, hole.nonce);
  };

  const expectWhole = async (fence: Fence): Promise<void> => {
    const { cursor, holes, reservations, tracking } = await snapshot(fence);
    const waiting = await context.store.loadAllocated(fence.lane, 0, 100);
    const held = [...holes, ...reservations, ...tracking, ...waiting].map(({ nonce }) => nonce);
    expect(held.sort((a, b) => a - b)).toEqual(Array.from({ length: cursor ?? 0 }, (_, nonce) => nonce));
  };

  it("every nonce operation is fenced if the lane's ownership has ended", async () => {
    const fence = await hold();
    const { reservationId, nonce } = await reserved(fence);
    await context.store.retireInstance(fence.instanceId);
    const next = anInstance();
    await context.store.registerInstance(next);
    const taken = await context.store.acquireLane(fence.lane, next.instanceId);
    const reservation = { reservationId, becomes: "SUBMITTED" } as const;
    const fenced = { status: "fenced" };
    expect(await bind(fence, nonce, { reservation })).toEqual(fenced);
    expect(await release(fence, reservationId)).toEqual(fenced);
    expect(await commit({ kind: "expire", fence })).toEqual(fenced);
    expect(await commit({ kind: "findSkipped", fence, from: 0, below: 9 })).toEqual(fenced);
    expect(await commit({ kind: "closeHoles", fence, nonces: [nonce] })).toEqual(fenced);
    if (taken.result === "notLeader") throw new Error("the lane was not free");
    expect(await snapshot(taken.fence)).toMatchObject({ reservations: [{ reservationId, nonce }] });
    expect(await bind(taken.fence, nonce, { reservation })).toMatchObject({ result: "settled" });
  });
}
