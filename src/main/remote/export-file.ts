/**
 * A file of exported rows with its position beside it, so that an export that was cut short continues where it ended.
 *
 * Two exports to one file at a time would mix their rows, so an export holds the file `<path>.lock` with the id of its
 * process. A lock that a crashed process of this machine left behind is taken over.
 */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { ExportFile } from "../../adapters/cli/terminal.ts";
import { misuse } from "./misuse.ts";

/** `openFile`: opens the file for writing. */
export async function openExport(path: string, openFile = open): Promise<ExportFile> {
  const beside = `${path}.position`;
  const found = await unlessMissing(path, lstat(path));
  if (found?.isSymbolicLink()) throw misuse(`${path} is a symbolic link: name the file itself`);
  if (found !== null && !found.isFile()) throw misuse(`${path} is not a regular file: leave --to out and redirect`);
  const lock = await takeLock(path);
  try {
    const position = await unlessMissing(beside, readFile(beside, "utf8"));
    const size = (await unlessMissing(path, lstat(path)))?.size ?? 0;
    if (position === null && size > 0) throw misuse(`${path} is no file of an earlier export: ${beside} is missing`);
    return {
      position,
      append: (rows, atByte) => lock.during(path, () => append(path, rows, { atByte, openFile })),
      mark: (text) => lock.during(beside, () => replace(beside, text)),
      close: lock.release,
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function append(
  path: string,
  rows: string,
  { atByte, openFile }: { readonly atByte: number; readonly openFile: typeof open },
) {
  const file = await openFile(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    if ((await file.stat()).size < atByte)
      throw misuse(`${path} is shorter than ${path}.position says: name another file, with --after to continue`);
    // Rows behind the position were written by an export that ended before it noted them.
    await file.truncate(atByte);
    await writeAll(file, rows, atByte);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function replace(path: string, text: string) {
  const next = `${path}.new`;
  await writeFile(next, text, { mode: 0o600, flush: true });
  await rename(next, path);
}

interface Holder {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly since: string;
}

/** Ids of the locks that this process holds. */
const held = new Set<string>();

async function takeLock(path: string) {
  const lock = `${path}.lock`;
  const own: Holder = { id: randomUUID(), host: hostname(), pid: process.pid, since: new Date().toISOString() };
  const text = `${JSON.stringify(own)}\n`;
  if (!(await createdNew(lock, text))) {
    const holder = holderOf(await unlessMissing(lock, readFile(lock, "utf8")));
    if (holder === null || isRunning(holder)) throw misuse(heldBy(path, holder));
    // Only one of several exports can move the old lock away, and only one can create the new one.
    await unlessMissing(lock, rename(lock, `${lock}.${own.id}`));
    await rm(`${lock}.${own.id}`, { force: true });
    if (!(await createdNew(lock, text))) throw misuse(heldBy(path, null));
  }
  held.add(own.id);
  return {
    /** Writes a file under the lock. A failed write counts for nothing: the position is replaced after the rows. */
    async during(written: string, write: () => Promise<void>) {
      const holder = holderOf(await unlessMissing(lock, readFile(lock, "utf8")));
      if (holder?.id !== own.id) throw misuse(heldBy(path, holder));
      await write().catch((error: NodeJS.ErrnoException) => {
        if (error.code === undefined || error.syscall === undefined) throw error;
        throw misuse(`${written} cannot be written: ${error.message}; run the command again to continue`);
      });
    },
    async release() {
      held.delete(own.id);
      const holder = holderOf(await unlessMissing(lock, readFile(lock, "utf8")));
      if (holder?.id === own.id) await rm(lock, { force: true });
    },
  };
}

function heldBy(path: string, holder: Holder | null) {
  const by = holder === null ? "" : ` (process ${holder.pid} on ${holder.host}, since ${holder.since})`;
  return `another export writes to ${path}${by}: wait for it to end, or remove ${path}.lock if none is running`;
}

/** Creates a file with this text; false if it exists. */
async function createdNew(path: string, text: string) {
  try {
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw misuse(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** Reads a lock; null if it cannot be read, as while its process is still writing it. */
function holderOf(text: string | null): Holder | null {
  try {
    const { id, host, pid, since } = JSON.parse(text ?? "");
    return Number.isSafeInteger(pid) && pid > 0 ? { id, host, pid, since } : null;
  } catch {
    return null;
  }
}

/** Processes of another machine count as running. So does a process of another user, which may not be signalled. */
function isRunning({ id, host, pid }: Holder) {
  if (host !== hostname()) return true;
  // The earlier process of a restarted container often had the same id as this one.
  if (pid === process.pid) return held.has(id);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A disk that is almost full takes only the first bytes of a write, without an error. */
async function writeAll(file: FileHandle, text: string, atByte: number) {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, atByte + written);
    written += bytesWritten;
  }
}

async function unlessMissing<T>(path: string, reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw misuse(`${path} cannot be read: ${(error as Error).message}`);
  }
}
