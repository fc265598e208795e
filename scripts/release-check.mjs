// `npm run release:check`: everything that must pass before a version is tagged, one after the other. `--list` prints the steps,
// `--only NAME,NAME` runs some of them. A step that fails does not stop the others; the summary names it.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv, exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Suites that are part of `npm test`, or of another suite. */
const CONTAINED = ["test:unit"];

/**
 * The steps, each a name and a command. Every script `test:…` of package.json is one, so that none is forgotten.
 *
 * @param {{ scripts: Readonly<Record<string, string>> }} manifest
 * @returns {readonly (readonly [name: string, command: string])[]}
 */
export function stepsOf({ scripts }) {
  const suites = Object.keys(scripts).filter((name) => name.startsWith("test:") && !CONTAINED.includes(name));
  return [
    ["addresses", "node scripts/release-check.mjs --addresses"],
    ["changelog", "node scripts/release-check.mjs --changelog"],
    ["programs", "node scripts/release-check.mjs --programs"],
    ["test", "npm test"],
    ...suites.map((name) => [name, `npm run ${name}`]),
    ["model", "npm run model"],
    ["mutants", "npm run mutants"],
    ["stryker", "npm run stryker"],
    ["sim", "npm run sim -- --minutes 60 --first 1000001"],
    ["chaos", "node bin/fencepost.js chaos --minutes 30 --rate 10 --pooler /usr/sbin/pgbouncer"],
    ["publish", "npm publish --dry-run --ignore-scripts"],
    ["publish:client", "npm run build:client && npm publish ./dist-client --dry-run --ignore-scripts"],
  ];
}

/**
 * What the owner still has to write into package.json: the one place for it, from which both packages take it.
 *
 * @param {Readonly<Record<string, unknown>>} manifest
 * @returns {string | null}
 */
export function missingAddresses(manifest) {
  const missing = ["repository", "bugs", "homepage"].filter((name) => {
    const value = manifest[name];
    return !/^(?:git\+)?https:\/\/[^/\s]+\.[^/\s]+/.test(String(value?.url ?? value ?? ""));
  });
  if (missing.length === 0) return null;
  return `package.json has no ${missing.join(", ")}: write the addresses of your repository there (docs/releasing.md)`;
}

/**
 * Why the changelog cannot be released: no section of the version, or one that is too long to be read.
 *
 * @param {string} changelog
 * @param {string} version
 * @returns {string | null}
 */
export function changelogTrouble(changelog, version) {
  const section = changelog.split(/^## /m).find((text) => text.startsWith(`[${version}]`));
  if (section === undefined) return `CHANGELOG.md has no section [${version}]`;
  const lines = section.trimEnd().split("\n").length;
  return lines <= MOST_LINES ? null : `CHANGELOG.md: section [${version}] has ${lines} lines; at most ${MOST_LINES}`;
}

const MOST_LINES = 60;

/** Programs without which tests are skipped, each with the paths where one is enough, and the package of Debian. */
const PROGRAMS = [
  ["chromium", ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"], "chromium"],
  ["pgbouncer", ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"], "pgbouncer"],
  ["patroni", ["/usr/bin/patroni"], "patroni"],
  ["etcd", ["/usr/bin/etcd"], "etcd-server"],
  ["PostgreSQL 15", ["/usr/lib/postgresql/15/bin/postgres"], "postgresql-15"],
  [
    "libfaketime",
    ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`),
    "libfaketime",
  ],
  ["promtool", ["/usr/bin/promtool"], "prometheus"],
  ["spin", ["/usr/bin/spin"], "spin"],
  ["gcc", ["/usr/bin/gcc"], "gcc"],
  ["python3", ["/usr/bin/python3", "/usr/local/bin/python3"], "python3"],
];

/**
 * Which programs the long suites lack: tests that need them would be skipped, and the release would be unproven there.
 *
 * @param {(path: string) => boolean} exists
 * @returns {string | null}
 */
export function missingPrograms(exists) {
  const missing = PROGRAMS.filter(([, paths]) => !paths.some(exists));
  if (missing.length === 0) return null;
  const packages = missing.map(([, , name]) => name).join(" ");
  return `not installed: ${missing.map(([name]) => name).join(", ")}; on Debian: apt-get install ${packages}`;
}

function main(options) {
  const read = (path) => readFileSync(join(root, path), "utf8");
  const manifest = JSON.parse(read("package.json"));
  if (options[0] === "--addresses") return said(missingAddresses(manifest));
  if (options[0] === "--changelog") return said(changelogTrouble(read("CHANGELOG.md"), manifest.version));
  if (options[0] === "--programs") return said(missingPrograms(existsSync));
  const only = options[0] === "--only" ? (options[1] ?? "").split(",") : null;
  const steps = stepsOf(manifest).filter(([name]) => only === null || only.includes(name));
  if (options[0] === "--list")
    return said(
      null,
      steps.map(([name, command]) => `${name.padEnd(16)} ${command}`),
    );
  const results = steps.map(([name, command]) => {
    stdout.write(`\n== ${name}: ${command}\n`);
    const { status } = spawnSync(command, { cwd: root, shell: true, stdio: "inherit" });
    return { name, passed: status === 0 };
  });
  const lines = results.map(({ name, passed }) => `${passed ? "passed" : "FAILED"}  ${name}`);
  const failed = results.filter(({ passed }) => !passed).length;
  return said(failed === 0 ? null : `${failed} of ${results.length} failed`, ["", ...lines]);
}

/** Prints lines and a trouble; the exit code is 1 if there is a trouble. */
function said(trouble, lines = []) {
  stdout.write([...lines, ...(trouble === null ? [] : [trouble])].map((line) => `${line}\n`).join(""));
  return trouble === null ? 0 : 1;
}

if (argv[1] === fileURLToPath(import.meta.url)) exit(main(argv.slice(2)));
