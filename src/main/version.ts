import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
};

/** The package's own, wherever it runs from: src/ and dist/ lie at the same depth. */
export const version: string = manifest.version;

/** Of the packages that Fencepost works with and does not bring along: the versions that this one was tested with. */
export const testedVersions: Readonly<Record<string, string>> = manifest.peerDependencies;
