import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApprovalResult } from "../../../src/ports/lane-store.ts";
import { aLane, allocate, anIntent, commitOne, holdLane } from "../../support/lane-samples.ts";
import { forSigner } from "../../support/policies.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeAll(async () => {
  subject = await createPostgresSubject();
});
afterAll(() => subject.close());

/**
 * A request waits for approval. Then the approval policy is removed, and the same request gets a nonce when it is sent
 * again.
 */
async function paidElsewhere(event: ApprovalResult["event"], value: bigint) {
  const lane = aLane();
  const bound = await subject.connect(forSigner(lane.signer, { requireApproval: { aboveValue: "100" } }));
  const fence = await holdLane(bound, lane);
  const [waits, paid] = [500n, value].map((each) =>
    anIntent(lane, { payload: { value: each }, requestId: "order", owner: "maker" }),
  ) as [ReturnType<typeof anIntent>, ReturnType<typeof anIntent>];
  await allocate(bound, fence, [waits]);
  const intakeId = (await bound.transaction(waits.txId))?.awaiting?.intakeId ?? 0;
  const free = await subject.connect();
  expect(await allocate(free, fence, [paid])).toMatchObject([{ result: "created", nonce: 0 }]);
  if (event === "expire") await subject.letApprovalExpire(waits.txId);
  const decision = event === "expire" ? null : { actor: "operator:bob", audit: {} };
  const result = { intakeId, requestId: "order", result: "decided", event, reason: "asked", decision } as const;
  const { lastSeq } = await free.feed(0, 1);
  await commitOne(free, { kind: "settleIntake", fence, results: [result] });
  const found = { waits: await bound.transaction(waits.txId), feed: (await free.feed(lastSeq, 10)).items };
  expect(await bound.loadIntake([lane], 10)).toEqual([]);
  await Promise.all([bound.close(), free.close()]);
  return { ...found, paid };
}

describe("a transaction awaiting approval with the request id of another transaction", () => {
  it.each(["reject", "expire", "callOff"] as const)(
    // protects [Attacks] src/domain/ledger/settle-intake.ts, src/adapters/postgres/commit/needs.ts
    "resolves to the other transaction after %s",
    async (event) => {
      const { waits, paid, feed } = await paidElsewhere(event, 500n);
      expect(waits).toMatchObject({ txId: paid.txId, state: "ALLOCATED", nonce: 0 });
      expect(feed).toEqual([]);
    },
  );

  // protects [Attacks] src/domain/ledger/settle-intake.ts, src/adapters/postgres/commit/needs.ts
  it("is rejected if the payloads differ", async () => {
    const { waits, feed } = await paidElsewhere("reject", 1n);
    expect(waits).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(feed).toHaveLength(1);
  });
});
