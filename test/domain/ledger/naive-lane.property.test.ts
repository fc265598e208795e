import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply } from "../../../src/domain/ledger/index.ts";
import { TRANSITIONS } from "../../../src/domain/transaction/transitions.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { chaptersOf, unlessMistaken } from "./chapters.ts";
import { wordsOf } from "./contents.ts";
import { NaiveLane, outcomeOf, standing, standingOf } from "./naive-lane.ts";
import { LANE, story, WriteMaker } from "./story.ts";

describe("a ledger and a naive reference lane with the same writes", () => {
  it("have the same outcomes and the same state", () => {
    fc.assert(
      fc.property(story, (happenings) => {
        const maker = new WriteMaker();
        const naive = new NaiveLane();
        naive.mayHaveLost = true;
        let ledger = newLedger(LANE);
        for (const happening of happenings) {
          const write = maker.make(ledger, happening);
          naive.reconciled = maker.reconciled;
          naive.waiting = new Map(maker.intake.map((row) => [row.intakeId, row]));
          if (write === null) continue;
          const applied = unlessMistaken(() => apply(maker.loaded(ledger), write, maker.now));
          const words = applied === null ? "mistake" : wordsOf(applied.outcome);
          expect(
            words,
            JSON.stringify(write, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
          ).toBe(outcomeOf(naive, write, maker.now));
          if (applied === null) return;
          ledger = applied.ledger;
          maker.took(ledger);
          expect(standing(ledger)).toEqual(standingOf(naive));
        }
      }),
      { numRuns: 100 },
    );
  });

  it("reach every outcome and every event", () => {
    const seen = new Set<string>();
    for (const happenings of fc.sample(story, { numRuns: 400, seed: 1 })) {
      for (const { write, outcome, changes } of chaptersOf(happenings)) {
        seen.add(`${write.kind} ${wordsOf(outcome).replaceAll(/[ ,].*$/g, "")}`);
        for (const change of changes) if (change.kind === "moved") seen.add(change.item.event);
      }
    }
    expect(WORTH_SEEING.filter((each) => !seen.has(each))).toEqual([]);
  });
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
