import { randomBytes } from "node:crypto";
import { readdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../../domain/text/thrown.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { findProcess } from "./processes.ts";

const PREFIX = "supervisor.";
const RELEASED = "released";

/**
 * Allows one Fencepost per directory, with fencing like a lane's lease. `supervisor.<n>` is a symbolic link whose
 * target names the holder (`<pid>:<identity>`). Creating it is atomic, content included, and succeeds for one process
 * per number. The highest number is the holder. A dead holder is never removed, only superseded, so a slow claimant
 * that saw an older term cannot delete a newer one.
 */
export async function lockDirectory(directory: string) {
  const identity = (await findProcess(process.pid))?.identity ?? "unknown";
  for (;;) {
    const last = await highestTerm(directory);
    if (last > 0) await assertGone(directory, last);
    const term = last + 1;
    if (!(await claim(directory, term, `${process.pid}:${identity}`))) continue;
    if ((await highestTerm(directory)) > term) {
      await rm(pathOf(directory, term), { force: true });
      continue;
    }
    for (const each of await terms(directory)) if (each < term) await rm(pathOf(directory, each), { force: true });
    return { release: () => release(directory, term) };
  }
}

async function claim(directory: string, term: number, holder: string): Promise<boolean> {
  try {
    await symlink(holder, pathOf(directory, term));
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function assertGone(directory: string, term: number): Promise<void> {
  const holder = await readlink(pathOf(directory, term)).catch(() => RELEASED);
  if (holder === RELEASED) return;
  const pid = Number.parseInt(holder, 10);
  const live = await findProcess(pid);
  if (live !== null && holder === `${pid}:${live.identity}`) {
    throw new EmbeddedError("ALREADY_RUNNING", `another Fencepost is already running on this directory (pid ${pid})`);
  }
}

/** The term's file stays, so that its number is never reused; only its holder is cleared. */
async function release(directory: string, term: number): Promise<void> {
  const draft = join(directory, `.${PREFIX}${randomBytes(6).toString("hex")}`);
  try {
    await symlink(RELEASED, draft);
    await rename(draft, pathOf(directory, term));
  } catch (error) {
    // The directory may have been deleted: then there is nothing to release.
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

async function highestTerm(directory: string): Promise<number> {
  return Math.max(0, ...(await terms(directory)));
}

async function terms(directory: string): Promise<number[]> {
  const names = await readdir(directory);
  return names.filter((name) => /^supervisor\.\d+$/.test(name)).map((name) => Number(name.slice(PREFIX.length)));
}

function pathOf(directory: string, term: number): string {
  return join(directory, `${PREFIX}${term}`);
}
