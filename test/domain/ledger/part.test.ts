import { describe, expect, it } from "vitest";
import { NotLoaded, Part } from "../../../src/domain/ledger/index.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";

const rows = [
  [3, "three"],
  [5, null],
  [7, "seven"],
] as const;
const of = (cover: Parameters<typeof Part.of<number, string>>[1]) => Part.of<number, string>("hole", cover, rows);

describe("a partially loaded table of a lane", () => {
  it.each([
    [{ kind: "all" }, [0, 4, 9], []],
    [{ kind: "named" }, [5], [0, 4, 9]],
    [{ kind: "from", key: 7 }, [5, 8, 9], [0, 4]],
    [{ kind: "through", key: 4 }, [0, 4, 5], [6, 9]],
  ] as const)("(loaded: %o) throws NotLoaded for keys outside the loaded part", (cover, missing, unknown) => {
    const part = of(cover);
    expect([part.get(3), part.get(7)]).toEqual(["three", "seven"]);
    for (const key of missing) expect(part.get(key), `${key}`).toBeNull();
    for (const key of unknown) {
      expect(part.atHand(key), `${key}`).toBeUndefined();
      expect(() => part.get(key), `${key}`).toThrow(NotLoaded);
    }
  });

  it("names the missing key in its NotLoaded error", () => {
    expect(() => of({ kind: "named" }).get(4)).toThrow(/not loaded with hole 4/);
    expect(() => of({ kind: "named" }).every()).toThrow(/every hole/);
  });

  it("can be extended with rows and with keys that have no row", () => {
    const before = of({ kind: "named" });
    const part = before.with([
      [1, "one"],
      [4, null],
    ]);
    expect([part.get(1), part.get(3), part.get(4)]).toEqual(["one", "three", null]);
    expect(() => before.get(4), "the part before").toThrow(NotLoaded);
  });

  it("returns the results of its own writes: set, add (once per key) and delete", () => {
    const part = of({ kind: "named" }).set(1, "one").delete(3).add(5, "five");
    expect([part.get(1), part.get(3), part.get(5)]).toEqual(["one", null, "five"]);
    expect(() => part.add(7, "another")).toThrow(BatchRefused);
    expect([...part.known()]).toEqual([
      [1, "one"],
      [5, "five"],
      [7, "seven"],
    ]);
    expect(of({ kind: "named" }).get(3), "the part before").toBe("three");
  });

  it("keeps a finished row only if the table is fully loaded", () => {
    expect(of({ kind: "all" }).retire(3, "over").get(3)).toBe("over");
    expect(() => of({ kind: "named" }).retire(3, "over").get(3)).toThrow(NotLoaded);
  });

  it("returns the highest key only if the missing part cannot contain a higher key", () => {
    expect(of({ kind: "all" }).highestFrom(0)).toBe(7);
    expect(of({ kind: "from", key: 6 }).highestFrom(6)).toBe(7);
    expect(of({ kind: "from", key: 6 }).highestFrom(8)).toBeNull();
    expect(() => of({ kind: "from", key: 6 }).highestFrom(5)).toThrow(NotLoaded);
    expect(() => of({ kind: "named" }).highestFrom(0)).toThrow(NotLoaded);
    expect(() => of({ kind: "through", key: 9 }).highestFrom(0)).toThrow(NotLoaded);
  });

  it("is itself if it is extended by no rows", () => {
    const part = of({ kind: "named" });
    expect(part.with([])).toBe(part);
  });

  it("counts its rows only if all of them are loaded", () => {
    const all = Part.of<number, string>("hole", { kind: "all" }, [[3, "three"]]);
    expect([all.size, all.delete(3).size, all.delete(4).size]).toEqual([1, 0, 1]);
    expect(() => of({ kind: "named" }).size).toThrow(NotLoaded);
  });

  it("lists rows from a key on only if all of them are loaded", () => {
    expect(of({ kind: "all" }).every(4)).toEqual([[7, "seven"]]);
    for (const kind of ["from", "through"] as const) expect(() => of({ kind, key: 0 }).every()).toThrow(NotLoaded);
  });

  it("lists rows up to a key only if the missing part cannot contain a lower row", () => {
    expect(of({ kind: "through", key: 6 }).through(6)).toEqual([[3, "three"]]);
    expect(of({ kind: "all" }).through(7)).toEqual([
      [3, "three"],
      [7, "seven"],
    ]);
    expect(() => of({ kind: "through", key: 6 }).through(7)).toThrow(NotLoaded);
    expect(() => of({ kind: "from", key: 3 }).through(7)).toThrow(NotLoaded);
    expect(() => of({ kind: "through", key: 6 }).unsure().through(6)).toThrow(NotLoaded);
  });
});
