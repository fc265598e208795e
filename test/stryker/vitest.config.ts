import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests in memory, as StrykerJS runs them for each of its mutants (areas.mjs says which). */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../../", import.meta.url)),
    include: ["test/**/*.test.ts"],
    setupFiles: [fileURLToPath(new URL("./same-cases.ts", import.meta.url))],
    isolate: false,
    testTimeout: 60_000,
  },
});
