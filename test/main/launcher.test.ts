import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const launcher = resolve("bin/fencepost.js");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
let directory = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "fencepost-launcher-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment variables without Fencepost's settings and without the test runner's NODE_OPTIONS. */
function cleanEnvironment(): Record<string, string | undefined> {
  const foreign = (name: string) => name.startsWith("FENCEPOST_") || name === "NODE_OPTIONS";
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign(name)));
}

type Variables = Record<string, string>;

function run(script: string, argv: readonly string[], variables: Variables = {}): Promise<Outcome> {
  return runProgram(process.execPath, [script, ...argv], variables);
}

function runProgram(program: string, argv: readonly string[], variables: Variables = {}): Promise<Outcome> {
  const env = { ...cleanEnvironment(), ...variables };
  return new Promise((done) => {
    execFile(program, argv, { cwd: directory, env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

/** A package with this launcher and a fake command line. */
function fakePackage(name: string, files: Record<string, string>): string {
  const root = join(directory, name);
  mkdirSync(join(root, "bin"), { recursive: true });
  cpSync(launcher, join(root, "bin/fencepost.js"));
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return join(root, "bin/fencepost.js");
}

const MAIN = "export const main = async (argv) => { process.stdout.write(argv.join()); return 7; };";
const BUILD = `
import { mkdirSync, writeFileSync } from "node:fs";
console.log("noise of the compiler");
const dist = new URL("../dist/bundle/", import.meta.url);
mkdirSync(dist, { recursive: true });
writeFileSync(new URL("cli.js", dist), ${JSON.stringify(MAIN)});
`;

describe("the launcher bin/fencepost.js", () => {
  it("passes the arguments on and exits with the returned code", async () => {
    const script = fakePackage("plain", { "dist/bundle/cli.js": MAIN });
    expect(await run(script, ["a", "--b"])).toEqual({ code: 7, stdout: "a,--b", stderr: "" });
  });

  it("is not built again under running nodes by the first npx in a checkout", async () => {
    const built = statSync("dist/bundle/cli.js").mtimeMs;
    const byNpx = { npm_lifecycle_event: "prepare", npm_command: "exec" };
    expect(await run(resolve("scripts/build.mjs"), [], byNpx)).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(statSync("dist/bundle/cli.js").mtimeMs).toBe(built);
  });

  it("builds a checkout that was installed without scripts", async () => {
    const script = fakePackage("checkout", { "scripts/build.mjs": BUILD });
    const first = await run(script, ["start"]);
    expect(first).toMatchObject({ code: 7, stdout: "start" });
    expect(first.stderr).toContain("fencepost: dist/ is missing; building it once");
    expect(first.stderr).toContain("noise of the compiler");
    expect(await run(script, ["start"])).toEqual({ code: 7, stdout: "start", stderr: "" });
  });

  it("explains what to do if the build fails or is impossible", async () => {
    const broken = fakePackage("broken", { "scripts/build.mjs": "process.exit(1);" });
    expect(await run(broken, [])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("the build failed; run npm install"),
    });
    const hollow = fakePackage("hollow", {});
    expect(await run(hollow, [])).toEqual({
      code: 1,
      stdout: "",
      stderr: "fencepost: dist/ is missing from this package; install it again\n",
    });
  });

  it.each(["18.20.4", "20.18.3", "8.0.0"])("refuses Node %s as too old", async (old) => {
    const pretend = join(directory, `node-${old}.mjs`);
    writeFileSync(
      pretend,
      `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${old}" } });
       await import(${JSON.stringify(launcher)});`,
    );
    expect(await run(pretend, ["--version"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `fencepost: Node 20.19 or newer is needed, this is ${old}\n`,
    });
  });
});

describe("the launcher run as a program", () => {
  const printed = "JSON.stringify([process.execArgv, process.pid, argv])";
  const PRINT = `export const main = async (argv) => { process.stdout.write(${printed}); return 7; };`;
  let program = "";
  beforeAll(() => {
    program = fakePackage("a program", { "dist/bundle/cli.js": PRINT });
  });
  const OPTIONS = ["--max-semi-space-size=64", "--no-parallel-scavenge"];

  it("sets a larger young generation of the heap without a second process", async () => {
    const argv = ["--json", "start", "a b", "$HOME", "*", ""];
    const child = spawn(program, argv, { cwd: directory, env: cleanEnvironment() });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk;
    });
    const code = await new Promise((done) => child.on("close", done));
    expect({ code, printed: JSON.parse(stdout) }).toEqual({ code: 7, printed: [OPTIONS, child.pid, argv] });
  });

  it.each(["--max-semi-space-size=32", "--max_semi_space_size=32"])(
    "keeps the young generation size of NODE_OPTIONS=%s",
    async (options) => {
      const { stdout } = await runProgram(program, ["start"], { NODE_OPTIONS: options });
      expect(JSON.parse(stdout)[0]).toEqual([]);
      const others = await runProgram(program, ["start"], { NODE_OPTIONS: "--no-warnings" });
      expect(JSON.parse(others.stdout)[0]).toEqual(OPTIONS);
    },
  );

  it.each(["dev", "demo", "bench", "chaos"])(
    "sets the larger young generation for %s, which runs nodes",
    async (name) => {
      expect(JSON.parse((await runProgram(program, [name])).stdout)[0]).toEqual(OPTIONS);
    },
  );

  it.each(["--help", "tx", "started"])(
    "starts %s with Node's default heap, so that Node can use its code cache",
    async (name) => {
      expect(JSON.parse((await runProgram(program, [name])).stdout)[0]).toEqual([]);
    },
  );

  it("works through a symbolic link", async () => {
    symlinkSync(program, join(directory, "a link"));
    expect(await runProgram(join(directory, "a link"), ["--x"])).toMatchObject({ code: 7 });
    expect(await runProgram("./a link", ["--x"])).toMatchObject({ code: 7 });
  });

  it("adds nothing to the command's output", async () => {
    expect(await runProgram(launcher, ["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});

describe("the command line as a process", () => {
  it("prints its version", async () => {
    expect(await run(launcher, ["--version"])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  it("refuses an invalid configuration with exit code 2", async () => {
    const { code, stdout, stderr } = await run(launcher, ["start"], { FENCEPOST_LEASE_DURATION: "10" });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toHaveLength(5);
    expect(stderr).toContain('fencepost: FENCEPOST_LEASE_DURATION: "10" is not a duration (use 10s, 250ms, 5m)\n');
  });

  it("reads a TypeScript configuration file of the working directory", async () => {
    writeFileSync(
      join(directory, "fencepost.config.ts"),
      `import { defineConfig } from "fencepost/config";
       const host: string = "::1";
       export default defineConfig({ host });`,
    );
    const { code, stdout } = await run(launcher, ["config", "--json"]);
    rmSync(join(directory, "fencepost.config.ts"));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toContainEqual({
      key: "host",
      variable: "FENCEPOST_HOST",
      value: "::1",
      origin: "file",
    });
  });

  it("reports in one line that the database does not answer", async () => {
    const { code, stderr } = await run(launcher, ["migrate"], {
      FENCEPOST_DATABASE_URL: "postgres://u:pw@127.0.0.1:1/d",
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^fencepost: .*ECONNREFUSED.*\n$/);
  });

  it.each(["bin/fencepost.js", "src/main/signing-main.ts"])(
    // protects [Signers] bin/fencepost.js, src/main/signing-main.ts, src/main/node/serve-keys.ts
    "prevents SIGUSR1 from opening Node's inspector, before anything is loaded: %s",
    (path) => {
      const lines = readFileSync(path, "utf8").split("\n");
      const statements = lines.filter((line) => line !== "" && !/^(?:\/\/|#!|":")/.test(line));
      expect(statements[0]).toBe('process.on("SIGUSR1", () => undefined);');
      expect(statements.filter((line) => /^(?:import|export) .*from/.test(line))).toEqual([]);
    },
  );

  // protects [Signers] bin/fencepost.js, src/main/signing-main.ts, src/main/node/serve-keys.ts
  it("exits before reading a secret if an inspector is open", async () => {
    const early = join(directory, "early.cjs");
    writeFileSync(early, 'require("node:inspector").open(0);');
    const argv = ["--require", early, launcher, "config"];
    const child = spawn(process.execPath, argv, { cwd: directory, env: cleanEnvironment() });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk;
      });
    }
    const [, signal] = await once(child, "close");
    expect(signal).toBe("SIGKILL");
    expect(output).toContain("fencepost: a signal (SIGUSR1) opened an inspector on this process; start it again\n");
    expect(output).not.toContain("FENCEPOST_");
  });

  it("exits quietly if the reader of its output closes", async () => {
    const child = spawn(process.execPath, [launcher, "config"], { cwd: directory, env: cleanEnvironment() });
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk;
    });
    const code = await new Promise((done) => child.on("close", done));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});
