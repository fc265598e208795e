import { describe, expect, it } from "vitest";
import { type Evidence, judgeHistory } from "../../../../src/adapters/postgres/session/judge-history.ts";
import type { ObservedHistory } from "../../../../src/adapters/postgres/session/known-history.ts";
import type { DatabaseHistoryRow } from "../../../../src/adapters/postgres/statements/database.ts";

const HOME: ObservedHistory = {
  systemIdentifier: "7001",
  timeline: "00000009",
  walPosition: 500n,
  epoch: 3,
  synchronous: true,
};
const ROW: DatabaseHistoryRow = {
  ordinal: 2,
  systemIdentifier: "7001",
  timeline: "00000009",
  walPosition: 400n,
  epoch: 3,
  mayHaveLost: false,
  positionNow: 500n,
  loadedAnew: false,
};
const PROMOTED: ObservedHistory = { ...HOME, timeline: "0000000A", walPosition: 490n };

const judge = (evidence: Partial<Evidence> = {}) =>
  judgeHistory({
    observed: HOME,
    recorded: ROW,
    memory: HOME,
    commitsKept: true,
    feed: { epoch: 3, lastSeq: 10 },
    seen: { epoch: 3, seq: 10 },
    ...evidence,
  });
const SAME = { ordinal: 2, epoch: 3, begins: false, mayHaveLost: false };
const LOST = { ordinal: 3, epoch: 4, begins: true, mayHaveLost: true };
const KEPT = { ...LOST, mayHaveLost: false };

describe("the history check when an instance registers", () => {
  it("accepts the first database history that the process sees", () => {
    expect(judge({ recorded: null, memory: null, feed: { epoch: 1, lastSeq: 0 }, seen: { epoch: 0, seq: 0 } })).toEqual(
      {
        ordinal: 1,
        epoch: 1,
        begins: false,
        mayHaveLost: false,
      },
    );
    expect(judge()).toEqual(SAME);
    expect(judge({ memory: null })).toEqual(SAME);
    expect(judge({ recorded: { ...ROW, mayHaveLost: true } })).toEqual({ ...SAME, mayHaveLost: true });
  });

  it.each<[string, Partial<Evidence>]>([
    ["another system", { observed: { ...HOME, systemIdentifier: "7002" } }],
    ["a dump loaded into the same server", { recorded: { ...ROW, loadedAnew: true } }],
    [
      "a dump loaded into the same server, without a process that remembers the history",
      { recorded: { ...ROW, loadedAnew: true }, memory: null },
    ],
    ["a promotion of a server that loaded a dump", { recorded: { ...ROW, loadedAnew: true }, observed: PROMOTED }],
    ["a WAL position behind the recorded one", { observed: { ...HOME, walPosition: 399n } }],
    ["a WAL position behind the one that only this process saw", { observed: { ...HOME, walPosition: 499n } }],
    ["an epoch that was begun and is missing now", { memory: { ...HOME, epoch: 4 }, seen: { epoch: 3, seq: 10 } }],
    ["a feed behind the last number that was seen", { feed: { epoch: 3, lastSeq: 9 } }],
    ["commits of this process missing", { commitsKept: false }],
    [
      "commits of this process missing for the second time",
      { commitsKept: false, recorded: { ...ROW, mayHaveLost: true } },
    ],
    ["a promotion, if this process remembers nothing from before it", { observed: PROMOTED, memory: null }],
    ["a promotion without a synchronous standby", { observed: PROMOTED, memory: { ...HOME, synchronous: false } }],
    ["a promotion without this process's commits", { observed: PROMOTED, commitsKept: false }],
    ["a promotion without some numbers of the feed", { observed: PROMOTED, feed: { epoch: 3, lastSeq: 9 } }],
    ["a timeline from before a promotion", { observed: { ...HOME, timeline: "00000008" } }],
    ["a second promotion after one that this process missed", { observed: PROMOTED, recorded: { ...ROW, epoch: 5 } }],
  ])("reports possible data loss after %s", (_, evidence) => {
    const { begins, mayHaveLost } = judge(evidence);
    expect({ begins, mayHaveLost }).toEqual({ begins: true, mayHaveLost: true });
  });

  it("reports no data loss after a promotion that lost nothing", () => {
    expect(judge({ observed: PROMOTED })).toEqual(KEPT);
    expect(judge({ observed: { ...PROMOTED, walPosition: 410n } }), "unacknowledged log may be gone").toEqual(KEPT);
  });

  it("begins no further feed epoch if another node has already begun one", () => {
    const begun = { ...ROW, ordinal: 3, epoch: 4, timeline: "0000000A", walPosition: 480n };
    const late = { observed: { ...PROMOTED, epoch: 4 }, recorded: begun, feed: { epoch: 4, lastSeq: 10 } };
    expect(judge(late)).toEqual({ ...KEPT, begins: false });
    expect(judge({ ...late, commitsKept: false })).toEqual({ ordinal: 4, epoch: 5, begins: true, mayHaveLost: true });
    const known = { ...late, recorded: { ...begun, mayHaveLost: true } };
    expect(judge({ ...known, commitsKept: false })).toEqual({ ...LOST, begins: false });
  });

  it("never gives a feed epoch a number that was used before", () => {
    const restored = { recorded: { ...ROW, epoch: 1 }, feed: { epoch: 1, lastSeq: 2 } };
    expect(judge(restored)).toMatchObject({ begins: true, epoch: 4 });
    expect(judge({ ...restored, memory: null, seen: { epoch: 7, seq: 10 } })).toMatchObject({ epoch: 8 });
  });
});
