import { describe, expect, it } from "vitest";
import { BUNDLED, licencesPage, packagesOf } from "../../scripts/licences.mjs";
import { readPackage } from "./package.ts";
import { importsOf, packageOf } from "./rules/imports.ts";
import { type Lock, type LockedPackage, missingPlatforms, unportable } from "./rules/lock.ts";
import { readCode, readText } from "./tree.ts";

const manifest = readPackage();
const lock = (JSON.parse(readText("package-lock.json")) as { readonly packages: Lock }).packages;

/** Dependencies that no file imports: `ws` is loaded by `require`. docs/dependencies.md gives the reason for each. */
const NOT_IMPORTED = ["ws"];

const isBundled = ([name]: readonly [string, string]) => BUNDLED.includes(name);
const bundled = Object.fromEntries(Object.entries(manifest.devDependencies).filter(isBundled));
const development = Object.entries(manifest.devDependencies).filter((each) => !isBundled(each));

/**
 * Packages whose version the user of Fencepost chooses: an exact version in package.json would conflict with the
 * user's.
 */
const BY_RANGE = ["@opentelemetry/api", "ethers", "viem"];

describe("dependencies", () => {
  // protects [What is installed] package.json, package-lock.json
  it("are at most twelve at run time, all with exact versions", () => {
    const peers = Object.entries(manifest.peerDependencies).filter(([name]) => !BY_RANGE.includes(name));
    const all = { ...manifest.dependencies, ...manifest.devDependencies, ...Object.fromEntries(peers) };
    expect(Object.keys(manifest.dependencies).length).toBeLessThanOrEqual(12);
    expect(Object.entries(all).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });

  it("are each imported by the source, except those listed with a reason", () => {
    const used = new Set(
      readCode("src")
        .flatMap(importsOf)
        .map(({ target }) => packageOf(target)),
    );
    expect(Object.keys(manifest.dependencies).filter((name) => !used.has(name))).toEqual(NOT_IMPORTED);
    // The source imports development dependencies only if they are bundled, or if they are optional peers.
    const optional = Object.keys(manifest.peerDependencies);
    const foreign = development.filter(([name]) => used.has(name) && !optional.includes(name));
    expect(foreign.map(([name]) => name).filter((name) => !name.startsWith("@types/"))).toEqual([]);
  });

  it.each([
    ["Run time", manifest.dependencies],
    ["Optional peers", manifest.peerDependencies],
    ["Bundled", bundled],
    ["Development", Object.fromEntries(development)],
  ] as const)("are all listed in docs/dependencies.md under the heading %s", (title, declared) => {
    const reasons = reasonsUnder(title);
    expect([...reasons.keys()].sort()).toEqual(Object.keys(declared).sort());
    for (const [name, reason] of reasons) expect(reason.length, `reason for ${name}`).toBeGreaterThan(20);
  });
});

/** The rows of the table under a heading, as a map from a package's name to the reason for it. */
function reasonsUnder(title: string): ReadonlyMap<string, string> {
  const section =
    readText("docs/dependencies.md")
      .split(/^## /m)
      .find((text) => text.startsWith(`${title}\n`)) ?? "";
  return new Map(
    [...section.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name = "", reason = ""]) => [name, reason]),
  );
}

/** Licences that allow use in a program of any licence and require only that their notice be kept. */
const LICENCES = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"];

describe("the packages installed with Fencepost", () => {
  // protects [What is installed] package-lock.json
  it("are listed with their licences in the page that `npm run licences` writes", () => {
    expect(readText("docs/licences.md")).toBe(licencesPage(lock));
  });

  it("have only licences that require no more than a notice", () => {
    expect(packagesOf(lock).filter(({ license }) => !LICENCES.includes(license))).toEqual([]);
  });

  // protects [What is installed] package.json, package-lock.json
  it("run no script at installation", () => {
    expect(packagesOf(lock).length).toBeGreaterThan(60);
    expect(packagesOf(lock).filter(({ hasInstallScript }) => hasInstallScript)).toEqual([]);
    expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([]);
  });

  it("are resolved as Node would resolve them", () => {
    const nested: Lock = {
      "": { dependencies: { a: "1.0.0" } },
      "node_modules/a": { version: "1.0.0", license: "MIT", dependencies: { b: "1.0.0" } },
      "node_modules/a/node_modules/b": { version: "1.0.0", hasInstallScript: true },
      "node_modules/b": { version: "2.0.0", license: "GPL-3.0" },
    };
    expect(packagesOf(nested)).toEqual([
      { name: "a", version: "1.0.0", license: "MIT", hasInstallScript: false },
      { name: "b", version: "1.0.0", license: "none", hasInstallScript: true },
    ]);
  });
});

describe("the lock file", () => {
  it("installs on linux and macOS, x64 and arm64", () => {
    expect(missingPlatforms(lock)).toEqual([]);
  });

  // protects [What is installed] package.json, package-lock.json
  it("contains no registry address, and has a checksum for each package", () => {
    expect(unportable(lock)).toEqual([]);
  });

  it("matches package.json", () => {
    const { dependencies, devDependencies } = manifest;
    expect(lock[""]).toMatchObject({ dependencies, devDependencies });
  });
});

describe.each(["docs", "test/stryker"])("the lock file of the package in %s", (folder) => {
  const own = (JSON.parse(readText(`${folder}/package-lock.json`)) as { readonly packages: Lock }).packages;

  it("contains packages for linux and macOS, x64 and arm64", () => {
    expect(missingPlatforms(own)).toEqual([]);
    expect(unportable(own)).toEqual([]);
  });

  it("matches its package.json, with exact versions", () => {
    const { devDependencies } = JSON.parse(readText(`${folder}/package.json`)) as LockedPackage;
    expect(own[""]).toMatchObject({ devDependencies });
    expect(Object.values(devDependencies ?? {}).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

describe("the check of the lock file", () => {
  const family = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "1.0.0"]));
  const all = ["linux-x64-gnu", "linux-arm64-gnu", "darwin-x64", "darwin-arm64"].map((platform) => `@tool/${platform}`);
  const locked = (listed: readonly string[], present: readonly string[]): Lock => ({
    "node_modules/tool": { integrity: "sha512-", optionalDependencies: family(listed) },
    ...Object.fromEntries(present.map((name) => [`node_modules/${name}`, { integrity: "sha512-" }])),
  });

  it("finds a listed platform whose package is missing", () => {
    expect(missingPlatforms(locked(all, all))).toEqual([]);
    expect(missingPlatforms(locked(all, all.slice(0, 3)))).toEqual(["node_modules/tool: @tool/darwin-arm64"]);
  });

  it("finds a platform that is not listed at all", () => {
    const some = all.slice(1);
    expect(missingPlatforms(locked(some, some))).toEqual(["node_modules/tool: nothing for linux-x64"]);
  });

  it("finds a registry address, and a package without a checksum", () => {
    const integrity = "sha512-";
    expect(
      unportable({
        "": {},
        "node_modules/a": { integrity },
        "node_modules/b": { integrity, resolved: "https://registry.example/b.tgz" },
        "node_modules/c": {},
      }),
    ).toEqual(["node_modules/b", "node_modules/c"]);
  });
});
