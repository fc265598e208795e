/**
 * Parts of the source that StrykerJS mutates, each with the tests in memory that judge its mutants: as few as find them,
 * because every mutant runs those of them that reach its line. `atLeast`: percentage of mutants that they must find.
 */
export const AREAS = {
  ledger: {
    mutate: "src/domain/ledger/**/*.ts",
    atLeast: 100,
    // The cost of a write is measured by another test of it, which Stryker's own counting would disturb.
    tests: ["test/domain/{ledger,policy}/!(cost).test.ts", "test/doubles/memory-store.test.ts"],
  },
  policy: {
    mutate: "src/domain/policy/**/*.ts",
    atLeast: 90,
    tests: ["test/domain/{policy,messages}/*.test.ts", "test/domain/ledger/judged-writes.test.ts"],
  },
  pace: {
    mutate: "src/domain/pace/**/*.ts",
    atLeast: 90,
    tests: ["test/domain/pace/*.test.ts"],
  },
  lane: {
    mutate: "src/application/lane/**/*.ts",
    atLeast: 90,
    tests: ["test/application/{lane,stages}/**/*.test.ts"],
  },
  stages: {
    mutate: "src/application/stages/**/*.ts",
    atLeast: 90,
    tests: ["test/application/{lane,stages,nonces,signing,detours}/**/*.test.ts"],
  },
};
