import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SETTING_KEYS, SETTINGS } from "../../src/main/config/schema.ts";
import { readPackage } from "./package.ts";
import { brokenReferences, type Facts } from "./rules/markdown.ts";
import { listFiles, type Node, nameOf, nodesIn, ROOT, readCode, readText, walk } from "./tree.ts";

const files = listFiles(".").filter((path) => !path.endsWith(".log"));
const documents = files.filter((path) => path.endsWith(".md"));
const { commands, options } = commandLine();

const facts: Facts = {
  files,
  read: readText,
  scripts: new Set(Object.keys(readPackage().scripts)),
  binaries: new Set(["fencepost", ...readdirSync(join(ROOT, "node_modules/.bin"))]),
  subpaths: new Set(Object.keys(readPackage().exports)),
  commands,
  options,
  variables: variablesInCode(),
};

/** The commands and options that the command line declares by `.command("dev")` and `.option("--port <number>")`. */
function commandLine(): { readonly commands: ReadonlySet<string>; readonly options: ReadonlySet<string> } {
  const words = (match: (node: Node) => boolean) =>
    readCode("src/adapters/cli").flatMap(({ program }) => {
      const found: string[] = [];
      walk(program, (node) => {
        if (match(node)) found.push(...nodesIn(node.arguments).flatMap((argument) => nameOf(argument) ?? []));
        return undefined;
      });
      return found;
    });
  const calls = (name: string) => (node: Node) =>
    node.type === "CallExpression" && nameOf((node.callee as Node).property) === name;
  const isOption = (node: Node) =>
    calls("option")(node) ||
    calls("requiredOption")(node) ||
    calls("version")(node) ||
    (node.type === "NewExpression" && nameOf(node.callee) === "Option");
  const flags = words(isOption).flatMap((text) => /--[a-z-]+/.exec(text)?.[0] ?? []);
  return { commands: new Set(words(calls("command"))), options: new Set(["--help", ...flags]) };
}

function variablesInCode(): ReadonlySet<string> {
  const code = ["src", "test", "scripts", "bench", ".ci"].flatMap((folder) => listFiles(folder)).map(readText);
  const spelled = code.flatMap((text) => text.match(/FENCEPOST_[A-Z0-9_]+/g) ?? []);
  return new Set([...spelled, ...SETTING_KEYS.map((key) => SETTINGS[key].variable)]);
}

it("ARCHITECTURE.md has at most 150 lines of at most 160 characters each", () => {
  const lines = readText("ARCHITECTURE.md").trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(150);
  expect(lines.filter((line) => line.length > 160)).toEqual([]);
});

describe("the documents", () => {
  it.each(documents)("%s names only files, commands and variables that exist", (path) => {
    expect(brokenReferences(path, facts)).toEqual([]);
  });

  it.each(["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "docs/README.md"])(
    "include %s",
    (path) => {
      expect(existsSync(join(ROOT, path))).toBe(true);
    },
  );

  it("are all listed in docs/README.md", () => {
    const index = readText("docs/README.md");
    const pages = listFiles("docs").filter((path) => path !== "docs/README.md" && path.endsWith(".md"));
    expect(pages.filter((path) => !index.includes(`(${path.replace("docs/", "")})`))).toEqual([]);
  });

  it("name npm scripts that run existing files", () => {
    const named = Object.values(readPackage().scripts).flatMap(
      (script) => script.match(/[\w./-]+\.(?:ts|mjs|js)\b/g) ?? [],
    );
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((path) => !files.includes(path))).toEqual([]);
  });

  it("are checked against the commands, options and variables found in the source", () => {
    expect([...commands]).toEqual(expect.arrayContaining(["dev", "start", "migrate", "config"]));
    expect([...options]).toEqual(expect.arrayContaining(["--config", "--json", "--port", "--version"]));
    expect(facts.variables).toContain("FENCEPOST_DATABASE_URL");
  });
});

describe("the check of documents", () => {
  const small: Facts = {
    files: ["README.md", "docs/errors.md", "src/domain/lane.ts", "src/application/writer/batch.ts"],
    read: () => "",
    scripts: new Set(["test", "bench"]),
    binaries: new Set(["vitest", "fencepost"]),
    subpaths: new Set([".", "./client"]),
    commands: new Set(["dev", "start"]),
    options: new Set(["--port", "--help"]),
    variables: new Set(["FENCEPOST_PORT"]),
  };
  const broken = (text: string) =>
    brokenReferences("README.md", {
      ...small,
      read: (path) => (path === "README.md" ? text : "# What fails, and why"),
    });

  it.each([
    ["[gone](docs/gone.md)"],
    ["[no such part](docs/errors.md#nowhere)"],
    ["[no such part](#nowhere)"],
    ['<img src="docs/pictures/gone.png">'],
    ['<source srcset="docs/pictures/gone.png">'],
    ["`src/domain/gone.ts`"],
    ["`domain/gone.ts`"],
    ["`writer/gone.ts`"],
    ["`src/gone/`"],
    ["`src/domain/{lane,gone}.ts`"],
    ["`gone.ts`"],
    ["`src/gone/**/*.ts`"],
    ["`fencepost/gone`"],
    ["`npm run gone`"],
    ["`npm start`"],
    ["```sh\nnpx gone --flag\n```"],
    ["```sh\nnpx vitest run test/gone\n```"],
    ["`fencepost gone`"],
    ["```sh\n$ npx fencepost gone\n```"],
    ["`fencepost dev --gone`"],
    ["set FENCEPOST_GONE to 1"],
    ["`FENCEPOST_GONE=1 npm test`"],
  ])("refuses the broken reference in %j", (text) => {
    expect(broken(text)).toHaveLength(1);
  });

  it.each([
    ["[errors](docs/errors.md#what-fails-and-why), [home](https://example.org/x.md)"],
    ["`src/domain/lane.ts`, `domain/lane.ts`, `writer/batch.ts`, `lane.ts`, `src/domain/`, `src/application/*`"],
    ["`fencepost/client`, `fencepost.config.ts`, `.fencepost/`, `dist/index.js`"],
    ["`npm test`, `npm run bench`, `npm install`"],
    ["```sh\nnpm ci && npx fencepost dev --port 3000\n```"],
    ["`/openapi.json`, `POST /tx`, `application/json`, `application/problem+json`, `text/plain`, `viem/accounts`"],
    ["`FENCEPOST_PORT=3001 fencepost start`, `@bitauth/libauth`, `a || b`"],
  ])("accepts the valid references in %j", (text) => {
    expect(broken(text)).toEqual([]);
  });
});
