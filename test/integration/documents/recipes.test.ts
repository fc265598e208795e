/**
 * Runs the recipes of docs/recipes as printed: `npm run test:docs`. Each file of a page is written under its name into a
 * project in which the packed package and the libraries of the page are installed. The recipe for Next.js shows files of
 * an example, which `npm run test:examples` runs.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { freePort } from "../../../src/main/dev/embedded/loopback-port.ts";
import { ROOT, readText } from "../../architecture/tree.ts";
import { connect } from "../../support/integration.ts";
import { spawnScript } from "../../support/node-process.ts";
import { npmInstall, pack } from "../../support/packed.ts";
import { runPrinted, shellBlocks } from "../../support/printed-shell.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 1_800_000 });

const RECIPIENT = "0x00000000000000000000000000000000000000AA";
const HERE: Readonly<Record<string, string>> = { ...manifest.dependencies, ...manifest.devDependencies };
/** Libraries of the recipes in the versions of this repository, and others in the versions that were tried. */
const OURS = ["pg", "@types/pg", "@types/node", "typescript", "drizzle-orm", "kysely", "knex"];
const OTHERS = [
  ...["prisma", "@prisma/client", "@prisma/adapter-pg"].map((name) => `${name}@7.10.0`),
  ...["common", "core", "platform-express"].map((name) => `@nestjs/${name}@12.5.0`),
  ...["typeorm@1.1.1", "reflect-metadata", "rxjs@7", "tsx"],
];
const OPENAPI_PYTHON_CLIENT = "openapi-python-client==0.29.1";

/** The files of a recipe: code blocks whose first line is a comment with the file's name. */
function filesOf(page: string): readonly (readonly [name: string, text: string])[] {
  const blocks = readText(page).matchAll(/^```\w+\n(?:\/\/|#) ([\w./-]+\.\w+)\n(.*?)^```/gms);
  return [...blocks].map(([, name = "", text = ""]) => [name, text]);
}

let stack: Stack;
let project: TemporaryDirectory;
let place: { readonly variables: Readonly<Record<string, string>> };

beforeAll(async () => {
  stack = await startFencepost();
  project = await makeTemporaryDirectory();
  writeFileSync(join(project.path, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
  // An unused part of Prisma's command line requires a newer Node, so disable the engine check.
  const ours = OURS.map((name) => `${name}@${HERE[name]}`);
  npmInstall(project.path, ["--no-engine-strict", pack(project.path), ...ours, ...OTHERS]);
  const database = connect(stack.databaseUrl);
  // A deferred constraint fails at COMMIT, after the send, so that a rollback must undo the send.
  await database.query(
    "CREATE TABLE public.orders (id text PRIMARY KEY, invoice text UNIQUE DEFERRABLE INITIALLY DEFERRED)",
  );
  await database.end();
  const [, account] = stack.strangers;
  place = {
    variables: {
      DATABASE_URL: stack.databaseUrl,
      RPC_URL: stack.rpcUrl,
      SIGNER_KEY: account?.privateKey ?? "",
      SIGNER: account?.address ?? "",
    },
  };
});
afterAll(async () => {
  await stack?.stop();
  await project?.remove();
});

/** Writes the files of a recipe into a directory of the project. */
function write(name: string): string {
  const directory = join(project.path, name);
  const files = filesOf(`docs/recipes/${name}.md`);
  expect(files.length).toBeGreaterThan(0);
  for (const [file, text] of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), text);
  }
  return directory;
}

/** Checks the types of a recipe against the installed packages, or compiles it into `out`. */
function compile(directory: string, options: object): void {
  const compilerOptions = {
    ...{ module: "nodenext", target: "es2023", strict: true, skipLibCheck: true, types: ["node"] },
    ...options,
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const run = () => execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", "."], { cwd: directory, stdio: "pipe" });
  expect(outputOf(run)).toBe("");
}

function outputOf(run: () => Buffer): string {
  try {
    return run().toString();
  } catch (error) {
    return `failed: ${(error as { stdout: Buffer }).stdout}`;
  }
}

/** Places an order, one that rolls back at COMMIT, and sends outside a transaction; prints what happened. */
const caller = (name: string) => `
  import { db } from "./db.ts";
  import { fencepost, signer } from "./fencepost.ts";
  import { placeOrder } from "./place-order.ts";
  const order = (id) => ({ id, invoice: "${name}", to: "${RECIPIENT}", value: 1n });
  await placeOrder(order("${name}-1"));
  const second = await placeOrder(order("${name}-2")).then(() => "committed", () => "rolled back");
  const payment = { signer, requestId: "${name}-3", payload: { to: signer, value: 1n } };
  const outside = await fencepost.send(payment, { client: db }).catch(({ code }) => code);
  for await (const { requestId, state } of fencepost.completions()) {
    if (requestId === "${name}-1" && state === "CONFIRMED") break;
  }
  const { items } = await fencepost.list({ signer });
  const sent = items.map(({ requestId }) => requestId).filter((id) => id.startsWith("${name}-"));
  console.log(JSON.stringify({ second, outside, sent }));
  await fencepost.close();
  process.exit(0);`;

const bodyOf = async (answer: Response) => (await answer.json()) as { readonly txId?: string; readonly state?: string };

describe("the recipe", () => {
  it.each(["drizzle", "kysely", "knex", "typeorm", "prisma"])(
    "%s commits an order and its payment together",
    async (name) => {
      const directory = write(name);
      if (name === "prisma") {
        // The command line would download a migration engine, which is not needed here.
        const env = { ...process.env, ...place.variables, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true" };
        execFileSync(join(project.path, "node_modules/.bin/prisma"), ["generate"], {
          cwd: directory,
          env,
          stdio: "pipe",
        });
      }
      compile(directory, { noEmit: true, allowImportingTsExtensions: true });
      writeFileSync(join(directory, "caller.mjs"), caller(name));
      const child = spawnScript(["--import", "tsx", "caller.mjs"], { directory, ...place });
      const { code } = await child.exited;
      expect(`${code} ${child.stderr()}`).toMatch(/^0 /);
      expect(JSON.parse(child.stdout().trim().split("\n").at(-1) ?? "")).toEqual({
        second: "rolled back",
        outside: "INVALID_REQUEST",
        sent: [`${name}-1`],
      });
    },
  );

  it("nestjs pays once, refuses another amount, and hands over at SIGTERM", async () => {
    const directory = write("nestjs");
    compile(directory, { outDir: "out", experimentalDecorators: true });
    const port = await freePort();
    const variables = { ...place.variables, PORT: String(port) };
    const app = spawnScript([join("out", "main.js")], { directory, variables });
    await waitUntil(() => app.stdout().includes("successfully started"), `Nest starts: ${app.stderr()}`);
    const url = `http://127.0.0.1:${port}/payments`;
    const pay = (value: string) =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ orderId: "nestjs-1", to: RECIPIENT, value }),
      });
    const answers = [await pay("5"), await pay("5"), await pay("6")];
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 409]);
    const [first, again, refused] = await Promise.all(answers.map(bodyOf));
    expect(again?.txId).toBe(first?.txId);
    expect(refused).toMatchObject({ code: "REQUEST_ID_REUSED" });
    const show = async () => bodyOf(await fetch(`${url}/nestjs-1`));
    await waitUntil(async () => (await show()).state === "CONFIRMED", "the payment is final");
    app.signal("SIGTERM");
    expect(await app.exited).toMatchObject({ signal: "SIGTERM" });
    expect(await stack.client.nodes()).toHaveLength(1);
  });

  it("lambda is bundled, pays every message once, and returns the messages to retry", async () => {
    const directory = write("lambda");
    compile(directory, { noEmit: true });
    const [printed = ""] = /esbuild handler\.ts [^`]+/.exec(readText("docs/recipes/lambda.md")) ?? [];
    const [, ...argv] = printed.split(" ");
    execFileSync(join(project.path, "node_modules/.bin/esbuild"), argv, { cwd: directory, stdio: "pipe" });
    const order = (id: string, to: string) => ({ messageId: `m-${id}`, body: JSON.stringify({ id, to, value: "7" }) });
    const Records = [order("lambda-1", RECIPIENT), order("lambda-1", RECIPIENT), order("lambda-2", "nobody")];
    const invoke = `
      const { handler } = await import("./index.mjs");
      console.log(JSON.stringify(await handler(${JSON.stringify({ Records })})));`;
    writeFileSync(join(directory, "invoke.mjs"), invoke);
    const [signer = ""] = stack.signers;
    const run = async (url: string) => {
      const child = spawnScript(["invoke.mjs"], { directory, variables: { NODE_URL: url, SIGNER: signer } });
      expect(await child.exited).toMatchObject({ code: 0 });
      return JSON.parse(child.stdout().trim().split("\n").at(-1) ?? "");
    };
    expect(await run(stack.url)).toEqual({ batchItemFailures: [] });
    const { items } = await stack.client.list({ signer });
    expect(items.filter(({ requestId }) => requestId?.startsWith("lambda-"))).toHaveLength(1);
    const retry = Records.map(({ messageId }) => ({ itemIdentifier: messageId }));
    expect(await run("http://127.0.0.1:1")).toEqual({ batchItemFailures: retry });
  });

  it("python generates a client that pays and waits", async () => {
    const page = "docs/recipes/python.md";
    const bin = join(project.path, "venv/bin");
    execFileSync("python3", ["-m", "venv", join(project.path, "venv")], { stdio: "pipe" });
    execFileSync(join(bin, "pip"), ["install", "--quiet", OPENAPI_PYTHON_CLIENT], { stdio: "pipe" });
    const [signer = ""] = stack.signers;
    const said = await runPrinted(shellBlocks(page).join("\n"), {
      variables: { PATH: `${bin}:${process.env.PATH}`, NODE_URL: stack.url, SIGNER: signer },
      instead: { "http://127.0.0.1:3000": stack.url, " generate ": " generate --fail-on-warning " },
      files: Object.fromEntries(filesOf(page)),
    });
    expect(said).toMatch(/^CONFIRMED \d+ 0x[0-9a-f]{64}$/m);
  });
});
