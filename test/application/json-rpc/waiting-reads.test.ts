/**
 * Reads of a chain that is slower than its callers: which reads wait, which share one request, and which callers are
 * refused.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { ApiKey } from "../../../src/adapters/http/exchange/options.ts";
import type { PassedAnswer } from "../../../src/ports/chain.ts";
import { call, type RpcAnswer, RpcFace } from "../../support/json-rpc.ts";
import { CHAIN_ID, World, type WorldNode } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
afterEach(() => world.close());

/** A JSON-RPC request that the chain has received and not answered yet. */
interface Put {
  readonly method: string;
  readonly params: unknown;
  answer(result: unknown): void;
}

/** Limits of concurrent requests to a chain, for one API key and for all keys together. */
const OF_ONE_KEY = 12;
const OF_ALL = 16;

const KEYS: readonly ApiKey[] = ["busy", "calm", "third"].map((name) => ({ name, secret: `${name}-0123456789abcdef` }));
const as = (name: string) => ({ headers: { authorization: `Bearer ${name}-0123456789abcdef` } });
const nth = (n: number) => `0x${n.toString(16)}`;

let put: Put[];

async function start(apiKeys: readonly ApiKey[] | "none" = "none"): Promise<void> {
  world = new World();
  entry = await world.startNode();
  rpc = new RpcFace(world, entry, { apiKeys });
  put = [];
  entry.rpc.passOn = (method, params) =>
    new Promise<PassedAnswer>((resolve) => {
      put.push({ method, params, answer: (result) => resolve({ kind: "result", result }) });
    });
}

/** Posts one JSON-RPC read and parses the response. */
async function read(method: string, params: readonly unknown[], key?: string): Promise<RpcAnswer> {
  const { text } = await rpc.post(call(method, params), key === undefined ? {} : as(key));
  return JSON.parse(text) as RpcAnswer;
}

const block = (n: number, key?: string) => read("eth_getBlockByNumber", [nth(n), false], key);
const asked = (n: number) => world.until(() => put.length >= n, 1_000);
const takeAll = () => put.splice(0);
/** Sends one more request and waits for its response. By then, all earlier requests have arrived at the node. */
const arrived = (key?: string) => rpc.call("eth_chainId", [], key === undefined ? {} : as(key));

describe("JSON-RPC reads forwarded to a chain", () => {
  // protects [JSON-RPC] src/adapters/http/rpc/chain-reads.ts
  it("run at once only up to a limit", async () => {
    await start();
    const reads = Array.from({ length: 300 }, (_, at) => block(at % 3));
    await arrived();
    const first = takeAll();
    expect(first).toHaveLength(OF_ONE_KEY);
    for (const each of first) each.answer("then");
    await asked(3);
    expect(put.map(({ params }) => (params as readonly unknown[])[0])).toEqual(
      expect.arrayContaining([nth(0), nth(1), nth(2)]),
    );
    expect(put).toHaveLength(3);
    for (const each of takeAll()) each.answer("now");
    const results = (await world.settle(Promise.all(reads))).map(({ result }) => result);
    expect(results.filter((result) => result === "now")).toHaveLength(300 - OF_ONE_KEY);
    expect(put).toEqual([]);
  });

  // protects [JSON-RPC] src/adapters/http/rpc/chain-reads.ts
  it("never reuse the response to an earlier request", async () => {
    await start();
    const before = block(1);
    await asked(1);
    const [old] = takeAll();
    await rpc.send();
    const after = block(1);
    await asked(1);
    old?.answer("before the send");
    expect((await world.settle(before)).result).toBe("before the send");
    for (const each of takeAll()) each.answer("after the send");
    expect((await world.settle(after)).result).toBe("after the send");
  });

  // protects [JSON-RPC] src/adapters/http/rpc/chain-reads.ts
  it("never share an earlier request, even if identical reads fill all slots", async () => {
    await start();
    const before = Array.from({ length: OF_ONE_KEY }, () => block(1));
    await asked(OF_ONE_KEY);
    const old = takeAll();
    const after = block(1);
    await arrived();
    for (const each of old) each.answer("before");
    expect(new Set((await world.settle(Promise.all(before))).map(({ result }) => result))).toEqual(new Set(["before"]));
    await asked(1);
    for (const each of takeAll()) each.answer("after");
    expect((await world.settle(after)).result).toBe("after");
  });

  // protects [Attacks] src/adapters/http/rpc/chain-reads.ts
  it("never share a request between two API keys", async () => {
    await start(KEYS);
    const full = Array.from({ length: OF_ALL }, (_, at) => block(100 + at, at < OF_ONE_KEY ? "third" : "busy"));
    await asked(OF_ALL);
    const reads = [block(1, "busy"), block(1, "calm"), block(1, "busy")];
    await arrived("busy");
    for (const each of takeAll()) each.answer("full");
    await world.settle(Promise.all(full));
    await asked(2);
    expect(put).toHaveLength(2);
    for (const [at, each] of takeAll().entries()) each.answer(at);
    const [busy, calm, again] = (await world.settle(Promise.all(reads))).map(({ result }) => result);
    expect(busy).toBe(again);
    expect(busy).not.toBe(calm);
  });

  // protects [Attacks] src/adapters/http/rpc/chain-reads.ts
  it("never delay the reads of another API key", async () => {
    await start(KEYS);
    const busy = Array.from({ length: 200 }, (_, at) => block(at, "busy"));
    await asked(OF_ONE_KEY);
    const calm = Array.from({ length: 8 }, (_, at) => block(1_000 + at, "calm"));
    await asked(OF_ALL);
    const ofCalm = () => put.filter(({ params }) => Number((params as readonly string[])[0]) >= 1_000).length;
    expect([put.length, ofCalm()]).toEqual([OF_ALL, OF_ALL - OF_ONE_KEY]);
    for (const each of takeAll()) each.answer("first");
    await asked(OF_ALL);
    expect(ofCalm()).toBe(4);
    const all = world.settle(Promise.all([...busy, ...calm]));
    await answerEverything(all);
    expect((await all).every(({ error }) => error === undefined)).toBe(true);
  });

  // protects [JSON-RPC] src/adapters/http/rpc/chain-reads.ts
  it("are not sent to the chain after they have timed out", async () => {
    await start();
    const hung = Array.from({ length: 40 }, (_, at) => block(at));
    await asked(OF_ONE_KEY);
    const answers = await world.settle(Promise.all(hung));
    expect(new Set(answers.map(({ error }) => error?.code))).toEqual(new Set([-32002]));
    const late = block(7);
    await arrived();
    for (const each of takeAll()) each.answer("late");
    await asked(1);
    expect(put).toHaveLength(1);
    for (const each of takeAll()) each.answer("again");
    expect((await world.settle(late)).result).toBe("again");
  });

  it("return an error to all callers that share a failed read", async () => {
    await start();
    entry.rpc.passOn = async () => {
      throw new Error("a mistake of ours");
    };
    const answers = await world.settle(Promise.all(Array.from({ length: 60 }, (_, at) => block(at % 2))));
    expect(new Set(answers.map(({ error }) => error?.code))).toEqual(new Set([-32603]));
    entry.rpc.passOn = async () => ({ kind: "error", code: 3, message: "execution reverted", data: "0x08" });
    const reverted = await world.settle(Promise.all(Array.from({ length: 60 }, () => block(1))));
    expect(new Set(reverted.map(({ error }) => JSON.stringify(error)))).toEqual(
      new Set(['{"code":3,"message":"execution reverted","data":"0x08"}']),
    );
  });

  it.each([
    ["an answer", "result"],
    ["what a call reverted with", "error"],
    // protects [Attacks] src/adapters/http/rpc/chain-reads.ts
  ] as const)("are written to the sharing callers one after another if %s is large", async (_, kind) => {
    await start();
    const large = "0".repeat(3 * 1024 * 1024);
    const full = Array.from({ length: OF_ONE_KEY }, (_, at) => block(100 + at));
    await asked(OF_ONE_KEY);
    const many = Array.from({ length: 5 }, () => block(1));
    await arrived();
    let times = 0;
    const early = takeAll();
    entry.rpc.passOn = async () => {
      times++;
      if (kind === "result") return { kind, result: large };
      return { kind, code: 3, message: "execution reverted", data: large };
    };
    for (const each of early) each.answer("early");
    await world.settle(Promise.all(full));
    const answers = await world.settle(Promise.all(many));
    expect(answers.every(({ result, error }) => (result ?? error?.data) === large)).toBe(true);
    // Two of the large results fit into the limit of 8 MiB. The other three callers repeat the request, and there are
    // free slots for it by then.
    expect(times).toBe(4);
  });

  it("are refused for a chain that is not served", async () => {
    await start();
    const answer = await world.settle(rpc.post(call("eth_blockNumber"), { url: `/rpc/${CHAIN_ID + 1}` }));
    expect((JSON.parse(answer.text) as RpcAnswer).error?.code).toBe(4901);
  });
});

describe("when the queue of waiting JSON-RPC reads is full", () => {
  /**
   * Posts a batch of a thousand reads. Twelve such batches use up one API key's share of waiting reads, although their
   * bodies are small.
   */
  const large = async (key: string): Promise<readonly RpcAnswer[]> => {
    const reads = Array.from({ length: 1_000 }, () => call("eth_getBlockByNumber", [nth(1), false]));
    return JSON.parse((await rpc.post(reads, as(key))).text) as readonly RpcAnswer[];
  };
  const codesOf = async (reads: readonly Promise<readonly RpcAnswer[]>[]) =>
    new Set((await Promise.all(reads)).flat().map(({ error }) => error?.code ?? null));
  const answered = async (reads: readonly Promise<readonly RpcAnswer[]>[]) => {
    const codes = world.settle(codesOf(reads));
    await answerEverything(codes);
    return codes;
  };

  // protects [Attacks] src/adapters/http/rpc/answer-packet.ts
  it("an API key above its share gets -32005", async () => {
    await start(KEYS);
    const busy = Array.from({ length: 12 }, () => large("busy"));
    await arrived("busy");
    expect(await world.settle(codesOf([large("busy")]))).toEqual(new Set([-32005]));
    const calm = [large("calm"), large("calm")];
    await arrived("calm");
    expect(await answered([...busy, ...calm])).toEqual(new Set([null]));
    expect(await answered([large("busy")])).toEqual(new Set([null]));
  });
});

/** Answers the waiting requests one after the other until none is left. */
async function answerEverything(all: Promise<unknown>): Promise<void> {
  let done = false;
  void all.finally(() => {
    done = true;
  });
  while (!done) {
    for (const each of takeAll()) each.answer("then");
    await world.until(() => done || put.length > 0, 10_000);
  }
}
