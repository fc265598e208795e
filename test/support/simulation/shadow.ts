import { type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import { wordsOf } from "../../domain/ledger/contents.ts";
import { NaiveLane, outcomeOf, standing, standingOf } from "../../domain/ledger/naive-lane.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import type { World } from "../world.ts";

/** Outcomes that follow from policies, which `SpendWatch` checks. */
const BY_POLICIES = ["forbidden", "awaiting"];

/**
 * Applies every committed write to a naive lane too, which knows the rules of a ledger and none of its code, and compares
 * the outcomes at once and the state at the end. Not for databases that lose commits. What policies decide is taken as
 * given.
 */
export class Shadow {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly lanes = new Map<LaneKey, NaiveLane>();
  private readonly pooled: NaiveLane["pooled"] = new Map();

  constructor(world: World) {
    this.world = world;
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.apply(each);
    });
  }

  /** Differences between the database and the naive lanes. Call this at rest. */
  differences(): readonly string[] {
    const rows = [...this.world.database.state.lanes.values()];
    const differing = rows.flatMap(({ lane, ledger }) => {
      const naive = this.lanes.get(laneKey(lane));
      if (naive === undefined) return [];
      // After a failover, the lane is resumed in the database itself.
      naive.suspendedBy = ledger.suspendedBy;
      const [real, expected] = [standing(ledger), standingOf(naive)];
      const parts = Object.keys(real) as (keyof typeof real)[];
      return parts.flatMap((part) => {
        const [is, should] = [JSON.stringify(real[part]), JSON.stringify(expected[part])];
        return is === should ? [] : [`${part} of ${lane.signer} are ${is} and not ${should}`];
      });
    });
    return [...this.violations, ...differing];
  }

  private apply({ before, after, write, outcome, at }: Applied): void {
    if (write.kind === "signMessage" || write.kind === "settleMessage") return;
    const naive = this.naiveOf(laneKey(before.lane));
    // What no write to the lane changes: the feed's epoch, the intake table, and who resumes after a failover.
    naive.reconciled = before.reconciled === true;
    naive.mayHaveLost = before.mayHaveLost === true;
    naive.suspendedBy = before.suspendedBy;
    naive.waiting = new Map(
      [...before.intake.known()].flatMap(([intakeId, row]) => (row === null ? [] : [[intakeId, row] as const])),
    );
    const is = wordsOf(outcome);
    naive.judged = is.split(",").map((word) => BY_POLICIES.find((each) => word.startsWith(each)));
    const should = outcomeOf(naive, write, at);
    const left = `${after.cursor} ${after.suspendedBy}`;
    const expected = `${naive.cursor} ${naive.suspendedBy}`;
    if (left !== expected) this.violations.push(`${write.kind} left ${left}, and not ${expected}`);
    if (is === should) return;
    const text = JSON.stringify(write, (_, each) => (typeof each === "bigint" ? `${each}` : each));
    this.violations.push(`${is} instead of ${should} for ${text.slice(0, 400)}`);
  }

  private naiveOf(key: LaneKey): NaiveLane {
    const known = this.lanes.get(key) ?? new NaiveLane();
    known.pooled = this.pooled;
    this.lanes.set(key, known);
    return known;
  }
}
