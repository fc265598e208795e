import { describe, expect, it } from "vitest";
import { fromProblem } from "../../src/client/error-classes.ts";
import * as sdk from "../../src/client/index.ts";
import type { Problem } from "../../src/contract/schemas/problem.ts";
import { ERROR_CATALOGUE } from "../../src/domain/errors.ts";
import * as library from "../../src/index.ts";

const CODES = Object.keys(ERROR_CATALOGUE) as (keyof typeof ERROR_CATALOGUE)[];

const problemOf = (code: string, members: object = {}): Problem =>
  ({ type: "t", title: "t", status: 400, code, detail: "d", ...members }) as Problem;

describe("an error of the SDK", () => {
  it.each(CODES)("has its own class, with the same name in SDK and library: %s", (code) => {
    const error = fromProblem(problemOf(code));
    const name = `${code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Error`;
    const Class = (sdk as unknown as Record<string, typeof sdk.FencepostError>)[name];
    expect(Class).toBeTypeOf("function");
    expect((library as unknown as Record<string, unknown>)[name]).toBe(Class);
    expect(error.constructor).toBe(Class);
    expect(error).toBeInstanceOf(sdk.FencepostError);
    expect(error).toMatchObject({ name, code, status: 400, detail: "d", message: `${code}: d` });
  });

  it("has the members of the problem document, and the document itself", () => {
    const members = { reason: "REVERT", revert: { name: "Short", message: null, data: "0x", args: ["1"] } };
    const error = fromProblem(problemOf("SUBMISSION_REJECTED", members));
    expect(error).toMatchObject(members);
    expect(error.problem).toMatchObject(members);
  });

  // protects [Attacks] src/client/error-classes.ts
  it("keeps its message, stack and prototype if the problem document has fields of these names", () => {
    const hostile =
      '{"message":"m","stack":"s","name":"n","toString":"t","constructor":"c","__proto__":{"admin":true}}';
    const error = fromProblem(problemOf("CONFLICT", JSON.parse(hostile) as object));
    expect(error).toBeInstanceOf(sdk.ConflictError);
    expect(error.message).toBe("CONFLICT: d");
    expect(error.stack).toContain("error-classes.test.ts");
    expect(error.name).toBe("ConflictError");
    expect(String(error)).toBe("ConflictError: CONFLICT: d");
    expect("admin" in error).toBe(false);
  });

  it.each(["NEWER_CODE", "toString", "__proto__"])("has the base class if its code is unknown: %s", (code) => {
    expect(fromProblem(problemOf(code))).toMatchObject({ constructor: sdk.FencepostError, code });
  });
});
