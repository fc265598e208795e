#!/bin/sh
":" //; case "$NODE_OPTIONS| $* " in *semi?space*\|*) ;; *" start "* | *" dev "* | *" demo "* | *" bench "* | *" chaos "*) exec node --max-semi-space-size=64 --no-parallel-scavenge "$0" "$@" ;; esac; exec node "$0" "$@"
// A shell runs the line above, and becomes Node. For the commands that run nodes, Node gets a young generation of 64 MiB,
// cleared by one thread: a running process cannot ask for that. Other commands start 0.1 s of processor time sooner without
// it, because Node's code cache is for its default heap. A size in NODE_OPTIONS stays, and `node bin/fencepost.js` has
// Node's defaults. To Node the line is a string and a comment.
//
// Starts the bundled command line. Plain JavaScript of an old dialect, so that an old Node reads far enough to be told.

// SIGUSR1 has Node open V8's inspector, and with it all memory of the process. A listener takes that signal away from Node. So it
// is the first statement, and nothing is imported statically: such imports would be loaded before it.
process.on("SIGUSR1", () => undefined);

const OLDEST_NODE = [20, 19];
const entry = new URL("../dist/bundle/cli.js", import.meta.url);
const build = new URL("../scripts/build.mjs", import.meta.url);

function fail(line) {
  process.stderr.write(`fencepost: ${line}\n`);
  process.exit(1);
}

function isTooOld(version) {
  const [major, minor] = version.split(".").map(Number);
  return major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
}

// A checkout whose install ran no scripts (npm 12, pnpm, --ignore-scripts) has sources only. Standard output stays free:
// `start` promises exactly one line on it.
async function ensureBuilt() {
  const { existsSync } = await import("node:fs");
  if (existsSync(entry)) return;
  if (!existsSync(build)) fail("dist/ is missing from this package; install it again");
  process.stderr.write("fencepost: dist/ is missing; building it once (npm run build)\n");
  const { spawnSync } = await import("node:child_process");
  const { fileURLToPath } = await import("node:url");
  const { status } = spawnSync(process.execPath, [fileURLToPath(build)], { stdio: ["ignore", 2, 2] });
  if (status !== 0 || !existsSync(entry)) fail("the build failed; run npm install, then npm run build");
}

// A SIGUSR1 while Node itself came up, before the listener, has opened an inspector. An orderly exit would wait for its client.
async function refuseInspector() {
  const asked = [...process.execArgv, process.env.NODE_OPTIONS || ""].some((words) => words.includes("--inspect"));
  if (asked || !process.features.inspector) return;
  const { url } = await import("node:inspector");
  if (url() === undefined) return;
  process.stderr.write("fencepost: a signal (SIGUSR1) opened an inspector on this process; start it again\n");
  process.kill(process.pid, "SIGKILL");
}

if (isTooOld(process.versions.node)) {
  fail(`Node ${OLDEST_NODE.join(".")} or newer is needed, this is ${process.versions.node}`);
}
ensureBuilt()
  .then(refuseInspector)
  .then(() => import(entry.href))
  .then(({ main }) => main(process.argv.slice(2)))
  .then((code) => process.stdout.write("", () => process.exit(code)));
