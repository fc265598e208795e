/**
 * Test files that run in a process of their own because they replace modules or variables of the process. All others
 * share processes, which saves loading time; an architecture test forbids replacements in those.
 */
export const ALONE = [
  "test/main/cli.test.ts",
  "test/main/dev/embedded/chain-not-installed.test.ts",
  "test/main/dev/embedded/directory-lock-race.test.ts",
  "test/main/dev/embedded/postgres.test.ts",
  "test/main/launcher.test.ts",
  "test/main/serving.test.ts",
] as const;
