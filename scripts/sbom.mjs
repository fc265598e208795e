// `npm run sbom` prints a CycloneDX document of what a user of Fencepost runs: the packages that npm installs with it, and those
// whose code `npm run build` has put into dist/.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { packagesOf } from "./licences.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Keeps the components of a CycloneDX document whose `name@version` is listed, and what is said about their dependencies.
 *
 * @param {{ components: readonly object[], dependencies: readonly object[] }} document
 * @param {ReadonlySet<string>} kept
 */
export function narrowed(document, kept) {
  const components = document.components.filter(({ name, version }) => kept.has(`${name}@${version}`));
  const refs = new Set([document.metadata.component["bom-ref"], ...components.map((each) => each["bom-ref"])]);
  const dependencies = document.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map((each) => ({ ...each, dependsOn: each.dependsOn.filter((ref) => refs.has(ref)) }));
  return { ...document, components, dependencies };
}

function main() {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const kept = new Set(packagesOf(lock).map(({ name, version }) => `${name}@${version}`));
  const text = execFileSync("npm", ["sbom", "--sbom-format=cyclonedx"], {
    ...{ cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 },
  });
  stdout.write(`${JSON.stringify(narrowed(JSON.parse(text), kept), null, 2)}\n`);
}

if (argv[1] === fileURLToPath(import.meta.url)) main();
