import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  aPayload,
  apply,
  BY_ANYBODY,
  commitOne,
  holdLane,
  nonces,
  step,
} from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";
import type { Store } from "../store-subject.ts";

/**
 * All nodes share one policy document in the database. The next commit of any store obeys it, no matter which store
 * changed it.
 */
export function policyDocumentContract(context: LaneStoreContext): void {
  const change = (store: Store, policies: Pick<Policies, "document" | "hash">, expectedVersion: number | null = null) =>
    store.changePolicy({ policies, actor: "operator:alice", reason: "a test", nodeId: "node-1", expectedVersion });
  const spending = (lane: ReturnType<typeof aLane>, value: bigint) => anIntent(lane, { payload: { value } });
  /** A document with a field that only a newer release could read. */
  const ofTomorrow = { document: { signers: {}, moods: ["good"] }, hash: "0x01" } as const;

  it("a change of the policy document is stored with its author, time and reason", async () => {
    const { store } = context;
    const before = await store.readPolicy();
    const policies = forSigner(aLane().signer, { maxValue: { perDay: "1" } });
    const { outcome, inForce } = await change(store, policies, before.version);
    expect(outcome).toBe("changed");
    expect(inForce).toMatchObject({
      ...{ version: before.version + 1, document: policies.document, changedBy: "operator:alice", reason: "a test" },
      ...{ changedAt: expect.any(Date), policies: { hash: policies.hash } },
    });
    expect(inForce.stamp).not.toBe(before.stamp);
    expect(await store.readPolicy()).toEqual(inForce);
  });

  // protects [Attacks] src/adapters/postgres/commit/policies.ts
  it("a policy change based on an outdated version, or equal to the current document, has no effect", async () => {
    const { store } = context;
    const policies = forSigner(aLane().signer, { maxValue: { perDay: "2" } });
    const { inForce } = await change(store, policies);
    expect(await change(store, policiesOf({}), inForce.version - 1)).toEqual({ outcome: "conflict", inForce });
    expect(await change(store, policies, inForce.version - 1)).toEqual({ outcome: "unchanged", inForce });
  });

  it("a changed policy document applies to the next commit of every store", async () => {
    const { store, subject } = context;
    const other = await subject.connect();
    const lane = aLane();
    const fence = await holdLane(other, lane);
    expect(nonces(await allocate(other, fence, [spending(lane, 5n)]))).toEqual([0]);
    await change(store, forSigner(lane.signer, { maxValue: { perTransaction: "4" } }));
    const results = await allocate(other, fence, [spending(lane, 5n), spending(lane, 4n)]);
    expect(results).toMatchObject([{ result: "forbidden", rule: "signer.maxValue.perTransaction" }, { nonce: 1 }]);
    await change(store, policiesOf({}));
    expect(nonces(await allocate(other, fence, [spending(lane, 5n)]))).toEqual([2]);
    await other.close();
  });

  it("a further attempt is checked against the policy document in force when it is committed", async () => {
    const { store, subject } = context;
    const other = await subject.connect();
    const lane = aLane();
    const fence = await holdLane(other, lane);
    const intent = spending(lane, 0n);
    await allocate(other, fence, [intent]);
    await apply(other, fence, [
      step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } }),
    ]);
    await change(store, forSigner(lane.signer, { maxCost: { perTransaction: "99" } }));
    const { to, data, value } = aPayload({ value: 0n });
    const spends = { to, data, value, gasCost: 100n, about: "cost" } as const;
    const reprice = step(intent.txId, AT.pending, "reprice", { attempt: anAttempt(2), spends });
    expect(await apply(other, fence, [reprice])).toEqual(["forbidden"]);
    await other.close();
  });

  it("a new lane uses the policy document in force", async () => {
    const { store, subject } = context;
    const other = await subject.connect();
    const lane = aLane();
    await change(store, forSigner(lane.signer, { maxValue: { perTransaction: "4" } }));
    const fence = await holdLane(other, lane);
    expect(await allocate(other, fence, [spending(lane, 5n)])).toMatchObject([{ result: "forbidden" }]);
    await other.close();
  });

  it("listeners receive each policy document once, before a commit is checked against it", async () => {
    const { store, subject } = context;
    const other = await subject.connect();
    const lane = aLane();
    const fence = await holdLane(other, lane);
    const sizes: (number | undefined)[] = [];
    other.knownPolicy.onChange(({ policies }) => sizes.push(policies?.signers.size));
    await change(store, forSigner(lane.signer, { maxValue: { perTransaction: "4" } }));
    await allocate(other, fence, [spending(lane, 5n)]);
    await allocate(other, fence, [spending(lane, 3n)]);
    expect(sizes).toEqual([1]);
    await other.close();
  });

  // protects [Attacks] src/domain/ledger/ledger.ts, src/domain/policy/in-force.ts
  it("an unreadable policy document allows no nonce and no further attempt, but open transactions continue", async () => {
    const { store, subject } = context;
    const other = await subject.connect();
    const lane = aLane();
    const fence = await holdLane(other, lane);
    const intent = spending(lane, 0n);
    await allocate(other, fence, [intent]);
    await change(store, ofTomorrow);
    expect(await allocate(other, fence, [spending(lane, 1n)])).toEqual([{ result: "held", unreadable: true }]);
    const reserve = { floor: 0, requestId: null, ...BY_ANYBODY, ttlMs: 1_000 };
    const reserved = await commitOne(other, { kind: "reserve", fence, reservationId: randomUUID(), ...reserve });
    expect(reserved).toMatchObject({ result: { result: "noCursor" } });
    const sign = step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } });
    expect(await apply(other, fence, [sign])).toEqual(["applied"]);
    const { to, data, value } = aPayload({ value: 0n });
    const spends = { to, data, value, gasCost: 100n, about: "cost" } as const;
    const reprice = step(intent.txId, AT.pending, "reprice", { attempt: anAttempt(2), spends });
    expect(await apply(other, fence, [reprice])).toEqual(["forbidden"]);
    expect((await other.readPolicy()).policies?.unreadable).toEqual([
      "moods is not a known field (known: signers, keys, abis)",
    ]);
    await change(store, policiesOf({}));
    expect(nonces(await allocate(other, fence, [spending(lane, 1n)]))).toEqual([1]);
    await other.close();
  });
}
