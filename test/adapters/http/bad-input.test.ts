import { gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { httpApp } from "../../support/http-app.ts";
import { sampleCreated } from "../../support/scripted-api.ts";

/**
 * Tests that mistakes at the level of HTTP and JSON get a problem document as the response, and never reach the
 * application.
 */

const JSON_TYPE = "application/json";

async function post(body: string | Buffer, contentType: string | null = JSON_TYPE, url = "/api/v1/tx") {
  const create = vi.fn(() => Promise.resolve(sampleCreated()));
  const createBatch = vi.fn(() => Promise.resolve([sampleCreated()]));
  const headers = contentType === null ? {} : { "content-type": contentType };
  const response = await httpApp({ create, createBatch }).inject({ method: "POST", url, payload: body, headers });
  return { response, reached: create.mock.calls.length + createBatch.mock.calls.length };
}

const sound = '{"signer":"0x00"}';

describe("the content type of a request", () => {
  it.each([
    ["text/plain"],
    ["application/x-www-form-urlencoded"],
    ["application/json-patch+json"],
    ["application/jsonx"],
    ["multipart/form-data; boundary=x"],
    ["nonsense"],
    [""],
    [null],
    // protects [Attacks] src/adapters/http/exchange/json-body.ts
  ])("%s is refused", async (contentType) => {
    const { response, reached } = await post(sound, contentType);
    expect(response.statusCode).toBe(400);
    expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "content-type", status: 400 });
    expect(reached).toBe(0);
  });

  it.each([["application/json"], ["application/json; charset=utf-8"], ["Application/JSON"]])(
    "%s is accepted",
    async (contentType) => {
      const { response } = await post(sound, contentType);
      expect(response.statusCode).toBe(202);
    },
  );
});

describe("the content encoding of a request", () => {
  async function encoded(encoding: string) {
    const headers = { "content-type": JSON_TYPE, "content-encoding": encoding };
    const payload = encoding === "identity" ? sound : gzipSync(sound);
    const create = vi.fn(() => Promise.resolve(sampleCreated()));
    return httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload, headers });
  }

  it.each(["gzip", "br", "identity, gzip"])("%s is refused as a bad content encoding", async (encoding) => {
    const response = await encoded(encoding);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "content-encoding" });
  });

  it("identity is accepted", async () => {
    expect((await encoded("identity")).statusCode).toBe(202);
  });
});

describe("a query string", () => {
  it.each(["requestId=%ff", "requestId=%", "requestId=a%2", "requestId=%zz", "%ff=1"])(
    "%s is refused, because it would be decoded to a different text",
    async (query) => {
      const list = vi.fn(() => Promise.resolve({ items: [], next: null }));
      const response = await httpApp({ transactions: list }).inject({ method: "GET", url: `/api/v1/tx?${query}` });
      expect(response.statusCode).toBe(400);
      expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "url" });
      expect(list).not.toHaveBeenCalled();
    },
  );
});

describe("a JSON request body", () => {
  it.each([
    ["truncated", '{"signer":"0x00"'],
    ["truncated in a string", '{"signer":"0x'],
    ["trailing comma", '{"signer":"0x00",}'],
    ["comments", '{"signer":"0x00"}// hello'],
    ["two documents", "{}{}"],
    ["single quotes", "{'signer':'0x00'}"],
    ["NaN", '{"chainId":NaN}'],
    ["a byte order mark", "\ufeff{}"],
    ["a bare control character", '{"requestId":"a\u0000b"}'],
    ["empty", ""],
    ["white space", " \n "],
    ["HTML", "<html></html>"],
    ["null", "null"],
    ["a number", "42"],
    ["a string", '"0x00"'],
    ["an array", "[]"],
    ["an array of objects", '[{"signer":"0x00"}]'],
  ])("is refused if it is no JSON object: %s", async (_, body) => {
    const { response, reached } = await post(body);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "" });
    expect(response.json().detail).toMatch(/^body: /);
    expect(reached).toBe(0);
  });

  it("is refused if it is not UTF-8", async () => {
    const body = Buffer.concat([Buffer.from('{"requestId":"a'), Buffer.from([0xff]), Buffer.from('"}')]);
    const { response, reached } = await post(body);
    expect(response.statusCode).toBe(400);
    expect(response.json().detail).toBe("body: is not UTF-8");
    expect(reached).toBe(0);
  });

  it.each([
    ['{"__proto__":{"signer":"0x00"}}', "__proto__"],
    ['{"payload":{"__proto__":{"to":"0x00"}}}', "payload.__proto__"],
    ['{"payload":{"args":[1,{"__proto__":null}]}}', "payload.args.1.__proto__"],
    ['{"\\u005f_proto__":{}}', "__proto__"],
  ])("is refused, with the member's path, if it has a __proto__ member: %s", async (body, path) => {
    const { response, reached } = await post(body);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path });
    expect(reached).toBe(0);
    expect(({} as Record<string, unknown>).signer).toBeUndefined();
  });

  it("is accepted with harmless member names such as constructor", async () => {
    const { response } = await post('{"metadata":{"constructor":{"prototype":1},"toString":"x","hasOwnProperty":1}}');
    expect(response.statusCode).toBe(202);
  });

  it("is read with the last value of a member that occurs twice", async () => {
    const create = vi.fn(() => Promise.resolve(sampleCreated()));
    await httpApp({ create }).inject({
      method: "POST",
      url: "/api/v1/tx",
      payload: '{"signer":"0xaa","requestId":"1","signer":"0xbb"}',
      headers: { "content-type": JSON_TYPE },
    });
    expect(create).toHaveBeenCalledExactlyOnceWith({ signer: "0xbb", requestId: "1" });
  });

  it.each([
    ["arrays", "[".repeat(100_000) + "]".repeat(100_000)],
    ["objects", `${'{"a":'.repeat(40_000)}1${"}".repeat(40_000)}`],
  ])("is refused without a stack overflow if it has endlessly nested %s", async (_, deep) => {
    const { response, reached } = await post(`{"metadata":${deep}}`);
    expect(response.statusCode).toBe(400);
    expect(response.json().detail).toContain("nested deeper than 64 levels");
    expect(response.json().path.length).toBeLessThanOrEqual(200);
    expect(reached).toBe(0);
  });

  it("is accepted if it is nested 63 levels deep", async () => {
    const { response } = await post(`{"metadata":${"[".repeat(62)}${"]".repeat(62)}}`);
    expect(response.statusCode).toBe(202);
  });
});

describe("the size limit of a request body", () => {
  const bodyOf = (bytes: number) => `{"metadata":"${"x".repeat(bytes - '{"metadata":""}'.length)}"}`;

  it("accepts exactly 256 KiB", async () => {
    expect((await post(bodyOf(256 * 1024))).response.statusCode).toBe(202);
  });

  it("refuses one byte more than 256 KiB", async () => {
    const { response, reached } = await post(bodyOf(256 * 1024 + 1));
    expect(response.statusCode).toBe(413);
    expect(response.json()).toMatchObject({ code: "PAYLOAD_TOO_LARGE", status: 413 });
    expect(reached).toBe(0);
  });

  it("refuses a body whose size differs from Content-Length", async () => {
    const response = await httpApp().inject({
      method: "POST",
      url: "/api/v1/tx",
      payload: sound,
      headers: { "content-type": JSON_TYPE, "content-length": "5" },
    });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "content-length" });
  });

  it("refuses a whole batch over 8 MiB", async () => {
    const { response, reached } = await post(bodyOf(8 * 1024 * 1024 + 1), JSON_TYPE, "/api/v1/tx/batch");
    expect(response.statusCode).toBe(413);
    expect(reached).toBe(0);
  });

  it("accepts a batch just under 8 MiB", async () => {
    const item = { metadata: "x".repeat(200 * 1024) };
    const transactions = Array.from({ length: 40 }, () => item);
    const app = httpApp({ createBatch: (requests) => Promise.resolve(requests.map(() => sampleCreated())) });
    const response = await app.inject({ method: "POST", url: "/api/v1/tx/batch", payload: { transactions } });
    expect(response.statusCode).toBe(200);
    expect(response.json().results).toHaveLength(40);
  });
});

describe("a request with an invalid URL", () => {
  it.each([
    ["/api/v1/nothing", 404, "NOT_FOUND"],
    ["/api/v2/tx", 404, "NOT_FOUND"],
    ["/api/v1/tx/", 404, "NOT_FOUND"],
    ["/../../etc/passwd", 404, "NOT_FOUND"],
    ["/%2e%2e/package.json", 404, "NOT_FOUND"],
    ["/api/v1/tx/%zz", 400, "INVALID_REQUEST"],
    [`/api/v1/tx/${"a".repeat(300)}`, 400, "INVALID_REQUEST"],
  ])("is answered with the right problem document: %.40s", async (url, status, code) => {
    const response = await httpApp().inject({ method: "GET", url });
    expect(response.statusCode).toBe(status);
    expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(response.json()).toMatchObject({ status, code });
  });

  it.each([
    ["/api/v1/tx?limit=0", "limit"],
    ["/api/v1/tx?limit=1001", "limit"],
    ["/api/v1/tx?limit=-1", "limit"],
    ["/api/v1/tx?limit=1e2", "limit"],
    ["/api/v1/tx?limit=0x10", "limit"],
    ["/api/v1/tx?limit=1.5", "limit"],
    ["/api/v1/tx?limit=", "limit"],
    ["/api/v1/tx?limit", "limit"],
    ["/api/v1/tx?limit=%31%00", "limit"],
    ["/api/v1/tx?limit=10&limit=20", "limit"],
    ["/api/v1/tx?limit[]=10", "limit[]"],
    ["/api/v1/tx?Limit=10", "Limit"],
    ["/api/v1/tx?colour=red", "colour"],
    ["/api/v1/tx?__proto__=1", "__proto__"],
    ["/api/v1/tx?state=confirmed", "state"],
    ["/api/v1/tx?state=REORGED", "state"],
    ["/api/v1/tx?order=random", "order"],
    ["/api/v1/tx?signer=0x123", "signer"],
    ["/api/v1/tx?txHash=0xzz", "txHash"],
    ["/api/v1/tx?chainId=0", "chainId"],
    ["/api/v1/tx?chainId=99999999999999999999", "chainId"],
    ["/api/v1/tx?requestId=", "requestId"],
    [`/api/v1/tx?requestId=${"x".repeat(256)}`, "requestId"],
    ["/api/v1/tx?requestId=a%00b", "requestId"],
    ["/api/v1/tx?after=a%0ab", "after"],
    [`/api/v1/tx?after=${"x".repeat(513)}`, "after"],
    ["/api/v1/tx/by-request?requestId=a", "signer"],
    ["/api/v1/tx/by-request?requestId=a&pool=no%20spaces", "pool"],
    ["/api/v1/tx/by-request?signer=0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "requestId"],
    ["/api/v1/tx/019a4b7e-0000-7000-8000-000000000001?include=secrets", "include"],
    ["/api/v1/tx/019a4b7e-0000-7000-8000-000000000001?include=", "include"],
    ["/api/v1/tx/019a4b7e-0000-7000-8000-000000000001?include=history,", "include"],
    ["/api/v1/tx/completions?after=-1", "after"],
    ["/api/v1/tx/completions?after=01", "after"],
    ["/api/v1/tx/completions?after=9007199254740992", "after"],
    ["/api/v1/tx/completions?limit=1001", "limit"],
    ["/api/v1/tx/completions?wait=31", "wait"],
    ["/api/v1/tx/completions?wait=-1", "wait"],
    ["/api/v1/tx/completions?wait=Infinity", "wait"],
    ["/api/v1/tx/completions?epoch=one", "epoch"],
    ["/api/v1/signers?limit=501", "limit"],
    ["/api/v1/signers/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266?x=1", "x"],
    ["/api/v1/signers/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266?fresh=1", "fresh"],
  ])("is refused with the name of the bad parameter: %.80s", async (url, path) => {
    const response = await httpApp().inject({ method: "GET", url });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path });
  });
});

describe("an HTTP method", () => {
  it.each([
    ["PUT", "/api/v1/tx", "GET, HEAD, POST"],
    ["DELETE", "/api/v1/tx/019a4b7e-0000-7000-8000-000000000001", "GET, HEAD"],
    ["GET", "/api/v1/tx/batch", "POST"],
    ["POST", "/healthz", "GET, HEAD"],
    ["POST", "/", "GET, HEAD"],
    ["OPTIONS", "/api/v1/signers", "GET, HEAD"],
    ["TRACE", "/api/v1/signers", "GET, HEAD"],
    ["QUERY", "/api/v1/tx", "GET, HEAD, POST"],
    // protects [Attacks] src/adapters/http/app.ts, src/adapters/http/exchange/problems.ts
  ] as const)("%s on %s is refused with 405 and the allowed methods", async (method, url, allow) => {
    const files = new Map([["/", { contentType: "text/html", body: "" }]]);
    // The types of the injection tool do not include the method QUERY yet.
    const request = { method: method as "GET", url, payload: "not even read" };
    const response = await httpApp({}, { files }).inject(request);
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe(allow);
    expect(response.json()).toMatchObject({ code: "METHOD_NOT_ALLOWED", status: 405 });
  });

  // protects [Attacks] src/adapters/http/app.ts, src/adapters/http/exchange/problems.ts
  it("QUERY to an unknown route without a content type is refused as a client error", async () => {
    const error = vi.fn();
    const request = { method: "QUERY" as "GET", url: "/nothing" };
    const response = await httpApp({}, { logger: { error } }).inject(request);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "content-type" });
    expect(error).not.toHaveBeenCalled();
  });
});

describe("query parameters that are unknown, missing or malformed", () => {
  it.each([
    ["/api/v1/tx?status=STUCK", "status", "did you mean `state`?"],
    ["/api/v1/tx?from=0x1", "from", "did you mean `signer`?"],
    ["/api/v1/tx?hash=0x1", "hash", "did you mean `txHash`?"],
    ["/api/v1/tx/completions?cursor=1", "cursor", "did you mean `after`?"],
    ["/api/v1/tx/by-request?request_id=1", "request_id", "did you mean `requestId`?"],
  ])("are refused with a suggestion of the right name: %s", async (url, path, hint) => {
    const response = await httpApp({}).inject(url);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path, hint });
  });

  it("are named in the error", async () => {
    const missing = await httpApp({}).inject(`/api/v1/tx/by-request?signer=0x${"1".repeat(40)}`);
    expect(missing.json()).toMatchObject({
      path: "requestId",
      detail: "requestId: is required: give it in the query string",
    });
    const unknown = await httpApp({}).inject("/api/v1/tx/by-request?colour=red");
    expect(unknown.json().detail).toMatch(/^colour: is not a parameter of this route \(known: .*requestId.*\)$/);
    const malformed = await httpApp({}).inject("/api/v1/tx/by-request?signer=0x1");
    expect(malformed.json().detail).toMatch(/^signer: must match .*, such as 0x[0-9a-fA-F]{40}$/);
  });
});

describe("the body of a batch request", () => {
  it("is refused with a suggestion if its list is not named transactions", async () => {
    const request = { method: "POST", url: "/api/v1/tx/batch", payload: { requests: [] } } as const;
    const response = await httpApp({}).inject(request);
    expect(response.json()).toMatchObject({ path: "requests", hint: "did you mean `transactions`?" });
  });
});
