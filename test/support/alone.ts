/**
 * Test files that run in separate processes, because they replace modules or variables of the process. All other files
 * share processes, which saves loading time; an architecture test forbids such replacements in them.
 */
export const ALONE = [
  "test/main/cli.test.ts",
  "test/main/dev/embedded/chain-not-installed.test.ts",
  "test/main/dev/embedded/directory-lock-race.test.ts",
  "test/main/dev/embedded/postgres.test.ts",
  "test/main/launcher.test.ts",
  "test/main/serving.test.ts",
] as const;
