// `npm run build:client` writes `dist-client/`: the package `fencepost-client`, which is src/client as one file for each of ES
// modules and CommonJS, with types for both, and no dependencies. Its manifest takes over what the two packages share.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { contractSchemas, documented } from "../document-types.mjs";
import { thirdPartyLicences } from "../third-party.mjs";
import { clientTypes, copiedPackage } from "./types.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const target = join(root, "dist-client");
const SHARED = ["version", "license", "author", "repository", "bugs", "homepage", "engines", "publishConfig"];
const TYPES = "types/client/index.d.ts";

function write(path, text) {
  mkdirSync(dirname(join(target, path)), { recursive: true });
  writeFileSync(join(target, path), text);
}

rmSync(target, { recursive: true, force: true });
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
write(
  "package.json",
  `${JSON.stringify(
    {
      name: "fencepost-client",
      description: "Client of Fencepost's HTTP API for Node, browsers and workers, without dependencies.",
      ...Object.fromEntries(SHARED.flatMap((key) => (manifest[key] === undefined ? [] : [[key, manifest[key]]]))),
      type: "module",
      sideEffects: false,
      main: "./cjs/index.js",
      module: "./esm/index.js",
      types: `./cjs/${TYPES}`,
      exports: {
        ".": {
          import: { types: `./esm/${TYPES}`, default: "./esm/index.js" },
          require: { types: `./cjs/${TYPES}`, default: "./cjs/index.js" },
        },
        "./package.json": "./package.json",
      },
      files: ["cjs", "esm", "THIRD-PARTY-LICENSES"],
    },
    null,
    2,
  )}\n`,
);
write("README.md", readFileSync(join(root, "scripts/client/README.md"), "utf8"));
write("LICENSE", readFileSync(join(root, "LICENSE"), "utf8"));
write("THIRD-PARTY-LICENSES", thirdPartyLicences([copiedPackage]));

const input = join(root, "src/client/index.ts");
const bundle = await rolldown({ cwd: root, input, platform: "browser", logLevel: "warn" });
for (const format of ["esm", "cjs"]) {
  await bundle.write({ file: join(target, format, "index.js"), format, minify: false });
}
await bundle.close();
write("cjs/package.json", `${JSON.stringify({ type: "commonjs" })}\n`);
const schemas = await contractSchemas(root);
for (const [path, text] of clientTypes(join(root, "dist"))) {
  const shown = documented(text, (name) => schemas.get(name) ?? null);
  for (const format of ["esm", "cjs"]) write(join(format, "types", path), shown);
}
