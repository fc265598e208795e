import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import type { PreparedIntent } from "../../../src/domain/transaction/transaction.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  aPayload,
  apply,
  aReceipt,
  BY_ANYBODY,
  commitOne,
  holdLane,
  nonces,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";
import type { Store } from "../store-subject.ts";

const GWEI = 1_000_000_000n;

/**
 * Policy limits are enforced when a nonce is assigned and when a further payload for it is committed. A refused write
 * uses up no part of a limit.
 */
export function policiesContract(context: LaneStoreContext): void {
  const limited = async (policy: object, work: (store: Store, fence: Fence) => Promise<void>) => {
    const lane = aLane();
    const store = await context.subject.connect(forSigner(lane.signer, policy));
    try {
      await work(store, await holdLane(store, lane));
    } finally {
      await store.close();
    }
  };
  const spending = (fence: Fence, value: bigint, gasCost = 0n): PreparedIntent =>
    anIntent(fence.lane, { payload: { value }, gasCost });
  const useOf = async (store: Store, { lane }: Fence) => (await store.policyUse(lane, {})).signer;

  it("an allocation that a signer's policy forbids is refused without a nonce gap", () =>
    limited({ to: [`0x${"b".repeat(40)}`] }, async (store, fence) => {
      const elsewhere = anIntent(fence.lane, { payload: { to: `0x${"c".repeat(40)}` } });
      const results = await allocate(store, fence, [anIntent(fence.lane), elsewhere, anIntent(fence.lane)], 4);
      expect(nonces(results)).toEqual([4, null, 5]);
      expect(results[1]).toMatchObject({ result: "forbidden", rule: "signer.to" });
      expect(await store.transaction(elsewhere.txId)).toBeNull();
    }));

  it("the possible cost of transactions is counted against the hourly limit", () =>
    limited({ maxCost: { perHour: "100" } }, async (store, fence) => {
      const results = await allocate(
        store,
        fence,
        [60n, 50n, 40n].map((value) => spending(fence, value)),
      );
      expect(results.map(({ result }) => result)).toEqual(["created", "forbidden", "created"]);
      expect((await useOf(store, fence)).hour).toEqual({ value: 100n, cost: 100n });
      const [late] = await allocate(store, fence, [spending(fence, 0n, 1n)]);
      expect(late).toMatchObject({ result: "forbidden", rule: "signer.maxCost.perHour" });
    }));

  it("policy usage counted by one store applies to the other stores and to the next owner", () =>
    limited({ maxValue: { perDay: "10" } }, async (store, fence) => {
      await allocate(store, fence, [spending(fence, 7n)]);
      await store.releaseLane(fence);
      const policies: Policies = forSigner(fence.lane.signer, { maxValue: { perDay: "10" } });
      const next = await context.subject.connect(policies);
      const taken = await holdLane(next, fence.lane);
      const results = await allocate(next, taken, [spending(taken, 4n), spending(taken, 3n)]);
      expect(results.map(({ result }) => result)).toEqual(["forbidden", "created"]);
      await next.close();
    }));

  it("a more expensive attempt adds to the policy usage, and is refused above the limit", () =>
    limited({ maxCost: { perHour: `${3_000_000n * GWEI}` } }, async (store, fence) => {
      const intent = spending(fence, 0n, 21_000n * 30n * GWEI);
      await allocate(store, fence, [intent]);
      await apply(store, fence, [
        step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } }),
      ]);
      const { to, data, value } = aPayload({ value: 0n });
      const dearer = (gwei: bigint) =>
        step(intent.txId, AT.pending, "reprice", {
          attempt: anAttempt(2),
          spends: { to, data, value, gasCost: 21_000n * gwei * GWEI, about: "cost" },
        });
      expect(await apply(store, fence, [dearer(200n)])).toEqual(["forbidden"]);
      expect((await store.transaction(intent.txId))?.attempts).toHaveLength(1);
      expect((await useOf(store, fence)).hour.cost).toBe(21_000n * 30n * GWEI);
      expect(await apply(store, fence, [dearer(100n)])).toEqual(["applied"]);
      expect((await useOf(store, fence)).hour.cost).toBe(21_000n * 100n * GWEI);
    }));

  it("a first attempt that costs more than was charged at allocation is refused above the limit", () =>
    limited({ maxCost: { perTransaction: "100" } }, async (store, fence) => {
      const intent = spending(fence, 10n, 50n);
      await allocate(store, fence, [intent]);
      const [waiting] = await store.loadAllocated(fence.lane, 0, 1);
      expect(waiting?.mostCost).toBe(60n);
      const sign = step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } });
      expect(await apply(store, fence, [sign])).toEqual(["forbidden"]);
      expect((await store.transaction(intent.txId))?.state).toBe("ALLOCATED");
    }));

  it("policy usage is corrected to the real cost at finality", () =>
    limited({ maxCost: { perDay: `${10n ** 18n}` } }, async (store, fence) => {
      const intent = spending(fence, 5n, 21_000n * 30n * GWEI);
      const worst = 5n + 21_000n * 30n * GWEI;
      const attempt = anAttempt();
      const { txId } = intent;
      await allocate(store, fence, [intent]);
      await apply(store, fence, [step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
      await apply(store, fence, [step(txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash) })]);
      expect((await useOf(store, fence)).day).toEqual({ value: 5n, cost: worst });
      const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
      const paid = { ordinal: 1, gasCost: 21_000n * 20n * GWEI, succeeded: true };
      await apply(store, fence, [step(txId, AT.mined, "confirm", { completion, paid })]);
      expect((await useOf(store, fence)).day).toEqual({ value: 5n, cost: 5n + 21_000n * 20n * GWEI });
      const reorged = { state: "REORGED", subState: null, settled: false, txHash: attempt.txHash } as const;
      await apply(store, fence, [step(txId, AT.confirmed, "reorg", { completion: reorged, receipt: null })]);
      expect((await useOf(store, fence)).day).toEqual({ value: 5n, cost: worst });
      expect((await store.policyUse(fence.lane, { txId })).charges.map(({ cost }) => cost)).toEqual([
        worst,
        paid.gasCost + 5n - worst,
        worst - paid.gasCost - 5n,
      ]);
    }));

  it("a receipt keeps the amount paid besides gas, and whether that amount is uncertain", async () => {
    const { store } = context;
    const fence = await holdLane(store);
    for (const beside of [{ besideGas: 7n, besideGasUnsure: true } as const, { besideGas: 9n }, {}]) {
      const attempt = anAttempt();
      const intent = spending(fence, 1n);
      const receipt = { ...aReceipt(attempt.txHash), ...beside };
      await allocate(store, fence, [intent]);
      await apply(store, fence, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
      await apply(store, fence, [step(intent.txId, AT.pending, "mine", { receipt })]);
      expect((await store.transaction(intent.txId))?.receipt).toEqual(receipt);
    }
  });

  it("a transaction that the caller signed is checked against the policy like any other", () =>
    limited({ to: [`0x${"b".repeat(40)}`], maxCost: { perHour: "1000" } }, async (store, fence) => {
      const reserve = { kind: "reserve", fence, floor: 0, requestId: null, ...BY_ANYBODY, ttlMs: 60_000 } as const;
      const submit = async (intent: PreparedIntent) => {
        const reservationId = intent.txId;
        const reserved = await commitOne(store, { ...reserve, reservationId });
        if (reserved.status !== "reserved" || reserved.result.result !== "created") throw new Error("not reserved");
        const { nonce } = reserved.result.reservation;
        const reservation = { reservationId, becomes: "SUBMITTED" } as const;
        const fees = { type: "legacy", gasPrice: 0n } as const;
        const attempt = anAttempt(1, { fees });
        return commitOne(store, { kind: "bind", fence, nonce, intent, attempt, reason: "", reservation });
      };
      const elsewhere = anIntent(fence.lane, { payload: { to: `0x${"c".repeat(40)}` } });
      expect(await submit(elsewhere)).toMatchObject({ result: "forbidden", forbidden: { rule: "signer.to" } });
      expect((await store.reservation(elsewhere.txId))?.state).toBe("RESERVED");
      const dear = await submit(spending(fence, 900n, 101n));
      expect(dear).toMatchObject({ result: "forbidden", forbidden: { rule: "signer.maxCost.perHour" } });
      expect(await submit(spending(fence, 900n, 100n))).toMatchObject({ result: "settled" });
      expect((await useOf(store, fence)).hour).toEqual({ value: 900n, cost: 1_000n });
    }));

  it("the policy usage of an API key covers all its signers, within one commit and across commits", async () => {
    const policies = policiesOf({ keys: { payments: { maxValue: { perHour: "100" } } } });
    const store = await context.subject.connect(policies);
    const [one, two] = [await holdLane(store, aLane(77)), await holdLane(store, aLane(77))];
    const of = (fence: Fence, value: bigint, owner: string | null = "payments") => ({
      intent: { ...spending(fence, value), owner },
    });
    const allocation = (fence: Fence, ...items: ReturnType<typeof of>[]) =>
      ({ kind: "allocate", fence, floor: 0, items }) as const;
    const resultsOf = async (...writes: ReturnType<typeof allocation>[]) =>
      (await outcomesOf(store, writes)).flatMap((outcome) =>
        outcome.status === "allocated" ? outcome.items.map(({ result }) => result) : [outcome.status],
      );
    expect(await resultsOf(allocation(one, of(one, 60n)), allocation(two, of(two, 41n), of(two, 30n)))).toEqual([
      "created",
      "forbidden",
      "created",
    ]);
    expect(await resultsOf(allocation(one, of(one, 11n), of(one, 99n, "others"), of(one, 10n)))).toEqual([
      "forbidden",
      "created",
      "created",
    ]);
    const { keys } = await store.allPolicyUse();
    expect(keys.find(({ chainId }) => chainId === 77)).toMatchObject({
      owner: "payments",
      use: { hour: { value: 100n, cost: 100n }, day: { value: 100n, cost: 100n } },
    });
    await store.close();
  });

  it("the policy usage of an API key is corrected when a transaction is final", async () => {
    const store = await context.subject.connect(policiesOf({ keys: { "*": { maxCost: { perDay: "1000" } } } }));
    const fence = await holdLane(store, aLane(78));
    const intent = { ...spending(fence, 10n, 500n), owner: "shop" };
    const fees = { type: "legacy", gasPrice: 0n } as const;
    const attempt = anAttempt(1, { fees });
    const { txId } = intent;
    await commitOne(store, { kind: "allocate", fence, floor: 0, items: [{ intent }] });
    await apply(store, fence, [step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
    await apply(store, fence, [step(txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash) })]);
    const completion = { state: "FAILED_FINAL", subState: "REVERTED", settled: true, txHash: attempt.txHash } as const;
    const paid = { ordinal: 1, gasCost: 77n, succeeded: false };
    expect((await store.policyUse(fence.lane, { txId })).key.day).toEqual({ value: 10n, cost: 510n });
    await apply(store, fence, [step(txId, AT.mined, "revert", { completion, paid })]);
    expect(await store.policyUse(fence.lane, { txId })).toMatchObject({
      owner: "shop",
      key: { hour: { value: 0n, cost: 77n }, day: { value: 0n, cost: 77n } },
    });
    await store.close();
  });

  // protects [Reservations] src/domain/policy/policy.ts, src/adapters/postgres/commit/commands.ts, src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("a placeholder counts as usage of the API key that reserved the nonce", async () => {
    const store = await context.subject.connect(policiesOf({ keys: { "*": { maxCost: { perDay: "100" } } } }));
    const fence = await holdLane(store, aLane(79));
    const create = (gasCost: bigint) => {
      const intent = { ...spending(fence, 0n, gasCost), owner: "silent" };
      return { kind: "allocate", fence, floor: 0, items: [{ intent }] } as const;
    };
    const reserve = async () => {
      const wish = { floor: 0, requestId: null, ...BY_ANYBODY, owner: "silent", ttlMs: 0 };
      const made = await commitOne(store, { kind: "reserve", fence, reservationId: randomUUID(), ...wish });
      return made.status === "reserved" && made.result.result === "created"
        ? made.result.reservation
        : expect.unreachable();
    };
    const [first, second] = [await reserve(), await reserve()];
    await commitOne(store, { kind: "expire", fence });
    const placeholder = ({ nonce, reservationId }: typeof first, gasCost: bigint) => {
      const intent = { ...spending(fence, 0n, gasCost), owner: "silent" };
      const attempt = anAttempt(1, { kind: "placeholder" });
      const reservation = { reservationId, becomes: "EXPIRED" } as const;
      return { kind: "bind", fence, nonce, intent, attempt, reservation, reason: "test" } as const;
    };
    const results = async (...writes: Parameters<typeof outcomesOf>[1]) =>
      (await outcomesOf(store, writes)).map((outcome) =>
        outcome.status === "allocated"
          ? outcome.items[0]?.result
          : "result" in outcome
            ? outcome.result
            : outcome.status,
      );
    const inOneCommit = [create(90n), placeholder(first, 101n), create(1n)];
    expect(await results(...inOneCommit)).toEqual(["created", "settled", "forbidden"]);
    expect(await results(placeholder(second, 1n))).toEqual(["settled"]);
    expect((await store.policyUse(fence.lane, { owner: "silent" })).key.day.cost).toBe(192n);
    await store.close();
  });

  it("policy usage is listed by signer, without signers that have no policy", () =>
    limited({ maxValue: { perDay: "100" } }, async (store, fence) => {
      const other = await holdLane(store);
      await allocate(store, other, [spending(other, 1n)]);
      await allocate(store, fence, [spending(fence, 2n, 3n)]);
      const { signers } = await store.allPolicyUse();
      expect(signers.filter(({ lane }) => lane.signer === other.lane.signer)).toEqual([]);
      expect(signers.find(({ lane }) => lane.signer === fence.lane.signer)).toMatchObject({
        lane: fence.lane,
        use: { hour: { value: 2n, cost: 5n }, day: { value: 2n, cost: 5n } },
      });
    }));
}
