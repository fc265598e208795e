import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, lstat, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { codeOf, messageOf } from "../../../../domain/text/thrown.ts";
import { EmbeddedError } from "../embedded-error.ts";
import { run } from "../processes.ts";
import type { Place } from "./place.ts";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Version of the PostgreSQL server, such as "18.4". */
  readonly version: string;
  readonly major: number;
}

const INSTEAD = "or set FENCEPOST_DATABASE_URL to a PostgreSQL of your own";

/**
 * Finds PostgreSQL binaries that the server's account can run, and checks them by running them. Normally these are in
 * the npm package. A copy in the server's directory is used if that account cannot read the package (a checkout in
 * /root), or if the package is read-only and lacks its library links.
 */
export async function prepareBinaries(native: string, place: Place): Promise<Binaries> {
  const first = await tryOut(native, place);
  if ("version" in first) return first;
  const copy = await copyNative(native, place);
  const second = await tryOut(copy, place);
  if ("version" in second) return second;
  const message = `the PostgreSQL in ${native} does not run here (${second.problem}): reinstall it, ${INSTEAD}`;
  throw new EmbeddedError("START_FAILED", message);
}

async function tryOut(native: string, place: Place): Promise<Binaries | { readonly problem: string }> {
  const problem = await makeLibraryLinks(native).catch(messageOf);
  if (problem !== undefined) return { problem };
  const postgres = join(native, "bin", "postgres");
  const answer = await run(postgres, ["--version"], place.account);
  const version = /\(PostgreSQL\) (\d+\S*)/.exec(answer.stdout)?.[1];
  if (version === undefined) return { problem: answer.stderr.trim().split("\n")[0] || `exit code ${answer.code}` };
  return { initdb: join(native, "bin", "initdb"), postgres, version, major: Number.parseInt(version, 10) };
}

/**
 * Copies the binaries to a temporary name and renames the copy when it is complete, so an existing copy is always
 * complete.
 */
async function copyNative(native: string, place: Place) {
  const copy = join(place.home, "postgres-native");
  if (await isCopyOf(native, copy)) return copy;
  const draft = `${copy}.${randomBytes(4).toString("hex")}`;
  try {
    await cp(native, draft, {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
      // Skip static libraries, which are for compiling only.
      filter: (path) => !path.endsWith(".a"),
    });
    await makeReadable(draft);
    await rm(copy, { recursive: true, force: true });
    await rename(draft, copy);
    return copy;
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    const message = `cannot copy PostgreSQL into ${place.home}: ${messageOf(error)}`;
    throw new EmbeddedError("DIRECTORY_UNUSABLE", message, { cause: error });
  }
}

/** True if the copy is current, by size and time of the server binary. Copying rounds the time. */
async function isCopyOf(native: string, copy: string) {
  const [theirs, ours] = await Promise.all(
    [native, copy].map((root) => stat(join(root, "bin", "postgres")).catch(() => null)),
  );
  if (!theirs || !ours) return false;
  return theirs.size === ours.size && Math.abs(theirs.mtimeMs - ours.mtimeMs) < 1000;
}

async function makeReadable(root: string) {
  await chmod(root, 0o755);
  for (const entry of await readdir(root, { recursive: true })) {
    const path = join(root, entry);
    const found = await lstat(path);
    if (found.isSymbolicLink()) continue;
    await chmod(path, found.isDirectory() || (found.mode & 0o100) !== 0 ? 0o755 : 0o644);
  }
}

/**
 * Creates the symbolic links of PostgreSQL's libraries. npm packages cannot contain such links, so the package lists
 * them in `pg-symlinks.json` and creates them in an install script, which npm 12 and pnpm do not run. This function may
 * run repeatedly, and in two processes at once.
 */
export async function makeLibraryLinks(native: string): Promise<void> {
  for (const entry of await readEntries(native)) {
    // Paths in the list start at the package's root; a copy of the `native` directory may have another name.
    const [source = "", target = ""] = entry.map((path) => join(native, path.replace(/^native\//, "")));
    if (!existsSync(target)) await link(relative(dirname(target), source), target);
  }
  for (const name of ["initdb", "postgres"]) await makeExecutable(join(native, "bin", name));
}

async function readEntries(native: string): Promise<readonly (readonly string[])[]> {
  try {
    const entries = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")) as unknown[];
    const pairs = entries.map((entry): unknown[] => [Object(entry).source, Object(entry).target]);
    return pairs.filter((pair): pair is string[] => pair.every((path) => typeof path === "string"));
  } catch (error) {
    // A PostgreSQL that is not from npm has its library links already.
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/**
 * Creates the link under a temporary name and renames it. This also replaces a broken link, and is safe if a second
 * process does the same.
 */
async function link(source: string, target: string) {
  const draft = `${target}.${randomBytes(4).toString("hex")}`;
  await symlink(source, draft);
  await rename(draft, target);
}

async function makeExecutable(path: string) {
  const { mode } = await stat(path);
  if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
}
