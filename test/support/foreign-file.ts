import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A file that all can read and that is not this user's. Only root can give one away; anybody else has root's around. */
export async function foreignFile(folder: string): Promise<string> {
  if (process.getuid?.() !== 0) return "/etc/passwd";
  const path = join(folder, "foreign");
  await writeFile(path, "content", { mode: 0o644 });
  await chown(path, 12_345, 12_345);
  return path;
}
