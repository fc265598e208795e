import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
};

/** Version of this package. The relative path to its manifest is the same from src/ and dist/. */
export const version: string = manifest.version;

/** Name of this program in its HTTP requests. */
export const userAgent = `fencepost/${version}`;

/** Tested versions of the optional packages. */
export const testedVersions: Readonly<Record<string, string>> = manifest.peerDependencies;
