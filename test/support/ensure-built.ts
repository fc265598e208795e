import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

/**
 * Tests start nodes of the last build. Build once before all tests if there is none, because two workers that build at
 * once would collide.
 */
export default function setup(): void {
  if (existsSync(new URL("dist/bundle/cli.js", root))) return;
  execFileSync(process.execPath, [fileURLToPath(new URL("scripts/build.mjs", root))], { stdio: "inherit" });
}
