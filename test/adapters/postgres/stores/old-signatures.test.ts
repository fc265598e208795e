import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PostgresStore } from "../../../../src/adapters/postgres/store.ts";
import type { Fence } from "../../../../src/domain/lane.ts";
import type { AskedSignature } from "../../../../src/domain/messages/record.ts";
import { anInstance, commitOne, holdLane } from "../../../support/lane-samples.ts";
import { asked, permitOf, permitPolicy } from "../../../support/message-samples.ts";
import { DAY_MS } from "../../../support/old-transactions.ts";
import { policiesOf } from "../../../support/policies.ts";
import { createPostgresSubject, type PostgresSubject } from "../postgres-subject.ts";

const KEPT_MS = 90 * DAY_MS;
const BOUND = { amount: { field: "value" }, requireApproval: { aboveAmount: "100", expiresAfter: "1h" } };

let subject: PostgresSubject;
let store: PostgresStore;

beforeAll(async () => {
  subject = await createPostgresSubject();
  store = (await subject.connect(policiesOf({ signers: { "*": permitPolicy(BOUND) } }))) as PostgresStore;
});
afterAll(async () => {
  await store.close();
  await subject.close();
});

const request = async (fence: Fence, value: number, parts: Partial<AskedSignature> = {}) => {
  const made = asked(permitOf(fence.lane.signer, { value }), parts);
  return { made, outcome: await commitOne(store, { kind: "signMessage", fence, asked: made }) };
};
const age = ({ made }: { made: AskedSignature }, days: number) =>
  subject.client.query(
    "UPDATE fencepost.signature SET created_at = now() - $2 * interval '1 day' WHERE signature_id = $1",
    [made.signatureId, days],
  );

describe("a requested signature past its retention", () => {
  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/adapters/postgres/statements/signature.ts
  it("is removed, and its request id stays refused", async () => {
    const fence = await holdLane(store);
    const old = await request(fence, 1, { requestId: "old" });
    const young = await request(fence, 2);
    await age(old, 91);
    expect(await store.lanesWithOld([fence.lane, { ...fence.lane, chainId: 2 }], KEPT_MS)).toEqual([fence.lane]);
    expect(await store.removeOld([fence], KEPT_MS, 100)).toBe(1);
    expect(await store.signature(old.made.signatureId)).toBeNull();
    expect(await store.signature(young.made.signatureId)).not.toBeNull();
    const { outcome } = await request(fence, 1, { requestId: "old" });
    expect(outcome).toMatchObject({ result: "spent" });
    expect(await store.lanesWithOld([fence.lane], KEPT_MS)).toEqual([]);
  });

  it("is kept while it waits for approval", async () => {
    const fence = await holdLane(store);
    const waiting = await request(fence, 101);
    expect(waiting.outcome).toMatchObject({ record: { state: "AWAITING_APPROVAL" } });
    await age(waiting, 91);
    expect(await store.removeOld([fence], KEPT_MS, 100)).toBe(0);
    await subject.client.query("UPDATE fencepost.signature SET expires_at = now() - interval '1 second'");
    expect(await store.removeOld([fence], KEPT_MS, 100)).toBe(1);
  });

  it("is removed only under the lane's present term, and in batches", async () => {
    const fence = await holdLane(store);
    for (const value of [1, 2, 3]) await age(await request(fence, value), 91);
    await store.releaseLane(fence);
    expect(await store.removeOld([fence], KEPT_MS, 100)).toBe(0);
    const keeper = anInstance();
    await store.registerInstance(keeper);
    const taken = await store.acquireLane(fence.lane, keeper.instanceId);
    if (taken.result === "notLeader") throw new Error("somebody owns it");
    expect(await store.removeOld([taken.fence], KEPT_MS, 2)).toBe(2);
    expect(await store.removeOld([taken.fence], KEPT_MS, 2)).toBe(1);
  });
});
