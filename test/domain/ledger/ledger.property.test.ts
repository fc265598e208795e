import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, type Change, foldKept, keptOf, type LedgerOutcome } from "../../../src/domain/ledger/index.ts";
import { fold, newLedger } from "../../support/whole-ledger.ts";
import { type Chapter, chaptersOf } from "./chapters.ts";
import { contentsOf, rowsOf } from "./contents.ts";
import { FoldedRows, rowIn } from "./folded-rows.ts";
import { LANE, story } from "./story.ts";

const holds = (check: (chapter: Chapter) => void) =>
  fc.assert(
    fc.property(story, (happenings) => {
      for (const chapter of chaptersOf(happenings)) check(chapter);
    }),
    { numRuns: 50 },
  );

describe("a ledger, after any sequence of writes,", () => {
  it("never lowers its next nonce, except by a realignment with the chain", () =>
    holds(({ write, before, after }) => {
      if (write.kind !== "realign") expect(after.cursor ?? 0).toBeGreaterThanOrEqual(before.cursor ?? 0);
    }));

  it("has exactly one holder for each nonce below its next nonce", () =>
    holds(({ after }) => {
      const places = [after.nonces, after.reserved, after.holes].flatMap((part) => [...part.known()]);
      const nonces = places.map(([nonce]) => nonce);
      expect(new Set(nonces).size, "one holder each").toBe(nonces.length);
      expect(Math.max(-1, ...nonces)).toBeLessThan(after.cursor ?? 0);
    }));

  it("has indexes that match its transactions and reservations", () =>
    holds(({ after }) => {
      const all = [...after.transactions.known()].map(([, tx]) => tx);
      const given = all.filter(({ nonce }) => nonce !== null).map(({ nonce, txId }) => [nonce, txId]);
      expect([...after.nonces.known()]).toEqual(given.sort(([a], [b]) => Number(a) - Number(b)));
      const live = all.filter((tx) => tx.live).map(({ nonce, txId }) => [nonce, txId]);
      expect([...after.live.known()]).toEqual(live.sort(([a], [b]) => Number(a) - Number(b)));
      const watched = all.filter(({ live, state }) => live && (state === "CONFIRMED" || state === "FAILED_FINAL"));
      const byNonce = (a: { nonce: number | null }, b: { nonce: number | null }) => Number(a.nonce) - Number(b.nonce);
      expect(
        [...after.watched.known()].flatMap(([block, each]) => each.map((tx) => ({ block, ...tx }))).sort(byNonce),
      ).toEqual(
        watched
          .map(({ txId, nonce, state, details }) => ({ block: details?.receipt?.blockNumber, txId, nonce, state }))
          .sort(byNonce),
      );
      const fixed = all.filter((tx) => tx.live && (tx.state !== "ALLOCATED" || tx.attemptCount > 0 || tx.pinned));
      expect([...after.fixed.known()]).toEqual(
        fixed.map(({ nonce, txId }) => [nonce, txId]).sort(([a], [b]) => Number(a) - Number(b)),
      );
      const owners = [...after.requests.known()].flatMap(([, owner]) => ("spent" in owner ? [] : owner));
      const named = owners.map(({ txId }) => after.transactions.get(txId));
      expect(owners.map(({ txId, state, nonce }) => [txId, state, nonce])).toEqual(
        named.map((tx) => [tx?.txId, tx?.state, tx?.nonce]),
      );
      const open = [...after.reservations.known()].filter(([, { state }]) => state === "RESERVED");
      expect([...after.reserved.known()].map(([, id]) => id).sort()).toEqual(open.map(([id]) => id).sort());
    }));

  it("returns an outcome that matches the list of changes", () =>
    holds(({ outcome, changes, before, after }) => {
      expect(stated(outcome)).toEqual(explained(changes));
      if (changes.length === 0) expect(contentsOf(after)).toEqual(contentsOf(before));
    }));

  it("equals the previous ledger plus the returned changes", () =>
    holds(({ write, before, after, changes, at }) => {
      const was = contentsOf(before);
      expect(contentsOf(fold(before, changes))).toEqual(contentsOf(after));
      expect(apply(before, write, at).changes, "asked again").toEqual(changes);
      expect(contentsOf(before)).toEqual(was);
    }));

  it("can be rebuilt exactly from its changes", () => {
    fc.assert(
      fc.property(story, (happenings) => {
        const chapters = [...chaptersOf(happenings)];
        const last = chapters.at(-1)?.after ?? newLedger(LANE);
        const replayed = fold(
          newLedger(LANE),
          chapters.flatMap(({ changes }) => changes),
        );
        // `reconciled` is not compared: a loss of database history changes it, and the ledger's changes do not record
        // such a loss.
        expect({ ...contentsOf(replayed), reconciled: true }).toEqual({ ...contentsOf(last), reconciled: true });
      }),
      { numRuns: 50 },
    );
  });
});

describe("the in-memory copy that a lane's owner keeps", () => {
  it("equals the whole ledger after the changes of each write are applied", () => {
    const unread = { cursor: null, suspendedBy: null, reconciled: true, holes: [], reservations: [] };
    fc.assert(
      fc.property(story, (happenings) => {
        let kept = keptOf(unread);
        for (const { before, after, changes } of chaptersOf(happenings)) {
          kept = foldKept({ ...kept, reconciled: before.reconciled }, changes);
          const { cursor, suspendedBy, reconciled, holes, reserved } = after;
          expect(rowsOf(kept)).toEqual(rowsOf({ cursor, suspendedBy, reconciled, holes, reserved }));
        }
      }),
      { numRuns: 50 },
    );
  });

  // protects [Reads] src/domain/ledger/kept-transaction.ts, src/application/lane/owned-lane.ts
  it("has the same transactions as the whole ledger after each write", () => {
    fc.assert(
      fc.property(story, (happenings) => {
        const rows = new FoldedRows();
        for (const { after, changes } of chaptersOf(happenings)) {
          rows.fold(changes);
          for (const change of changes) {
            const tx = change.kind === "moved" ? after.transactions.get(change.item.txId) : null;
            if (tx !== null) expect(rows.of(tx.txId)).toEqual(rowIn(tx));
          }
        }
      }),
      { numRuns: 50 },
    );
  });
});

/** The effects that the result of a write reports, as strings. */
function stated(outcome: LedgerOutcome): readonly string[] {
  if (outcome.status === "allocated") {
    return outcome.items.flatMap((item) => (item.result === "created" ? [`allocated ${item.nonce}`] : []));
  }
  if (outcome.status === "applied") return outcome.items.filter((result) => result === "applied").map(() => "moved");
  if (outcome.status === "reserved") {
    return outcome.result.result === "created" ? [`reserved ${outcome.result.reservation.nonce}`] : [];
  }
  if (outcome.status === "released") return outcome.hole === null ? [] : [`hole ${outcome.hole.nonce} released`];
  if (outcome.status === "bound") return outcome.result === "settled" ? ["bound"] : [];
  if (outcome.status === "expired" || outcome.status === "skipped") {
    return outcome.holes.map(({ nonce, why }) => `hole ${nonce} ${why}`);
  }
  return [];
}

/** The effects that the ledger's recorded changes show, as strings in the same format as the reported effects. */
function explained(changes: readonly Change[]): readonly string[] {
  const [first, second] = changes.filter(({ kind }) => kind === "allocated" || kind === "moved");
  if (first?.kind === "allocated" && second?.kind === "moved" && second.item.txId === first.intent.txId) {
    return ["bound"];
  }
  const isMove = changes.some(({ kind }) => kind === "moved");
  return changes.flatMap((change) => {
    if (change.kind === "allocated") return [`allocated ${change.nonce}`];
    if (change.kind === "moved") return ["moved"];
    if (change.kind === "reserved") return [`reserved ${change.reservation.nonce}`];
    return change.kind === "holeLeft" && !isMove ? [`hole ${change.hole.nonce} ${change.hole.why}`] : [];
  });
}
