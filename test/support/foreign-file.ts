import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A world-readable file of another user. Only root can change a file's owner; other users get a file of root's. */
export async function foreignFile(folder: string): Promise<string> {
  if (process.getuid?.() !== 0) return "/etc/passwd";
  const path = join(folder, "foreign");
  await writeFile(path, "content", { mode: 0o644 });
  await chown(path, 12_345, 12_345);
  return path;
}
