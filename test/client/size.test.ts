import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";

const MOST_BYTES = 7 * 1024;

// protects [The SDK and the library] src/client/index.ts
it("the SDK is at most 7 KiB bundled, minified and compressed", async () => {
  const input = fileURLToPath(new URL("../../src/client/index.ts", import.meta.url));
  const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" });
  const { output } = await bundle.generate({ format: "esm", minify: true });
  await bundle.close();
  expect(output).toHaveLength(1);
  const [{ code, imports, dynamicImports }] = output;
  expect([...imports, ...dynamicImports]).toEqual([]);
  expect(code).toContain("SUBMISSION_REJECTED");
  expect(code).not.toMatch(/\b(?:process|Buffer|require)\b/);
  expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(MOST_BYTES);
});
