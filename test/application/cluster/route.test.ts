import { describe, expect, it } from "vitest";
import { Membership } from "../../../src/application/cluster/membership.ts";
import { Router } from "../../../src/application/cluster/route.ts";
import { PutOff } from "../../../src/application/lane/between-owners.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

interface Lone {
  readonly serves: boolean;
  readonly hasKey: boolean;
  readonly clock?: ManualClock;
}

const lane = { chainId: CHAIN_ID, signer: SIGNER };
const unknown = () => expect.unreachable("nothing was told");

/** Of a node that knows of no other live node. */
function loneRouter({ serves, hasKey, clock = createManualClock() }: Lone): Router {
  return new Router({
    membership: new Membership({ signersOf: async () => [] }),
    telemetry: recordTelemetry(),
    clock,
    selfUrl: "http://here",
    selfId: () => "here",
    holds: () => serves,
    hasKey: () => hasKey,
    canServe: () => serves,
    onUnreachable: () => undefined,
    lookAgain: async () => undefined,
  });
}

/** The answer of a node that is leaving and knows of no live node, not even itself. */
async function askedWhileLeaving(hasKey: boolean): Promise<FencepostError> {
  const router = loneRouter({ serves: false, hasKey });
  const nowhere = () => Promise.reject(new Error("asked somebody"));
  const [fate] = await router.run({ lane, items: 1, repeatable: false, locally: nowhere, remotely: nowhere, unknown });
  return fate as FencepostError;
}

describe("a signer whose key no live node holds", () => {
  it("is unknown to a node without its key", async () => {
    expect(await askedWhileLeaving(false)).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("is between owners to a node that has the key and is leaving", async () => {
    expect(await askedWhileLeaving(true)).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("an order whose lane is read again while it is under way, where no other node is", () => {
  it("is carried out by the next reading, not refused", async () => {
    const clock = createManualClock();
    const router = loneRouter({ serves: true, hasKey: true, clock });
    const answers = [new PutOff(), "done"];
    const fates = router.run({
      lane,
      items: 1,
      repeatable: false,
      locally: async () => [answers.shift() as string],
      remotely: () => Promise.reject(new Error("asked somebody")),
      unknown,
    });
    await waitUntil(async () => {
      await clock.advance(25);
      return answers.length === 0;
    }, "the order was asked for again");
    expect(await fates).toEqual(["done"]);
  });
});
