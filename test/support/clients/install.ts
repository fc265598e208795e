import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const BUFFER = { maxBuffer: 64 * 1024 * 1024 };

/**
 * The directory in which clients are installed. It is kept between runs, because the clients are large; they are not
 * part of this package.
 */
const DIRECTORY = join(tmpdir(), "fencepost-clients");
const WEB3_JS = "web3@4.16.0";
const WEB3_PY = "web3==7.14.0";
const CAST = "1.7.1";
const DENO = "2.9.5";
const BUN = "1.4.4";

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export function program(file: string, argv: readonly string[]): Promise<Output> {
  return run(file, [...argv], BUFFER);
}

/** Installs a client. Returns null, with a message on standard error, if it is not available. */
export async function installed(name: string, install: () => Promise<string>): Promise<string | null> {
  try {
    return await install();
  } catch (error) {
    process.stderr.write(`\nNOT TRIED: ${name} could not be installed here: ${String(error).slice(0, 500)}\n\n`);
    return null;
  }
}

/** The directory in which web3.js is installed. */
export async function web3js(): Promise<string> {
  const directory = await directoryOf("web3js");
  if (!existsSync(join(directory, "node_modules/web3"))) await npm(directory, WEB3_JS);
  return directory;
}

/** Path of a Python interpreter that has web3.py. */
export async function web3py(): Promise<string> {
  const directory = await directoryOf("web3py");
  const python = join(directory, "bin/python");
  if (!existsSync(python)) await run("python3", ["-m", "venv", directory], BUFFER);
  const known = await run(python, ["-c", "import web3"], BUFFER).then(
    () => true,
    () => false,
  );
  if (!known) await run(python, ["-m", "pip", "install", "--quiet", WEB3_PY], BUFFER);
  return python;
}

export async function cast(): Promise<string> {
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  return binaryOf("cast", `@foundry-rs/cast-${process.platform}-${arch}`, "bin/cast", CAST);
}

export async function deno(): Promise<string> {
  const arch = process.arch === "x64" ? "x64" : "arm64";
  const name = process.platform === "darwin" ? `@deno/darwin-${arch}` : `@deno/linux-${arch}-glibc`;
  return binaryOf("deno", name, "deno", DENO);
}

export async function bun(): Promise<string> {
  const arch = process.arch === "x64" ? "x64" : "aarch64";
  return binaryOf("bun", `@oven/bun-${process.platform}-${arch}`, "bin/bun", BUN);
}

/** Installs the binary from the platform-specific package, because the general package would need an install script. */
async function binaryOf(tool: string, name: string, path: string, version: string): Promise<string> {
  const directory = await directoryOf(tool);
  const binary = join(directory, "node_modules", name, path);
  if (!existsSync(binary)) await npm(directory, `${name}@${version}`);
  return binary;
}

async function directoryOf(name: string): Promise<string> {
  const directory = join(DIRECTORY, name);
  await mkdir(directory, { recursive: true });
  if (!existsSync(join(directory, "package.json")))
    await writeFile(join(directory, "package.json"), '{"private":true}');
  return directory;
}

async function npm(directory: string, name: string): Promise<void> {
  await run("npm", ["install", "--no-audit", "--no-fund", "--prefix", directory, name], BUFFER);
}
