import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply } from "../../../src/domain/ledger/index.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { unlessMistaken } from "./chapters.ts";
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
});
