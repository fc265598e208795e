import { describe, expect, it } from "vitest";
import { KnownHistory, type ObservedHistory } from "../../../src/adapters/postgres/known-history.ts";
import { HistoryChanged } from "../../../src/ports/lane-store.ts";

const HOME: ObservedHistory = { systemIdentifier: "7001", timeline: "00000001", walPosition: 100n };
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

describe("the known history", () => {
  it("goes on while the position grows or stands", () => {
    const history = opened();
    history.verify(at(100n), history.floor);
    history.verify(at(250n), history.floor);
    expect(history.floor).toBe(250n);
  });

  it("does not mind answers that overtake each other: only what was known when asking counts", () => {
    const history = opened();
    const [slow, fast] = [history.floor, history.floor];
    history.verify(at(300n), fast);
    history.verify(at(200n), slow);
    expect(history.floor).toBe(300n);
  });

  it.each([
    ["another system", at(500n, { systemIdentifier: "7002" })],
    ["another timeline", at(500n, { timeline: "00000002" })],
    ["a position behind the highest seen", at(99n)],
  ])("stops at %s, and stays stopped until an instance registers", (_, observed) => {
    const history = opened();
    history.pin("old", HOME, history.floor);
    expect(() => history.verify(observed, history.floor, ["old"])).toThrow(HistoryChanged);
    expect(() => history.verify(observed, history.floor, ["old"])).toThrow(HistoryChanged);
    expect(() => history.verify(at(1_000n), history.floor)).toThrow(HistoryChanged);
    history.pin("new", observed, history.floor);
    history.verify(observed, history.floor, ["new"]);
    expect(() => history.verify(observed, history.floor, ["old"])).toThrow(HistoryChanged);
    expect(() => history.verify(observed, history.floor, ["new", "old"])).toThrow(HistoryChanged);
  });

  it("refuses instances of before where the registration is the first to notice", () => {
    const history = opened();
    history.pin("old", HOME, history.floor);
    const moved = at(400n, { timeline: "00000002" });
    history.pin("new", moved, history.floor);
    history.verify(moved, history.floor, ["new"]);
    expect(() => history.verify(moved, history.floor, ["old"])).toThrow(HistoryChanged);
  });

  it("lets several instances live in one history", () => {
    const history = opened();
    history.pin("one", at(110n), history.floor);
    history.pin("two", at(120n), history.floor);
    history.verify(at(130n), history.floor, ["one", "two", "of another store"]);
  });
});
