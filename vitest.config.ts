import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Minutes of real processes that are killed, frozen and cut off: `npm run test:cluster`.
    exclude: process.env.FENCEPOST_CLUSTER_LONG === undefined ? ["test/cluster/long/**"] : [],
    globalSetup: ["test/support/global-setup.ts"],
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
