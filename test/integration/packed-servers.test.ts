/**
 * `npm run test:pack`: the packed library in a Next.js server, and in the layout of an AWS Lambda function. Both send a
 * transaction and wait for it.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FencepostProcess, spawnScript } from "../support/node-process.ts";
import { npmInstall, pack } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { waitUntil } from "../support/wait-until.ts";

const TIMEOUT_MS = 600_000;
/** Limits of docs/dependencies.md, "Installed size". */
const MOST_PACKAGES = 30;
const MOST_BYTES = 60_000_000;
const MANIFEST = JSON.stringify({ name: "app", private: true, type: "module" });

/** Sends one transaction from a function, and leaves its state in `state`. */
const SEND = `
  const { DATABASE, RPC, KEY, SIGNER } = process.env;
  const chains = [{ rpc: RPC, confirmations: 1 }];
  const fencepost = await createFencepost({ databaseUrl: DATABASE, chains, signers: [KEY] });
  const { txId } = await fencepost.send({ signer: SIGNER, payload: { to: SIGNER, value: 1n } });
  const { state } = await fencepost.waitFor(txId);
  await fencepost.close();
`;

const NEXT_FILES = {
  "package.json": MANIFEST,
  "next.config.mjs": 'export default { serverExternalPackages: ["fencepost"] };',
  "app/api/pay/route.js": `import { createFencepost } from "fencepost";
    export async function POST() { ${SEND} return Response.json({ state }); }`,
};

/** The function's code and its installed packages in one folder, as in a zip file for Lambda. */
const LAMBDA_FILES = {
  "function/package.json": MANIFEST,
  "tools/package.json": MANIFEST,
  "handler.ts": `import { createFencepost } from "fencepost";
    export async function handler(event: { name: string }) { ${SEND} return { name: event.name, state }; }`,
  // Lambda's runtime imports the handler from /var/task, which is read-only, and calls it once for each event.
  "runtime.mjs": `
    const { handler } = await import(process.env.LAMBDA_TASK_ROOT + "/index.mjs");
    for (const name of ["first", "second"]) console.log(JSON.stringify(await handler({ name })));`,
};

let directory: TemporaryDirectory;
let tarball: string;
let stack: Stack;
let running: FencepostProcess | undefined;

beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  stack = await startFencepost({ signers: 1 });
  tarball = pack(directory.path);
}, TIMEOUT_MS);
afterAll(async () => {
  running?.signalGroup("SIGKILL");
  await running?.exited;
  await stack?.stop();
  await directory?.remove();
});

function project(name: string, files: Readonly<Record<string, string>>): string {
  const place = join(directory.path, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, path)), { recursive: true });
    writeFileSync(join(place, path), text);
  }
  return place;
}

function spawnIn(place: string, argv: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const { address, privateKey } = stack.strangers[0] as Stack["strangers"][number];
  const variables = { DATABASE: stack.databaseUrl, RPC: stack.rpcUrl, KEY: privateKey, SIGNER: address, ...more };
  return spawnScript(argv, { directory: place, variables });
}

async function run(place: string, argv: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const child = spawnIn(place, argv, more);
  const { code } = await child.exited;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

it("sends and waits in a route of a Next.js server", { timeout: TIMEOUT_MS }, async () => {
  const place = project("next", NEXT_FILES);
  npmInstall(place, [tarball, "next@16.4.6", "react@19.3.1", "react-dom@19.3.1"]);
  const next = "node_modules/next/dist/bin/next";
  const more = { NEXT_TELEMETRY_DISABLED: "1" };
  expect(await run(place, [next, "build"], more)).toMatchObject({ code: 0 });
  running = spawnIn(place, [next, "start", "--hostname", "127.0.0.1", "--port", "0"], more);
  const output = running.stdout;
  await waitUntil(() => /http:\/\/127\.0\.0\.1:\d+/.test(output()) && /Ready/.test(output()), "Next.js is ready", {
    giveUpMs: 120_000,
  });
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(output()) ?? [];
  const response = await fetch(`${url}/api/pay`, { method: "POST" });
  expect({ status: response.status, body: await response.text() }).toEqual({
    status: 200,
    body: JSON.stringify({ state: "CONFIRMED" }),
  });
});

it("sends and waits in the layout of AWS Lambda, and writes nothing there", { timeout: TIMEOUT_MS }, async () => {
  const place = project("lambda", LAMBDA_FILES);
  const task = join(place, "function");
  npmInstall(task, [tarball]);
  expect(installedSize(task).packages).toBeLessThanOrEqual(MOST_PACKAGES);
  expect(installedSize(task).bytes).toBeLessThanOrEqual(MOST_BYTES);
  npmInstall(join(place, "tools"), ["esbuild@0.28.2"]);
  const form = { bundle: true, platform: "node", format: "esm", logLevel: "error", external: ["fencepost"] };
  const options = { ...form, entryPoints: ["../handler.ts"], outfile: "../function/index.mjs" };
  const build = `import { buildSync } from "esbuild"; buildSync(${JSON.stringify(options)});`;
  expect(await run(join(place, "tools"), ["--input-type=module", "-e", build])).toMatchObject({ code: 0, stderr: "" });
  const before = changeTimes(task);
  for (const path of before.keys()) chmodSync(path, 0o555);
  const seen = await run(task, ["../runtime.mjs"], { LAMBDA_TASK_ROOT: task });
  expect(seen).toEqual({
    ...{ code: 0, stderr: "" },
    stdout: '{"name":"first","state":"CONFIRMED"}\n{"name":"second","state":"CONFIRMED"}\n',
  });
  expect(changeTimes(task)).toEqual(before);
});

/** Each folder with the time of its last change: a file that is added or removed changes its folder. */
function changeTimes(place: string): ReadonlyMap<string, number> {
  const entries = readdirSync(place, { recursive: true, withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  return new Map([place, ...folders].map((path) => [path, statSync(path).mtimeMs]));
}

/** What npm installed: its packages, and the bytes of their files. */
function installedSize(place: string) {
  const { packages } = JSON.parse(readFileSync(join(place, "node_modules/.package-lock.json"), "utf8"));
  const entries = readdirSync(join(place, "node_modules"), { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  return { packages: Object.keys(packages).length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
