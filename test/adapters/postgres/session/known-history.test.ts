import { describe, expect, it } from "vitest";
import { KnownHistory, type ObservedHistory } from "../../../../src/adapters/postgres/session/known-history.ts";
import { HistoryChanged } from "../../../../src/ports/lane-store.ts";

const HOME: ObservedHistory = {
  systemIdentifier: "7001",
  timeline: "00000001",
  walPosition: 100n,
  epoch: 1,
  synchronous: false,
};
const at = (walPosition: bigint, other: Partial<ObservedHistory> = {}): ObservedHistory => ({
  ...HOME,
  walPosition,
  ...other,
});

function opened(): KnownHistory {
  const history = new KnownHistory();
  history.begin(HOME);
  return history;
}

describe("the known history of the database", () => {
  it("stays valid while the WAL position grows or stays the same", () => {
    const history = opened();
    history.verify(at(100n), history.floor);
    history.verify(at(250n), history.floor);
    expect(history.floor.position).toBe(250n);
  });

  it("accepts the server's answers in any order", () => {
    const history = opened();
    const [slow, fast] = [history.floor, history.floor];
    history.verify(at(300n), fast);
    history.verify(at(200n), slow);
    expect(history.floor.position).toBe(300n);
  });

  it.each([
    ["another system", at(500n, { systemIdentifier: "7002" })],
    ["another timeline", at(500n, { timeline: "00000002" })],
    ["a position behind the highest seen", at(99n)],
    ["an epoch that another node has begun", at(500n, { epoch: 2 })],
  ])("becomes invalid at %s, until an instance registers", (_, observed) => {
    const history = opened();
    history.pin(HOME);
    expect(() => history.verify(observed, history.floor)).toThrow(HistoryChanged);
    expect(() => history.verify(at(1_000n), history.floor), "also where all looks well again").toThrow(HistoryChanged);
    history.pin(observed);
    history.verify(observed, history.floor);
  });

  it("does not compare a new history with a WAL position of the old one", () => {
    const history = opened();
    history.verify(at(900n), history.floor);
    const before = history.floor;
    const restored = at(200n, { epoch: 2 });
    history.pin(restored);
    history.verify(restored, before);
    expect(() => history.verify(at(199n, { epoch: 2 }), history.floor)).toThrow(HistoryChanged);
  });

  it("keeps the last state that was seen before the history changed", () => {
    const history = opened();
    expect(history.memory).toBeNull();
    history.verify(at(150n), history.floor);
    history.verify(at(170n, { synchronous: true }), history.floor);
    const promoted = at(160n, { timeline: "00000002" });
    expect(() => history.verify(promoted, history.floor)).toThrow(HistoryChanged);
    expect(history.memory).toEqual(at(170n, { synchronous: true }));
  });

  it("takes the feed epoch from the first read if no instance has registered", () => {
    const history = opened();
    history.verify(at(100n, { epoch: 3 }), history.floor);
    expect(() => history.verify(at(100n, { epoch: 4 }), history.floor)).toThrow(HistoryChanged);
  });

  it("is compared with the server's history, until a change of history is detected", () => {
    const history = opened();
    expect(history.standing).toBeNull();
    history.pin(HOME);
    history.verify(at(150n), history.floor);
    expect(history.standing).toEqual({ ...HOME, walPosition: 150n });
    const { floor } = history;
    expect(() => history.verify(at(20n), floor)).toThrow(HistoryChanged);
    expect(history.standing).toBeNull();
    history.noteCommitted(at(160n), floor);
    expect(history.floor.position, "what was committed meanwhile heals nothing").toBe(150n);
  });

  it("advances its WAL position with each commit", () => {
    const history = opened();
    history.pin(HOME);
    history.noteCommitted(at(170n), history.floor);
    expect(history.floor.position).toBe(170n);
  });
});
