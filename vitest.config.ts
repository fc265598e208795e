import { defineConfig } from "vitest/config";
import { ALONE } from "./test/support/alone.ts";

/** These need no database. */
const IN_MEMORY = [
  "test/application/{chain,cluster,detours,lane,operations,queries,stages,writer}/**/*.test.ts",
  "test/{client,contract,domain}/**/*.test.ts",
  "test/adapters/{http,system}/**/*.test.ts",
];

const ALONE_TESTS = ALONE.map((folder) => `${folder}/**/*.test.ts`);
const globalSetup = ["test/support/global-setup.ts"];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "in memory", include: IN_MEMORY, isolate: false } },
      {
        extends: true,
        test: {
          name: "real",
          include: ["test/**/*.test.ts"],
          exclude: [...IN_MEMORY, ...ALONE_TESTS],
          isolate: false,
          globalSetup,
        },
      },
      { extends: true, test: { name: "alone", include: ALONE_TESTS, globalSetup } },
    ],
    exclude: [
      // Minutes of real processes that are killed, frozen and cut off: `npm run test:cluster`.
      ...(process.env.FENCEPOST_CLUSTER_LONG === undefined ? ["test/cluster/long/**"] : []),
      // Minutes of everything that a real chain and the way to it can do: `npm run test:chain`.
      ...(process.env.FENCEPOST_CHAIN_LONG === undefined ? ["test/integration/long/**"] : []),
    ],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Two cores is what the suite is timed on; a third worker fills what the others leave while they wait for real time.
    maxWorkers: 3,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: ["text-summary", "json-summary", "html"],
      thresholds: {
        lines: 80,
        branches: 80,
        "src/domain/**": { lines: 90, branches: 90 },
        "src/application/**": { lines: 90, branches: 90 },
      },
    },
  },
});
