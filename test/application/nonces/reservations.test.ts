import { afterEach, describe, expect, it } from "vitest";
import type { Reserved, ReserveRequest } from "../../../src/application/api.ts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const signer = new FakeSigner(SIGNERS);

/** A transaction that a caller signs itself, at any nonce. */
async function signed(nonce: number, { from = SIGNER, chainId = CHAIN_ID, gas = 21_000n } = {}): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
  const unsigned = { chainId, nonce, to: TO, data: "0x", value: 5n, gas, fees, accessList: [] } as const;
  const [made] = await signer.sign(from as Address, [unsigned]);
  return made?.rawTransaction as Hex;
}

async function reserve({ node }: WorldNode, wishes: ReserveRequest = {}): Promise<Reservation> {
  const { reservation }: Reserved = await world.settle(node.api.reserveNonce({ signer: SIGNER, ...wishes }));
  return reservation;
}

async function create({ node }: WorldNode, count = 1): Promise<readonly string[]> {
  const made = await world.settle(Promise.all(Array.from({ length: count }, () => node.api.create(transfer()))));
  return made.map(({ txId }) => txId);
}

const refusal = (promise: Promise<unknown>) => world.refusal(promise);
const row = (txId: string | undefined) => world.rows().find((each) => each.txId === txId);
const alerts = ({ events }: WorldNode) => events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
const suspended = (entry: WorldNode, action: "suspend" | "resume") =>
  world.settle(
    entry.node.api.actOnLane({ action, signer: SIGNER, actor: "operator:test", request: { reason: "test" } }),
  );

describe("a reserved nonce", () => {
  it("is used by the caller's signed transaction", async () => {
    world = new World({ settings: { resubmitIntervalMs: 1_000 } });
    const entry = await world.startNode();
    const before = await create(entry);
    const { reservationId, nonce, state } = await reserve(entry, { requestId: "mine" });
    expect({ nonce, state }).toEqual({ nonce: 1, state: "RESERVED" });
    const after = await create(entry);
    const made = await world.settle(
      entry.node.api.submitReserved(reservationId, { rawTransaction: await signed(nonce) }),
    );
    expect(made).toMatchObject({ outcome: "created", nonce, requestId: "mine", state: "TRACKING" });
    await world.allSettled(3);
    for (const txId of [...before, made.txId, ...after]) expect(row(txId)?.state).toBe("CONFIRMED");
    expect(await entry.node.api.reservation(reservationId)).toMatchObject({ state: "SUBMITTED", txId: made.txId });
    checkInvariants(world);
  });

  it("is reserved once per request id, even for concurrent requests", async () => {
    world = new World();
    const entry = await world.startNode();
    const all = await world.settle(
      Promise.all([1, 2, 3].map(() => entry.node.api.reserveNonce({ signer: SIGNER, requestId: "once" }))),
    );
    expect(new Set(all.map(({ reservation }) => reservation.reservationId)).size).toBe(1);
    expect(all.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    const [txId] = await create(entry);
    expect(row(txId)?.nonce).toBe(1);
  });

  it("is found again by its request id if the reservation's response was lost", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    entry.store.failNextCommit("unknown-committed");
    const lost = await refusal(entry.node.api.reserveNonce({ signer: SIGNER, requestId: "heard?" }));
    expect(lost).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
    await world.clock.advance(2_000);
    expect(await reserve(entry, { requestId: "heard?" })).toMatchObject({ nonce: 1 });
    expect(world.database.state.reservations()).toHaveLength(1);
  });

  it("cannot be reserved with a request id that a transaction already has", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.settle(entry.node.api.create(transfer({ requestId: "taken" })));
    const error = await refusal(entry.node.api.reserveNonce({ signer: SIGNER, requestId: "taken" }));
    expect(error.code).toBe("REQUEST_ID_REUSED");
  });

  it.each(["submitReserved", "markUsed"] as const)(
    // protects [Reservations] src/application/operations/reservations.ts
    "can be used even if another transaction took its request id (%s)",
    async (use) => {
      world = new World();
      const entry = await world.startNode();
      const { reservationId, nonce } = await reserve(entry, { requestId: "raced" });
      const winner = await world.settle(entry.node.api.create(transfer({ requestId: "raced" })));
      const rawTransaction = await signed(nonce);
      const request = use === "submitReserved" ? { rawTransaction } : { txHash: `0x${"ab".repeat(32)}` };
      const made = await world.settle(entry.node.api[use](reservationId, request));
      expect(made).toMatchObject({ outcome: "created", nonce, requestId: null });
      expect([row(made.txId)?.requestId, row(winner.txId)?.requestId]).toEqual([null, "raced"]);
    },
  );

  // protects [Reservations] src/application/requests/normalise.ts
  it("accepts only a valid transaction of its signer", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const submit = async (rawTransaction: unknown) =>
      refusal(entry.node.api.submitReserved(reservationId, { rawTransaction }));
    const rejected = (reason: string) => ({ code: "SUBMISSION_REJECTED", extras: { reason } });
    expect(await submit(await signed(nonce, { from: SIGNERS[1] }))).toMatchObject(rejected("INVALID_SIGNATURE"));
    expect(await submit(await signed(nonce, { chainId: 5 }))).toMatchObject(rejected("INVALID_INPUT"));
    expect(await submit(await signed(nonce + 1))).toMatchObject(rejected("INVALID_INPUT"));
    expect(await submit(await signed(nonce, { gas: 20_999n }))).toMatchObject(rejected("GAS_TOO_LOW"));
    expect(await submit(undefined)).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "rawTransaction" } });
    expect(await submit("0xzz")).toMatchObject({ code: "INVALID_REQUEST" });
    expect(await entry.node.api.reservation(reservationId)).toMatchObject({ state: "RESERVED" });
    expect(world.rows()).toEqual([]);
  });

  it("can be used only once, and cannot be released after use or expiry", async () => {
    world = new World();
    const entry = await world.startNode();
    const used = await reserve(entry);
    const rawTransaction = await signed(used.nonce);
    const { txId } = await world.settle(entry.node.api.submitReserved(used.reservationId, { rawTransaction }));
    const again = await refusal(entry.node.api.submitReserved(used.reservationId, { rawTransaction }));
    expect(again).toMatchObject({ code: "CONFLICT", extras: { txId } });
    expect((await refusal(entry.node.api.releaseNonce(used.reservationId))).code).toBe("CONFLICT");
    const late = await reserve(entry, { ttl: 5 });
    await world.clock.advance(5_100);
    expect((await refusal(entry.node.api.releaseNonce(late.reservationId))).code).toBe("CONFLICT");
    expect((await refusal(entry.node.api.releaseNonce("019a4b7e-0000-7000-8000-000000000000"))).code).toBe("NOT_FOUND");
    await world.allSettled(1);
  });

  it.each([
    ["ttl", { ttl: "11m" }],
    ["ttl", { ttl: 601 }],
    ["ttl", { ttl: "soon" }],
    ["ttl", { ttl: 0 }],
    ["ttl", { ttl: -1 }],
    ["signer", { signer: "0x12" }],
    ["nonce", { nonce: 7 }],
    ["requestId", { requestId: "" }],
  ])("is not given if the reservation request has an invalid %s", async (path, wishes) => {
    world = new World();
    const entry = await world.startNode();
    const error = await refusal(entry.node.api.reserveNonce({ signer: SIGNER, ...wishes }));
    expect(error).toMatchObject({ code: "INVALID_REQUEST", extras: { path } });
  });

  // protects [Reservations] src/application/detours/another-attempt.ts
  it("causes no broadcast if the caller sent the transaction itself", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const rawTransaction = await signed(nonce);
    world.chain.submit(rawTransaction);
    const { txHash } = await createFakeCodec().decodeTransaction(rawTransaction);
    const made = await world.settle(entry.node.api.markUsed(reservationId, { txHash }));
    const actionRequest = {
      action: "resubmit",
      txId: made.txId,
      actor: "operator:test",
      request: { reason: "again" },
    } as const;
    expect(await refusal(entry.node.api.act(actionRequest))).toMatchObject({ code: "CONFLICT" });
    await world.allSettled(1);
    expect(row(made.txId)).toMatchObject({ state: "CONFIRMED", submitAttempts: 0, attempts: [{ kind: "external" }] });
    expect(await entry.node.api.reservation(reservationId)).toMatchObject({ state: "USED", txId: made.txId });
    const other = await reserve(entry);
    const error = await refusal(entry.node.api.markUsed(other.reservationId, { txHash }));
    expect(error).toMatchObject({ code: "SUBMISSION_REJECTED" });
  });

  it("survives a takeover between reservation and use", async () => {
    world = new World();
    const first = await world.startNode();
    const { reservationId, nonce } = await reserve(first);
    world.crash(first);
    const second = await world.startNode();
    await world.clock.advance(15_000);
    const [other] = await create(second);
    expect(row(other)?.nonce).toBe(nonce + 1);
    const rawTransaction = await signed(nonce);
    const made = await world.settle(second.node.api.submitReserved(reservationId, { rawTransaction }));
    await world.allSettled(2);
    expect(row(made.txId)).toMatchObject({ nonce, state: "CONFIRMED" });
    checkInvariants(world);
  });

  it("raises an alert if too many nonces are reserved on the lane", async () => {
    world = new World({ settings: { alertReserved: 2 } });
    const entry = await world.startNode();
    await reserve(entry);
    await reserve(entry);
    expect(alerts(entry)).not.toContain("RESERVED_PILE_UP");
    const last = await reserve(entry);
    expect(alerts(entry).filter((code) => code === "RESERVED_PILE_UP")).toHaveLength(1);
    expect(entry.node.gauges().noncesReserved).toBe(3);
    await world.clock.advance(5_000);
    const over = () => entry.events.filter((event) => event.type === "alert.resolved");
    expect(over()).toEqual([]);
    await world.settle(entry.node.api.releaseNonce(last.reservationId));
    await world.until(() => over().length > 0);
    expect(over()).toMatchObject([{ code: "RESERVED_PILE_UP", lane: { signer: SIGNER } }]);
    // If too many nonces are reserved again after the alert was resolved, the alert is raised again.
    await reserve(entry);
    expect(alerts(entry).filter((code) => code === "RESERVED_PILE_UP")).toHaveLength(2);
  });

  it.each([0, 1])("raises one alert if many nonces are reserved in one commit (before: %d)", async (before) => {
    world = new World({ settings: { alertReserved: 2 } });
    const entry = await world.startNode();
    for (let made = 0; made < before; made++) await reserve(entry);
    const wanted = Array.from({ length: 3 }, () => entry.node.api.reserveNonce({ signer: SIGNER }));
    await world.settle(Promise.all(wanted));
    expect(alerts(entry).filter((code) => code === "RESERVED_PILE_UP")).toHaveLength(1);
  });
});

describe("a released nonce", () => {
  // protects [Holes] src/application/lane/owned-lane.ts
  it("is given to the next transaction, and only to that one", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const above = await create(entry);
    expect(await world.settle(entry.node.api.releaseNonce(reservationId))).toMatchObject({ state: "RELEASED" });
    expect(await entry.node.api.signer(SIGNER)).toMatchObject([{ holes: [{ nonce, why: "released" }], reserved: 0 }]);
    const next = await create(entry, 2);
    expect(next.map((txId) => row(txId)?.nonce)).toEqual([nonce, 2]);
    await world.allSettled(3);
    for (const txId of [...above, ...next]) expect(row(txId)?.state).toBe("CONFIRMED");
    checkInvariants(world);
    expect(await entry.node.api.signer(SIGNER)).toMatchObject([{ holes: [] }]);
    expect(entry.events.filter(({ type }) => type === "nonce.recycled")).toHaveLength(1);
  });

  // protects [Reservations] src/domain/ledger/allocate.ts, src/application/operations/reservations.ts
  it("can also be given to the next reservation", async () => {
    world = new World();
    const entry = await world.startNode();
    const first = await reserve(entry);
    await world.settle(entry.node.api.releaseNonce(first.reservationId));
    expect(await reserve(entry)).toMatchObject({ nonce: first.nonce });
  });

  // protects [Reservations] src/application/lane/owned-lane.ts
  it("is known to the lane's next owner", async () => {
    world = new World();
    const first = await world.startNode();
    const { reservationId, nonce } = await reserve(first);
    await world.settle(first.node.api.releaseNonce(reservationId));
    world.crash(first);
    const second = await world.startNode();
    await world.clock.advance(15_000);
    const [txId] = await create(second);
    expect(row(txId)?.nonce).toBe(nonce);
    await world.allSettled(1);
  });

  // protects [Holes] src/application/stages/3-sign/sign.ts
  it("lets the unsigned transactions above it move down", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId } = await reserve(entry);
    await suspended(entry, "suspend");
    const waiting = await create(entry, 5);
    await world.settle(entry.node.api.releaseNonce(reservationId));
    await suspended(entry, "resume");
    await world.allSettled(5);
    expect(waiting.map((txId) => row(txId)?.nonce)).toEqual([0, 1, 2, 3, 4]);
    const { history } = await entry.node.api.transaction(waiting[0] as string, ["history"]);
    expect(history).toContainEqual(expect.objectContaining({ event: "shiftDown", reason: "moved from nonce 1 to 0" }));
    const [next] = await create(entry);
    expect(row(next)?.nonce).toBe(5);
    await world.allSettled(6);
    checkInvariants(world);
  });

  // protects [Holes] src/application/lane/lane-nonces.ts
  it("is not given out again if another program used it", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    world.holdBlocks();
    const { reservationId, nonce } = await reserve(entry);
    const [above] = await create(entry);
    await world.until(() => row(above)?.subState === "BROADCAST");
    await world.settle(entry.node.api.releaseNonce(reservationId));
    world.chain.mineForeign(SIGNER);
    await world.until(() => alerts(entry).includes("HOLE_USED_ELSEWHERE"));
    await world.clock.advance(10_000);
    expect(row(above)?.state, "nothing below it is missing").toBe("TRACKING");
    // protects [Holes] src/application/detours/holes.ts
    expect(world.database.state.holes().length, "a reorg may bring it back").toBe(1);
    const [next] = await create(entry);
    expect(row(next)?.nonce).toBe(nonce + 2);
    world.releaseBlocks();
    await world.allSettled(3);
    for (const txId of [above, next]) expect(row(txId)?.state).toBe("CONFIRMED");
    world.chain.mine(70);
    await world.until(() => world.database.state.holes().length === 0);
  });

  it("makes the lowest signed transaction above it STUCK", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const [head, behind] = await create(entry, 2);
    await world.settle(entry.node.api.releaseNonce(reservationId));
    await world.until(() => row(head)?.state === "STUCK");
    expect(row(behind)?.state).toBe("TRACKING");
    const stuck = row(head)?.history.at(-1);
    expect(stuck).toMatchObject({ event: "stick" });
    expect(stuck?.reason).toMatch(new RegExp(`nonce ${nonce} .*held by nothing.*released`));
    const [next] = await create(entry);
    expect(row(next)?.nonce).toBe(nonce);
    await world.allSettled(3);
    expect(row(head)?.history.map(({ event }) => event)).toContain("unstick");
    checkInvariants(world);
  });
});

describe("a nonce reservation that expires", () => {
  const expired = async (entry: WorldNode) => {
    const { reservationId, nonce } = await reserve(entry, { ttl: "2s" });
    const behind = await create(entry, 3);
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
    return { reservationId, nonce, behind };
  };

  it.each(["heal", "move"] as const)(
    // protects [Holes] src/application/detours/holes.ts
    "leaves a nonce gap that a placeholder fills under the policy %s",
    async (holePolicy) => {
      world = new World({ settings: { holePolicy } });
      const entry = await world.startNode();
      const { reservationId, nonce, behind } = await expired(entry);
      await world.allSettled(4);
      for (const txId of behind) expect(row(txId)?.state).toBe("CONFIRMED");
      const { txId } = await entry.node.api.reservation(reservationId);
      expect(row(txId as string)).toMatchObject({
        nonce,
        state: "FAILED_FINAL",
        subState: "CANCELLED",
        payload: { to: SIGNER, value: 0n },
        attempts: [{ kind: "placeholder" }],
      });
      const { history } = await entry.node.api.transaction(txId as string, ["history"]);
      expect(history?.[1]).toMatchObject({ event: "sign", decision: { actor: "policy" } });
      expect(behind.some((id) => row(id)?.history.some(({ event }) => event === "stick"))).toBe(false);
      expect(alerts(entry)).toEqual(expect.arrayContaining(["RESERVATION_EXPIRED", "HOLE_FILLED"]));
      checkInvariants(world);
    },
  );

  // protects [Holes] src/application/detours/holes.ts
  it.each(["heal", "move"] as const)(
    "causes no action under the policy %s while the chain cannot be read",
    async (holePolicy) => {
      world = new World({ settings: { holePolicy } });
      const entry = await world.startNode();
      await create(entry);
      await world.allSettled(1);
      const { reservationId } = await reserve(entry, { ttl: "2s" });
      const behind = await create(entry, 1);
      await world.until(() => row(behind[0])?.subState === "BROADCAST");
      const back = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
      await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
      await world.clock.advance(60_000);
      expect(row(behind[0])?.state).toBe("TRACKING");
      expect(world.rows()).toHaveLength(2);
      back();
      await world.until(() => world.rows().length === 3);
    },
  );

  // protects [Holes] src/application/detours/holes.ts
  it("is left to an operator if that is configured", async () => {
    world = new World({ settings: { expiredReservations: "hole" } });
    const entry = await world.startNode();
    const { reservationId, nonce, behind } = await expired(entry);
    await world.until(() => row(behind[0])?.state === "STUCK");
    await world.clock.advance(60_000);
    expect(behind.map((txId) => row(txId)?.state)).toEqual(["STUCK", "TRACKING", "TRACKING"]);
    const stuck = row(behind[0])?.history.find(({ event }) => event === "stick");
    expect(stuck?.reason).toContain(`nonce ${nonce} below it is held by nothing`);
    expect(stuck?.reason).toContain(reservationId);
    expect(world.database.state.completions).toMatchObject([{ txId: behind[0], state: "STUCK", settled: false }]);
    expect(await entry.node.api.signer(SIGNER)).toMatchObject([
      { holes: [{ nonce, why: "expired", since: expect.any(Date) }], stuck: 1 },
    ]);
    expect(world.rows()).toHaveLength(3);
  });

  // protects [Holes] src/application/detours/change-payload.ts
  it("is repaired by one operator action", async () => {
    world = new World({ settings: { expiredReservations: "hole" } });
    const entry = await world.startNode();
    const { reservationId, nonce, behind } = await expired(entry);
    const [head] = behind as [string];
    await world.until(() => row(head)?.state === "STUCK");
    const request = { action: "PLACEHOLDER", reason: "its caller is gone" };
    await world.settle(entry.node.api.act({ action: "resolve", txId: head, request, actor: "operator:ann" }));
    await world.allSettled(4);
    for (const txId of behind) expect(row(txId)?.state).toBe("CONFIRMED");
    expect(row(head)?.attempts).toHaveLength(1);
    const { txId } = await entry.node.api.reservation(reservationId);
    expect(row(txId as string)).toMatchObject({ nonce, subState: "CANCELLED" });
    const { history } = await entry.node.api.transaction(txId as string, ["history"]);
    expect(history?.[1]).toMatchObject({ reason: "its caller is gone", decision: { actor: "operator:ann" } });
    expect(row(head)?.history).toContainEqual(
      expect.objectContaining({ event: "decide", decision: expect.objectContaining({ actor: "operator:ann" }) }),
    );
    checkInvariants(world);
  });

  // protects [Explained, and said aloud] src/application/detours/change-payload.ts
  it("cannot be repaired twice", async () => {
    world = new World({ settings: { expiredReservations: "hole" } });
    const entry = await world.startNode();
    const { nonce, behind } = await expired(entry);
    const [head] = behind as [string];
    await world.until(() => row(head)?.state === "STUCK");
    world.holdBlocks();
    const request = { action: "PLACEHOLDER", nonce, reason: "explain: HOLE_BELOW" };
    const fill = () => entry.node.api.act({ action: "resolve", txId: head, request, actor: "operator:ann" });
    await world.settle(fill());
    expect(await world.refusal(fill())).toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining(`no longer waits for nonce ${nonce}`),
    });
    expect(row(head)?.attempts).toHaveLength(1);
    const other = { ...request, action: "CANCEL" };
    const mixed = entry.node.api.act({ action: "resolve", txId: head, request: other, actor: "operator:ann" });
    expect(await world.refusal(mixed)).toMatchObject({ code: "INVALID_REQUEST" });
    world.releaseBlocks();
    await world.allSettled(4);
    for (const txId of behind) expect(row(txId)?.state).toBe("CONFIRMED");
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/nonces/holes.ts
  it("does not make its nonce available again", async () => {
    world = new World();
    const entry = await world.startNode();
    const { nonce } = await reserve(entry, { ttl: 1 });
    await world.clock.advance(3_000);
    const [txId] = await create(entry);
    expect(row(txId)?.nonce).toBe(nonce + 1);
    expect(await reserve(entry)).toMatchObject({ nonce: nonce + 2 });
  });

  // protects [Reservations] src/application/lane/owned-lane.ts
  it("also expires under the lane's next owner", async () => {
    world = new World({ settings: { holePolicy: "heal" } });
    const first = await world.startNode();
    const { reservationId } = await reserve(first, { ttl: "20s" });
    await create(first);
    world.crash(first);
    await world.startNode();
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED", 60_000);
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("leaves no nonce gap if the caller had sent its transaction", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry, { ttl: 1 });
    const behind = await create(entry, 2);
    world.chain.submit(await signed(nonce));
    await world.allSettled(2);
    await world.until(() => world.database.state.reservation(reservationId)?.state === "EXPIRED");
    expect(behind.map((txId) => row(txId)?.history.some(({ event }) => event === "stick"))).toEqual([false, false]);
    const [after] = await create(entry);
    await world.allSettled(3);
    expect(row(after)?.nonce).toBe(3);
    await create(entry);
    await world.until(() => alerts(entry).includes("HOLE_USED_ELSEWHERE"));
    await world.until(() => world.database.state.holes().length === 0, 600_000);
  });
});

describe("a transaction that its signer refuses permanently", () => {
  // protects [Holes] src/application/stages/3-sign/sign.ts
  it("releases its nonce", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.signer.refuse(({ value }) => value === 666n);
    await suspended(entry, "suspend");
    const payload = { ...(transfer().payload as object), value: "666" };
    const requests = [transfer(), transfer({ payload }), transfer(), transfer({ payload }), transfer()];
    const made = await world.settle(entry.node.api.createBatch(requests));
    await suspended(entry, "resume");
    await world.allSettled(5);
    const rows = made.map((each) => row((each as { txId: string }).txId));
    expect(rows.map((each) => each?.state)).toEqual([
      "CONFIRMED",
      "FAILED_FINAL",
      "CONFIRMED",
      "FAILED_FINAL",
      "CONFIRMED",
    ]);
    expect(rows.map((each) => each?.nonce)).toEqual([0, null, 1, null, 2]);
    expect(rows[1]?.history.at(-1)).toMatchObject({ event: "giveUp", reason: expect.stringContaining("nonce 1") });
    expect(alerts(entry).filter((code) => code === "NONCE_GIVEN_UP")).toHaveLength(2);
    const [next] = await create(entry);
    expect(row(next)?.nonce).toBe(3);
    await world.allSettled(6);
    checkInvariants(world);
  });
});

describe("a transaction that no chain node accepts", () => {
  /** Makes every node of the chain refuse transactions with this test's payload. */
  const refusing = () => {
    const submit = world.chain.submit.bind(world.chain);
    const refusal = { answer: "rejected", code: -32_000, message: "transaction type not supported" } as const;
    world.chain.submit = (raw) => (raw.includes("deadbeef") ? { accepted: false, refusal } : submit(raw));
  };
  const poison = () => {
    world.chain.burnGasAt(TO, 0n);
    return transfer({ payload: { ...(transfer().payload as object), data: "0xdeadbeef", gas: 30_000 } });
  };

  // protects [Holes] src/application/detours/holes.ts
  it("is cancelled under the policy heal", async () => {
    world = new World({ settings: { holePolicy: "heal" } });
    const entry = await world.startNode();
    refusing();
    const { txId } = await world.settle(entry.node.api.create(poison()));
    const [behind] = await create(entry);
    await world.allSettled(2, 300_000);
    expect(row(txId)).toMatchObject({ state: "FAILED_FINAL", subState: "CANCELLED" });
    expect(row(behind)?.state).toBe("CONFIRMED");
    checkInvariants(world);
  });

  // protects [Holes] src/application/detours/holes.ts
  it("waits for its cancel while the fee market cannot be read", async () => {
    world = new World({ settings: { holePolicy: "heal" } });
    const entry = await world.startNode();
    refusing();
    const { txId } = await world.settle(entry.node.api.create(poison()));
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_feeHistory" });
    await world.until(() => alerts(entry).includes("TX_REFUSED"), 300_000);
    await world.clock.advance(60_000);
    expect(entry.events.filter(({ type }) => type === "lane.stopped")).toEqual([]);
    expect(row(txId)?.attempts).toHaveLength(1);
    heal();
    await world.until(() => row(txId)?.subState === "CANCELLED", 300_000);
  });

  // protects [Holes] src/application/lane/tracked.ts, src/application/detours/holes.ts
  it("is cancelled only once if no node accepts the cancel", async () => {
    world = new World({ settings: { holePolicy: "heal", stuckAfterMs: 600_000 } });
    const entry = await world.startNode();
    const refusal = { answer: "rejected", code: -32_000, message: "transaction type not supported" } as const;
    world.chain.submit = () => ({ accepted: false, refusal });
    const [txId] = await create(entry);
    await world.until(() => row(txId)?.state === "STUCK", 1_200_000);
    expect(row(txId)?.attempts.map(({ kind }) => kind)).toEqual(["initial", "cancel"]);
    expect(row(txId)?.history.at(-1)?.reason).toMatch(/transaction type not supported/);
  });

  // protects [Holes] src/application/lane/tracked.ts, src/application/detours/holes.ts
  it("is not cancelled if a node had accepted it earlier", async () => {
    world = new World({ settings: { holePolicy: "heal", resubmitIntervalMs: 2_000 } });
    const entry = await world.startNode();
    world.holdBlocks();
    const { txId } = await world.settle(entry.node.api.create(poison()));
    await world.until(() => row(txId)?.subState === "BROADCAST");
    const [attempt] = row(txId)?.attempts ?? [];
    world.chain.dropAllTransactions();
    refusing();
    const answers = () =>
      entry.events.flatMap((event) => (event.type === "submit.answered" && event.txId === txId ? [event.answer] : []));
    await world.until(() => answers().filter((answer) => answer === "rejected").length >= 4, 300_000);
    expect(row(txId)?.attempts).toHaveLength(1);
    expect(alerts(entry)).not.toContain("TX_REFUSED");
    world.chain.reorg(1, { include: [attempt?.rawTransaction as Hex] });
    world.releaseBlocks();
    await world.allSettled(1);
    expect(row(txId)).toMatchObject({ state: "CONFIRMED", subState: null });
  });

  it("becomes STUCK by default, with the node's message", async () => {
    world = new World();
    const entry = await world.startNode();
    refusing();
    const { txId } = await world.settle(entry.node.api.create(poison()));
    await create(entry);
    await world.until(() => row(txId)?.state === "STUCK", 300_000);
    expect(row(txId)?.history.at(-1)?.reason).toMatch(/nonce 0 is blocked: .*transaction type not supported/);
    expect(row(txId)?.attempts).toHaveLength(1);
  });
});
