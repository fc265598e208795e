import type { SourceFile } from "../tree.ts";
import { importsOf } from "./imports.ts";

const DOUBLES = "test/doubles/";
const CONTRACT = /^test\/contracts\/.+\.contract\.ts$/;
const TEST = /\.test\.ts$/;

/**
 * Finds test doubles that no contract suite verifies, and contract suites that run only against the double or only
 * against the real adapter.
 */
export function dishonestDoubles(tests: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(tests.map((file) => [file.path, file]));
  const suites = tests
    .filter(({ path }) => TEST.test(path))
    .map(({ path }) => ({ path, reaches: reach(byPath, path) }))
    .filter(({ reaches }) => [...reaches].some((path) => CONTRACT.test(path)));
  const unchecked = doublesIn(tests).filter(
    (double) => !suites.some(({ reaches }) => [...reaches].some((path) => doubleOf(path) === double)),
  );
  return [
    ...unchecked.map((double) => `${DOUBLES}${double}: runs no contract suite`),
    ...contractsIn(tests).flatMap((contract) => {
      const runners = suites.filter(({ reaches }) => reaches.has(contract)).map(({ path }) => path);
      return [DOUBLES, "test/adapters/"]
        .filter((side) => !runners.some((path) => path.startsWith(side)))
        .map((side) => `${contract}: run by nothing in ${side}`);
    }),
  ];
}

function contractsIn(tests: readonly SourceFile[]): readonly string[] {
  return tests.map(({ path }) => path).filter((path) => CONTRACT.test(path));
}

function doublesIn(tests: readonly SourceFile[]): readonly string[] {
  const paths = tests.map(({ path }) => path).filter((path) => !TEST.test(path));
  return [...new Set(paths.flatMap((path) => doubleOf(path) ?? []))];
}

/**
 * The name of the double that a file belongs to: `test/doubles/memory-store.ts` and
 * `test/doubles/memory-store/state.ts` are one double.
 */
function doubleOf(path: string): string | null {
  return /^test\/doubles\/([^/.]+)/.exec(path)?.[1] ?? null;
}

function reach(files: ReadonlyMap<string, SourceFile>, start: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [start];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = files.get(path);
    if (file === undefined || seen.has(path)) continue;
    seen.add(path);
    open.push(...importsOf(file).map(({ target }) => target));
  }
  return seen;
}
