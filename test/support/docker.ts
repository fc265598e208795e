/** Uses images and containers of a real Docker daemon, or gives the reason why that is impossible. */
import { execFile } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ROOT, readText } from "../architecture/tree.ts";

const execute = promisify(execFile);
const ROOMY = { maxBuffer: 64 * 1024 * 1024 };

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs docker and returns its output; on failure rejects with all output. */
export async function docker(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tryDocker(...argv);
  if (code !== 0) throw new Error(`docker ${argv.join(" ")}: exit code ${code}\n${stdout}\n${stderr}`);
  return stdout.trim();
}

export async function tryDocker(...argv: readonly string[]): Promise<Ran> {
  return execute("docker", argv, ROOMY).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout = "", stderr = "", message }: Partial<Ran> & { message: string }) => ({
      code: typeof code === "number" ? code : -1,
      stdout,
      stderr: stderr || message,
    }),
  );
}

/** The two base images of deploy/Dockerfile: that of the build stage and that of the last stage. */
export function baseImages(): readonly [string, string] {
  const dockerfile = readText("deploy/Dockerfile");
  const major = /^ARG NODE_MAJOR=(\d+)$/m.exec(dockerfile)?.[1] ?? "";
  const [build = "", run = ""] = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, name = ""]) =>
    name.replace(/\$\{NODE_MAJOR\}/, major),
  );
  return [build, run];
}

/** The reason why these images cannot be used on this machine; null if they are present or were pulled. */
export async function missingFor(images: readonly string[]): Promise<string | null> {
  const { code, stderr } = await tryDocker("version", "--format", "{{.Server.Version}}");
  if (code !== 0) return `no Docker daemon answers (${stderr.trim().split("\n")[0]})`;
  for (const image of images) {
    const isThere = (await tryDocker("image", "inspect", image)).code === 0;
    if (!isThere && (await tryDocker("pull", "--quiet", image)).code !== 0) return `${image} cannot be had`;
  }
  return null;
}

/** Copies the files that git tracks, in their present state, so that a build that needs any other file fails. */
export async function copyTrackedFiles(target: string): Promise<void> {
  const { stdout } = await execute("git", ["ls-files", "-z"], { cwd: ROOT, ...ROOMY });
  for (const path of stdout.split("\0").filter((name) => name !== "")) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await cp(join(ROOT, path), join(target, path));
  }
}
