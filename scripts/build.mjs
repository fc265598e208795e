// Compiles src/ to dist/, copies what tsc does not (SQL migrations and the static files of the dashboard), and bundles the
// command line. The library is imported as it was compiled, except for the functions of viem, which are bundled too.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, bundleViem } from "./bundle.mjs";
import { documentTypes } from "./document-types.mjs";
import { thirdPartyLicences } from "./third-party.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");

// The first `npx fencepost` in a checkout makes npm prepare the checkout again: a minute in silence, in which dist/ would
// be replaced under running nodes.
const { npm_lifecycle_event: event, npm_command: command } = process.env;
if (event === "prepare" && command === "exec" && existsSync(join(root, "dist/bundle/cli.js"))) process.exit();

rmSync(join(root, "dist"), { recursive: true, force: true });
// Types are checked by `npm run check`; here that would take as long again.
execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json"), "--noCheck"], { stdio: "inherit" });
for (const assets of ["adapters/postgres/migrations", "adapters/dashboard/public"]) {
  cpSync(join(root, "src", assets), join(root, "dist", assets), { recursive: true });
}
await documentTypes(root);
const packages = await bundle(root);
await bundleViem(root);
writeFileSync(join(root, "dist/bundle/THIRD-PARTY-LICENSES"), thirdPartyLicences(packages));
