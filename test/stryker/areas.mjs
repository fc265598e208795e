/**
 * Parts of the source that StrykerJS mutates. `atLeast`: percentage of mutants that must be found. `tests`: how the paths
 * of the tests in memory begin that judge them.
 */
export const AREAS = {
  ledger: {
    mutate: "src/domain/ledger/**/*.ts",
    atLeast: 90,
    tests: ["test/domain/ledger/", "test/domain/policy/usage.property", "test/doubles/memory-store.test.ts"],
    // The first measures processor time, which Stryker's own counting takes too; the other judges only the random cases.
    except: ["test/domain/ledger/cost.test.ts", "test/domain/ledger/story.test.ts"],
  },
  policy: {
    mutate: "src/domain/policy/**/*.ts",
    atLeast: 90,
    tests: [
      ...["test/domain/policy/", "test/domain/messages/", "test/domain/ledger/judged-writes"],
      ...["test/domain/ledger/foreseen", "test/domain/ledger/charged"],
    ],
  },
  pace: {
    mutate: "src/domain/pace/**/*.ts",
    atLeast: 90,
    tests: ["test/domain/pace/"],
  },
};
