import { describe, expect, it, vi } from "vitest";
import type { HttpServerOptions, PeerReceiver } from "../../../src/adapters/http/exchange/options.ts";
import { OPEN } from "../../../src/application/loops/reception.ts";
import type { Kill } from "../../../src/domain/cluster/kills.ts";
import { FencepostError, unavailable } from "../../../src/domain/errors.ts";
import type { Act, Receive } from "../../contracts/peers.contract.ts";
import { httpApp } from "../../support/http-app.ts";
import { sampleCreated, sampleTxId } from "../../support/scripted-api.ts";

const PATH = "/internal/v1/creates";
const AUTHORIZATION = "Fencepost-Instance signed";
const MEBIBYTE = 1024 * 1024;
const done: Act = async () => ({ answer: "done" });
const nothing = async (_: Kill) => undefined;

/** A fake check of the sender. The signature itself is tested in test/adapters/peers/gate.test.ts. */
const admit: PeerReceiver["admit"] = async (_, authorization) => {
  if (authorization !== AUTHORIZATION)
    throw new FencepostError("UNAUTHENTICATED", "this route is only for other nodes");
  return (body) => {
    if (body.includes("altered")) throw new FencepostError("UNAUTHENTICATED", "not the body that was signed");
  };
};

function bench(
  receive: Receive = async (creates) => creates.map(() => sampleCreated()),
  options: Partial<HttpServerOptions> = {},
) {
  const create = vi.fn(receive);
  const act = vi.fn<Act>(done);
  const kill = vi.fn(nothing);
  const app = httpApp(
    {},
    { apiKeys: [{ name: "shop", secret: "key" }], peer: { admit, create, act, kill }, ...options },
  );
  const post = (payload: unknown, authorization: string | undefined = AUTHORIZATION, url = PATH) =>
    app.inject({
      method: "POST",
      url,
      headers: { "content-type": "application/json", ...(authorization === undefined ? {} : { authorization }) },
      payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    });
  return { app, create, act, kill, post };
}

const sound = { creates: [{ txId: sampleTxId(1), owner: "shop", request: { signer: "0x00" } }], repeat: false };

describe("the authentication of another node", () => {
  it("accepts a signature of a known instance, whatever host name the request uses", async () => {
    const { post, create } = bench(undefined, { wire: { hosts: ["relay.example"], origins: [] } });
    expect((await post(sound)).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith(sound.creates, false);
  });

  it.each([
    ["nothing", ""],
    ["an API key", "Bearer key"],
    ["the scheme alone", "Fencepost-Instance"],
    ["a secret from the database, as in earlier releases", `Fencepost-Node ${"0".repeat(96)}`],
  ])("refuses %s as authorization", async (_, authorization) => {
    const { post, create } = bench();
    const response = await post(sound, authorization);
    expect(response.statusCode).toBe(401);
    expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(response.json()).toMatchObject({ code: "UNAUTHENTICATED", status: 401 });
    expect(create).not.toHaveBeenCalled();
  });

  // protects [Attacks] src/adapters/peers/request-head.ts, src/adapters/http/exchange/json-body.ts
  it("refuses a body that differs from the signed one", async () => {
    const { post, create } = bench();
    expect((await post({ ...sound, altered: true })).statusCode).toBe(401);
    expect(create).not.toHaveBeenCalled();
  });

  it("refuses requests without a signature, even if callers need no API key", async () => {
    const { post } = bench(undefined, { apiKeys: "none" });
    expect((await post(sound, "")).statusCode).toBe(401);
  });

  it("is checked before the body is read", async () => {
    const { post } = bench();
    expect((await post("x".repeat(17 * MEBIBYTE), "")).statusCode).toBe(401);
    expect((await post("not JSON", "")).statusCode).toBe(401);
  });

  it("is valid for the signed route only", async () => {
    const routes: string[] = [];
    const noting: PeerReceiver["admit"] = (route, authorization) => {
      routes.push(route);
      return admit(route, authorization);
    };
    const { post } = bench(undefined, {
      peer: { admit: noting, create: async () => [sampleCreated()], act: done, kill: nothing },
    });
    await post(sound);
    await post({}, AUTHORIZATION, "/internal/v1/actions");
    expect(routes).toEqual([PATH, "/internal/v1/actions"]);
  });

  it("gives no access to other routes", async () => {
    const { app } = bench();
    for (const url of ["/api/v1/signers", "/api/v1/nodes", "/metrics"]) {
      expect((await app.inject({ url, headers: { authorization: AUTHORIZATION } })).statusCode).toBe(401);
    }
  });

  it("is answered with 404 if this node accepts no forwarded requests", async () => {
    const response = await httpApp().inject({ method: "POST", url: PATH, headers: { authorization: AUTHORIZATION } });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ code: "NOT_FOUND" });
  });

  it("is answered with 503 while this node starts", async () => {
    const starting = () => Promise.reject(unavailable("this node is starting"));
    const { post } = bench(undefined, { peer: { admit: starting, create: async () => [], act: done, kill: nothing } });
    const response = await post(sound);
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a create forwarded by another node", () => {
  it.each([
    ["a list", []],
    ["no creates", { repeat: false }],
    ["creates that are none", { creates: {}, repeat: false }],
    ["no flag for repeats", { creates: [] }],
    ["an invalid flag for repeats", { creates: [], repeat: "no" }],
    ["a create that is none", { creates: [null], repeat: false }],
    ["a create without an id", { creates: [{ request: {} }], repeat: false }],
    ["an id that is no UUID", { creates: [{ txId: "tx-1", request: {} }], repeat: false }],
    ["an id in capitals", { creates: [{ txId: sampleTxId(10).toUpperCase(), request: {} }], repeat: false }],
    ["a create without a request", { creates: [{ txId: sampleTxId(1) }], repeat: false }],
    ["a chosen signer that is none", { creates: [{ txId: sampleTxId(1), request: {}, chosen: "A" }], repeat: false }],
    ["a queue share above 1", { creates: [{ txId: sampleTxId(1), request: {}, queueShare: 2 }], repeat: false }],
    ["a request that is a list", { creates: [{ txId: sampleTxId(1), request: [] }], repeat: false }],
    [
      "too many creates",
      { creates: Array.from({ length: 1_001 }, (_, n) => ({ txId: sampleTxId(n), request: {} })), repeat: true },
    ],
  ])("is refused with 400 if the body is invalid: %s", async (_, body) => {
    const { post, create } = bench();
    const response = await post(body);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST" });
    expect(create).not.toHaveBeenCalled();
  });

  it("may name no API key, if an older node sent it or the caller had none", async () => {
    const { post, create } = bench();
    const { owner: _, ...unnamed } = sound.creates[0] as (typeof sound.creates)[number];
    expect((await post({ ...sound, creates: [unnamed] })).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith([{ ...unnamed, owner: null }], false);
    expect((await post({ ...sound, creates: [{ ...unnamed, owner: 7 }] })).json()).toMatchObject({
      code: "INVALID_REQUEST",
      path: "creates.0.owner",
    });
  });

  it("may have unknown fields of a newer node, which are ignored", async () => {
    const { post, create } = bench();
    expect((await post({ ...sound, trace: "abc" })).statusCode).toBe(200);
    expect(create).toHaveBeenCalledExactlyOnceWith(sound.creates, false);
  });

  it("may have up to 16 MiB, more than a caller's batch may have", async () => {
    const { post } = bench();
    const filled = (bytes: number) => ({ ...sound, padding: "x".repeat(bytes - JSON.stringify(sound).length - 13) });
    expect((await post(filled(16 * MEBIBYTE))).statusCode).toBe(200);
    const response = await post(filled(16 * MEBIBYTE + 1));
    expect(response.statusCode).toBe(413);
    expect(response.json()).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  });

  it("may have metadata that is nested deeper than in a caller's body", async () => {
    const nested = (depth: number) => {
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      return `{"creates":[{"txId":"${sampleTxId(1)}","request":{"metadata":{"a":${deep}}}}],"repeat":false}`;
    };
    const { post, create } = bench();
    expect((await post(nested(900))).statusCode).toBe(200);
    expect((await post(nested(100_000))).statusCode).toBe(400);
    expect(create).toHaveBeenCalledTimes(1);
  });

  it("is accepted by POST only", async () => {
    const response = await bench().app.inject({ url: PATH, headers: { authorization: AUTHORIZATION } });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe("POST");
  });
});

describe("the response to forwarded creates", () => {
  it("has one result per create, in order", async () => {
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

  it("is 500 if a failure occurs after the creates were handed over", async () => {
    const error = vi.fn();
    const { post } = bench(() => Promise.reject(unavailable("the database does not answer")), { logger: { error } });
    const response = await post(sound);
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ code: "INTERNAL" });
    expect(error).toHaveBeenCalledTimes(1);
  });

  it("is 500 if it would have fewer results than creates", async () => {
    expect((await bench(async () => []).post(sound)).statusCode).toBe(500);
  });
});

describe("an operator action forwarded by another node", () => {
  const ACTIONS = "/internal/v1/actions";
  const lane = { chainId: 5, signer: `0x${"ab".repeat(20)}` };
  const asked = { lane, action: "suspend", body: { reason: "because" } };

  it("is accepted only with a signature", async () => {
    const { post, act } = bench();
    expect((await post(asked, "Bearer key", ACTIONS)).statusCode).toBe(401);
    expect(act).not.toHaveBeenCalled();
    const response = await post(asked, AUTHORIZATION, ACTIONS);
    expect(response.json()).toEqual({ result: { answer: "done" } });
    expect(act).toHaveBeenCalledExactlyOnceWith(lane, { action: "suspend", body: { reason: "because" }, owner: null });
  });

  it("gets a refusal inside a 200 response", async () => {
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
  ])("is refused with 400 if it has %s", async (_, body) => {
    const { post, act } = bench();
    const response = await post(body, AUTHORIZATION, ACTIONS);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", status: 400 });
    expect(act).not.toHaveBeenCalled();
  });
});

describe("a kill forwarded by another node", () => {
  const KILLS = "/internal/v1/kills";
  const killRequest = { killId: sampleTxId(1), signer: `0x${"ab".repeat(20)}`, actor: "operator:a", reason: "because" };

  it("is accepted with that node's signature, for one signer or for all", async () => {
    const { post, kill } = bench();
    expect((await post(killRequest, AUTHORIZATION, KILLS)).statusCode).toBe(200);
    expect((await post({ ...killRequest, signer: null }, AUTHORIZATION, KILLS)).statusCode).toBe(200);
    expect(kill.mock.calls).toEqual([[killRequest], [{ ...killRequest, signer: null }]]);
  });

  it("is refused without a node's signature", async () => {
    const { post, kill } = bench();
    expect((await post(killRequest, "Bearer key", KILLS)).statusCode).toBe(401);
    expect(kill).not.toHaveBeenCalled();
  });

  it.each([
    ["no id", { ...killRequest, killId: "1" }],
    ["no signer", { ...killRequest, signer: undefined }],
    ["a signer that is none", { ...killRequest, signer: "0xAB" }],
    ["no actor", { ...killRequest, actor: 7 }],
  ])("is refused with 400 if it has %s", async (_, body) => {
    const { post, kill } = bench();
    expect((await post(body, AUTHORIZATION, KILLS)).statusCode).toBe(400);
    expect(kill).not.toHaveBeenCalled();
  });

  // protects [The kill switch] src/adapters/http/app.ts
  it("is not queued behind the requests that the kill stops", async () => {
    const full = {
      admittance: () => OPEN,
      turnMs: 0,
      limit: 0,
      onRefused: () => undefined,
      onWaiting: () => undefined,
    };
    const { post, kill } = bench(undefined, { admission: full });
    expect((await post(sound)).statusCode).toBe(503);
    expect((await post(killRequest, AUTHORIZATION, KILLS)).statusCode).toBe(200);
    expect(kill).toHaveBeenCalledTimes(1);
  });
});
