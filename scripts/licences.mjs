// `npm run licences` writes docs/licences.md: what a program that depends on Fencepost installs, and under which licence. A test
// compares the page with the lock file.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const OPENING = `# Licences

This page is for licence reviews: every package that is installed with Fencepost, written by \`npm run licences\` from
\`package-lock.json\`, without optional peers and development packages. \`dist/bundle/THIRD-PARTY-LICENSES\` has the texts
of the packages that the command line bundles.

| package | version | licence |
| --- | --- | --- |
`;

/** `name version`, with the licence and whether it would run a script when it is installed; sorted. */
export function installedWith(lock) {
  const found = new Map();
  const walk = (from, wanted) => {
    for (const name of Object.keys(wanted)) {
      const place = placeOf(lock, from, name);
      if (place === null || found.has(place)) continue;
      const { version, license, hasInstallScript = false, dependencies = {}, optionalDependencies = {} } = lock[place];
      found.set(place, { name, version, license: license ?? "none", hasInstallScript });
      walk(place, { ...dependencies, ...optionalDependencies });
    }
  };
  walk("", lock[""].dependencies);
  return [...found.values()].sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

/** As Node looks for it: beside, and then further up. */
function placeOf(lock, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const place = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (lock[place] !== undefined) return place;
    if (folder === "") return null;
  }
}

export function licencesPage(lock) {
  const rows = installedWith(lock).map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`);
  return `${OPENING}${[...new Set(rows)].join("\n")}\n`;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  writeFileSync(join(root, "docs/licences.md"), licencesPage(packages));
}
