// Loaded into a node before anything else (`--import`): on SIGUSR2 its main loop blocks for BLOCK_MS, as in an endless
// computation. The process is not stopped: its other threads continue.
import { writeSync } from "node:fs";

process.on("SIGUSR2", () => {
  writeSync(1, "the main loop is blocked\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env.BLOCK_MS));
  writeSync(1, "the main loop goes on\n");
});
