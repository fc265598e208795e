/**
 * Parts of the source that StrykerJS mutates, each with the tests in memory that judge its mutants: as few as find them,
 * because every mutant runs those of them that reach its line.
 */
export const AREAS = {
  ledger: {
    mutate: "src/domain/ledger/**/*.ts",
    tests: ["test/domain/{ledger,policy}/**/*.test.ts", "test/doubles/memory-store.test.ts"],
  },
  policy: {
    mutate: "src/domain/policy/**/*.ts",
    tests: ["test/domain/{ledger,policy,messages}/**/*.test.ts"],
  },
  pace: {
    mutate: "src/domain/pace/**/*.ts",
    tests: ["test/domain/pace/**/*.test.ts"],
  },
  lane: {
    mutate: "src/application/lane/**/*.ts",
    tests: ["test/application/{lane,stages}/**/*.test.ts"],
  },
  stages: {
    mutate: "src/application/stages/**/*.ts",
    tests: ["test/application/{lane,stages,nonces,signing,detours}/**/*.test.ts"],
  },
};
