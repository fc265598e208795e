/**
 * Tests that a caller's forwarded request, whatever its outcome, does not change the health of the node's own
 * endpoints.
 */
import { afterEach, describe, expect, it } from "vitest";
import { passOn, passSigned } from "../../../../src/adapters/evm/reads/pass-on.ts";
import { Endpoints } from "../../../../src/adapters/evm/rpc/endpoints.ts";
import { ChainUnavailable } from "../../../../src/ports/chain.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../../support/faulty-rpc.ts";
import { recordTelemetry } from "../../../support/recorded-telemetry.ts";

const CHAIN = 31_337;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function bench(...chainIds: readonly number[]) {
  const servers = await Promise.all(chainIds.map((chainId) => startFaultyRpc(chainId)));
  for (const [index, server] of servers.entries()) server.on("eth_who", () => index);
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const urls = servers.map(({ url }) => url);
  const endpoints = new Endpoints({ urls, chainId: CHAIN, telemetry, clock, entropy: createSeededEntropy(1) });
  closers.push(() => endpoints.close(), ...servers.map((server) => () => server.close()));
  const ask = (method = "eth_who", params: unknown = undefined) => passOn(endpoints, method, params);
  return { first: servers[0] as FaultyRpc, second: servers[1] as FaultyRpc, endpoints, clock, telemetry, ask };
}

const healthy = (endpoints: Endpoints) => endpoints.usable().every(({ state }) => state === "up");
const DOWN = { kind: "status", status: 502, body: "<html>" } as const;

describe("a caller's forwarded JSON-RPC request", () => {
  it("is sent unchanged", async () => {
    const { first, telemetry, ask } = await bench(CHAIN);
    first.on("eth_made_up", (params) => params);
    expect(await ask("eth_made_up", [{ a: 1 }, "x"])).toEqual({ kind: "result", result: [{ a: 1 }, "x"] });
    expect(await ask("eth_made_up")).toEqual({ kind: "result", result: [] });
    const methods = telemetry.of("rpc.request").map(({ method }) => method);
    expect(new Set(methods)).toEqual(new Set(["eth_chainId", "passed_through"]));
  });

  it("gets the error of the first endpoint that answers", async () => {
    const { first, second, ask } = await bench(CHAIN, CHAIN);
    first.on("eth_call", () => {
      throw new Refusal(3, "execution reverted", "0x08c379a0");
    });
    expect(await ask("eth_call", [])).toEqual({
      kind: "error",
      code: 3,
      message: "execution reverted",
      data: "0x08c379a0",
    });
    expect(second.requests).toEqual([]);
  });

  it("goes to the next endpoint if the first endpoint is unreachable", async () => {
    for (const fault of [DOWN, { kind: "cut" }, { kind: "status", status: 429 }] as const) {
      const { first, ask } = await bench(CHAIN, CHAIN);
      first.failAlways(fault);
      expect(await ask()).toEqual({ kind: "result", result: 1 });
    }
    const { ask } = await bench(1, CHAIN);
    expect(await ask()).toEqual({ kind: "result", result: 1 });
  });

  it("fails with UNAVAILABLE if no endpoint answers", async () => {
    const { first, second, ask } = await bench(CHAIN, CHAIN);
    first.failAlways(DOWN);
    second.failAlways(DOWN);
    await expect(ask()).rejects.toThrow(ChainUnavailable);
  });

  // protects [JSON-RPC] src/adapters/evm/reads/pass-on.ts, src/adapters/evm/rpc/transport.ts
  it("never changes an endpoint's health", async () => {
    const { first, second, endpoints, clock, ask } = await bench(CHAIN, CHAIN);
    expect(await ask()).toMatchObject({ result: 0 });
    for (let asked = 0; asked < 5; asked++) {
      first.failNext({ kind: "hang" });
      const arrived = first.arrived(first.requests.length + 1);
      const late = ask().catch((error: unknown) => error);
      await arrived;
      await clock.advance(10_000);
      expect(await late).toBeInstanceOf(ChainUnavailable);
    }
    // A request that timed out at the first endpoint is not sent to the next one.
    expect(second.calls("eth_who")).toEqual([]);
    first.on("eth_getLogs", () => "0".repeat(9 * 1024 * 1024));
    for (let asked = 0; asked < 5; asked++)
      expect(await ask("eth_getLogs")).toMatchObject({
        kind: "error",
        code: -32003,
        message: expect.stringContaining("too large"),
      });
    expect(healthy(endpoints)).toBe(true);
    expect(await ask()).toMatchObject({ result: 0 });
  });
});

describe("a forwarded transaction that the caller signed", () => {
  // protects [Attacks] src/adapters/evm/reads/pass-on.ts, src/application/operations/json-rpc.ts
  it("is not sent if a kill happens before the connection is open", async () => {
    const { first, second, endpoints } = await bench(CHAIN, CHAIN);
    const sent: unknown[] = [];
    for (const server of [first, second]) server.on("eth_sendRawTransaction", (params) => sent.push(params));
    let isStopped = false;
    const passing = passSigned(endpoints, "0xabcd", () => !isStopped);
    // Permission to send ends here, before the chain id is checked and before a connection is open.
    isStopped = true;
    expect(await passing).toEqual({ answer: "notStarted" });
    expect(sent).toEqual([]);
    isStopped = false;
    expect(await passSigned(endpoints, "0xabcd", () => !isStopped)).toMatchObject({ kind: "result" });
    expect(sent).toEqual([["0xabcd"]]);
  });
});
