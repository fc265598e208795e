import { describe, expect, it } from "vitest";
import { Membership } from "../../../src/application/cluster/membership.ts";
import { NobodyActs, OutOfReach, Router } from "../../../src/application/cluster/route.ts";
import { BetweenOwners, LeftInDoubt, PutOff } from "../../../src/application/lane/between-owners.ts";
import { FencepostError, notLeader, outcomeUnknown, queueFull, unavailable } from "../../../src/domain/errors.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

interface Lone {
  readonly serves: boolean;
  readonly hasKey: boolean;
  readonly clock?: ManualClock;
  readonly forwards?: boolean;
  readonly selfUrl?: string;
}

const lane = { chainId: CHAIN_ID, signer: SIGNER };
const unknown = () => expect.unreachable("nothing was told");

/** The request router of a node that sees no other live node. */
function loneRouter({ serves, hasKey, ...more }: Lone): Router {
  const { clock = createManualClock(), forwards = true, selfUrl = "http://here" } = more;
  return new Router({
    membership: new Membership({ signersOf: async () => [] }),
    telemetry: recordTelemetry(),
    clock,
    forwards,
    selfUrl,
    selfId: () => "here",
    holds: () => serves,
    hasKey: () => hasKey,
    canServe: () => serves,
    onUnreachable: () => undefined,
    lookAgain: async () => undefined,
  });
}

/** The response of a node that is shutting down and sees no live node, not even itself. */
async function askedWhileLeaving(hasKey: boolean): Promise<FencepostError> {
  const router = loneRouter({ serves: false, hasKey });
  const nowhere = () => Promise.reject(new Error("asked somebody"));
  const ways = { here: nowhere, at: nowhere, enqueue: nowhere };
  const [result] = await router.deliver({ lane, items: 1, repeatable: false, ...ways, unknown });
  return result as FencepostError;
}

describe("a request to a node that is shutting down", () => {
  it("gets UNKNOWN_SIGNER if no node has the key", async () => {
    expect(await askedWhileLeaving(false)).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("gets UNAVAILABLE if only this node has the key", async () => {
    expect(await askedWhileLeaving(true)).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("an action on a lane that is being reloaded", () => {
  it("is retried after the reload, not refused", async () => {
    const clock = createManualClock();
    const router = loneRouter({ serves: true, hasKey: true, clock });
    const answers = [new PutOff(), "done"];
    const nowhere = () => Promise.reject(new Error("asked somebody"));
    const results = router.deliver({
      lane,
      items: 1,
      repeatable: false,
      here: async () => [answers.shift() as string],
      ...{ at: nowhere, enqueue: nowhere },
      unknown,
    });
    await waitUntil(async () => {
      await clock.advance(25);
      return answers.length === 0;
    }, "the order was asked for again");
    expect(await results).toEqual(["done"]);
  });
});

describe("an embedded node, for a request to a lane of another owner,", () => {
  const ENQUEUED = "enqueued";

  async function resultOf(result: string | FencepostError, selfUrl = ""): Promise<string | FencepostError | undefined> {
    const router = loneRouter({ serves: true, hasKey: true, forwards: false, selfUrl });
    const here = async () => [result];
    const at = () => Promise.reject(new Error("asked somebody"));
    const enqueue = async () => [ENQUEUED];
    return (await router.deliver<string>({ lane, items: 1, repeatable: true, here, at, enqueue, unknown }))[0];
  }

  it.each([
    ["another node has the lane", notLeader("another node acts for this signer")],
    ["the lane changes hands", new BetweenOwners("this signer is between two owners")],
    ["no node could be called", new NobodyActs(null)],
  ])("enqueues the request for the owner if %s", async (_, result) => {
    expect(await resultOf(result)).toBe(ENQUEUED);
    expect(await resultOf(result, "http://here"), "not by a node that can be asked itself").toBe(result);
  });

  it("enqueues the request if the owner is also embedded", async () => {
    const result = new OutOfReach({ nodeId: "node-1" });
    expect(await resultOf(result)).toBe(ENQUEUED);
    expect(await resultOf(result, "http://here")).toBe(ENQUEUED);
  });

  it.each([
    ["it may have been accepted, but its answer was lost", outcomeUnknown("no answer", { txId: "tx" })],
    ["its outcome is unknown until the next owner reads it", new LeftInDoubt(null, { txId: "tx" })],
    ["the owner's queue is full", queueFull()],
    ["its chain is unavailable", unavailable("the chain does not answer")],
    ["the request itself was refused", new FencepostError("SUBMISSION_REJECTED", "it reverts")],
    ["it succeeded", "done"],
    // protects [Replicas that embed the library] src/application/cluster/route.ts
  ])("does not enqueue the request if %s", async (_, result) => {
    expect(await resultOf(result)).toBe(result);
  });
});
