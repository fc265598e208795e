/** The package in the form that its users install. */
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Packs the file that npm would publish into this directory: of `fencepost`, or of `fencepost-client`. */
export function pack(directory: string, from: "." | "./dist-client" = "."): string {
  const options = ["--ignore-scripts", "--silent", "--pack-destination", directory];
  const name = execFileSync("npm", ["pack", from, ...options], { cwd: root, encoding: "utf8" }).trim();
  return join(directory, name);
}

/** Installs from the registry or its cache, without install scripts, which npm 12 and pnpm do not run either. */
export function npmInstall(directory: string, packages: readonly string[] = []): void {
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  execFileSync("npm", ["install", ...options, ...packages], { cwd: directory, stdio: "pipe" });
}

/** Links this checkout's last build as if it were installed in the directory, which is faster than installing. */
export function linkPackages(directory: string, packages: readonly string[]): void {
  const modules = join(directory, "node_modules");
  for (const name of ["fencepost", ...packages]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(name === "fencepost" ? root : join(root, "node_modules", name), join(modules, name));
  }
}
