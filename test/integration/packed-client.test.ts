/**
 * `npm run test:pack`: a project installs `fencepost-client` as npm would publish it, and nothing else. It sends a
 * transaction and waits for it from Node and from a page in a browser.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Stack, startFencepost } from "fencepost/testing";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { launchBrowser } from "../support/browser.ts";
import { spawnScript } from "../support/node-process.ts";
import { npmInstall, pack } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const TOOLS = [
  "@arethetypeswrong/cli@0.18.5",
  "publint@0.3.25",
  "typescript@7.0.2",
  "typescript-5@npm:typescript@5.9.3",
];
/** The bound of test/client/size.test.ts: what is published is no larger than what is measured there. */
const MOST_BYTES = 7 * 1024;

/** Sends one transaction from a function that has `createClient`, `url` and `signer`. */
const SEND = `
  const fencepost = createClient({ url });
  const tx = await fencepost.send({ signer, payload: { to: signer, value: 1n } });
  const { state } = await tx.final();
`;
const HERE = "const [url, signer] = process.argv.slice(2);";
const PAGE = `<!doctype html><title>pay</title><script type="module">
  import { createClient } from "/node_modules/fencepost-client/esm/index.js";
  window.pay = async (url, signer) => { ${SEND} return state; };
</script>`;

/** The second call has an argument of a wrong type. The compiler has to know the ABI's types without abitype and viem. */
const TYPED = `
  import { createClient, FencepostError, type Transaction } from "fencepost-client";
  const abi = [{ type: "function", name: "f", stateMutability: "payable", inputs: [{ type: "uint256", name: "a" }], outputs: [] }] as const;
  export async function pay(url: string): Promise<Transaction["state"]> {
    const fencepost = createClient({ url });
    const to = "0x00000000000000000000000000000000000000aa";
    const tx = await fencepost.send({ signer: to, payload: { to, abi, function: "f", args: [1n] } });
    // @ts-expect-error
    await fencepost.send({ signer: to, payload: { to, abi, function: "f", args: [true] } });
    const { state } = await tx.final().catch((error: FencepostError) => Promise.reject(error.code));
    return state;
  }
`;
const compilerOptions = { strict: true, target: "es2022", lib: ["es2022", "dom"], types: [], noEmit: true };
const FILES: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({ name: "app", private: true }),
  "index.html": PAGE,
  "imported.mjs": `import { createClient } from "fencepost-client"; ${HERE} ${SEND} console.log(state);`,
  "required.cjs": `const { createClient } = require("fencepost-client"); ${HERE} (async () => {${SEND} console.log(state);})();`,
  "app.mts": TYPED,
  "app.cts": TYPED,
  "nodenext.json": JSON.stringify({
    compilerOptions: { ...compilerOptions, module: "nodenext" },
    files: ["app.mts", "app.cts"],
  }),
  "bundler.json": JSON.stringify({
    compilerOptions: { ...compilerOptions, module: "esnext", moduleResolution: "bundler" },
    files: ["app.mts"],
  }),
  "node10.json": JSON.stringify({
    compilerOptions: { ...compilerOptions, module: "commonjs", moduleResolution: "node10" },
    files: ["app.cts"],
  }),
};

let directory: TemporaryDirectory;
let server: Server;
let stack: Stack;

async function node(argv: readonly string[], { path } = directory) {
  const child = spawnScript(argv, { directory: path });
  const { code } = await child.exited;
  return { code, output: child.stdout() + child.stderr() };
}

/** Serves the project's files, as any web server would. */
function serve(): Promise<Server> {
  const types: Readonly<Record<string, string>> = { html: "text/html", js: "text/javascript" };
  const started = createServer(({ url = "/" }, response) => {
    const path = url === "/" ? "/index.html" : url;
    const type = types[path.split(".").at(-1) ?? ""];
    if (type === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": type }).end(readFileSync(join(directory.path, path)));
  });
  return new Promise((resolve) => started.listen(0, "127.0.0.1", () => resolve(started)));
}

const originOf = (started: Server) => `http://127.0.0.1:${(started.address() as AddressInfo).port}`;

beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  server = await serve();
  stack = await startFencepost({ signers: 1, settings: { FENCEPOST_ALLOWED_ORIGINS: originOf(server) } });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(directory.path, name), text);
  npmInstall(directory.path, [pack(directory.path, "./dist-client")]);
}, 300_000);
afterAll(async () => {
  server?.close();
  await stack?.stop();
  await directory?.remove();
});

describe("the packed client", () => {
  it("is installed alone, in the version of the package fencepost", () => {
    expect(readdirSync(join(directory.path, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "fencepost-client",
    ]);
    const installed = JSON.parse(
      readFileSync(join(directory.path, "node_modules/fencepost-client/package.json"), "utf8"),
    );
    expect(installed).toMatchObject({ version: manifest.version, license: manifest.license });
  });

  it.each(["imported.mjs", "required.cjs"])("sends a transaction and waits for it, as in %s", async (file) => {
    expect(await node([file, stack.url, `${stack.signers[0]}`])).toEqual({ code: 0, output: "CONFIRMED\n" });
  });

  it("sends a transaction and waits for it from a page of an allowed origin", async () => {
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(originOf(server), { waitUntil: "load" });
      const pay = `pay(${JSON.stringify(stack.url)}, ${JSON.stringify(stack.signers[0])})`;
      expect(await page.evaluate(pay)).toBe("CONFIRMED");
    } finally {
      await browser.close();
    }
  });

  it.each(["esm", "cjs"])("is at most 7 KiB minified and compressed, as %s", async (format) => {
    const input = join(directory.path, `node_modules/fencepost-client/${format}/index.js`);
    const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" });
    const { output } = await bundle.generate({ format: "esm", minify: true });
    await bundle.close();
    expect(output).toHaveLength(1);
    expect(output[0].imports).toEqual([]);
    expect(gzipSync(output[0].code, { level: 9 }).length).toBeLessThanOrEqual(MOST_BYTES);
  });
});

describe("the types of the packed client", () => {
  it.each(["esm", "cjs"])("keep the sentences about fields that an editor shows on hover, as %s", (format) => {
    const types = join(directory.path, `node_modules/fencepost-client/${format}/types/contract/schemas`);
    const linesOf = (file: string, name: string) => {
      const text = readFileSync(join(types, file), "utf8");
      return (
        text
          .slice(text.indexOf(`type ${name} = `))
          .split("\n};", 1)[0]
          ?.split("\n") ?? []
      );
    };
    const payload = linesOf("create.d.ts", "RawPayload");
    const members = payload.filter((line) => /^ {4}\w+\??: /.test(line));
    expect(members.length).toBeGreaterThan(5);
    for (const line of members) expect(payload[payload.indexOf(line) - 1], line).toMatch(/^ {4}\/\*\* .+ \*\/$/);
    const nested = linesOf("transaction-schema.d.ts", "Transaction").join("\n");
    expect(nested, "fields of fields").toMatch(/^ {8,}\/\*\* True once the transaction is final/m);
  });

  let tools: TemporaryDirectory;
  beforeAll(async () => {
    tools = await makeTemporaryDirectory();
    writeFileSync(join(tools.path, "package.json"), "{}");
    npmInstall(tools.path, TOOLS);
  }, 300_000);
  afterAll(() => tools?.remove());

  const tool = (path: string, ...argv: readonly string[]) => node([join(tools.path, "node_modules", path), ...argv]);

  it.each([
    ["typescript", "nodenext"],
    ["typescript-5", "bundler"],
    ["typescript-5", "node10"],
  ])("are complete for %s with the resolution %s", { timeout: 300_000 }, async (version, project) => {
    expect(await tool(`${version}/bin/tsc`, "-p", `${project}.json`)).toEqual({ code: 0, output: "" });
  });

  it("are those of ES modules for import, and those of CommonJS for require", { timeout: 300_000 }, async () => {
    const [file] = readdirSync(directory.path).filter((name) => name.endsWith(".tgz"));
    expect(await tool("@arethetypeswrong/cli/dist/index.js", `${file}`)).toMatchObject({ code: 0 });
    const lint = `import { publint } from "publint";
      const { messages } = await publint({ pkgDir: process.argv[1] });
      console.log(JSON.stringify(messages));`;
    const argv = ["--input-type=module", "-e", lint, join(directory.path, "node_modules/fencepost-client")];
    expect(await node(argv, tools)).toEqual({ code: 0, output: "[]\n" });
  });
});
