/**
 * Run by tests as a separate process that they can kill: starts a server in the directory argv[2] and keeps running.
 */

import { systemClock } from "../../src/adapters/system/clock.ts";
import { startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";

// SIGINT does not end this process, as if Ctrl-C had begun a slow drain during which the database must still be
// available.
process.on("SIGINT", () => report({ interrupted: true }));

const [, , directory = "", native] = process.argv;
startEmbeddedPostgres({
  directory,
  native,
  clock: systemClock,
  log: (line) => report({ line }),
  settings: { fsync: "off" },
}).then(
  ({ url, pid, home }) => report({ url, pid, home }),
  (error: Error) => {
    report({ error: error.message });
    process.exit(1);
  },
);

function report(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
