import { describe, expect, it } from "vitest";
import type { Call } from "../../src/contract/calls/call.ts";
import { GROUPS } from "../../src/contract/calls/index.ts";
import { readCode } from "./tree.ts";

/**
 * Largest number of source files that may name an API call: its declaration, its permissions, its implementation, the
 * client's method and the command that shows it.
 */
const MOST_PLACES = 5;

const calls = GROUPS.flatMap(([, each]) => Object.entries<Call>(each));

/** The campaign of faults is a caller like any other, and no place that has to change with a call. */
const source = readCode("src")
  .filter(({ path }) => !path.startsWith("src/main/dev/chaos/"))
  .map(({ path, text }) => ({ path, code: withoutComments(text) }));

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

/**
 * Names of an API call: its operation id and its name in the client. A name that is one English word (`get`, `keys`) is
 * left out, because it has other meanings.
 */
function namesOf(operationId: string, { face }: Call): readonly string[] {
  return [...new Set([operationId, face ?? operationId])].filter((name) => /[a-z][A-Z]/.test(name));
}

function placesOf(names: readonly string[]): readonly string[] {
  const isNamed = new RegExp(`\\b(?:${names.join("|")})\\b`);
  return names.length === 0 ? [] : source.filter(({ code }) => isNamed.test(code)).map(({ path }) => path);
}

describe("an API call", () => {
  it.each(calls)(`%s is named in at most ${MOST_PLACES} files`, (operationId, call) => {
    const places = placesOf(namesOf(operationId, call));
    expect(places.length, places.join(" ")).toBeLessThanOrEqual(MOST_PLACES);
  });

  it("counts as named where it is declared, but not in comments", () => {
    const places = placesOf(["revokeKey"]);
    expect(places).toContain("src/contract/calls/keys.ts");
    expect(places).toContain("src/application/operations/keys.ts");
    expect(withoutComments("/** revokeKey */\n// revokeKey\nconst x = 1;")).not.toContain("revokeKey");
  });

  it("has a unique operation id, a unique path and a unique client method", () => {
    for (const each of [
      calls.map(([operationId]) => operationId),
      calls.map(([, { at }]) => at),
      calls.flatMap(([, { face }]) => face ?? []),
    ]) {
      expect(new Set(each).size).toBe(each.length);
    }
  });

  it("has NOT_LEADER among its errors if the lane's owner serves it", () => {
    const owned = calls.filter(([, { by }]) => by === "owner");
    expect(owned.length).toBeGreaterThan(10);
    for (const [operationId, { errors = [] }] of owned) expect(errors, operationId).toContain("NOT_LEADER");
  });
});
