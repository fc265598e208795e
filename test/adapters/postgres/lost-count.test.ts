import { afterEach, beforeEach, expect, it } from "vitest";
import { allocate, anIntent, holdLane } from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeEach(async () => {
  subject = await createPostgresSubject();
});
afterEach(() => subject.close());

// protects [Reads] src/adapters/postgres/statements/lane.ts
it.each([0, -3])(
  "the next owner of a lane finds all unsigned transactions even if the lane's stored count of them is wrong (%i)",
  async (kept) => {
    const store = await subject.connect();
    const fence = await holdLane(store);
    await allocate(store, fence, [anIntent(fence.lane), anIntent(fence.lane)]);
    await subject.client.query("UPDATE fencepost.lane SET live_allocated = $1", [kept]);
    expect((await store.loadLane(fence))?.allocated).toBe(2);
    await subject.client.query("UPDATE fencepost.lane SET live_allocated = 2");
    await store.close();
  },
);
