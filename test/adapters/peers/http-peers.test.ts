import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { HttpPeersOptions } from "../../../src/adapters/peers/http-peers.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { ForwardedAnswer } from "../../../src/ports/peers.ts";
import { aForwarded, anAnswer, ONCE, unreachable } from "../../contracts/peers.contract.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { type FaultyPeer, startFaultyPeer } from "../../support/faulty-peer.ts";
import { PeerRows, type TestedPeers } from "../../support/peer-rows.ts";
import { startPeerServer } from "../../support/peer-server.ts";

const SECRET = "a secret of more than 22 characters".replaceAll(" ", "-");
const ONE = [aForwarded(1, { signer: "0x01" })];
const TWO = [...ONE, aForwarded(2, { signer: "0x01" })];
const problem = (code: string, extras: object = {}) => ({ code, status: 503, title: "t", detail: "why", ...extras });
const results = (...items: readonly unknown[]) => ({ results: items });

let peer: FaultyPeer;
let closers: (() => Promise<void>)[] = [];
let rows: PeerRows;

function connect(options: Partial<HttpPeersOptions> = {}): TestedPeers {
  const peers = rows.peers(options);
  rows.register(peers, "http://sender");
  closers.push(() => peers.close());
  return peers;
}

beforeEach(async () => {
  peer = await startFaultyPeer();
  rows = new PeerRows();
  rows.register(rows.peers(), peer.url);
  closers = [() => peer.close()];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

/** Forwards one create to a peer that responds with this status, body and headers. Returns the result. */
async function answering(status: number, body: unknown, headers: Record<string, string> = {}) {
  peer.behave({ kind: "answer", status, body, headers });
  return connect().create(peer.url, ONE, ONCE);
}

describe("a request to another node", () => {
  it("is one signed POST, without the caller's own headers", async () => {
    await answering(200, results(anAnswer(aForwarded(1))));
    expect(peer.requests).toHaveLength(1);
    expect(peer.requests[0]).toMatchObject({
      method: "POST",
      url: "/internal/v1/creates",
      body: { creates: ONE, repeat: false },
    });
    const { connection: _, host: __, "content-length": ___, ...headers } = peer.requests[0]?.headers ?? {};
    expect(headers).toEqual({
      authorization: expect.stringMatching(
        /^Fencepost-Instance from=\S+ to=\S+ number=1 heartbeat=6 digest=\S+ signature=\S+$/,
      ),
      "content-type": "application/json",
      accept: "application/json",
    });
  });

  it.each([
    ["/", "/internal/v1/creates"],
    ["/behind/a/proxy", "/behind/a/proxy/internal/v1/creates"],
    ["/behind/a/proxy//", "/behind/a/proxy/internal/v1/creates"],
    ["/?x=1#y", "/internal/v1/creates"],
  ])("is sent to a path below the advertised URL, also if the URL ends with %s", async (suffix, path) => {
    peer.behave({ kind: "answer", status: 200, body: results(anAnswer(aForwarded(1))) });
    rows.register(rows.peers(), `${peer.url}${suffix}`);
    await connect().create(`${peer.url}${suffix}`, ONE, ONCE);
    expect(peer.requests.map(({ url }) => url)).toEqual([path]);
  });

  it("uses keep-alive connections", async () => {
    peer.behave({ kind: "answer", status: 200, body: results(anAnswer(aForwarded(1))) });
    const peers = connect();
    for (let n = 0; n < 20; n++) await peers.create(peer.url, ONE, ONCE);
    // At most two connections: the first may not be free again when the second request is sent.
    expect(peer.connections()).toBeLessThanOrEqual(2);
  });

  it("is not sent if it cannot be encoded as JSON", async () => {
    const circle: Record<string, unknown> = {};
    circle.itself = circle;
    expect((await unreachable(connect().create(peer.url, [aForwarded(1, circle)], ONCE))).neverSent).toBe(true);
    expect(peer.requests).toEqual([]);
  });

  it("includes all creates except those that are too large for the other node", async () => {
    const received: string[] = [];
    const node = await startPeerServer(rows, async (creates) => {
      received.push(...creates.map(({ txId }) => txId));
      return creates.map((each) => anAnswer(each));
    });
    closers.push(() => node.stop());
    const big = [aForwarded(1), aForwarded(2, { metadata: "x".repeat(16 * 1024 * 1024) }), aForwarded(3)];
    const outcomes = await connect().create(node.url, big, ONCE);
    expect(outcomes.map((result) => (result instanceof FencepostError ? result.code : result.txId))).toEqual([
      aForwarded(1).txId,
      "PAYLOAD_TOO_LARGE",
      aForwarded(3).txId,
    ]);
    expect(received).toEqual([aForwarded(1).txId, aForwarded(3).txId]);
  });

  it("is split if there are too many creates for one request", async () => {
    const received: string[][] = [];
    const node = await startPeerServer(rows, async (creates) => {
      received.push(creates.map(({ txId }) => txId));
      return creates.map((each) => anAnswer(each));
    });
    closers.push(() => node.stop());
    const many = Array.from({ length: 2_500 }, (_, n) => aForwarded(n));
    const outcomes = await connect().create(node.url, many, ONCE);
    expect(outcomes.map((result) => (result as ForwardedAnswer).txId)).toEqual(many.map(({ txId }) => txId));
    expect(received.flat()).toEqual(many.map(({ txId }) => txId));
    expect(Math.max(...received.map(({ length }) => length))).toBeLessThanOrEqual(1_000);
  });

  it("has an unknown outcome if the node becomes unreachable after the first of several parts", async () => {
    const node = await startPeerServer(rows, async (creates) => {
      queueMicrotask(() => void node.stop());
      return creates.map((each) => anAnswer(each));
    });
    const many = Array.from({ length: 1_001 }, (_, n) => aForwarded(n));
    expect((await unreachable(connect().create(node.url, many, ONCE))).neverSent).toBe(false);
  });

  it.each([["embedded:"], ["node-a:3000"], ["ftp://node-a"], ["//node-a"]])(
    "is not sent if the node's URL is %s",
    async (url) => {
      expect((await unreachable(connect().create(url, ONE, ONCE))).neverSent).toBe(true);
    },
  );
});

describe("other nodes", () => {
  const sound = { kind: "answer", status: 200, body: results(anAnswer(aForwarded(1))) } as const;

  it("are read from the database once, not for every request", async () => {
    const readInstances = vi.fn(async () => rows.rows);
    peer.behave(sound);
    const peers = connect({ readInstances });
    for (let n = 0; n < 3; n++) await peers.create(peer.url, ONE, ONCE);
    expect(readInstances).toHaveBeenCalledTimes(1);
  });

  it("get no request while their rows cannot be read from the database", async () => {
    const clock = createManualClock();
    const readInstances = vi.fn(async () => rows.rows).mockRejectedValueOnce(new Error("the database is away"));
    peer.behave(sound);
    const peers = connect({ readInstances, clock });
    expect((await unreachable(peers.create(peer.url, ONE, ONCE))).neverSent).toBe(true);
    expect(peer.requests).toEqual([]);
    await clock.advance(1_000);
    expect(await peers.create(peer.url, ONE, ONCE)).toHaveLength(1);
  });

  it.each([
    ["that no instance registered", () => "http://127.0.0.1:1"],
    ["of an instance that is dead", () => died({ dead: true })],
    ["of an expired instance", () => died({ expired: true })],
    ["of an instance without a key, as in earlier releases", () => died({ publicKey: null })],
    // protects [Attacks] src/adapters/peers/http-peers.ts
  ])("get no request at a URL %s", async (_, urlOf) => {
    const url = urlOf();
    expect((await unreachable(connect().create(url, ONE, ONCE))).neverSent).toBe(true);
    expect(peer.requests).toEqual([]);
  });

  // protects [Attacks] src/adapters/peers/url-patterns.ts, src/adapters/peers/http-peers.ts
  it("get no request at a URL that the configured pattern does not allow", async () => {
    const peers = connect({ urlPatterns: ["https://node-*.relay.internal:3000"] });
    expect((await unreachable(peers.create(peer.url, ONE, ONCE))).neverSent).toBe(true);
    expect(peer.requests).toEqual([]);
    expect(peers.refusals()).toEqual(["url"]);
    peer.behave(sound);
    expect(await connect({ urlPatterns: ["http://127.0.0.1:*"] }).create(peer.url, ONE, ONCE)).toHaveLength(1);
  });

  it("get no request if the shared secret does not prove their key", async () => {
    const peers = connect({ secrets: [SECRET] });
    expect((await unreachable(peers.create(peer.url, ONE, ONCE))).neverSent).toBe(true);
    expect(peer.requests).toEqual([]);
    expect(peers.refusals()).toEqual(["secret"]);
  });

  it("get no request at the target of a redirect", async () => {
    peer.behave({ kind: "answer", status: 307, body: "", headers: { location: "http://127.0.0.1:1/elsewhere" } });
    expect((await unreachable(connect().create(peer.url, ONE, ONCE))).neverSent).toBe(false);
    expect(peer.requests).toHaveLength(1);
  });

  it("never receive the shared secret in a request, and errors do not contain it", async () => {
    rows.rows = [];
    rows.register(rows.peers({ secrets: [SECRET] }), peer.url);
    peer.behave({ kind: "reset" });
    const error = await unreachable(connect({ secrets: [SECRET] }).create(peer.url, ONE, ONCE));
    expect(`${error.message} ${error.stack} ${JSON.stringify([error, peer.requests])}`).not.toContain(SECRET);
    expect(peer.requests).toHaveLength(1);
  });

  /** Applies `change` to the database rows of the instances at the peer's URL, and returns that URL. */
  function died(change: Parameters<PeerRows["change"]>[1]): string {
    for (const { instanceId } of rows.rows) rows.change(instanceId, change);
    return peer.url;
  }
});

describe("a request to another node was certainly not carried out after", () => {
  it.each([
    ["401", 401, problem("UNAUTHENTICATED")],
    ["404 of an older version", 404, problem("NOT_FOUND")],
    ["404 of a proxy", 404, "<h1>Not Found</h1>"],
    ["405", 405, problem("METHOD_NOT_ALLOWED")],
    ["503 of a node that is starting", 503, problem("UNAVAILABLE")],
  ])("the response %s", async (_, status, body) => {
    expect((await unreachable(answering(status, body))).neverSent).toBe(true);
  });

  it.each([
    [400, "INVALID_REQUEST"],
    [413, "PAYLOAD_TOO_LARGE"],
  ])("the response %i %s", async (status, code) => {
    peer.behave({ kind: "answer", status, body: problem(code, { path: "creates.0.txId" }) });
    const outcomes = await connect().create(peer.url, TWO, ONCE);
    expect(outcomes.map((result) => result instanceof FencepostError && result.code)).toEqual([code, code]);
    expect((outcomes[0] as FencepostError).extras).toEqual({ path: "creates.0.txId" });
  });

  it("a refused connection", async () => {
    await peer.close();
    expect((await unreachable(connect().create(peer.url, ONE, ONCE))).neverSent).toBe(true);
  });

  it("a host name that does not exist", async () => {
    expect((await unreachable(connect().create("http://nobody.invalid:3000", ONE, ONCE))).neverSent).toBe(true);
  });

  it("a connection that is not established in time", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    silent.on("connection", (socket) => closers.push(async () => void socket.destroy()));
    closers.unshift(async () => void silent.close());
    const { port } = silent.address() as AddressInfo;
    // The server sends no TLS handshake, so the node cannot write its request.
    const call = connect({ clock: systemClock }).create(`https://127.0.0.1:${port}`, ONE, ONCE);
    expect((await unreachable(call)).neverSent).toBe(true);
  });
});

describe("the outcome of a request to another node is unknown after", () => {
  it.each([
    ["502 in HTML", 502, "<html>Bad Gateway</html>"],
    ["503 in HTML", 503, "<html>Service Unavailable</html>"],
    ["503 of an API that is not a node's", 503, { code: "BACKEND_DOWN", detail: "no" }],
    ["503 with another code of ours", 503, problem("INTERNAL")],
    ["500", 500, problem("INTERNAL")],
    ["504", 504, ""],
    ["429", 429, problem("QUEUE_FULL")],
    ["400 in HTML", 400, "<h1>Bad Request</h1>"],
    ["413 with another code", 413, problem("INVALID_REQUEST")],
    ["202", 202, results(anAnswer(aForwarded(1)))],
    ["204", 204, ""],
    ["200 in HTML", 200, "<html>Welcome to the hotel's network</html>"],
    ["200 with nothing", 200, ""],
    ["200 with JSON of another kind", 200, { items: [] }],
    ["200 with a list", 200, [anAnswer(aForwarded(1))]],
    ["too few results", 200, results()],
    ["too many results", 200, results(anAnswer(aForwarded(1)), anAnswer(aForwarded(1)))],
    ["a result that is null", 200, results(null)],
    ["a result of another kind", 200, results({ ok: true })],
    ["an outcome of another kind", 200, results({ ...anAnswer(aForwarded(1)), outcome: "maybe" })],
    ["a nonce as text", 200, results({ ...anAnswer(aForwarded(1)), nonce: "7" })],
    ["a negative nonce", 200, results({ ...anAnswer(aForwarded(1)), nonce: -1 })],
    ["no lane", 200, results({ ...anAnswer(aForwarded(1)), lane: null })],
    ["a lane with half a signer", 200, results({ ...anAnswer(aForwarded(1)), lane: { chainId: 1, signer: "0xab" } })],
    ["a request id that is none", 200, results({ ...anAnswer(aForwarded(1)), requestId: 7 })],
    ["a state that does not exist", 200, results({ ...anAnswer(aForwarded(1)), state: "DREAMING" })],
  ])("the response %s", async (_, status, body) => {
    expect((await unreachable(answering(status, body))).neverSent).toBe(false);
  });

  it("a redirect", async () => {
    const thief = await startFaultyPeer();
    closers.push(() => thief.close());
    thief.behave({ kind: "answer", status: 200, body: results(anAnswer(aForwarded(1))) });
    for (const status of [301, 302, 303, 307, 308]) {
      const call = answering(status, "", { location: `${thief.url}/internal/v1/creates` });
      expect((await unreachable(call)).neverSent).toBe(false);
    }
    expect(thief.requests).toEqual([]);
  });

  it.each([["reset"], ["truncate"]] as const)("a broken connection: %s", async (kind) => {
    peer.behave({ kind });
    expect((await unreachable(connect().create(peer.url, ONE, ONCE))).neverSent).toBe(false);
  });

  it("the given time without a response", async () => {
    const clock = createManualClock();
    const arrived = peer.nextRequest();
    const call = connect({ clock }).create(peer.url, ONE, { repeat: false, withinMs: 1_700 });
    const settled = vi.fn();
    call.then(settled, settled);
    await arrived;
    await clock.advance(1_699);
    expect(settled).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(await unreachable(call)).toMatchObject({ neverSent: false, message: expect.stringContaining("1700 ms") });
  });

  it("closing this node, which sends nothing afterwards", async () => {
    const peers = connect();
    const arrived = peer.nextRequest();
    const call = unreachable(peers.create(peer.url, ONE, ONCE));
    await arrived;
    await peers.close();
    expect((await call).neverSent).toBe(false);
    expect((await unreachable(peers.create(peer.url, ONE, ONCE))).neverSent).toBe(true);
    expect(peer.requests).toHaveLength(1);
  });
});

describe("error results of single forwarded creates", () => {
  const only = async (item: object) => {
    const [result] = await answering(200, results(item));
    expect(result).toBeInstanceOf(FencepostError);
    return result as FencepostError;
  };

  it("become errors with the same code", async () => {
    const result = await only(problem("NOT_LEADER", { ownerUrl: "http://node-c:3000", retryAfterSeconds: 1 }));
    expect(result).toMatchObject({ code: "NOT_LEADER", message: "why", status: 409 });
    expect(result.extras).toEqual({ ownerUrl: "http://node-c:3000", retryAfterSeconds: 1 });
  });

  it.each([["TOO_TIRED"], ["toString"], ["__proto__"], [""]])(
    "become UNAVAILABLE if their code is the unknown %j",
    async (code) => {
      const result = await only(problem(code, { ownerUrl: "http://node-c:3000" }));
      expect(result).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("why") });
      expect(result.extras).toEqual({ retryAfterSeconds: 1 });
    },
  );

  it("include the name and arguments of a revert", async () => {
    const revert = { name: "Short", message: "Short(1)", data: "0x01", args: ["1", { deep: [true] }] };
    expect((await only(problem("SUBMISSION_REJECTED", { revert }))).extras).toEqual({ revert });
    const none = { ...revert, args: "1" };
    expect((await only(problem("SUBMISSION_REJECTED", { revert: none }))).extras).toEqual({});
  });

  it("lose fields that this version does not know", async () => {
    const extras = {
      mood: "bad",
      reason: "BOREDOM",
      retryAfterSeconds: "soon",
      ownerUrl: 7,
      outcome: "known",
      revert: { name: 1, message: null, data: "0x" },
      dependsOnPending: "yes",
      txId: null,
      epoch: 1.5,
      path: "payload.to",
    };
    expect((await only(problem("SUBMISSION_REJECTED", extras))).extras).toEqual({ path: "payload.to" });
  });

  it("have a detail text even if the other node gave none", async () => {
    expect((await only({ code: "CONFLICT" })).message).toBe("CONFLICT");
  });
});
