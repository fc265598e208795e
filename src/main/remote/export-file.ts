/** A file of exported rows with its position beside it, so that an export which was cut short goes on where it ended. */
import { constants } from "node:fs";
import { type FileHandle, open, readFile, rename, stat, writeFile } from "node:fs/promises";
import type { ExportFile } from "../../adapters/cli/terminal.ts";
import { misuse } from "./misuse.ts";

/** `openFile`: opens the file for writing. */
export async function openExport(path: string, openFile = open): Promise<ExportFile> {
  const beside = `${path}.position`;
  const position = await unlessMissing(readFile(beside, "utf8"));
  const size = (await unlessMissing(stat(path)))?.size ?? 0;
  if (position === null && size > 0) throw misuse(`${path} is no file of an earlier export: ${beside} is missing`);
  return {
    position,
    async append(rows, atByte) {
      const file = await openFile(path, constants.O_RDWR | constants.O_CREAT, 0o600);
      try {
        if ((await file.stat()).size < atByte) {
          throw misuse(`${path} is shorter than ${beside} says: name another file, with --after to continue`);
        }
        // Rows behind the position were written by an export that ended before it noted them.
        await file.truncate(atByte);
        await writeAll(file, rows, atByte);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    async mark(text) {
      const next = `${beside}.new`;
      await writeFile(next, text, { mode: 0o600, flush: true });
      await rename(next, beside);
    },
  };
}

/** A disk that is almost full takes only the first bytes of a write, without an error. */
async function writeAll(file: FileHandle, text: string, atByte: number) {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, atByte + written);
    written += bytesWritten;
  }
}

async function unlessMissing<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw misuse(`cannot be read: ${(error as Error).message}`);
  }
}
