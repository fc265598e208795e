import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { aLane } from "../../support/lane-samples.ts";
import { createPostgresSubject } from "./postgres-subject.ts";

// protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
it("pending requests for a lane's owner are deleted a minute after they expire, when the next request is inserted", async () => {
  const subject = await createPostgresSubject();
  const store = await subject.connect();
  const leave = async () => {
    const leftId = randomUUID();
    const words = { action: "act", body: "{}", owner: null, repeatable: true };
    await store.leaveRequests([{ leftId, lane: aLane(), ...words }], 4_000);
    return leftId;
  };
  const [old, young] = [await leave(), await leave()];
  const age = "UPDATE fencepost.left_request SET until = now() - $2::interval WHERE left_id = $1";
  await subject.client.query(age, [old, "61 seconds"]);
  await subject.client.query(age, [young, "50 seconds"]);
  const next = await leave();
  expect((await store.leftStanding([old, young, next])).map(({ leftId }) => leftId).sort()).toEqual(
    [young, next].sort(),
  );
  await store.close();
  await subject.close();
});
