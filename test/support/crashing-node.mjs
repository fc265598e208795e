// Run by tests: `node crashing-node.mjs <failpoint> <n> <signal>` is `fencepost start`, sent SIGKILL or SIGSTOP the moment
// the failpoint is passed for the n-th time. Only a test can compose this; no configuration reaches the failpoints.
import { writeSync } from "node:fs";
import { createLogger } from "../../dist/adapters/system/logger.js";
import { loadConfig } from "../../dist/main/config/load.js";
import { startService } from "../../dist/main/service.js";

const [failpoint, passage, signal] = process.argv.slice(2);
let passed = 0;

/** @param {string} name */
function struckAt(name) {
  if (name !== failpoint || ++passed !== Number(passage)) return undefined;
  writeSync(1, `${signal} at ${name}\n`);
  process.kill(process.pid, signal);
  return signal === "SIGKILL" ? new Promise(() => undefined) : undefined;
}

const { config } = await loadConfig({
  command: "start",
  variables: process.env,
  workingDirectory: process.cwd(),
  nodeId: `crashing-${process.pid}`,
});
const logger = createLogger({ level: config.logLevel, format: "json", destination: 2, mask: (text) => text });
const { url, nodeId } = await startService({ config, logger, failpoint: struckAt });
process.stdout.write(`${JSON.stringify({ ready: true, url, nodeId })}\n`);
