import { cp, lstat } from "node:fs/promises";
import { join } from "node:path";
import { locateNative } from "../../src/main/dev/embedded/needed-packages.ts";

/**
 * Copies PostgreSQL from its npm package in the state after an installation without install scripts, that is, without
 * symbolic links.
 */
export async function copyNativeWithoutLinks(directory: string): Promise<string> {
  const native = join(directory, "native");
  await cp(locateNative(), native, {
    recursive: true,
    filter: async (path) => !path.endsWith(".a") && !(await lstat(path)).isSymbolicLink(),
  });
  return native;
}
