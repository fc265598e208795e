import { describe, expect, it } from "vitest";
import type { Hash } from "../../../src/domain/lane.ts";
import { attemptToSend, isPrivate, repricedKind, sendableAttempts } from "../../../src/domain/transaction/attempts.ts";
import type { Attempt, AttemptKind } from "../../../src/domain/transaction/transaction.ts";

function hash(ordinal: number): Hash {
  return `0x${String(ordinal).repeat(64)}`;
}

function attempts(...kinds: readonly (AttemptKind | "foreign")[]): readonly Attempt[] {
  return kinds.map((kind, index) => ({
    ordinal: index + 1,
    txHash: hash(index + 1),
    gas: 21_000n,
    fees: { type: "legacy", gasPrice: 1n },
    ...(kind === "foreign" ? { kind: "external", foreign: true } : { kind }),
  }));
}

describe("the list of attempts that may be sent", () => {
  it.each<[readonly (AttemptKind | "foreign")[], readonly number[]]>([
    [["initial"], [1]],
    [
      ["initial", "reprice", "reprice"],
      [1, 2, 3],
    ],
    [["initial", "cancel"], [2]],
    [
      ["initial", "reprice", "cancel", "reprice"],
      [3, 4],
    ],
    [["initial", "cancel", "replace"], [3]],
    [
      ["placeholder", "reprice"],
      [1, 2],
    ],
    [["initial", "foreign"], [1]],
    [
      ["initial", "foreign", "reprice"],
      [1, 3],
    ],
    [["initial", "cancel", "foreign"], [2]],
    [["external"], []],
    [[], []],
  ])("for attempts of the kinds %j contains the attempts with the numbers %j", (kinds, ordinals) => {
    expect(sendableAttempts(attempts(...kinds)).map(({ ordinal }) => ordinal)).toEqual(ordinals);
  });
});

describe("the attempt to send next", () => {
  it.each<[readonly (AttemptKind | "foreign")[], number | null, number | null]>([
    [["initial", "reprice"], null, 2],
    [["initial", "reprice"], 1, 1],
    [["initial", "cancel"], 1, 2],
    [["initial", "foreign"], 2, 1],
    [["external"], null, null],
    [["external"], 1, null],
  ])(
    "for attempts of the kinds %j after a reorg removed the receipt of %j is number %j",
    (kinds, withdrawn, expected) => {
      const gone = withdrawn === null ? null : hash(withdrawn);
      expect(attemptToSend(attempts(...kinds), gone)?.ordinal ?? null).toBe(expected);
    },
  );
});

describe("the kind of the next attempt if only the price changes", () => {
  it.each<[readonly (AttemptKind | "foreign")[], string]>([
    [["initial"], "reprice"],
    [["initial", "reprice"], "reprice"],
    [["initial", "cancel"], "cancel"],
    [["initial", "cancel", "cancel"], "cancel"],
    [["initial", "cancel", "replace"], "replace"],
    [["placeholder", "foreign"], "placeholder"],
    [["cancel"], "cancel"],
  ])("after attempts of the kinds %j is %s", (kinds, expected) => {
    expect(repricedKind(attempts(...kinds))).toBe(expected);
  });
});

describe("a transaction that was sent privately", () => {
  it("stays private until its newest own attempt is public", () => {
    const [first, second] = attempts("initial", "reprice") as [Attempt, Attempt];
    const hidden = { ...first, private: true } as const;
    expect([[], [hidden], [hidden, second], [hidden, ...attempts("foreign")]].map((all) => isPrivate(all))).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect([[], [second]].map((all) => isPrivate(all, true))).toEqual([true, false]);
  });
});
