import { describe, expect, it, vi } from "vitest";
import type { HttpServerOptions } from "../../../src/adapters/http/options.ts";
import { FencepostError, unavailable } from "../../../src/domain/errors.ts";
import type { Act, Receive } from "../../contracts/peers.contract.ts";
import { httpApp } from "../../support/http-app.ts";
import { CLUSTER_SECRET } from "../../support/peer-server.ts";
import { sampleCreated, sampleTxId } from "../../support/scripted-api.ts";

const PATH = "/internal/v1/creates";
const AUTHORIZATION = `Fencepost-Node ${CLUSTER_SECRET}`;
const MEBIBYTE = 1024 * 1024;
const done: Act = async () => ({ answer: "done" });

function bench(
  receive: Receive = async (creates) => creates.map(() => sampleCreated()),
  options: Partial<HttpServerOptions> = {},
) {
  const create = vi.fn(receive);
  const act = vi.fn<Act>(done);
  const app = httpApp(
    {},
    { apiKeys: [{ name: "shop", secret: "key" }], peer: { secret: CLUSTER_SECRET, create, act }, ...options },
  );
  const post = (payload: unknown, authorization: string | undefined = AUTHORIZATION, url = PATH) =>
    app.inject({
      method: "POST",
      url,
      headers: { "content-type": "application/json", ...(authorization === undefined ? {} : { authorization }) },
      payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    });
  return { app, create, act, post };
}

const sound = { creates: [{ txId: sampleTxId(1), owner: "shop", request: { signer: "0x00" } }], repeat: false };

describe("who is let in", () => {
  it("a node that knows the secret, under whatever name it reached us", async () => {
    const { post } = bench(undefined, { wire: { hosts: ["relay.example"], origins: [] } });
    expect((await post(sound)).statusCode).toBe(200);
  });

  it("a node that knows the secret", async () => {
    const { post, create } = bench();
    expect((await post(sound)).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith(sound.creates, false);
  });

  it.each([
    ["nothing", ""],
    ["an API key", "Bearer key"],
    ["the secret as an API key", `Bearer ${CLUSTER_SECRET}`],
    ["the secret alone", CLUSTER_SECRET],
    ["the scheme alone", "Fencepost-Node"],
    ["a prefix of it", AUTHORIZATION.slice(0, -1)],
    ["more than it", `${AUTHORIZATION}x`],
    ["another one", `Fencepost-Node ${"x".repeat(CLUSTER_SECRET.length)}`],
    ["it twice", `${AUTHORIZATION}, ${AUTHORIZATION}`],
  ])("not %s", async (_, authorization) => {
    const { post, create } = bench();
    const response = await post(sound, authorization);
    expect(response.statusCode).toBe(401);
    expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(response.json()).toMatchObject({ code: "UNAUTHENTICATED", status: 401 });
    expect(response.body).not.toContain(CLUSTER_SECRET);
    expect(create).not.toHaveBeenCalled();
  });

  it("no one else, even where callers need no key", async () => {
    const { post } = bench(undefined, { apiKeys: "none" });
    expect((await post(sound, "")).statusCode).toBe(401);
  });

  it("before any of the body is read", async () => {
    const { post } = bench();
    expect((await post("x".repeat(17 * MEBIBYTE), "")).statusCode).toBe(401);
    expect((await post("not JSON", "")).statusCode).toBe(401);
  });

  it("the secret opens nothing else", async () => {
    const { app } = bench();
    for (const url of ["/api/v1/signers", "/api/v1/nodes", "/metrics"]) {
      expect((await app.inject({ url, headers: { authorization: AUTHORIZATION } })).statusCode).toBe(401);
    }
  });

  it("no one where no receiver is configured: there is no such route", async () => {
    const response = await httpApp().inject({ method: "POST", url: PATH, headers: { authorization: AUTHORIZATION } });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("a secret that is asked for", () => {
  it("is asked for once", async () => {
    const secret = vi.fn(async () => CLUSTER_SECRET);
    const { post } = bench(undefined, { peer: { secret, create: async () => [sampleCreated()], act: done } });
    expect((await post(sound)).statusCode).toBe(200);
    expect((await post(sound)).statusCode).toBe(200);
    expect((await post(sound, "")).statusCode).toBe(401);
    expect(secret).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["this node is starting", unavailable("this node is starting")],
    ["the database is away", new Error("ECONNREFUSED 10.0.0.1:5432")],
  ])("and is not known yet: %s, 503, which sends peers elsewhere", async (_, reason) => {
    const secret = vi.fn<() => Promise<string>>().mockRejectedValueOnce(reason).mockResolvedValue(CLUSTER_SECRET);
    const create = vi.fn<Receive>(async () => [sampleCreated()]);
    const { post } = bench(undefined, { peer: { secret, create, act: done } });
    const response = await post(sound);
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({ code: "UNAVAILABLE" });
    expect(response.body).not.toContain("10.0.0.1");
    expect(create).not.toHaveBeenCalled();
    expect((await post(sound)).statusCode).toBe(200);
  });
});

describe("what is taken", () => {
  it.each([
    ["a list", []],
    ["no creates", { repeat: false }],
    ["creates that are none", { creates: {}, repeat: false }],
    ["no word on repeating", { creates: [] }],
    ["another word on repeating", { creates: [], repeat: "no" }],
    ["a create that is none", { creates: [null], repeat: false }],
    ["a create without an id", { creates: [{ request: {} }], repeat: false }],
    ["an id that is no UUID", { creates: [{ txId: "tx-1", request: {} }], repeat: false }],
    ["an id in capitals", { creates: [{ txId: sampleTxId(10).toUpperCase(), request: {} }], repeat: false }],
    ["a create without a request", { creates: [{ txId: sampleTxId(1) }], repeat: false }],
    ["a request that is a list", { creates: [{ txId: sampleTxId(1), request: [] }], repeat: false }],
    [
      "too many",
      { creates: Array.from({ length: 1_001 }, (_, n) => ({ txId: sampleTxId(n), request: {} })), repeat: true },
    ],
  ])("not %s", async (_, body) => {
    const { post, create } = bench();
    const response = await post(body);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST" });
    expect(create).not.toHaveBeenCalled();
  });

  it("no name of a key: that of a node which does not know of owners yet, or whose caller needed none", async () => {
    const { post, create } = bench();
    const { owner: _, ...unnamed } = sound.creates[0] as (typeof sound.creates)[number];
    expect((await post({ ...sound, creates: [unnamed] })).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith([{ ...unnamed, owner: null }], false);
    expect((await post({ ...sound, creates: [{ ...unnamed, owner: 7 }] })).json()).toMatchObject({
      code: "INVALID_REQUEST",
      path: "creates.0.owner",
    });
  });

  it("a field that only a newer node knows, and passes it over", async () => {
    const { post, create } = bench();
    expect((await post({ ...sound, trace: "abc" })).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith(sound.creates, false);
  });

  it("up to 16 MiB, which is beyond any batch of a caller", async () => {
    const { post } = bench();
    const filled = (bytes: number) => ({ ...sound, padding: "x".repeat(bytes - JSON.stringify(sound).length - 13) });
    expect((await post(filled(16 * MEBIBYTE))).statusCode).toBe(200);
    const response = await post(filled(16 * MEBIBYTE + 1));
    expect(response.statusCode).toBe(413);
    expect(response.json()).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  });

  it("metadata that is nested deeper than a caller's body may be: what the first node took, the second takes", async () => {
    const nested = (depth: number) => {
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      return `{"creates":[{"txId":"${sampleTxId(1)}","request":{"metadata":{"a":${deep}}}}],"repeat":false}`;
    };
    const { post, create } = bench();
    expect((await post(nested(900))).statusCode).toBe(200);
    expect((await post(nested(100_000))).statusCode).toBe(400);
    expect(create).toHaveBeenCalledTimes(1);
  });

  it("POST alone", async () => {
    const response = await bench().app.inject({ url: PATH, headers: { authorization: AUTHORIZATION } });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe("POST");
  });
});

describe("what is answered", () => {
  it("is one result per create, in order", async () => {
    const { post } = bench(async () => [
      sampleCreated(),
      new FencepostError("NOT_LEADER", "ask there", { ownerUrl: "http://node-c:3000", retryAfterSeconds: 1 }),
    ]);
    const creates = [1, 2].map((n) => ({ txId: sampleTxId(n), request: {} }));
    const response = await post({ creates, repeat: true });
    expect(response.json().results).toEqual([
      sampleCreated(),
      expect.objectContaining({ code: "NOT_LEADER", status: 409, detail: "ask there", ownerUrl: "http://node-c:3000" }),
    ]);
  });

  it("is a 500, never 'nothing was done', once the receiver had the creates", async () => {
    const error = vi.fn();
    const { post } = bench(() => Promise.reject(unavailable("the database does not answer")), { logger: { error } });
    const response = await post(sound);
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ code: "INTERNAL" });
    expect(error).toHaveBeenCalledTimes(1);
  });

  it("is a 500 where answers are missing", async () => {
    expect((await bench(async () => []).post(sound)).statusCode).toBe(500);
  });
});

describe("what is asked of a lane's owner", () => {
  const ACTIONS = "/internal/v1/actions";
  const lane = { chainId: 5, signer: `0x${"ab".repeat(20)}` };
  const asked = { lane, action: "suspend", body: { reason: "because" } };

  it("is let in by the same secret alone", async () => {
    const { post, act } = bench();
    expect((await post(asked, "Bearer key", ACTIONS)).statusCode).toBe(401);
    expect(act).not.toHaveBeenCalled();
    const response = await post(asked, AUTHORIZATION, ACTIONS);
    expect(response.json()).toEqual({ result: { answer: "done" } });
    expect(act).toHaveBeenCalledExactlyOnceWith(lane, { action: "suspend", body: { reason: "because" }, owner: null });
  });

  it("is refused inside of an answer, and a failure of ours is no refusal", async () => {
    const { post, act } = bench();
    act.mockResolvedValueOnce(unavailable("the database is away"));
    const refused = await post(asked, AUTHORIZATION, ACTIONS);
    expect(refused.statusCode).toBe(200);
    expect(refused.json()).toMatchObject({ result: { code: "UNAVAILABLE" } });
    act.mockRejectedValueOnce(unavailable("thrown, not answered"));
    expect((await post(asked, AUTHORIZATION, ACTIONS)).statusCode).toBe(500);
  });

  it.each([
    ["no lane", { ...asked, lane: undefined }],
    ["a chain that is none", { ...asked, lane: { ...lane, chainId: "5" } }],
    ["a signer that is none", { ...asked, lane: { ...lane, signer: "0xAB" } }],
    ["no name", { ...asked, action: 7 }],
    ["no body", { ...asked, body: null }],
  ])("is not understood with %s", async (_, body) => {
    const { post, act } = bench();
    const response = await post(body, AUTHORIZATION, ACTIONS);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", status: 400 });
    expect(act).not.toHaveBeenCalled();
  });
});
