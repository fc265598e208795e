import { describe, expect, it } from "vitest";
import { Delivery, NobodyActs } from "../../../src/application/cluster/route.ts";
import { LeftInDoubt } from "../../../src/application/lane/between-owners.ts";
import { type ErrorCode, FencepostError, notLeader } from "../../../src/domain/errors.ts";
import { PeerUnreachable } from "../../../src/ports/peers.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

const UNKNOWN = new FencepostError("UNAVAILABLE", "nobody knows", { outcome: "unknown" });

function deliveryTo(stop: string): Delivery<string> {
  const nowhere = () => Promise.reject(new Error("asked somebody"));
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  const ways = { here: nowhere, at: nowhere, enqueue: nowhere };
  return new Delivery({ lane, items: 1, repeatable: true, ...ways, unknown: () => UNKNOWN }, stop, 1_000);
}

/** Cases in which a request is forwarded to a second node although the first node may already have performed it. */
const DOUBTS = {
  "did not answer": (delivery: Delivery<string>) =>
    delivery.unanswered(new PeerUnreachable("silence", false), { isLive: false, other: () => "second" }),
  "was left in doubt by its database": (delivery: Delivery<string>) => {
    delivery.note([new LeftInDoubt(notLeader("another node acts"), { txId: "tx" }).toPeer()]);
    delivery.goTo("second");
  },
};

const conclude = (delivery: Delivery<string>) => delivery.conclude(() => new NobodyActs(null))[0];
const refusal = (code: ErrorCode) => new FencepostError(code, "no");

describe.each(Object.entries(DOUBTS))("a forwarded request that %s", (_, leaveInDoubt) => {
  const aboutTheNode = ["UNAVAILABLE", "QUEUE_FULL", "QUOTA_EXCEEDED", "INTERNAL"] as const;
  const mayChange = ["SUBMISSION_REJECTED", "FORBIDDEN"] as const;
  it.each([...aboutTheNode, "UNKNOWN_SIGNER", "UNKNOWN_CHAIN", "NOT_LEADER", ...mayChange] as const)(
    // protects [Operators] src/application/cluster/route.ts
    // protects [Attacks] src/application/cluster/route.ts
    "keeps an unknown outcome if a second node refuses the request with %s",
    (code) => {
      const delivery = deliveryTo("first");
      leaveInDoubt(delivery);
      delivery.note([refusal(code)]);
      expect(conclude(delivery)).toBe(UNKNOWN);
    },
  );

  it.each(["INVALID_REQUEST", "CONFLICT", "REQUEST_ID_REUSED"] as const)(
    "is refused if the lane's next owner refuses the request with %s, as every node would at any time",
    (code) => {
      const delivery = deliveryTo("first");
      leaveInDoubt(delivery);
      delivery.note([refusal(code)]);
      expect(conclude(delivery)).toMatchObject({ code });
    },
  );

  // protects [Operators] src/application/cluster/route.ts
  it("has an unknown outcome if there is no other node to try", () => {
    const delivery = deliveryTo("first");
    leaveInDoubt(delivery);
    expect(conclude(delivery)).toBe(UNKNOWN);
  });
});

describe("a forwarded request that every node refused", () => {
  it("is reported as not accepted", () => {
    const delivery = deliveryTo("first");
    delivery.note([notLeader("not here")]);
    expect(conclude(delivery)).toMatchObject({ message: expect.stringContaining("nothing was accepted") });
  });
});
