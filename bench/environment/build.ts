import { execFile } from "node:child_process";
import { readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

export interface Build {
  readonly launcher: string;
  remove(): Promise<void>;
}

/** Builds another commit in a worktree below `directory`. The installed packages are shared if both commits lock the same ones. */
export async function buildOf(ref: string, directory: string): Promise<Build> {
  const tree = join(directory, "against");
  await run("git", ["worktree", "add", "--detach", tree, ref], { cwd: ROOT });
  const lock = "package-lock.json";
  const [here, there] = await Promise.all([readFile(join(ROOT, lock), "utf8"), readFile(join(tree, lock), "utf8")]);
  if (here === there) await symlink(join(ROOT, "node_modules"), join(tree, "node_modules"));
  else await run("npm", ["ci"], { cwd: tree });
  await run("npm", ["run", "build"], { cwd: tree });
  return {
    launcher: join(tree, "bin/fencepost.js"),
    remove: async () => {
      await rm(tree, { recursive: true, force: true });
      await run("git", ["worktree", "prune"], { cwd: ROOT });
    },
  };
}
