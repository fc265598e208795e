// Run by tests: `node crashing-node.mjs <failpoint> <n>` is `fencepost start`, killed like by kill -9 the moment the
// failpoint is passed for the n-th time. Only a test can compose this; no configuration reaches the failpoints.
import { createLogger } from "../../dist/adapters/system/logger.js";
import { loadConfig } from "../../dist/main/config/load.js";
import { startService } from "../../dist/main/service.js";

const [failpoint, passage] = process.argv.slice(2);
let passed = 0;

/** @param {string} name */
function dieAt(name) {
  if (name !== failpoint || ++passed < Number(passage)) return undefined;
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => undefined);
}

const { config } = await loadConfig({
  command: "start",
  variables: process.env,
  workingDirectory: process.cwd(),
  nodeId: `crashing-${process.pid}`,
});
const logger = createLogger({ level: config.logLevel, format: "json", destination: 2 });
const { url, nodeId } = await startService({ config, logger, failpoint: dieAt });
process.stdout.write(`${JSON.stringify({ ready: true, url, nodeId })}\n`);
