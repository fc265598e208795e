import { type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { createHttpApp } from "../../src/adapters/http/app.ts";
import { type JsonSchema, type MediaType, openApiDocument } from "../../src/contract/openapi.ts";
import { ROUTES } from "../../src/contract/routes.ts";
import { Problem, problemExamples } from "../../src/contract/schemas/problem.ts";
import { ERROR_CATALOGUE } from "../../src/domain/errors.ts";
import { httpOptions } from "../support/http-app.ts";
import { inlined, resolvePointer } from "../support/openapi-schemas.ts";

const document = openApiDocument("9.9.9");
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
);

/** Every `$ref` in the document, with its location. */
function references(value: unknown, at = "#"): [string, string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === "$ref" ? [[at, String(member)] as [string, string]] : references(member, `${at}/${name}`),
  );
}

const resolve = (pointer: string) => resolvePointer(document, pointer);

function violations(schema: JsonSchema, value: unknown) {
  return [...Compile(Type.Unsafe(inlined(document, schema) as TSchema)).Errors(value)];
}

function examplesOf(media: MediaType): unknown[] {
  const several = Object.values(media.examples ?? {}).map((example) =>
    example.$ref === undefined ? example.value : (resolve(example.$ref) as { value: unknown }).value,
  );
  return media.example === undefined ? several : [media.example, ...several];
}

describe("the OpenAPI document", () => {
  it("is version 3.1 and has all required members", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({ title: "Fencepost", version: "9.9.9" });
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    for (const { operation } of operations) {
      expect(Object.keys(operation.responses).length).toBeGreaterThan(0);
      for (const response of Object.values(operation.responses)) expect(response.description).not.toBe("");
    }
  });

  it("allows every id that JSON-RPC allows, also a fraction", () => {
    const answer = resolve("#/components/schemas/JsonRpcAnswer") as JsonSchema;
    for (const id of ["a", 7, -0.5, 1e-73, null]) {
      expect(violations(answer, { jsonrpc: "2.0", id, result: "0x1" }), String(id)).toEqual([]);
    }
  });

  it("documents 413 for every API route with a request body", () => {
    const taking = operations.filter(({ path, operation }) => path.startsWith("/api/") && operation.requestBody);
    expect(taking.length).toBeGreaterThan(20);
    for (const { method, path, operation } of taking) {
      expect(Object.keys(operation.responses), `${method} ${path}`).toContain("413");
    }
  });

  it("documents exactly the routes that are served", () => {
    const { served } = createHttpApp(httpOptions());
    const style = "/docs/style.css";
    const real = [...served]
      .filter(([url]) => url !== style)
      .flatMap(([url, methods]) =>
        [...methods]
          .filter((method) => method !== "HEAD")
          .map((method) => `${method} ${url.replace(/:(\w+)/g, "{$1}")}`),
      );
    expect(real.sort()).toEqual(ROUTES.map((route) => `${route.method.toUpperCase()} ${route.path}`).sort());
  });

  it("has no broken reference", () => {
    for (const [at, reference] of references(document))
      expect(resolve(reference), `${at} → ${reference}`).toBeDefined();
  });

  it("has no unused component", () => {
    const used = new Set(references(document).map(([, reference]) => reference));
    const schemas = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(schemas.filter((pointer) => !used.has(pointer))).toEqual([]);
  });

  it("has unique operation ids", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("declares every path parameter", () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map((parameter) => parameter.name)).toEqual(inPath);
      expect(declared.every((parameter) => parameter.required)).toBe(true);
    }
  });

  it("has an example of every error code", () => {
    const codes = Object.keys(ERROR_CATALOGUE);
    expect(Object.keys(document.components.examples).sort()).toEqual([...codes].sort());
    const problem = document.components.schemas.Problem as { properties: { code: { enum: string[] } } };
    expect([...problem.properties.code.enum].sort()).toEqual([...codes].sort());
  });

  it("names for every error code an operation that may return it, except METHOD_NOT_ALLOWED", () => {
    const named = operations.flatMap(({ operation }) =>
      Object.values(operation.responses).flatMap(({ content }) =>
        Object.keys(content?.["application/problem+json"]?.examples ?? {}),
      ),
    );
    expect(new Set([...named, "METHOD_NOT_ALLOWED"])).toEqual(new Set(Object.keys(ERROR_CATALOGUE)));
  });

  it("lists each error code under its own status", () => {
    for (const { operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses)) {
        const codes = Object.keys(response.content?.["application/problem+json"]?.examples ?? {});
        for (const code of codes)
          expect(ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE].status).toBe(Number(status));
      }
    }
  });

  it("documents 400 for every API route, since an unknown parameter is never ignored", () => {
    const api = operations.filter(({ path }) => path.startsWith("/api/v1/"));
    expect(api.filter(({ operation }) => operation.responses["400"] === undefined)).toEqual([]);
  });

  it("describes no JSON response as a string", () => {
    for (const { path, operation } of operations) {
      const media = Object.values(operation.responses).flatMap((response) => Object.entries(response.content ?? {}));
      const text = media.filter(([type, { schema }]) => /json/.test(type) && schema?.type === "string");
      expect(text, path).toEqual([]);
    }
  });

  it("has exactly four routes that require no API key", () => {
    const open = operations.filter(({ operation }) => operation.security?.length === 0).map(({ path }) => path);
    expect(open.sort()).toEqual(["/docs", "/healthz", "/openapi.json", "/readyz"]);
  });
});

describe("the examples of the OpenAPI document", () => {
  const bodies = operations.flatMap(({ path, method, operation }) => {
    const request = Object.values(operation.requestBody?.content ?? {});
    const answers = Object.values(operation.responses).flatMap((response) => Object.values(response.content ?? {}));
    return [...request, ...answers].map((media) => ({ name: `${method} ${path}`, media }));
  });

  it.each(bodies)("of $name match their schemas", ({ media }) => {
    for (const example of examplesOf(media)) expect(violations(media.schema ?? {}, example)).toEqual([]);
  });

  it("exist for every JSON response", () => {
    const silent = operations.filter(({ operation }) =>
      Object.values(operation.responses).some(
        (response) =>
          response.content?.["application/json"]?.schema?.$ref !== undefined &&
          examplesOf(response.content["application/json"]).length === 0,
      ),
    );
    expect(silent).toEqual([]);
  });

  it("match the schemas that contain them", () => {
    const withExamples = (value: unknown): JsonSchema[] => {
      if (typeof value !== "object" || value === null) return [];
      const own = Array.isArray((value as JsonSchema).examples) ? [value as JsonSchema] : [];
      return [...own, ...Object.values(value).flatMap(withExamples)];
    };
    const schemas = withExamples(document.components.schemas);
    expect(schemas.length).toBeGreaterThan(10);
    for (const schema of schemas) {
      for (const example of schema.examples as unknown[])
        expect(violations(schema, example), JSON.stringify(example)).toEqual([]);
    }
  });

  it("would fail the schema check if they did not match", () => {
    expect(violations({ $ref: "#/components/schemas/CreatedTransaction" }, { txId: 7 })).not.toEqual([]);
    expect(violations({ $ref: "#/components/schemas/Transaction" }, {})).not.toEqual([]);
  });

  it("of problems match the problem schema", () => {
    for (const problem of Object.values(problemExamples)) expect([...Compile(Problem).Errors(problem)]).toEqual([]);
  });
});
