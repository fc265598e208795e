/** The endpoint of a campaign: its answers in each misconduct, and the bytes that it notes. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock as clock } from "../../../../src/adapters/system/clock.ts";
import { type Arrival, type Endpoint, type Misconduct, openEndpoint } from "../../../../src/main/dev/chaos/endpoint.ts";

describe("an endpoint", () => {
  let endpoint: Endpoint;
  let arrivals: Arrival[];
  /** Calls that the chain performed. */
  let performed: string[];

  beforeEach(async () => {
    arrivals = [];
    performed = [];
    const ask = async (method: string) => {
      performed.push(method);
      return method === "eth_fails" ? { error: { code: 3, message: "no" } } : { result: "0x1" };
    };
    endpoint = await openEndpoint(clock, "node-1", { ask, arrived: (arrival) => void arrivals.push(arrival) });
  });

  afterEach(() => endpoint.close());

  const post = async (body: unknown) => {
    const response = await fetch(endpoint.url, { method: "POST", body: JSON.stringify(body) });
    return response.ok ? response.json() : response.status;
  };
  const send = { jsonrpc: "2.0", id: 7, method: "eth_sendRawTransaction", params: ["0x02ab"] };

  it("answers single calls and batches as the chain does", async () => {
    const head = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber" };
    const fails = { jsonrpc: "2.0", id: 2, method: "eth_fails", params: [] };
    expect(await post(head)).toEqual({ jsonrpc: "2.0", id: 1, result: "0x1" });
    expect(await post([head, fails])).toEqual([
      { jsonrpc: "2.0", id: 1, result: "0x1" },
      { jsonrpc: "2.0", id: 2, error: { code: 3, message: "no" } },
    ]);
  });

  it.each<readonly [what: string, misconduct: Misconduct, answer: unknown, performed: number]>([
    ["answers with a status", { status: 502 }, 502, 0],
    ["breaks before it asks the chain", { breaks: "before" }, "broken", 0],
    ["breaks after the chain took the bytes", { breaks: "after" }, "broken", 1],
    [
      "refuses in the chain's stead",
      { instead: () => ({ error: { code: -1, message: "no" } }) },
      { error: { code: -1, message: "no" } },
      0,
    ],
    ["lies about the result", { lie: () => "0x2" }, { result: "0x2" }, 1],
  ])("%s, and notes the bytes that arrived", async (_, misconduct, answer, times) => {
    endpoint.behave(misconduct);
    const got = await post(send).catch(() => "broken");
    expect(got).toEqual(typeof answer === "object" ? { jsonrpc: "2.0", id: 7, ...answer } : answer);
    expect(performed).toHaveLength(times);
    expect(arrivals).toEqual([{ atMs: expect.any(Number), node: "node-1", raw: "0x02ab" }]);
  });

  it("is honest again when its misconduct is over", async () => {
    endpoint.behave({ status: 429 });
    expect(await post(send)).toBe(429);
    endpoint.behave({});
    expect(await post(send)).toMatchObject({ result: "0x1" });
  });
});
