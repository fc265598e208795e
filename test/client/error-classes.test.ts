import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fromProblem } from "../../src/client/error-classes.ts";
import * as sdk from "../../src/client/index.ts";
import type { Problem } from "../../src/contract/schemas/problem.ts";
import { ERROR_CATALOGUE } from "../../src/domain/errors.ts";
import * as library from "../../src/index.ts";

const CODES = Object.keys(ERROR_CATALOGUE) as (keyof typeof ERROR_CATALOGUE)[];

const problemOf = (code: string, members: object = {}): Problem =>
  ({ type: "t", title: "t", status: 400, code, detail: "d", ...members }) as Problem;

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

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

  it.each(CODES)("says whether a retry helps as the catalogue does, and links to a page that exists: %s", (code) => {
    const { status, retry } = ERROR_CATALOGUE[code];
    const { docs, ...error } = fromProblem(problemOf(code, { status }));
    expect(error).toMatchObject({ retry });
    expect(existsSync(new URL(`../../${docs.replace("fencepost/", "")}`, import.meta.url))).toBe(true);
  });

  it.each([
    [() => sdk.asAddress("bob", "to"), { code: "INVALID_REQUEST", path: "to", detail: "to: must be an address" }],
    [() => sdk.asHex("0x1", "KEY"), { code: "INVALID_REQUEST", path: "KEY" }],
    [() => sdk.asWei("1.5", "amount"), { code: "INVALID_REQUEST", path: "amount" }],
    [() => sdk.createClient({ url: [] }), { code: "INVALID_REQUEST", path: "url" }],
    [() => sdk.createClient({ url: "bob:3000" }), { code: "INVALID_REQUEST", path: "url" }],
    [() => sdk.createClient({ url: ["http://node", "ftp://bob"] }), { code: "INVALID_REQUEST", path: "url" }],
    // Callers without TypeScript: a variable that is not set.
    [() => sdk.createClient({ url: undefined as never }), { code: "INVALID_REQUEST", path: "url" }],
  ])("names the argument that is wrong, and does not quote it: %#", (work, members) => {
    const error = thrownBy(work);
    expect(error).toBeInstanceOf(sdk.FencepostError);
    expect(error).toMatchObject({ ...members, retry: "never", docs: "fencepost/docs/sdk.md#errors" });
    expect(String(error)).not.toMatch(/bob|0x1\b|1\.5/);
  });

  it("passes checked texts on unchanged, and amounts as a bigint", () => {
    const address = `0x${"aB".repeat(20)}`;
    expect([sdk.asAddress(address), sdk.asHex("0x"), sdk.asWei("10"), sdk.asWei("0x10")]).toEqual([
      address,
      "0x",
      10n,
      16n,
    ]);
  });

  it("reports a body that is no JSON, before anything is sent", async () => {
    const fetch = () => Promise.reject(new Error("nothing must be sent"));
    const metadata: Record<string, unknown> = {};
    metadata.self = metadata;
    const sending = sdk
      .createClient({ url: "http://node", fetch })
      .send({ signer: "0x", payload: { to: "0x" }, metadata });
    await expect(sending).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      path: "body",
      cause: expect.any(TypeError),
    });
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
