import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { locateNative } from "../../src/main/dev/embedded/needed-packages.ts";
import { prepareBinaries } from "../../src/main/dev/embedded/postgres/binaries.ts";
import { openCluster } from "../../src/main/dev/embedded/postgres/cluster.ts";
import { choosePlace } from "../../src/main/dev/embedded/postgres/place.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

const silent = (): void => undefined;

let made: Promise<string> | null = null;

/**
 * Copies the result of `initdb` into a directory in which a server will start. `initdb` runs once per process; a copy
 * takes a tenth of its CPU time. Not for tests of how a database is created.
 */
export async function seedCluster(directory: string): Promise<void> {
  made ??= makeCluster();
  const { home } = await choosePlace(directory, silent);
  await promisify(execFile)("cp", ["-a", await made, join(home, "postgres")]);
}

async function makeCluster(): Promise<string> {
  const directory = await makeTemporaryDirectory();
  const place = await choosePlace(directory.path, silent);
  process.on("exit", () => {
    for (const path of [directory.path, place.home]) rmSync(path, { recursive: true, force: true });
  });
  await openCluster({ place, binaries: await prepareBinaries(locateNative(), place), log: silent });
  return join(place.home, "postgres");
}
