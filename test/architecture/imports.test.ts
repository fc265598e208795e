import { describe, expect, it } from "vitest";
import { entryFiles } from "./package.ts";
import {
  cycles,
  importsOf,
  loadedBy,
  packageOf,
  tangledFolders,
  unreachable,
  upwardImports,
  wrongDirections,
} from "./rules/imports.ts";
import { listFiles, parseSource, readCode } from "./tree.ts";

const source = readCode("src");

/** Folders that still contain cycles of type imports; no other folder may contain one. */
const RINGS_LEFT = ["src/client/", "src/adapters/postgres/commit/"];

/**
 * Known pairs of folders that import each other: a file of the parent folder imports the subfolder, and the subfolder
 * imports another file of the parent. Remove a pair once it is untangled.
 */
const TANGLED = [
  "src/adapters/dashboard/public ↔ src/adapters/dashboard/public/pages",
  "src/adapters/dashboard/public ↔ src/adapters/dashboard/public/parts",
  "src/adapters/evm/signers ↔ src/adapters/evm/signers/remote",
  "src/adapters/postgres/session ↔ src/adapters/postgres/statements",
  "src/main/dev/embedded ↔ src/main/dev/embedded/chain",
  "src/main/dev/embedded ↔ src/main/dev/embedded/postgres",
];

describe("the source tree", () => {
  it("imports in one direction: domain ← ports ← application ← adapters ← main", () => {
    expect(wrongDirections(source)).toEqual([]);
  });

  it("imports only downwards between the folders of the application", () => {
    expect(upwardImports(source)).toEqual([]);
  });

  it("has no import cycle", () => {
    expect(cycles(source)).toEqual([]);
  });

  it("has no cycle of type imports", () => {
    const rings = cycles(source, "types").filter((ring) => !RINGS_LEFT.some((folder) => ring.startsWith(folder)));
    expect(rings).toEqual([]);
  });

  it("has no two folders that import each other, except the listed ones", () => {
    expect(tangledFolders(source)).toEqual(TANGLED);
  });

  it("has no file that cannot be reached from its entry points", () => {
    expect(entryFiles().filter((path) => !listFiles("src").includes(path))).toEqual([]);
    expect(unreachable(source, entryFiles())).toEqual([]);
  });

  it.each([
    ["src/main/cli.ts", ["commander"]],
    ["src/adapters/evm/signers/worker/sign-worker.js", ["@bitauth/libauth", "hash-wasm"]],
  ])("loads few packages at the start of %s", (entry, packages) => {
    const loaded = loadedBy(entry, source).filter((path) => !path.startsWith("src/"));
    expect(loaded.map(packageOf)).toEqual(packages);
  });

  it.each([
    "viem/accounts",
    "src/adapters/evm/signers/mnemonic.ts",
    "src/adapters/http/docs/page.ts",
    "src/contract/openapi.ts",
  ])("starts a node without loading %s, which most nodes never need", (later) => {
    const loaded = loadedBy("src/main/start.ts", source);
    expect(loaded).toContain("viem/utils");
    expect(loaded).not.toContain(later);
  });

  it("imports only parts of viem, since the whole takes three times as long to load", () => {
    const whole = source.flatMap(importsOf).filter(({ target, isTypeOnly }) => target === "viem" && !isTypeOnly);
    expect(whole).toEqual([]);
  });

  it.each([
    ["src/viem/index.ts", []],
    ["src/ethers/index.ts", ["ethers"]],
    // protects [Wallet libraries, and tests of callers] src/viem/index.ts, src/ethers/index.ts
  ])("loads only code for wallet libraries from the entry point %s", (entry, packages) => {
    const loaded = loadedBy(entry, source);
    expect(loaded.filter((path) => !path.startsWith("src/"))).toEqual(packages);
    const own = loaded.filter((path) => path.startsWith("src/") && !/^src\/(viem|ethers|wallets)\//.test(path));
    expect(own, "the errors that they share with the SDK").toEqual(["src/client/error-classes.ts"]);
  });
});

describe("the check of imports", () => {
  it.each([
    ["src/domain/a.ts", `import { x } from "../ports/clock.ts";`],
    ["src/domain/a.ts", `import type { X } from "../ports/clock.ts";`],
    ["src/domain/a.ts", `import { readFile } from "node:fs";`],
    ["src/ports/a.ts", `import { createHash } from "node:crypto";`],
    ["src/application/a.ts", `import { x } from "../adapters/system/clock.ts";`],
    ["src/application/stages/1-create/a.ts", `const x = await import("../../../adapters/evm/chain.ts");`],
    ["src/application/a.ts", `import { Pool } from "pg";`],
    ["src/application/a.ts", `import { Buffer } from "node:buffer";`],
    ["src/adapters/http/a.ts", `import { x } from "../postgres/migrate.ts";`],
    ["src/adapters/http/a.ts", `export * from "../evm/chain.ts";`],
    ["src/adapters/evm/a.ts", `import { x } from "../../application/api.ts";`],
    ["src/adapters/evm/a.ts", `type X = import("../../application/api.ts").X;`],
    ["src/adapters/postgres/a.ts", `new Worker(new URL("../evm/signers/worker/sign.js", import.meta.url));`],
    ["src/adapters/postgres/a.ts", `import { keccak256 } from "viem/utils";`],
    ["src/adapters/system/a.ts", `import { x } from "../../main/version.ts";`],
    ["src/adapters/cli/a.ts", `import { x } from "../../application/api.ts";`],
    ["src/adapters/dashboard/public/a.js", `import { x } from "../files.ts";`],
    ["src/client/a.ts", `import { Create } from "../contract/create.ts";`],
    ["src/client/a.ts", `import { Create, type Created } from "../contract/create.ts";`],
    ["src/client/a.ts", `import { request } from "undici";`],
    ["src/contract/a.ts", `import type { X } from "../application/api.ts";`],
    ["src/contract/a.ts", `import { parseAbi } from "abitype";`],
    ["src/contract/a.ts", `import type { Abi } from "viem";`],
    ["src/viem/a.ts", `import { createClient } from "../client/index.ts";`],
    ["src/wallets/a.ts", `import { Problem } from "../contract/problem.ts";`],
    ["src/domain/a.ts", `import { x } from "../support/world.ts";`],
    ["src/elsewhere/a.ts", ""],
  ])("in the file %s refuses the import %s", (path, text) => {
    expect(wrongDirections([parseSource(path, text)])).toHaveLength(1);
  });

  it.each([
    ["src/domain/a.ts", `import { createHash } from "node:crypto";`],
    ["src/client/a.ts", `import { type Create, type Created } from "../contract/create.ts";`],
    ["src/contract/a.ts", `import type { Abi } from "abitype";`],
    ["src/main/a.ts", `const { migrate } = await import("../adapters/postgres/migrate.ts");`],
    ["src/adapters/evm/a.ts", `import { sign } from "viem/accounts"; import x from "@bitauth/libauth";`],
    ["src/application/a.ts", `const text = 'import { Pool } from "pg"'; // import "pg"`],
  ])("in the file %s accepts the import %s", (path, text) => {
    expect(wrongDirections([parseSource(path, text)])).toEqual([]);
  });

  it.each([
    ["src/application/lane/a.ts", `import { x } from "../stages/3-sign/sign.ts";`],
    ["src/application/lane/a.ts", `import type { X } from "../chain/chain-context.ts";`],
    ["src/application/stages/4-broadcast/a.ts", `import { x } from "../../detours/holes.ts";`],
    ["src/application/operations/a.ts", `import { x } from "../loops/node.ts";`],
    ["src/application/api.ts", `import type { X } from "./lane/lanes.ts";`],
    ["src/application/elsewhere/a.ts", ""],
  ])("in the file %s finds the upward import %s", (path, text) => {
    expect(upwardImports([parseSource(path, text)])).toHaveLength(1);
  });

  it.each([
    ["src/application/loops/a.ts", `import { x } from "../operations/operations.ts"; import { y } from "./node.ts";`],
    ["src/application/stages/4-broadcast/a.ts", `import { x } from "../3-sign/sign.ts"; import "../../api.ts";`],
    [
      "src/application/requests/a.ts",
      `import type { X } from "../api.ts"; import { y } from "../../domain/errors.ts";`,
    ],
    ["src/main/a.ts", `import { x } from "../application/loops/node.ts";`],
  ])("in the file %s accepts the import %s as downward or sideways", (path, text) => {
    expect(upwardImports([parseSource(path, text)])).toEqual([]);
  });

  it("finds an import cycle, and a cycle of types if requested", () => {
    const ring = (kind: string) => [
      parseSource("src/domain/a.ts", `import { b } from "./b.ts";`),
      parseSource("src/domain/b.ts", `import { c } from "./c.ts";`),
      parseSource("src/domain/c.ts", `import ${kind} { a } from "./a.ts";`),
    ];
    expect(cycles(ring(""))).toEqual(["src/domain/a.ts → src/domain/b.ts → src/domain/c.ts → src/domain/a.ts"]);
    expect(cycles(ring("type"))).toEqual([]);
    expect(cycles(ring("type"), "types")).toHaveLength(1);
  });

  it("finds two folders that import each other, even by types only", () => {
    const up = parseSource("src/main/a/b/c.ts", `import type { X } from "../d.ts";`);
    const down = parseSource("src/main/a/e.ts", `import { c } from "./b/c.ts";`);
    expect(tangledFolders([up, down])).toEqual(["src/main/a ↔ src/main/a/b"]);
    expect(tangledFolders([up])).toEqual([]);
  });

  it("finds a file that nothing imports", () => {
    const files = [
      parseSource("src/index.ts", `export { a } from "./domain/a.ts";`),
      parseSource("src/domain/a.ts", `new Worker(new URL("./worker.js", import.meta.url));`),
      parseSource("src/domain/worker.js", ""),
      parseSource("src/domain/forgotten.ts", `import { a } from "./a.ts";`),
    ];
    expect(unreachable(files, ["src/index.ts"])).toEqual(["src/domain/forgotten.ts"]);
  });

  it("finds what a file loads at once, and ignores what it may load later", () => {
    const files = [
      parseSource("src/main/a.ts", `import { b } from "./b.ts"; import type { C } from "commander"; import "node:fs";`),
      parseSource("src/main/b.ts", `export { x } from "pg"; const later = () => import("./c.ts");`),
      parseSource("src/main/c.ts", `import "viem/utils"; new Worker(new URL("./d.js", import.meta.url));`),
      parseSource("src/main/d.js", `import "undici";`),
    ];
    expect(loadedBy("src/main/a.ts", files)).toEqual(["pg", "src/main/a.ts", "src/main/b.ts"]);
    expect(loadedBy("src/main/c.ts", files)).toEqual(["src/main/c.ts", "viem/utils"]);
  });
});
