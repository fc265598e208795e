import { describe, expect, it } from "vitest";
import { NobodyActs } from "../../../../src/application/cluster/journey.ts";
import { OutOfReach } from "../../../../src/application/cluster/route.ts";
import { isUnasked } from "../../../../src/application/cluster/unasked.ts";
import { BetweenOwners, LeftInDoubt } from "../../../../src/application/lane/between-owners.ts";
import type { Fate } from "../../../../src/application/stages/1-create/answer-existing.ts";
import type { RequestIds } from "../../../../src/application/stages/1-create/request-ids.ts";
import { leaveUntaken } from "../../../../src/application/stages/1-create/untaken.ts";
import { FencepostError, notLeader, outcomeUnknown, queueFull, unavailable } from "../../../../src/domain/errors.ts";
import { aLane, anIntent } from "../../../support/lane-samples.ts";

const intent = anIntent(aLane());
const requestIds = { find: async () => new Map() } as unknown as RequestIds;
const LEFT: Fate = { outcome: "created", ...intent, nonce: 1, state: "ALLOCATED" };

const throughIntake = { leave: async () => [LEFT], leaving: () => 0 };
const leaveCreates = { leave: () => Promise.reject(new Error("nothing of this is for the owner alone")) };
const forwarded = () => ({ txId: intent.txId, owner: null, request: {} });
const shares = { store: { openOf: async () => [] }, admission: { perLane: 10 } };
const entering = [{ intent, queueShare: null, forwarded }];

async function afterwards(fate: Fate, isEmbedded = true) {
  const unasked = (each: unknown) => isUnasked(each, isEmbedded);
  return (
    await leaveUntaken({ ...shares, requestIds, throughIntake, leaveCreates, isUnasked: unasked }, entering, [fate])
  )[0];
}

describe("a create is left for the lane's owner", () => {
  it.each([
    ["another node has the lane", notLeader("another node acts for this signer")],
    ["the lane changes hands", new BetweenOwners("this signer is between two owners")],
    ["no node could be asked", new NobodyActs(null)],
  ])("where %s", async (_, fate) => {
    expect(await afterwards(fate)).toBe(LEFT);
    expect(await afterwards(fate, false), "not by a node that can be asked itself").toBe(fate);
  });

  it("where its owner is embedded, by any node", async () => {
    const fate = new OutOfReach({ nodeId: "node-1" });
    expect(await afterwards(fate)).toBe(LEFT);
    expect(await afterwards(fate, false)).toBe(LEFT);
  });

  it.each([
    ["it may have been accepted, unheard", outcomeUnknown("no answer", { txId: intent.txId })],
    ["the next owner has to say what became of it", new LeftInDoubt(null, { txId: intent.txId })],
    ["the owner has no room for it", queueFull()],
    ["its chain is away", unavailable("the chain does not answer")],
    ["the request itself was refused", new FencepostError("SUBMISSION_REJECTED", "it reverts")],
    ["it was created", LEFT],
  ])("but not where %s", async (_, fate) => {
    expect(await afterwards(fate)).toBe(fate);
  });

  it.each([
    ["what it has open, what leaves and what it asks for at once", [{ txId: "a", isMined: false }], 2],
    ["nothing that is mined", [{ txId: "a", isMined: true }], 1],
  ])("up to the share of its API key, which counts %s", async (_, open, others) => {
    const keyed = Array.from({ length: 4 }, () => ({
      intent: anIntent(aLane(), { owner: "shop" }),
      queueShare: 0.3,
      forwarded,
    }));
    const taken: string[] = [];
    const ports = {
      ...{ requestIds, leaveCreates, isUnasked: () => true, admission: { perLane: 10 } },
      store: { openOf: async () => open },
      throughIntake: {
        leaving: () => others - 1,
        leave: async (intents: readonly { txId: string }[]) => {
          taken.push(...intents.map(({ txId }) => txId));
          return intents.map(() => LEFT);
        },
      },
    };
    const no = keyed.map(() => notLeader("no"));
    const fates = await leaveUntaken(ports, keyed, no);
    const most = open.some(({ isMined }) => !isMined) ? 1 : 3;
    expect(taken).toHaveLength(most);
    const refusals = fates.filter((each) => each instanceof FencepostError);
    expect(refusals).toHaveLength(4 - most);
    for (const each of refusals) expect(each).toMatchObject({ code: "QUOTA_EXCEEDED", extras: { rule: "queueShare" } });
  });

  it("and told as nothing accepted where its request id cannot be looked up", async () => {
    const named = anIntent(aLane(), { requestId: "named" });
    const away = { find: () => Promise.reject(new Error("away")) } as unknown as RequestIds;
    const [fate] = await leaveUntaken(
      { ...shares, requestIds: away, throughIntake, leaveCreates, isUnasked: () => true },
      [{ intent: named, queueShare: null, forwarded }],
      [notLeader("no")],
    );
    expect(fate).toMatchObject({ code: "UNAVAILABLE" });
    expect((fate as FencepostError).extras.outcome).toBeUndefined();
  });
});
