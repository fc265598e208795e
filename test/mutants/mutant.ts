/**
 * Mutation table: one row per protection in src/. Each row removes or weakens its protection in one snippet of code; the
 * tests that it names must then fail. A row is anchored to its snippet, so it moves with the code. If the snippet is
 * gone or no longer unique, test/architecture/mutants.test.ts fails.
 */
export interface Mutant {
  /** Protection that is removed, as a claim that is false with the mutant. */
  readonly name: string;
  /** Path of the source file, from the repository's root. */
  readonly file: string;
  /** Snippet that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Smallest set of test files of which at least one must fail. */
  readonly tests: readonly string[];
}

export type MutantRow = readonly [name: string, find: string, replace: string, tests?: readonly string[]];

/** Rows of one source file; `tests` are the test files of all rows that do not name others. */
export function mutantsIn(file: string, tests: readonly string[], rows: readonly MutantRow[]): readonly Mutant[] {
  return rows.map(([name, find, replace, own]) => ({ name, file, find, replace, tests: own ?? tests }));
}

/** Number of times that a mutant's snippet occurs in the source: 1, or the row must be repaired. */
export function occurrences({ find }: Mutant, source: string): number {
  return source.split(find).length - 1;
}

export function mutated({ find, replace }: Mutant, source: string): string {
  return source.replace(find, () => replace);
}
