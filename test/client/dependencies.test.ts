import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const directory = new URL("../../src/client/", import.meta.url);

it("the SDK imports only its own files at run time, and only types from the contract", () => {
  const foreign = readdirSync(directory).flatMap((file) => {
    const text = readFileSync(new URL(file, directory), "utf8");
    const statements = text.match(/^(?:import|export)[^;]*?from\s+"[^"]+"/gms) ?? [];
    return statements.filter((statement) => !/from\s+"\.\/[a-z-]+\.ts"$/.test(statement));
  });
  expect(foreign.length).toBeGreaterThan(0);
  expect(foreign.filter((statement) => !/^(?:import|export) type /.test(statement))).toEqual([]);
});

it("the types of fencepost-client need no other package", async () => {
  const { clientTypes } = await import(new URL("../../scripts/client/types.mjs", import.meta.url).href);
  const files: ReadonlyMap<string, string> = clientTypes(fileURLToPath(new URL("../../dist", import.meta.url)));
  const imported = [...files.values()].flatMap((text) =>
    [...text.matchAll(/ from "([^"]+)"/g)].map(([, from]) => from),
  );
  expect(imported.length).toBeGreaterThan(0);
  expect(imported.filter((from) => !from?.startsWith("."))).toEqual([]);
}, 30_000);
