import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, bareLedger, type Ledger, type LedgerWrite, NotLoaded, Part } from "../../../src/domain/ledger/index.ts";
import { BatchRefused, type TransitionItem } from "../../../src/ports/lane-store.ts";
import { AT, anAttempt, anIntent, aReceipt, step } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { FENCE, type Happening, LANE, story, WriteMaker } from "./story.ts";

const UNKNOWN = { minedIn: undefined, attempts: undefined, details: undefined };

/** The result of a write, in a form that can be compared. */
function verdictOf(ledger: Ledger, write: LedgerWrite, at: Date) {
  try {
    const { outcome, changes, ledger: after } = apply(ledger, write, at);
    return { kind: "judged", outcome, changes, after } as const;
  } catch (error) {
    if (error instanceof NotLoaded) return { kind: "notLoaded" } as const;
    if (error instanceof BatchRefused) return { kind: "refused" } as const;
    throw error;
  }
}

/** A copy of the ledger with only some of its rows loaded, chosen by `keeps`. */
function partOf(ledger: Ledger, keeps: (row: string) => boolean): Ledger {
  const some = <K extends number | string, V>(part: Part<K, V>, change: (row: V) => V = (row) => row): Part<K, V> => {
    if (keeps(part.what)) return part;
    const kept = [...part.known()].filter(([key]) => keeps(`${part.what} ${key}`));
    return Part.of<K, V>(
      part.what,
      { kind: "named" },
      kept.map(([key, row]) => [key, change(row)] as const),
    );
  };
  const { cursor, suspendedBy, reconciled, intake } = ledger;
  return bareLedger(LANE, {
    ...{ cursor, suspendedBy, reconciled, intake },
    ...(keeps("mayHaveLost") ? { mayHaveLost: ledger.mayHaveLost } : {}),
    ...(keeps("endedThrough") ? { endedThrough: ledger.endedThrough } : {}),
    transactions: some(ledger.transactions, (tx) => (keeps(`details ${tx.txId}`) ? tx : { ...tx, ...UNKNOWN })),
    nonces: some(ledger.nonces),
    live: some(ledger.live),
    watched: some(ledger.watched),
    requests: some(ledger.requests),
    holes: some(ledger.holes),
    reservations: some(ledger.reservations),
    reserved: some(ledger.reserved),
    reservedAs: some(ledger.reservedAs),
  });
}

const transition = (...items: readonly TransitionItem[]) => ({ kind: "transition", fence: FENCE, items }) as const;

/** A ledger with one transaction, mined in this block. */
function minedAt(blockNumber: number) {
  const intent = anIntent(LANE);
  const attempt = anAttempt();
  const at = new Date(0);
  const allocated = apply(newLedger(LANE), { kind: "allocate", fence: FENCE, floor: 0, items: [{ intent }] }, at);
  const items = [
    step(intent.txId, AT.allocated, "sign", { attempt }),
    step(intent.txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash, { blockNumber }) }),
  ];
  return { intent, attempt, at, mined: apply(allocated.ledger, transition(...items), at).ledger };
}

function hashOf(text: string, seed: number): number {
  let hash = seed;
  for (const letter of text) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return hash;
}

describe("a partially loaded ledger", () => {
  it("decides like the fully loaded ledger, or throws NotLoaded", () => {
    const verdicts = new Map<string, number>();
    const judge = (happenings: readonly Happening[], seed: number, share: number) => {
      const maker = new WriteMaker();
      let whole = newLedger(LANE);
      let part: Ledger | null = null;
      for (const [index, happening] of happenings.entries()) {
        const write = maker.make(whole, happening);
        if (write === null) continue;
        whole = maker.loaded(whole);
        // Every few writes, make a new partial ledger, and use it for the writes that follow, as in a commit of many
        // writes.
        if (index % 7 === 0 || part === null) part = partOf(whole, (row) => hashOf(row, seed + index) % 10 < share);
        part = { ...part, reconciled: whole.reconciled, intake: whole.intake };
        const expected = verdictOf(whole, write, maker.now);
        const verdict = verdictOf(part, write, maker.now);
        verdicts.set(verdict.kind, (verdicts.get(verdict.kind) ?? 0) + 1);
        if (verdict.kind !== "notLoaded") expect({ ...verdict, after: 0 }).toEqual({ ...expected, after: 0 });
        if (expected.kind !== "judged") return;
        part = verdict.kind === "judged" ? verdict.after : null;
        whole = expected.after;
        maker.took(whole);
      }
    };
    fc.assert(fc.property(story, fc.nat(), fc.integer({ min: 3, max: 10 }), judge), { numRuns: 100 });
    expect([...verdicts.keys()].sort()).toEqual(["judged", "notLoaded", "refused"]);
  });

  it("can be aligned, suspended and reconciled with only the lane's own row loaded", () => {
    const bare = bareLedger(LANE, { cursor: 4, suspendedBy: null, reconciled: true });
    const at = new Date(0);
    expect(apply(bare, { kind: "align", fence: FENCE, floor: 9 }, at).ledger.cursor).toBe(9);
    expect(apply(bare, { kind: "suspend", fence: FENCE, suspended: true }, at).ledger.suspendedBy).toBe("OPERATOR");
    expect(apply(bare, { kind: "reconcile", fence: FENCE, floor: 2 }, at).outcome).toMatchObject({ cursor: 4 });
    for (const kind of ["realign", "expire", "unwatch"] as const) {
      const write = { kind, fence: FENCE, floor: 0, throughBlock: 1 } as LedgerWrite;
      expect(() => apply(bare, write, at), kind).toThrow(NotLoaded);
    }
  });

  it("throws NotLoaded at the end of reorg checks if a transaction's block is not loaded", () => {
    const { intent, at, mined } = minedAt(3);
    const confirmed = (ledger: Ledger) => apply(ledger, transition(step(intent.txId, AT.mined, "confirm")), at).ledger;
    const unwatch = { kind: "unwatch", fence: FENCE, throughBlock: 3 } as const;
    expect(apply(confirmed(mined), unwatch, at).changes).toMatchObject([{ kind: "unwatched", txId: intent.txId }]);
    const whole = mined.transactions.get(intent.txId);
    if (whole === null) throw new Error("it is not there");
    const bare = { ...mined, transactions: mined.transactions.set(intent.txId, { ...whole, ...UNKNOWN }) };
    expect(() => apply(confirmed(bare), unwatch, at)).toThrow(NotLoaded);
  });

  it("keeps the list of a block that was not loaded as unknown, if a transaction of the block is reorganised", () => {
    const { intent, attempt, at, mined } = minedAt(3);
    const confirmed = apply(mined, transition(step(intent.txId, AT.mined, "confirm")), at).ledger;
    const watched: Ledger["watched"] = Part.of("watched block", { kind: "named" });
    const reorg = step(intent.txId, AT.confirmed, "reorg", { receipt: aReceipt(attempt.txHash, { blockNumber: 3 }) });
    expect(apply({ ...confirmed, watched }, transition(reorg), at).ledger.watched.atHand(3)).toBeUndefined();
    expect(apply(confirmed, transition(reorg), at).ledger.watched.atHand(3)).toBeNull();
  });

  it("refuses a write to another lane", () => {
    const fence = { ...FENCE, lane: { ...LANE, chainId: 2 } };
    expect(() => apply(newLedger(LANE), { kind: "align", fence, floor: 1 }, new Date(0))).toThrow(/another lane/);
  });
});
