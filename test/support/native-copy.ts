import { cp, lstat } from "node:fs/promises";
import { join } from "node:path";
import { locateNative } from "../../src/main/dev/embedded/needed-packages.ts";

/** The npm package's server as installed without install scripts: without any symbolic link. */
export async function copyNativeWithoutLinks(directory: string): Promise<string> {
  const native = join(directory, "native");
  await cp(locateNative(), native, {
    recursive: true,
    filter: async (path) => !path.endsWith(".a") && !(await lstat(path)).isSymbolicLink(),
  });
  return native;
}
