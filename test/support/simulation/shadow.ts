import { type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import { apply, type Ledger, type LedgerOutcome, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { wordsOf } from "../../domain/ledger/contents.ts";
import { NaiveLane, outcomeOf, standing, standingOf } from "../../domain/ledger/naive-lane.ts";
import { type Applied, readFor } from "../../doubles/memory-store/commit.ts";
import type { World } from "../world.ts";
import { Echoes } from "./echoes.ts";

/** Outcomes that follow from policies, which `SpendWatch` checks. */
const BY_POLICIES = ["forbidden", "awaiting"];
/** The word of a naive lane for a write that only a program with a mistake makes. */
const MISTAKE = "mistake";
/** Writes of which the outcome does not tell what they change. */
const SAY_NOTHING: readonly LedgerWrite["kind"][] = [
  "settleIntake",
  "closeHoles",
  "unwatch",
  "suspend",
  "bind",
  "realign",
];
/** Most writes that are tried after a commit, and that no owner should make. */
const MOST_ECHOES = 6;

/** A write, what the ledger knew, and its outcome, or why the ledger refused it as a mistake. */
interface Tried extends Pick<Applied, "before" | "write" | "at"> {
  readonly outcome: LedgerOutcome | string;
}

/**
 * Applies every committed write to a naive lane too, which knows the rules of a ledger and none of its code, and compares
 * the outcomes at once and the state at the end. Now and then both are asked about a write that no owner should make, and
 * must agree on that too. Not for databases that lose commits. What policies decide is taken as given.
 */
export class Shadow {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly lanes = new Map<LaneKey, NaiveLane>();
  private readonly pooled: NaiveLane["pooled"] = new Map();
  private readonly echoes: Echoes;

  constructor(world: World, dice: Dice) {
    this.world = world;
    this.echoes = new Echoes(dice);
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.apply(each);
      const last = applied.at(-1);
      for (let left = last === undefined ? 0 : dice.int(0, MOST_ECHOES); left > 0; left--) this.echo(last as Applied);
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
      return differencesOf(ledger, naive);
    });
    return [...this.violations, ...differing];
  }

  private apply(each: Applied): void {
    const { before, after, write, outcome, at } = each;
    if (isOfMessages(write)) return;
    this.echoes.remember(write);
    const naive = this.naiveOf(laneKey(before.lane));
    this.compare(naive, { before, write, outcome, at }, "");
    this.violations.push(...unrecorded(each));
    const left = `${after.cursor} ${after.suspendedBy}`;
    const expected = `${naive.cursor} ${naive.suspendedBy}`;
    if (left !== expected) this.violations.push(`${write.kind} left ${left}, and not ${expected}`);
  }

  /** Asks the ledger and the naive lane about a write that is not made. */
  private echo(last: Applied): void {
    if (isOfMessages(last.write)) return;
    const { state } = this.world.database;
    const { write, at } = this.echoes.of(last.write, last.at, state);
    const before = this.echoes.heldNow(readFor(state, write, this.echoes.policies(last.policies)));
    const when = "if a node asked: ";
    const lane = this.echoes.otherLane(write.fence, state);
    if (lane !== null) {
      if (typeof tryOut(before, { ...write, fence: { ...write.fence, lane } }, at) !== "string")
        this.violations.push(`${when}a lane takes the ${write.kind} of another`);
      return;
    }
    const naive = this.naiveOf(laneKey(before.lane)).copy();
    const tried = tryOut(before, write, at);
    this.compare(naive, { before, write, outcome: typeof tried === "string" ? tried : tried.outcome, at }, when);
    if (typeof tried === "string") return;
    this.violations.push(...unrecorded({ ...tried, before, after: tried.ledger, write }));
    if (!SAY_NOTHING.includes(write.kind)) return;
    for (const difference of differencesOf(tried.ledger, naive))
      this.violations.push(`${when}after ${write.kind}, ${difference}`);
  }

  private compare(naive: NaiveLane, { before, write, outcome, at }: Tried, when: string): void {
    // What no write to the lane changes: the feed's epoch, the intake table, and who resumes after a failover.
    naive.reconciled = before.reconciled === true;
    naive.mayHaveLost = before.mayHaveLost === true;
    naive.unreadable = (before.guard?.policies.unreadable.length ?? 0) > 0;
    naive.suspendedBy = before.suspendedBy;
    naive.epochFloor = before.epochFloor ?? 0;
    naive.waiting = new Map(
      [...before.intake.known()].flatMap(([intakeId, row]) => (row === null ? [] : [[intakeId, row] as const])),
    );
    const is = typeof outcome === "string" ? MISTAKE : wordsOf(outcome);
    naive.judged = is.split(",").map((word) => BY_POLICIES.find((each) => word.startsWith(each)));
    const should = outcomeOf(naive, write, at);
    if (typeof outcome !== "string" && isLimitedByKey(write, outcome))
      this.violations.push(`${when}the key of a placeholder that repairs its lane limits it`);
    if (is === should || (isRefused(is) && isRefused(should) && [is, should].includes(MISTAKE))) return;
    const text = JSON.stringify(write, (_, each) => (typeof each === "bigint" ? `${each}` : each));
    this.violations.push(
      `${when}${is} instead of ${should} for ${text.slice(0, 400)}${is === MISTAKE ? `: ${outcome}` : ""}`,
    );
  }

  private naiveOf(key: LaneKey): NaiveLane {
    const known = this.lanes.get(key) ?? new NaiveLane();
    known.pooled = this.pooled;
    this.lanes.set(key, known);
    return known;
  }
}

/** True if a nonce gap stays open because the key that left it has used up its limits. */
function isLimitedByKey(write: LedgerWrite, outcome: LedgerOutcome): boolean {
  const isPlaceholder = write.kind === "bind" && write.attempt.kind === "placeholder";
  return isPlaceholder && outcome.status === "bound" && outcome.forbidden?.rule.startsWith("key.") === true;
}

/**
 * What a write must record beside its outcome: that another program used the key, and when an intent that waited for its
 * nonce was accepted.
 */
function unrecorded({ before, after, write, outcome, changes }: Omit<Applied, "at" | "policies">): readonly string[] {
  const used = changes.flatMap((change) => (change.kind === "usedElsewhere" ? change : []));
  const floor = "floor" in write && write.kind !== "reconcile" && write.kind !== "realign" ? write.floor : null;
  const isPassed = before.cursor !== null && floor !== null && floor > before.cursor && after.cursor !== before.cursor;
  const isNoted = used.some(({ nonce, through }) => nonce === before.cursor && through === (floor ?? 0) - 1);
  const steps = write.kind === "transition" && outcome.status === "applied" ? write.items : [];
  const foreign = steps.flatMap(({ txId, attempt }, place) =>
    outcome.status === "applied" && outcome.items[place] === "applied" && attempt?.foreign === true ? [txId] : [],
  );
  const asked = write.kind === "allocate" && outcome.status === "allocated" ? write.items : [];
  const late = asked.filter(({ intakeId }, place) => {
    const accepted = intakeId === undefined ? null : before.intake.get(intakeId)?.acceptedAt;
    const item = outcome.status === "allocated" ? outcome.items[place] : undefined;
    return accepted != null && item?.result === "created" && item.createdAt.getTime() !== accepted.getTime();
  });
  return [
    ...(isPassed && !isNoted ? [`nonces from ${before.cursor} on were used elsewhere, and nobody is told`] : []),
    ...foreign
      .filter((txId) => !used.some((use) => use.txId === txId))
      .map((txId) => `another program took the nonce of ${txId}, and nobody is told`),
    ...late.map(({ intent }) => `${intent.txId} lost the time of its acceptance`),
  ];
}

/** In which order a write is refused for two reasons does not matter, if only a program with a mistake makes it. */
const isRefused = (words: string) => !/^(?:created|reserved|settled|applied|again|existing|holes|at|done)/.test(words);

const isOfMessages = ({ kind }: LedgerWrite) => kind === "signMessage" || kind === "settleMessage";

function differencesOf(ledger: Ledger, naive: NaiveLane): readonly string[] {
  const [real, expected] = [standing(ledger), standingOf(naive)];
  const parts = Object.keys(real) as (keyof typeof real)[];
  return parts.flatMap((part) => {
    const [is, should] = [JSON.stringify(real[part]), JSON.stringify(expected[part])];
    return is === should ? [] : [`${part} of ${ledger.lane.signer} are ${is} and not ${should}`];
  });
}

function tryOut(ledger: Ledger, write: LedgerWrite, at: Date) {
  try {
    return apply(ledger, write, at);
  } catch (error) {
    return String(error);
  }
}
