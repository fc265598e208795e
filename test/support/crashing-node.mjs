// Run by tests: `node crashing-node.mjs <failpoint> <n> <signal>` is `fencepost start`, which gets SIGKILL or SIGSTOP
// when the failpoint is passed for the n-th time. Only a test can do this; no configuration reaches the failpoints.
import { writeSync } from "node:fs";

const [failpoint, passage, signal] = process.argv.slice(2);
let passed = 0;

/** @param {string} name */
function struckAt(name) {
  if (name !== failpoint || ++passed !== Number(passage)) return undefined;
  writeSync(1, `${signal} at ${name}\n`);
  process.kill(process.pid, signal);
  return signal === "SIGKILL" ? new Promise(() => undefined) : undefined;
}

const { main } = await import(new URL("../../dist/bundle/cli.js", import.meta.url).href);
process.exit(await main(["start"], struckAt));
