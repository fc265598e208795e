import { Agent, request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Answer } from "../../../../src/main/dev/embedded/chain/json-rpc.ts";
import { type RpcServer, serveRpc } from "../../../../src/main/dev/embedded/chain/rpc-server.ts";

let server: RpcServer;
let calls: Array<[method: string, params: unknown]>;

beforeEach(async () => {
  calls = [];
  server = await serveRpc(answer, 0);
});

afterEach(() => server.close());

async function answer(method: string, params: unknown): Promise<Answer> {
  calls.push([method, params]);
  if (method === "throws") throw new Error("the engine broke");
  if (method === "refuses") return { error: { code: 3, message: "no", data: "0x01" } };
  return { result: `${method} done` };
}

describe("a JSON-RPC request to the embedded chain", () => {
  test("is answered with its own id", async () => {
    expect(await post({ jsonrpc: "2.0", id: "abc", method: "a", params: [1] })).toEqual({
      status: 200,
      body: { jsonrpc: "2.0", id: "abc", result: "a done" },
    });
  });

  test.each([[0], [null], ["x"], [1.5]])("gets a response with its own id %j", async (id) => {
    expect((await post({ id, method: "a" })).body).toEqual({ jsonrpc: "2.0", id, result: "a done" });
  });

  test("is answered with the id null if the given id is invalid", async () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    for (const id of ["{}", "[1]", "true", deep]) {
      const response = await fetch(`http://127.0.0.1:${server.port}`, {
        method: "POST",
        body: `{"id":${id},"method":"a"}`,
      });
      expect(await response.json()).toEqual({ jsonrpc: "2.0", id: null, result: "a done" });
    }
  });

  test("is forwarded with an empty list if no params are given", async () => {
    await post({ id: 1, method: "a" });
    expect(calls).toEqual([["a", []]]);
  });

  test("is executed without an answer if no id is given", async () => {
    expect(await post({ method: "a" })).toEqual({ status: 204, body: null });
    expect(calls).toEqual([["a", []]]);
  });

  test("is answered with the error of the chain", async () => {
    expect((await post({ id: 1, method: "refuses" })).body).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: { code: 3, message: "no", data: "0x01" },
    });
    expect((await post({ id: 1, method: "throws" })).body).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32603, message: "the engine broke" },
    });
  });
});

describe("a JSON-RPC batch to the embedded chain", () => {
  test("is answered in order, and an invalid item fails alone", async () => {
    const { body } = await post([
      { id: 1, method: "a" },
      7,
      { id: 2, method: "refuses" },
      { method: "silent" },
      { id: 3, method: 5 },
      { id: 4, method: "b" },
    ]);
    expect(body).toEqual([
      { jsonrpc: "2.0", id: 1, result: "a done" },
      { jsonrpc: "2.0", id: null, error: { code: -32600, message: "invalid request" } },
      { jsonrpc: "2.0", id: 2, error: { code: 3, message: "no", data: "0x01" } },
      { jsonrpc: "2.0", id: null, error: { code: -32600, message: "invalid request" } },
      { jsonrpc: "2.0", id: 4, result: "b done" },
    ]);
    expect(calls.map(([method]) => method)).toEqual(["a", "refuses", "silent", "b"]);
  });

  test("is not answered if it has only notifications", async () => {
    expect(await post([{ method: "a" }, { method: "b" }])).toEqual({ status: 204, body: null });
  });

  test("is refused as a whole if it is empty or too long", async () => {
    expect((await post([])).body).toMatchObject({ id: null, error: { code: -32600 } });
    const long = Array.from({ length: 1001 }, (_, id) => ({ id, method: "a" }));
    expect((await post(long)).body).toMatchObject({ id: null, error: { code: -32600 } });
    expect(calls).toEqual([]);
  });
});

describe("a request to the embedded chain that is not JSON-RPC", () => {
  test.each(["", "{", "[1,", "\u0000"])("is refused as a parse error: %j", async (text) => {
    expect((await postText(text)).body).toEqual({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32700, message: "parse error" },
    });
  });

  test.each(["null", "5", '"text"', "{}", '{"id":1}'])("is refused as an invalid request: %s", async (text) => {
    expect((await postText(text)).body).toMatchObject({ id: null, error: { code: -32600 } });
  });

  test("is refused above ten megabytes", async () => {
    const { status, body } = await postText(JSON.stringify({ id: 1, method: "a", params: ["x".repeat(10_000_001)] }));
    expect(status).toBe(413);
    expect(body).toMatchObject({ error: { code: -32600, message: "request too large" } });
    expect(calls).toEqual([]);
    expect((await post({ id: 1, method: "a" })).status).toBe(200);
  });

  test("is refused with 405 if it is not a POST", async () => {
    const response = await fetch(urlOf(server));
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST");
  });
});

describe("HTTP connections to the embedded chain", () => {
  test("are kept open for the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await portUsed(agent)).toBe(await portUsed(agent));
    agent.destroy();
  });

  test("harm no other connection if they are cut in the middle of a request", async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"id":1,');
    await new Promise((resolve) => socket.once("ready", resolve));
    socket.destroy();
    expect((await post({ id: 1, method: "a" })).status).toBe(200);
  });

  test("do not delay closing if they are idle", async () => {
    const agent = new Agent({ keepAlive: true });
    await portUsed(agent);
    await server.close();
    await expect(fetch(urlOf(server), { method: "POST", body: "{}" })).rejects.toThrow();
    agent.destroy();
  });
});

function portUsed(agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request(urlOf(server), { agent, method: "POST" }, (response) => {
      const port = response.socket.localPort;
      response.resume().on("end", () => resolve(port));
    });
    outgoing.on("error", reject).end('{"id":1,"method":"a"}');
  });
}

function post(body: unknown): Promise<{ status: number; body: unknown }> {
  return postText(JSON.stringify(body));
}

async function postText(text: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(urlOf(server), { method: "POST", body: text });
  const answered = await response.text();
  return { status: response.status, body: answered === "" ? null : JSON.parse(answered) };
}

function urlOf({ port }: RpcServer): string {
  return `http://127.0.0.1:${port}`;
}
