import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AT_HOME,
  hasLeft,
  isElsewhere,
  judgeMove,
  type MoveFacts,
  type MoveStep,
  type Standing,
} from "../../../src/domain/cluster/lane-move.ts";
import { FencepostError } from "../../../src/domain/errors.ts";

const NOTHING_OPEN = { transactions: 0, intents: 0, reservations: 0, holes: 0 };
const FACTS: MoveFacts = { used: false, held: false, open: NOTHING_OPEN, genesisHash: null };
const PAGES = 3;

interface Page {
  readonly moveId: string;
  readonly after: string | null;
  readonly next: string | null;
  readonly nextNonce: number;
}

/** A cell as simply as possible: it gives nonces if its lane is here, and remembers each. */
class Cell {
  standing: Standing = AT_HOME;
  next = 0;
  open = 0;
  /** An operator configures the key of a signer only once the cell has expected it. */
  hasKey: boolean;
  readonly given: number[] = [];

  constructor(hasKey: boolean) {
    this.hasKey = hasKey;
  }

  give(): void {
    if (!this.hasKey || this.standing.place !== "HERE") return;
    this.given.push(this.next++);
    this.open++;
  }

  step(step: MoveStep): void {
    const facts = { ...FACTS, used: this.given.length > 0, open: { ...NOTHING_OPEN, transactions: this.open } };
    try {
      this.standing = judgeMove(this.standing, step, facts);
    } catch (error) {
      if (!(error instanceof FencepostError)) throw error;
    }
    if (this.standing.place === "EXPECTED") this.hasKey = true;
  }

  arrive(page: Page): void {
    const before = this.standing;
    this.step({ step: "arrive", ...page, genesisHash: null });
    if (this.standing !== before && this.standing.place === "HERE") this.next = page.nextNonce;
  }

  pages(): readonly Page[] {
    const { leftBy } = this.standing;
    if (leftBy === null || !hasLeft(this.standing)) return [];
    const mark = (at: number) => (at === 0 || at === PAGES ? null : `${at}:`);
    const page = (at: number) => ({ moveId: leftBy, after: mark(at), next: mark(at + 1), nextNonce: this.next });
    return Array.from({ length: PAGES }, (_, at) => page(at));
  }
}

const event = fc.record({
  kind: fc.constantFrom("give", "finish", "expect", "leave", "leave", "stay", "arrive", "arrive", "carry", "carry"),
  cell: fc.nat(2),
  /** Which of the ids and pages seen so far, counted from the newest one. */
  which: fc.oneof({ weight: 3, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(20) }),
});

/** Plays what operators and crashes may do in any order, with every id and page that was ever seen. */
function play(events: readonly (typeof event extends fc.Arbitrary<infer E> ? E : never)[]) {
  const cells = [new Cell(true), new Cell(false), new Cell(false)];
  cells[0]?.give();
  const ids: string[] = [];
  const seen: Page[] = [];
  for (const { kind, cell: index, which } of events) {
    const cell = cells[index] as Cell;
    const moveId = ids.at(-1 - (which % Math.max(1, ids.length))) ?? "never";
    const page = seen.at(-1 - (which % Math.max(1, seen.length)));
    if (kind === "give") cell.give();
    if (kind === "finish") cell.open = 0;
    if (kind === "expect") cell.step({ step: "expect", moveId: `move-${ids.length}` });
    if (kind === "leave" || kind === "stay") cell.step({ step: kind, moveId });
    if (kind === "arrive" && page !== undefined) cell.arrive(page);
    if (kind === "carry") for (const each of seen.filter((one) => one.moveId === moveId)) cell.arrive(each);
    const { arrivesBy } = cell.standing;
    if (arrivesBy !== null && !ids.includes(arrivesBy)) ids.push(arrivesBy);
    for (const each of cell.pages()) {
      if (!seen.some(({ moveId, after }) => moveId === each.moveId && after === each.after)) seen.push(each);
    }
  }
  return cells;
}

describe("the move of a lane between cells", () => {
  // protects [Cells] src/domain/cluster/lane-move.ts
  it("gives no nonce twice and leaves no two cells in charge, in whatever order steps are made and repeated", () => {
    let moves = 0;
    fc.assert(
      fc.property(fc.array(event, { minLength: 100, maxLength: 300 }), (events) => {
        const cells = play(events);
        const given = cells.flatMap((cell) => cell.given);
        expect(new Set(given).size).toBe(given.length);
        expect([...given].sort((a, b) => a - b)).toEqual(given.map((_, index) => index));
        const giving = cells.filter(({ hasKey, standing }) => hasKey && !isElsewhere(standing));
        expect(giving.length).toBeLessThanOrEqual(1);
        if (cells.filter((cell) => cell.given.length > 0).length > 1) moves++;
      }),
      { numRuns: 2_000 },
    );
    // The plays do move the lane: a check of plays in which nothing happens would prove nothing.
    expect(moves).toBeGreaterThan(100);
  });
});
