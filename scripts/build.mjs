// Compiles src/ to dist/, copies what tsc does not (SQL migrations and the static files of the dashboard), and bundles the
// command line. The library is imported as it was compiled, except for the functions of viem, which are bundled too.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, bundleViem } from "./bundle.mjs";
import { documentTypes } from "./document-types.mjs";
import { thirdPartyLicences } from "./third-party.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");

rmSync(join(root, "dist"), { recursive: true, force: true });
execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json")], { stdio: "inherit" });
for (const assets of ["adapters/postgres/migrations", "adapters/dashboard/public"]) {
  cpSync(join(root, "src", assets), join(root, "dist", assets), { recursive: true });
}
await documentTypes(root);
const packages = await bundle(root);
await bundleViem(root);
writeFileSync(join(root, "dist/bundle/THIRD-PARTY-LICENSES"), thirdPartyLicences(packages));

// In a checkout, `npx fencepost` runs this link. Without it npm installs the checkout into its cache first, which takes
// a minute and replaces dist/ under running nodes. Windows needs more than a link, and goes that way.
if (process.platform !== "win32") {
  const command = join(root, "node_modules/.bin/fencepost");
  mkdirSync(dirname(command), { recursive: true });
  rmSync(command, { force: true });
  symlinkSync("../../bin/fencepost.js", command);
}
