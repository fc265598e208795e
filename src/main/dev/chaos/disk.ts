/** A small file system that belongs to the campaign's database. */
import { open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";

/** A larger file system would take minutes to fill, and may be somebody else's. */
const MOST_BYTES = 4 * 2 ** 30;
const PIECE = Buffer.alloc(2 ** 20);

export interface Disk {
  /** Fills every byte that is free. */
  fill(): Promise<void>;
  empty(): Promise<void>;
}

export async function openDisk(directory: string): Promise<Disk> {
  const { blocks, bsize } = await statfs(directory);
  if (blocks * bsize > MOST_BYTES)
    throw new Error(`${directory} is on a file system of more than 4 GiB; the campaign fills it, so mount a small one`);
  const file = join(directory, "filler");
  return {
    fill: async () => {
      const handle = await open(file, "w");
      try {
        for (let piece = PIECE; piece.length > 0; ) {
          try {
            await handle.write(piece);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
            piece = piece.subarray(0, piece.length >> 1);
          }
        }
      } finally {
        await handle.close();
      }
    },
    empty: () => rm(file, { force: true }),
  };
}
