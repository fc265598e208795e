import { describe, expect, it } from "vitest";
import { Membership } from "../../../src/application/cluster/membership.ts";
import { Router } from "../../../src/application/cluster/route.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

/** The answer of a node that is leaving and knows of no live node, not even itself. */
async function askedWhileLeaving(hasKey: boolean): Promise<FencepostError> {
  const router = new Router({
    membership: new Membership({ signersOf: async () => [] }),
    telemetry: recordTelemetry(),
    clock: createManualClock(),
    selfUrl: "http://here",
    selfId: () => "here",
    holds: () => false,
    hasKey: () => hasKey,
    canServe: () => false,
    onUnreachable: () => undefined,
    lookAgain: async () => undefined,
  });
  const nowhere = () => Promise.reject(new Error("asked somebody"));
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  const unknown = () => expect.unreachable("nothing was told");
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
