import { randomBytes } from "node:crypto";
import { readdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../../domain/text/thrown.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { findProcess } from "./processes.ts";

const PREFIX = "supervisor.";
const RELEASED = "released";

/**
 * Allows one Fencepost process per directory, with fencing like a lane's lease. `supervisor.<n>` is a symbolic link
 * whose target names the holder (`<pid>:<identity>`). Creating the link is atomic, content included, and succeeds for
 * one process per number. The link with the highest number names the holder. A dead holder's link is never removed: the
 * next holder creates a link with a higher number. So a slow process that saw an old link cannot delete a newer one.
 */
export async function lockDirectory(directory: string) {
  const identity = (await findProcess(process.pid))?.identity ?? "unknown";
  const pathOf = (term: number) => join(directory, `${PREFIX}${term}`);
  for (;;) {
    const last = Math.max(0, ...(await terms(directory)));
    if (last > 0) await assertGone(pathOf(last));
    const term = last + 1;
    if (!(await claim(pathOf(term), `${process.pid}:${identity}`))) continue;
    const others = await terms(directory);
    if (others.some((each) => each > term)) {
      await rm(pathOf(term), { force: true });
      continue;
    }
    for (const each of others) if (each < term) await rm(pathOf(each), { force: true });
    return { release: () => release(directory, pathOf(term)) };
  }
}

async function claim(path: string, holder: string) {
  try {
    await symlink(holder, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function assertGone(path: string) {
  const holder = await readlink(path).catch(() => RELEASED);
  if (holder === RELEASED) return;
  const pid = Number.parseInt(holder, 10);
  const live = await findProcess(pid);
  if (live !== null && holder === `${pid}:${live.identity}`) {
    throw new EmbeddedError("ALREADY_RUNNING", `another Fencepost is already running on this directory (pid ${pid})`);
  }
}

/** Releases the lock. The link stays, so that its number is never reused; only the name of its holder is cleared. */
async function release(directory: string, path: string) {
  const draft = join(directory, `.${PREFIX}${randomBytes(6).toString("hex")}`);
  try {
    await symlink(RELEASED, draft);
    await rename(draft, path);
  } catch (error) {
    // The directory may have been deleted: then there is nothing to release.
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

async function terms(directory: string) {
  const names = await readdir(directory);
  return names.filter((name) => /^supervisor\.\d+$/.test(name)).map((name) => Number(name.slice(PREFIX.length)));
}
