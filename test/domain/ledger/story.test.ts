import fc from "fast-check";
import { expect, it } from "vitest";
import { TRANSITIONS } from "../../../src/domain/transaction/transitions.ts";
import { chaptersOf } from "./chapters.ts";
import { wordsOf } from "./contents.ts";
import { story } from "./story.ts";

it("the random sequences of these tests reach every outcome and every event", () => {
  const seen = new Set<string>();
  for (const happenings of fc.sample(story, { numRuns: 400, seed: 1 })) {
    for (const { write, outcome, changes } of chaptersOf(happenings)) {
      seen.add(`${write.kind} ${wordsOf(outcome).replaceAll(/[ ,].*$/g, "")}`);
      for (const change of changes) if (change.kind === "moved") seen.add(change.item.event);
    }
  }
  expect(WORTH_SEEING.filter((each) => !seen.has(each))).toEqual([]);
});

/** Approval requires a policy, and these tests have none; test/contracts/lane-store/approval.ts covers it. */
const APPROVAL = ["await", "approve", "reject", "callOff"];
const BEFORE_A_NONCE = ["accept", "allocate", "refuse", "refuseReusedRequestId", ...APPROVAL];
const WORTH_SEEING = [
  ...[
    "allocate created",
    "allocate again",
    "allocate reused",
    "allocate held",
    "allocate noCursor",
    "allocate expired",
    "allocate otherNonce",
  ],
  ...["transition applied", "transition conflict"],
  ...["reserve reserved", "reserve existing", "reserve taken", "reserve noCursor", "reserve tooMany"],
  ...["release settled", "release conflict", "expire holes", "bind settled", "bind limited"],
  ...["bind conflict", "bind held", "findSkipped holes", "closeHoles done", "realign at", "reconcile at"],
  ...["settleIntake done", "unwatch done", "suspend done", "align at"],
  ...Object.keys(TRANSITIONS).filter((event) => !BEFORE_A_NONCE.includes(event)),
];
