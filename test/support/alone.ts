/**
 * Test files that have a process of their own, because they replace modules, or variables of the process. All the others share
 * processes, and so the work of loading what they test; there an architecture test refuses replacements.
 */
export const ALONE = [
  "test/main/cli.test.ts",
  "test/main/dev/embedded/chain-not-installed.test.ts",
  "test/main/dev/embedded/directory-lock-race.test.ts",
  "test/main/dev/embedded/postgres.test.ts",
  "test/main/launcher.test.ts",
  "test/main/serving.test.ts",
] as const;
