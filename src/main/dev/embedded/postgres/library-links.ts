import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, readFile, rename, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { systemCode } from "../embedded-error.ts";

interface LinkEntry {
  readonly source: string;
  readonly target: string;
}

/**
 * npm packages cannot carry symbolic links, so the package lists its library links in `pg-symlinks.json` and makes them
 * in an install script. Install scripts are off in npm 12 and pnpm: we make them ourselves. Safe to repeat, and for two
 * processes at once.
 */
export async function makeLibraryLinks(native: string): Promise<void> {
  for (const entry of await readEntries(native)) {
    const target = join(native, withinNative(entry.target));
    const source = join(native, withinNative(entry.source));
    if (!existsSync(target)) await link(relative(dirname(target), source), target);
  }
  for (const name of ["initdb", "postgres"]) await makeExecutable(join(native, "bin", name));
}

/** Paths in the list count from the package's root; a copy of `native` may bear another name. */
function withinNative(path: string): string {
  return path.replace(/^native\//, "");
}

async function readEntries(native: string): Promise<LinkEntry[]> {
  try {
    return (JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")) as unknown[]).filter(isLinkEntry);
  } catch (error) {
    // A server that was not installed from npm has its libraries in place.
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}

function isLinkEntry(value: unknown): value is LinkEntry {
  return (
    typeof value === "object" &&
    value !== null &&
    "source" in value &&
    typeof value.source === "string" &&
    "target" in value &&
    typeof value.target === "string"
  );
}

/** Drawn aside and renamed into place: that also mends a link that leads nowhere, and cannot lose to a second process. */
async function link(source: string, target: string): Promise<void> {
  const draft = `${target}.${randomBytes(4).toString("hex")}`;
  await symlink(source, draft);
  await rename(draft, target);
}

async function makeExecutable(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
}
