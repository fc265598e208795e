/**
 * A short check of the examples: all are compiled as one program against the types of the last build, and one is run.
 * `npm run test:examples` runs each one, installed from the package that npm would publish.
 */
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { spawnScript } from "../support/node-process.ts";
import { linkPackages } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const examples = readdirSync(join(root, "examples"));
const HERE: Readonly<Record<string, string>> = { ...manifest.dependencies, ...manifest.devDependencies };

interface Manifest {
  readonly scripts: { readonly start: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const manifestOf = (name: string) =>
  JSON.parse(readFileSync(join(root, "examples", name, "package.json"), "utf8")) as Manifest;

/** The names of the packages that a file imports. */
function importedBy(text: string): readonly string[] {
  const places = [...text.matchAll(/^(?:import|\}).* from "([^"]+)";$/gm)].map(([, place = ""]) => place);
  return places
    .filter((place) => !/^(\.|node:)/.test(place))
    .map((place) => (/^@[^/]+\/[^/]+|^[^/]+/.exec(place) ?? [""])[0]);
}

function codeOf(name: string): string {
  const files = readdirSync(join(root, "examples", name), { recursive: true, encoding: "utf8" });
  const code = files.filter((path) => /^(?!node_modules|dist|\.next).*\.(ts|mjs)$/.test(path));
  return code.map((path) => readFileSync(join(root, "examples", name, path), "utf8")).join("\n");
}

describe.each(examples)("the example %s", (name) => {
  it("declares its dependencies in the tested versions", () => {
    const { dependencies, devDependencies } = manifestOf(name);
    const declared = { ...dependencies, ...devDependencies };
    expect(importedBy(codeOf(name)).filter((each) => !(each in dependencies))).toEqual([]);
    expect(dependencies.fencepost).toBe(`^${manifest.version}`);
    const others = Object.entries(declared).filter(([each, version]) => each in HERE && HERE[each] !== version);
    expect(others).toEqual([]);
  });

  it("is explained in its README and listed in docs/examples.md", () => {
    const page = readFileSync(join(root, "examples", name, "README.md"), "utf8")
      .trimEnd()
      .split("\n");
    expect(page.length).toBeLessThanOrEqual(12);
    expect(page.slice(-4)).toEqual(["```sh", "npm install", "npm start", "```"]);
    expect(readFileSync(join(root, "docs/examples.md"), "utf8")).toContain(`(../examples/${name}/README.md)`);
  });
});

describe("the recipe docs/recipes/nextjs.md", () => {
  it("shows files of the Next.js example", () => {
    const page = readFileSync(join(root, "docs/recipes/nextjs.md"), "utf8");
    const shown = [...page.matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```/gms)];
    expect(shown.map(([, file]) => file)).toEqual(["app/api/payments/fencepost.ts", "app/api/payments/route.ts"]);
    for (const [, file = "", text] of shown) {
      expect(text).toBe(readFileSync(join(root, "examples/nextjs", file), "utf8"));
    }
  });
});

describe("the app of the viem example", () => {
  it("differs from a plain viem app in two lines and their imports", () => {
    const linesOf = (file: string) =>
      readFileSync(join(root, "examples/viem", file), "utf8")
        .split("\n")
        .filter((line) => !line.startsWith("import "));
    const [plain, moved] = [linesOf("plain.ts"), linesOf("moved.ts")];
    expect(moved).toHaveLength(plain.length);
    expect(moved.filter((line, at) => line !== plain[at])).toEqual([
      expect.stringMatching(/^ {2}account: /),
      expect.stringMatching(/^ {2}transport: fencepost\(/),
    ]);
  });
});

/**
 * One compiler configuration for all examples. The Next.js route needs no other one, because it is an ordinary function
 * of the platform's Request and Response.
 */
const PROGRAM = {
  compilerOptions: {
    ...{ module: "nodenext", target: "es2023", types: ["node"], strict: true, rewriteRelativeImportExtensions: true },
    ...{ rootDir: ".", outDir: "built", noEmitOnError: true, skipLibCheck: true },
  },
  include: ["express.d.ts", ...examples.flatMap((name) => [`${name}/*.ts`, `${name}/app/**/*.ts`])],
};

describe("the examples", () => {
  let directory: TemporaryDirectory;
  beforeAll(async () => {
    directory = await makeTemporaryDirectory();
    cpSync(join(root, "examples"), directory.path, { recursive: true });
    cpSync(join(root, "test/support/examples/express.d.ts"), join(directory.path, "express.d.ts"));
    linkPackages(directory.path, ["viem", "pg", "@types/pg", "@types/node"]);
    writeFileSync(join(directory.path, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(directory.path, "tsconfig.json"), JSON.stringify(PROGRAM));
  });
  afterAll(() => directory?.remove());

  it("compile, and the mint example does what its README says", async () => {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const compiled = spawnScript([tsc, "-p", ".", "--pretty", "false"], { directory: directory.path });
    expect({ ...(await compiled.exited), said: compiled.stdout() }).toMatchObject({ code: 0, said: "" });
    const mint = spawnScript([join("built", "mint", "main.js")], { directory: directory.path });
    expect({ ...(await mint.exited), said: mint.stderr() }).toMatchObject({ code: 0, said: "" });
    expect(mint.stdout()).toMatch(/there are 100 tickets\nAlreadyMinted\(1\)\n$/);
  });
});
