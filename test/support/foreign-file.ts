import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * A world-readable file that belongs to another user. Only root can change a file's owner, so tests under another
 * account get a file that belongs to root.
 */
export async function foreignFile(folder: string): Promise<string> {
  if (process.getuid?.() !== 0) return "/etc/passwd";
  const path = join(folder, "foreign");
  await writeFile(path, "content", { mode: 0o644 });
  await chown(path, 12_345, 12_345);
  return path;
}
