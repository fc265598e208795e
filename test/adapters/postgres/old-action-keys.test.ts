import { afterEach, beforeEach, expect, it } from "vitest";
import type { ActionKey } from "../../../src/ports/lane-store.ts";
import { commitOne, holdLane } from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeEach(async () => {
  subject = await createPostgresSubject();
});
afterEach(() => subject.close());

// protects [Operators] src/adapters/postgres/statements/action-key.ts
it("idempotency keys of operator actions are deleted after 30 days", async () => {
  const store = await subject.connect();
  const fence = await holdLane(store);
  const named = (key: string): ActionKey => ({ subject: "", key, fingerprint: `0x${"1".repeat(64)}` });
  const carryOut = (key: string) =>
    commitOne(store, {
      ...{ kind: "suspend", fence, suspended: true },
      decision: { action: "suspend", actor: "operator:ops", reason: "a test", actionKey: named(key) },
    });
  await carryOut("old");
  await carryOut("young");
  const age = "UPDATE fencepost.order_key SET carried_out_at = now() - $2::interval WHERE key = $1";
  await subject.client.query(age, ["old", "30 days 1 minute"]);
  await subject.client.query(age, ["young", "29 days 23 hours"]);
  await carryOut("new");
  const kept = await Promise.all(["old", "young", "new"].map((key) => store.carriedOut(fence.lane, named(key))));
  expect(kept.map((fingerprint) => fingerprint !== null)).toEqual([false, true, true]);
  await store.close();
});
