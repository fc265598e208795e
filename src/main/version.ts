import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** The package's own, wherever it runs from: src/ and dist/ lie at the same depth. */
export const version: string = manifest.version;
