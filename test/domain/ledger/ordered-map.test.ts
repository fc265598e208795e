import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OrderedMap } from "../../../src/domain/ledger/ordered-map.ts";

const step = fc.record({ key: fc.nat(40), value: fc.nat(), sets: fc.boolean() });

describe("an ordered map", () => {
  it("has the same content as a Map, sorted by key", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.nat(40), (steps, from) => {
        const plain = new Map<number, number>();
        let map = OrderedMap.of<number, number>();
        const earlier: { map: OrderedMap<number, number>; entries: readonly (readonly [number, number])[] }[] = [];
        for (const { key, value, sets } of steps) {
          earlier.push({ map, entries: [...map.entries()] });
          map = sets ? map.set(key, value) : map.delete(key);
          if (sets) plain.set(key, value);
          else plain.delete(key);
        }
        const entries = [...plain].sort(([a], [b]) => a - b);
        expect([...map.entries()]).toEqual(entries);
        expect([...map.entries(from)]).toEqual(entries.filter(([key]) => key >= from));
        expect(map.size).toBe(plain.size);
        const keys = Array.from({ length: 41 }, (_, key) => key);
        expect(keys.map((key) => map.get(key))).toEqual(keys.map((key) => plain.get(key)));
        expect(earlier.map(({ map: before }) => [...before.entries()])).toEqual(
          earlier.map(({ entries: held }) => held),
        );
      }),
      { numRuns: 100 },
    );
  });

  it("is a weight-balanced tree with the parameters 3 and 2 after any writes", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        let map = OrderedMap.of<number, number>();
        for (const { key, value, sets } of steps) {
          map = sets ? map.set(key, value) : map.delete(key);
          expect(unbalanced(shapeOf(map))).toEqual([]);
        }
      }),
      { numRuns: 100 },
    );
  });

  it("turns twice where one turn would leave the inner tree too heavy", () => {
    const lean = OrderedMap.of([1, 5, 3].map((key) => [key, key] as const));
    expect(shapeOf(lean)).toMatchObject({ key: 3, left: { key: 1 }, right: { key: 5 } });
    const other = OrderedMap.of([5, 1, 3].map((key) => [key, key] as const));
    expect(shapeOf(other)).toMatchObject({ key: 3, left: { key: 1 }, right: { key: 5 } });
  });

  it("is itself after the removal of a key that it does not have", () => {
    const map = OrderedMap.of([1, 3, 5, 7].map((key) => [key, key] as const));
    for (const key of [0, 2, 4, 6, 8]) expect(map.delete(key), `${key}`).toBe(map);
    expect(map.delete(3)).not.toBe(map);
  });

  it("stays shallow when keys are added and removed in any order", () => {
    const ascending = OrderedMap.of(Array.from({ length: 10_000 }, (_, key) => [key, key] as const));
    expect(depthOf(ascending)).toBeLessThanOrEqual(24);
    let thinned = ascending;
    for (let key = 0; key < 9_000; key++) thinned = thinned.delete(key);
    expect(thinned.size).toBe(1_000);
    expect(depthOf(thinned)).toBeLessThanOrEqual(18);
  });
});

interface Shape {
  readonly key: number;
  readonly size: number;
  readonly left: Shape | null;
  readonly right: Shape | null;
}

function shapeOf(map: OrderedMap<number, number>): Shape | null {
  return (map as unknown as { readonly root: Shape | null }).root;
}

function depthOf(map: OrderedMap<number, number>): number {
  const depth = (tree: Shape | null): number => (tree === null ? 0 : 1 + Math.max(depth(tree.left), depth(tree.right)));
  return depth(shapeOf(map));
}

/** Keys at which one subtree has more than three times the entries of the other, or a wrong size is stored. */
function unbalanced(tree: Shape | null): readonly number[] {
  if (tree === null) return [];
  const { key, size, left, right } = tree;
  const [less, more] = [left?.size ?? 0, right?.size ?? 0].sort((a, b) => a - b) as [number, number];
  const isRight = size === less + more + 1 && (size <= 2 || more <= 3 * less);
  return [...(isRight ? [] : [key]), ...unbalanced(left), ...unbalanced(right)];
}
