import { afterEach, describe, expect, it } from "vitest";
import { type Ask, Endpoints, type Said } from "../../../../src/adapters/evm/rpc/endpoints.ts";
import { RpcErrorAnswer } from "../../../../src/adapters/evm/rpc/rpc-errors.ts";
import { ChainUnavailable } from "../../../../src/ports/chain.ts";
import { createManualClock, type ManualClock } from "../../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../../support/faulty-rpc.ts";
import { type RecordedTelemetry, recordTelemetry } from "../../../support/recorded-telemetry.ts";

const CHAIN = 31_337;
const who: Ask<unknown> = (rpc) => rpc.request("who", []);

interface Bench {
  readonly servers: readonly FaultyRpc[];
  readonly endpoints: Endpoints;
  readonly clock: ManualClock;
  readonly telemetry: RecordedTelemetry;
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Starts one server per given chain id. Each responds to the call `who` with its index. */
async function bench(...chainIds: readonly number[]): Promise<Bench> {
  const servers = await Promise.all(chainIds.map((chainId) => startFaultyRpc(chainId)));
  for (const [index, server] of servers.entries()) server.on("who", () => index);
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const urls = servers.map((server) => server.url);
  const endpoints = new Endpoints({ urls, chainId: CHAIN, telemetry, clock, entropy: createSeededEntropy(1) });
  closers.push(() => endpoints.close(), ...servers.map((server) => () => server.close()));
  return { servers, endpoints, clock, telemetry };
}

function server(bench: Bench, index: number): FaultyRpc {
  const found = bench.servers[index];
  if (found === undefined) throw new Error(`no server ${index}`);
  return found;
}

const DOWN = { kind: "status", status: 502, body: "<html>" } as const;
const LIMITED = { kind: "status", status: 429, headers: { "retry-after": "1" } } as const;
const alerts = (telemetry: RecordedTelemetry) =>
  telemetry.of("alert").map(({ severity, code }) => `${severity} ${code}`);

describe("a read with several endpoints configured", () => {
  it("calls only the preferred endpoint", async () => {
    const b = await bench(CHAIN, CHAIN);
    expect([await b.endpoints.read(who), await b.endpoints.read(who)]).toEqual([0, 0]);
    expect(server(b, 1).requests).toHaveLength(0);
  });

  it("calls the next endpoint if the first does not answer", async () => {
    const b = await bench(CHAIN, CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    server(b, 1).failAlways({ kind: "raw", body: "<html>" });
    expect(await b.endpoints.read(who)).toBe(2);
  });

  it("calls the next endpoint after an error response", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).on("who", () => {
      throw new Refusal(-32000, "header not found");
    });
    for (let times = 0; times < 10; times++) expect(await b.endpoints.read(who)).toBe(1);
    expect(server(b, 0).calls("who")).toHaveLength(10);
    expect(alerts(b.telemetry)).toEqual([]);
  });

  it("does not report a rate-limited endpoint as unreachable", async () => {
    const b = await bench(CHAIN, CHAIN);
    await b.endpoints.read(who);
    server(b, 0).failAlways(LIMITED);
    server(b, 1).failAlways(LIMITED);
    await expect(b.endpoints.read(who)).rejects.toMatchObject({ limited: true });
    server(b, 0).failAlways(null);
    await b.clock.advance(1_000);
    expect(await b.endpoints.read(who)).toBe(0);
    expect(server(b, 0).calls("eth_chainId")).toHaveLength(1);
    server(b, 0).failAlways(LIMITED);
    server(b, 1).failAlways(DOWN);
    await b.clock.advance(1_000);
    await expect(b.endpoints.read(who)).rejects.toMatchObject({ name: "ChainUnavailable", limited: false });
  });

  it("throws ChainUnavailable with every reason if no endpoint answers", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    server(b, 1).on("who", () => {
      throw new Refusal(-32000, "missing trie node");
    });
    const read = b.endpoints.read(who);
    await expect(read).rejects.toBeInstanceOf(ChainUnavailable);
    await expect(read).rejects.toThrow(/502.*missing trie node/);
  });

  it("rethrows a programming error", async () => {
    const b = await bench(CHAIN, CHAIN);
    const mistake = b.endpoints.read(async () => {
      throw new TypeError("ours");
    });
    await expect(mistake).rejects.toThrow("ours");
    expect(server(b, 1).requests).toHaveLength(0);
  });

  it("reports each request with its chain and endpoint", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    await b.endpoints.read(who);
    expect(
      b.telemetry.of("rpc.request").map(({ chainId, endpoint, method, result }) => [chainId, endpoint, method, result]),
    ).toEqual([
      [CHAIN, 0, "eth_chainId", "unreachable"],
      [CHAIN, 1, "eth_chainId", "ok"],
      [CHAIN, 1, "who", "ok"],
    ]);
  });
});

describe("the health state of an endpoint", () => {
  it("is down after three failures", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    for (let times = 0; times < 5; times++) expect(await b.endpoints.read(who)).toBe(1);
    expect(server(b, 0).requests).toHaveLength(3);
    expect(alerts(b.telemetry)).toEqual(["WARNING RPC_ENDPOINT_DOWN"]);
    server(b, 0).failAlways(null);
    await b.clock.advance(1_000);
    expect(await b.endpoints.read(who)).toBe(1);
    await server(b, 0).arrived(4);
    await expect.poll(() => b.endpoints.read(who)).toBe(0);
    expect(alerts(b.telemetry)).toEqual(["WARNING RPC_ENDPOINT_DOWN"]);
    const about = { code: "RPC_ENDPOINT_DOWN", chainId: CHAIN, endpoint: 0 };
    expect(b.telemetry.of("alert")).toMatchObject([about]);
    expect(b.telemetry.of("alert.resolved")).toMatchObject([about]);
  });

  it("is checked by background probes", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    for (let times = 0; times < 3; times++) await b.endpoints.read(who);
    server(b, 0).failAlways({ kind: "hang" });
    await b.clock.advance(1_000);
    expect(await b.endpoints.read(who)).toBe(1);
    await server(b, 0).arrived(4);
    expect(await b.endpoints.read(who)).toBe(1);
    expect(server(b, 0).requests).toHaveLength(4);
  });

  it("is checked at growing intervals while the endpoint is down", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    for (let times = 0; times < 3; times++) await b.endpoints.read(who);
    for (let seconds = 0; seconds < 120; seconds++) {
      await b.clock.advance(1_000);
      await b.endpoints.read(who);
    }
    const probes = server(b, 0).requests.length - 3;
    expect(probes).toBeGreaterThanOrEqual(5);
    expect(probes).toBeLessThanOrEqual(14);
  });

  it("is ignored if no endpoint counts as up", async () => {
    const b = await bench(CHAIN);
    server(b, 0).failAlways(DOWN);
    for (let times = 0; times < 20; times++) await expect(b.endpoints.read(who)).rejects.toThrow(ChainUnavailable);
    server(b, 0).failAlways(null);
    expect(await b.endpoints.read(who)).toBe(0);
  });

  it("counts simultaneous failures of many calls as a single failed probe", async () => {
    const b = await bench(CHAIN, CHAIN);
    await b.endpoints.read(who);
    server(b, 0).failAlways(DOWN);
    await Promise.all(Array.from({ length: 50 }, () => b.endpoints.read(who)));
    server(b, 0).failAlways(null);
    await b.clock.advance(1_000);
    await b.endpoints.read(who);
    await expect.poll(() => b.endpoints.read(who)).toBe(0);
  });

  it("counts a provider's rate limit inside an HTTP 200 response as a failure", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).on("who", () => {
      throw new Refusal(-32005, "daily request count exceeded, request rate limited");
    });
    for (let times = 0; times < 5; times++) expect(await b.endpoints.read(who)).toBe(1);
    expect(server(b, 0).calls("who")).toHaveLength(3);
    // An endpoint that was taken out of use must pass the chain id check again before it is used. A probe without that
    // check would accept an endpoint of any chain.
    server(b, 0).on("eth_chainId", () => "0x1");
    const asked = server(b, 0).requests.length;
    await b.clock.advance(1_000);
    await b.endpoints.read(who);
    await server(b, 0).arrived(asked + 1);
    await expect.poll(() => alerts(b.telemetry)).toContain("CRITICAL RPC_WRONG_CHAIN");
    expect(await b.endpoints.read(who)).toBe(1);
  });
});

describe("an endpoint that serves another chain", () => {
  it("is never used, and raises an alert", async () => {
    const b = await bench(1, CHAIN);
    expect([await b.endpoints.read(who), await b.endpoints.read(who)]).toEqual([1, 1]);
    expect(server(b, 0).calls("who")).toEqual([]);
    expect(alerts(b.telemetry)).toEqual(["CRITICAL RPC_WRONG_CHAIN"]);
    expect(b.telemetry.of("alert")[0]?.message).toMatch(/chain 1, not 31337/);
  });

  it("is not used even if it is the only endpoint", async () => {
    const b = await bench(1);
    for (let times = 0; times < 3; times++) await expect(b.endpoints.read(who)).rejects.toThrow(ChainUnavailable);
    expect(server(b, 0).calls("who")).toEqual([]);
    expect(alerts(b.telemetry)).toEqual(["CRITICAL RPC_WRONG_CHAIN"]);
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/endpoints.ts
  it("is detected after a lost connection", async () => {
    const b = await bench(CHAIN, CHAIN);
    expect(await b.endpoints.read(who)).toBe(0);
    server(b, 0).failNext({ kind: "cut" });
    expect(await b.endpoints.read(who)).toBe(1);
    server(b, 0).on("eth_chainId", () => "0x1");
    expect(await b.endpoints.read(who)).toBe(1);
    expect(alerts(b.telemetry)).toEqual(["CRITICAL RPC_WRONG_CHAIN"]);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/endpoints.ts, src/adapters/evm/rpc/http.ts
  it("is detected on a new connection although no request was lost", async () => {
    const b = await bench(CHAIN, CHAIN);
    expect(await b.endpoints.read(who)).toBe(0);
    server(b, 0).on("eth_chainId", () => "0x1");
    server(b, 0).failNext({ kind: "hangUp" });
    await expect.poll(() => b.endpoints.read(who)).toBe(1);
    expect(alerts(b.telemetry)).toEqual(["CRITICAL RPC_WRONG_CHAIN"]);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/endpoints.ts, src/adapters/evm/rpc/http.ts
  it("is not confused with a correct endpoint that closes each connection", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways({ kind: "hangUp" });
    const refused: Ask<unknown> = (rpc) => rpc.request("nothing", []);
    for (let times = 0; times < 5; times++) await b.endpoints.read(refused).catch(() => undefined);
    expect(alerts(b.telemetry)).toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/endpoints.ts
  it("is detected by the genesis hash if the chain id is the same", async () => {
    const known = `0x${"0a".repeat(32)}` as const;
    const blockZero = (hash: string) => ({
      ...{ number: "0x0", hash, parentHash: `0x${"00".repeat(32)}`, transactions: [], gasLimit: "0x1" },
    });
    const b = await bench(CHAIN, CHAIN);
    for (const each of b.servers) each.on("eth_getBlockByNumber", () => blockZero(known));
    expect(await b.endpoints.read(who)).toBe(0);
    await b.endpoints.identity(known);
    server(b, 0).failNext({ kind: "cut" });
    expect(await b.endpoints.read(who)).toBe(1);
    expect(await b.endpoints.read(who)).toBe(0);
    server(b, 0).failNext({ kind: "cut" });
    expect(await b.endpoints.read(who)).toBe(1);
    server(b, 0).on("eth_getBlockByNumber", () => blockZero(`0x${"0b".repeat(32)}`));
    expect(await b.endpoints.read(who)).toBe(1);
    expect(alerts(b.telemetry)).toEqual(["CRITICAL RPC_WRONG_CHAIN"]);
  });

  it("is still asked for the chain id if there is no other endpoint", async () => {
    const b = await bench(1);
    await expect(b.endpoints.read(who)).rejects.toThrow(ChainUnavailable);
    expect(await b.endpoints.identity(null)).toEqual({ chainId: 1, genesisHash: null });
  });

  it("is used again when it serves the configured chain", async () => {
    const b = await bench(1, CHAIN);
    await b.endpoints.read(who);
    server(b, 0).on("eth_chainId", () => "0x7a69");
    await b.clock.advance(1_000);
    await b.endpoints.read(who);
    await expect.poll(() => b.endpoints.read(who)).toBe(0);
  });

  it.each(["0x", "31337", 31_337, null, {}, "0xzz"])(
    "is assumed if the chain id cannot be parsed: %j",
    async (value) => {
      const b = await bench(CHAIN);
      server(b, 0).on("eth_chainId", () => value);
      await expect(b.endpoints.read(who)).rejects.toThrow(ChainUnavailable);
      expect(server(b, 0).calls("who")).toEqual([]);
    },
  );
});

describe("a read that calls every endpoint", () => {
  const said = (answer: unknown) => ({ kind: "says", answer });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/endpoints.ts
  it("calls all endpoints that are up at the same time", async () => {
    const b = await bench(CHAIN, CHAIN, CHAIN);
    expect(await b.endpoints.readEverywhere(who)).toEqual([said(0), said(1), said(2)]);
  });

  it("leaves out endpoints of another chain", async () => {
    expect(await (await bench(CHAIN, 1)).endpoints.readEverywhere(who)).toEqual([said(0)]);
    expect(await (await bench(1)).endpoints.readEverywhere(who)).toEqual([]);
  });

  it("leaves out an endpoint that counts as down", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 1).failAlways(DOWN);
    const silent = { kind: "silent" };
    for (let times = 0; times < 3; times++) expect(await b.endpoints.readEverywhere(who)).toEqual([said(0), silent]);
    expect(await b.endpoints.readEverywhere(who)).toEqual([said(0)]);
  });

  it("reports a failed request to all callers that shared the request", async () => {
    const b = await bench(CHAIN, CHAIN);
    await b.endpoints.readEverywhere(who);
    server(b, 1).failNext(DOWN);
    const together = await Promise.all([1, 2, 3, 4].map(() => b.endpoints.readEverywhere(who)));
    for (const said of together) expect(said[1]).toEqual({ kind: "silent" });
    expect(await b.endpoints.readEverywhere(who)).toEqual([said(0), said(1)]);
  });

  it("leaves out a send-only relay that refuses to report its chain id", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 1).on("eth_chainId", () => {
      throw new Refusal(-32_601, "rpc method is not whitelisted");
    });
    for (let times = 0; times < 3; times++) await b.endpoints.readEverywhere(who);
    expect(await b.endpoints.readEverywhere(who)).toEqual([said(0)]);
    expect(alerts(b.telemetry)).toEqual(["WARNING RPC_ENDPOINT_DOWN"]);
  });

  it("throws if no endpoint answers", async () => {
    const b = await bench(CHAIN, CHAIN);
    server(b, 0).failAlways(DOWN);
    server(b, 1).failAlways(DOWN);
    for (let times = 0; times < 4; times++) {
      await expect(b.endpoints.readEverywhere(who)).rejects.toThrow(ChainUnavailable);
    }
  });

  it("rethrows a programming error", async () => {
    const b = await bench(CHAIN, CHAIN);
    const mistake = async () => {
      throw new TypeError("ours");
    };
    await expect(b.endpoints.readEverywhere(mistake)).rejects.toThrow("ours");
  });
});

describe("an endpoint that falls behind the others", () => {
  const hashAt = (number: number) => `0x${number.toString(16).padStart(64, "0")}`;
  const blockJson = (number: number) => ({
    number: `0x${number.toString(16)}`,
    hash: hashAt(number),
    parentHash: hashAt(number - 1),
    transactions: [],
    gasLimit: "0x1c9c380",
  });

  /** Starts endpoints of one chain. `heads` has the newest block number of each endpoint; the test may change it. */
  async function racing(heads: readonly number[]): Promise<Bench> {
    const b = await bench(...heads.map(() => CHAIN));
    for (const index of heads.keys()) {
      const head = () => heads[index] as number;
      server(b, index).on("eth_blockNumber", () => `0x${head().toString(16)}`);
      server(b, index).on("eth_getBlockByNumber", ([number]) =>
        Number(number) > head() ? null : blockJson(Number(number)),
      );
    }
    return b;
  }

  /**
   * Reads once per second, as the node does when it polls for new blocks. Returns the number of seconds until the
   * endpoint `index` serves a read.
   */
  async function secondsUntilRead(b: Bench, index: number, each: () => void): Promise<number> {
    for (let seconds = 1; seconds < 600; seconds++) {
      each();
      await b.clock.advance(1_000);
      if ((await b.endpoints.read(who)) === index) return seconds;
    }
    throw new Error(`endpoint ${index} was not read in ten minutes`);
  }

  it("is skipped after a minute", async () => {
    const heads: [number, number] = [100, 100];
    const b = await racing(heads);
    const seconds = await secondsUntilRead(b, 1, () => heads[1]++);
    expect(seconds).toBeGreaterThanOrEqual(60);
    expect(b.endpoints.usable().map(({ index }) => index)).toEqual([1]);
    expect(await b.endpoints.readEverywhere(who)).toEqual([{ kind: "says", answer: 1 }]);
    expect(alerts(b.telemetry)).toEqual(["WARNING RPC_BEHIND"]);
    await secondsUntilRead(b, 0, () => {
      heads[0] = heads[1]++;
    });
    expect(server(b, 0).calls("eth_chainId"), "it was never out of reach").toHaveLength(1);
    const states = b.telemetry.of("rpc.endpoint").filter(({ endpoint }) => endpoint === 0);
    expect(states.map(({ state }) => state)).toEqual(["up", "behind", "up"]);
  });

  it("is detected by one small request every ten seconds", async () => {
    const heads = [100, 100];
    const two = await racing(heads);
    const one = await racing([100]);
    for (let seconds = 0; seconds < 100; seconds++) {
      for (const b of [one, two]) {
        await b.clock.advance(1_000);
        await b.endpoints.read(who);
      }
    }
    for (const index of [0, 1]) {
      const asked = server(two, index).requests.flatMap(({ calls }) => calls.map(({ method }) => method));
      const compared = asked.filter((method) => method === "eth_blockNumber").length;
      expect(compared).toBeGreaterThan(0);
      expect(compared).toBeLessThanOrEqual(10);
      expect(asked).not.toContain("eth_getBlockByNumber");
    }
    expect(server(one, 0).calls("eth_blockNumber")).toEqual([]);
  });
});

describe("a read that needs two equal responses", () => {
  const height: Ask<unknown> = (rpc) => rpc.request("height", []);
  const isTwice = (said: readonly Said<unknown>[]) => new Set(said.map(({ answer }) => answer)).size < said.length;
  const each = async (b: Bench) => (await b.endpoints.readEach(height, isTwice))?.map(({ answer }) => answer);

  async function showing(...heights: readonly unknown[]): Promise<Bench> {
    const b = await bench(...heights.map(() => CHAIN));
    for (const [index, shown] of heights.entries()) server(b, index).on("height", () => shown);
    return b;
  }

  it.each([
    [
      [7, 7, 8],
      [7, 7],
    ],
    [
      [7, 8],
      [7, 8],
    ],
    [
      [7, 8, 8, 9],
      [7, 8, 8],
    ],
    [[7], undefined],
  ])("calls endpoints until two values are equal (available: %j, read: %j)", async (heights, expected) => {
    expect(await each(await showing(...heights))).toEqual(expected);
  });

  it("is unavailable while a missing response could decide the result", async () => {
    const b = await showing(7, 7, 7);
    server(b, 0).failAlways(DOWN);
    expect(await each(b)).toEqual([7, 7]);
    server(b, 2).on("height", () => 8);
    await expect(each(b)).rejects.toThrow(/502/);
    server(b, 0).failAlways(null);
    expect(await each(b)).toEqual([7, 7]);
    expect(server(b, 2).calls("height")).toHaveLength(2);
  });
});

it("askOne calls only the given endpoint and throws its error", async () => {
  const b = await bench(CHAIN);
  const [endpoint] = b.endpoints.usable();
  if (endpoint === undefined) throw new Error("no endpoint");
  await expect(b.endpoints.askOne(endpoint, (rpc) => rpc.request("nothing", []))).rejects.toBeInstanceOf(
    RpcErrorAnswer,
  );
});
