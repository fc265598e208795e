import { expect, it } from "vitest";
import { Dequeue } from "../../../src/application/cluster/owner-actions.ts";
import { FencepostError, notLeader } from "../../../src/domain/errors.ts";
import type { BegunRequest } from "../../../src/ports/left-request-store.ts";
import type { LaneRequest } from "../../../src/ports/peers.ts";
import { aLane } from "../../support/lane-samples.ts";

const LANE = aLane();
const PAGE = 50;

function aRequest(index: number, begunBefore = false): BegunRequest {
  const words = { action: "act", body: `{"index":${index}}`, owner: "shop", repeatable: true };
  return { leftId: `left-${index}`, lane: LANE, ...words, begunBefore };
}

/** A fake request table; one read of it begins at most one page of requests. */
function bench(all: readonly BegunRequest[], receive: (request: LaneRequest) => object = () => ({ answer: null })) {
  const asked: number[] = [];
  const received: LaneRequest[] = [];
  const putBack: string[] = [];
  const answered = new Set<string>();
  const outcomes: unknown[] = [];
  const requests = new Dequeue({
    store: {
      beginRequests: async (_, __, except) => {
        const begun = all.filter(({ leftId }) => !except.includes(leftId) && !answered.has(leftId)).slice(0, PAGE);
        asked.push(begun.length);
        if (asked.length > 10) throw new Error("it does not end");
        return begun;
      },
      answerRequest: async (leftId, _, json) => {
        answered.add(leftId);
        outcomes.push(JSON.parse(json).problem?.outcome);
      },
      putBackRequest: async (leftId) => void putBack.push(leftId),
    },
    instanceId: () => "me",
    actions: {
      receive: async (_, request) => {
        received.push(request);
        return receive(request) as never;
      },
    },
    onAnswered: () => undefined,
  });
  const look = async () => {
    await requests.look(() => [{ lane: LANE }]);
    await requests.settled();
  };
  return { asked, received, putBack, answered, outcomes, look };
}

// protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
it("the owner dequeues all pending requests for its lanes in one pass, in batches of 50", async () => {
  const { asked, answered, look } = bench(Array.from({ length: 120 }, (_, index) => aRequest(index)));
  await look();
  expect(answered.size).toBe(120);
  expect(asked).toEqual([50, 50, 20, 0]);
});

// protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
it("the owner puts a request back into the queue if the lane was lost", async () => {
  const { asked, putBack, look } = bench([aRequest(1)], () => notLeader("lost"));
  await look();
  expect(asked).toEqual([1, 0]);
  expect(putBack).toEqual(["left-1"]);
});

// protects [Replicas that embed the library] src/application/cluster/owner-actions.ts, src/application/stages/1-create/asked-create.ts
it("the owner marks each dequeued request as new or as already begun", async () => {
  const { received, look } = bench([aRequest(1), aRequest(2, true)]);
  await look();
  expect(received).toMatchObject([
    { body: { index: 1 }, owner: "shop", again: false },
    { body: { index: 2 }, owner: "shop", again: true },
  ]);
});

const lostInDoubt = () => new FencepostError("NOT_LEADER", "lost", { outcome: "unknown" });

it.each([
  ["it was begun before", { begunBefore: true }, () => notLeader("lost")],
  ["its outcome is unknown", {}, lostInDoubt],
])("the owner does not put a request back if %s and the lane was lost", async (_, wishes, receive) => {
  const { putBack, answered, look } = bench([{ ...aRequest(1), ...wishes }], receive);
  await look();
  expect([putBack, [...answered]]).toEqual([[], []]);
});

it.each([
  ["was begun before", { begunBefore: true }, 0],
  ["may have been done", {}, 1],
])("the owner answers a request that must not be repeated as unknown if it %s", async (_, wishes, carriedOut) => {
  const { received, putBack, outcomes, look } = bench([{ ...aRequest(1), repeatable: false, ...wishes }], lostInDoubt);
  await look();
  expect(received).toHaveLength(carriedOut);
  expect([putBack, outcomes]).toEqual([[], ["unknown"]]);
});
