import { describe, expect, it } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { type EvmBench, type EvmBenchOptions, hashOf, useEvmBench } from "../../support/evm-bench.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../support/faulty-rpc.ts";
import { submitFreely } from "../../support/submit-freely.ts";

const start = useEvmBench();

async function bench(options?: EvmBenchOptions): Promise<EvmBench> {
  const started = await start(options);
  for (const server of [started.server, started.other]) takeAll(server);
  return started;
}

/** Behaves like a mempool: accepts bytes once, then reports them as already known. */
function takeAll(server: FaultyRpc): void {
  const pool = new Set<unknown>();
  server.on("eth_sendRawTransaction", ([raw]) => {
    if (pool.has(raw)) throw new Refusal(-32000, "already known");
    pool.add(raw);
    return hashOf(Number(raw));
  });
}

const ADDRESS = `0x${"a1".repeat(20)}` as const;
const UNSIGNED = {
  ...({ chainId: 31_337, nonce: 0, to: ADDRESS, data: "0x", value: 1n, gas: 21_000n, accessList: [] } as const),
  fees: { type: "legacy", gasPrice: 1n },
} as const;

const refusing = (message: string) => () => {
  throw new Refusal(-32000, message);
};
const raws = (count: number): readonly Hex[] =>
  Array.from({ length: count }, (_, index): Hex => `0x${(index + 256).toString(16).padStart(4, "0")}`);
const sent = (server: FaultyRpc) => server.calls("eth_sendRawTransaction").map((call) => call.params[0]);
const DOWN = { kind: "status", status: 502, body: "<html>" } as const;
const answers = async (bench: EvmBench, list: readonly Hex[]) =>
  (await submitFreely(bench.chain, list)).map((each) => each.answer);

describe("submitting transactions to an endpoint", () => {
  it("sends all transactions in one request, in order", async () => {
    const b = await bench();
    b.server.on("eth_sendRawTransaction", ([raw]) => {
      if (raw === "0x0101") throw new Refusal(-32000, "nonce too low: next nonce 5, tx nonce 3");
      if (raw === "0x0102") throw new Refusal(-32000, "some new wording");
      return hashOf(1);
    });
    expect(await submitFreely(b.chain, raws(4))).toEqual([
      { answer: "accepted", detail: null },
      { answer: "nonceConsumed", detail: "nonce too low: next nonce 5, tx nonce 3" },
      { answer: "unknown", detail: "some new wording" },
      { answer: "accepted", detail: null },
    ]);
    expect(sent(b.server)).toEqual(raws(4));
    expect(b.server.requests.filter((each) => each.calls.length === 4)).toHaveLength(1);
  });

  it("has an unknown result if the reply is lost", async () => {
    const b = await bench();
    await b.chain.head("latest");
    b.server.failNext({ kind: "swallow" });
    expect(await answers(b, raws(3))).toEqual(["unknown", "unknown", "unknown"]);
    expect(await answers(b, raws(3))).toEqual(["alreadyKnown", "alreadyKnown", "alreadyKnown"]);
  });

  it.each([
    ["a hang-up", { kind: "cut" }],
    ["502", DOWN],
    ["half of the JSON", { kind: "truncate" }],
    ["ids of other requests", { kind: "wrongIds" }],
    ["429", { kind: "status", status: 429 }],
    ["HTML", { kind: "raw", body: "<html>" }],
  ] as const)("never throws: after %s the result is unknown, with the reason", async (_, fault) => {
    const b = await bench();
    await b.chain.head("latest");
    b.server.failNext(fault);
    for (const result of await submitFreely(b.chain, raws(2))) {
      expect(result).toEqual({ answer: "unknown", detail: expect.stringMatching(/127\.0\.0\.1/) });
    }
  });

  it("never throws, even after a timeout or for an unreachable endpoint", async () => {
    const b = await bench({ timeoutMs: 1_000 });
    await b.chain.head("latest");
    const before = b.server.requests.length;
    b.server.failNext({ kind: "hang" });
    const hanging = answers(b, raws(1));
    await b.server.arrived(before + 1);
    await b.clock.advance(1_000);
    expect(await hanging).toEqual(["unknown"]);
    await b.chain.close();
    expect(await answers(b, raws(1))).toEqual(["unknown"]);
  });

  it("keeps the other results of a batch in which one reply is missing", async () => {
    const b = await bench();
    await b.chain.head("latest");
    b.server.failNext({ kind: "omit", at: 1 });
    expect(await answers(b, raws(3))).toEqual(["accepted", "unknown", "accepted"]);
  });

  it.each([null, "0x", true, "accepted", { hash: hashOf(1) }, hashOf(1).slice(0, -1)])(
    "does not count the reply %j as accepted",
    async (result) => {
      const b = await bench();
      b.server.on("eth_sendRawTransaction", () => result);
      expect(await answers(b, raws(1))).toEqual(["unknown"]);
    },
  );

  it("returns a detail text even if the node's error has no message", async () => {
    const b = await bench();
    b.server.on("eth_sendRawTransaction", () => {
      throw new Refusal(-32099, "");
    });
    expect(await submitFreely(b.chain, raws(1))).toEqual([
      { answer: "unknown", detail: "error -32099 without a message" },
    ]);
  });

  it("stops at the first request without a reply", async () => {
    const b = await bench();
    await b.chain.head("latest");
    b.server.failNext({ kind: "reorder" }, { kind: "swallow" });
    const result = await answers(b, raws(250));
    expect(result.slice(0, 100)).toEqual(Array(100).fill("accepted"));
    expect(result.slice(100)).toEqual(Array(150).fill("unknown"));
    expect(sent(b.server)).toEqual(raws(200));
    expect(await answers(b, raws(250))).toEqual([...Array(200).fill("alreadyKnown"), ...Array(50).fill("accepted")]);
  });

  it("sends nothing to an endpoint of another chain", async () => {
    const b = await bench();
    await b.chain.head("latest");
    b.server.failNext({ kind: "cut" });
    await answers(b, raws(1));
    const before = sent(b.server).length;
    b.server.on("eth_chainId", () => "0x1");
    expect(await answers(b, raws(1))).toEqual(["unknown"]);
    expect(sent(b.server)).toHaveLength(before);
  });
});

describe("submitting transactions with several endpoints", () => {
  it("uses the second endpoint if the first did not answer", async () => {
    const b = await bench({ endpoints: 2 });
    b.server.failAlways(DOWN);
    expect(await answers(b, raws(3))).toEqual(["accepted", "accepted", "accepted"]);
    expect(sent(b.other)).toEqual(raws(3));
  });

  // protects [The kill switch] src/adapters/evm/rpc/transport.ts
  it("calls no further endpoint after a kill", async () => {
    const b = await bench({ endpoints: 2 });
    await b.chain.head("latest");
    b.server.failAlways(DOWN);
    const asked = b.server.requests.length;
    const mayLeave = () => b.server.requests.length === asked;
    const results = await b.chain.submit(raws(3).map((raw) => ({ raw, mayLeave })));
    expect(results.map(({ answer }) => answer)).toEqual(["unknown", "unknown", "unknown"]);
    expect(sent(b.other)).toEqual([]);
  });

  it("sends only transactions without an answer to the next endpoint", async () => {
    const b = await bench({ endpoints: 2 });
    await b.chain.head("latest");
    b.server.failNext({ kind: "reorder" }, { kind: "swallow" });
    expect(await answers(b, raws(150))).toEqual(Array(150).fill("accepted"));
    expect(sent(b.other)).toEqual(raws(150).slice(100));
  });

  it("accepts an unrecognised error of the first endpoint as its answer", async () => {
    const b = await bench({ endpoints: 2 });
    b.server.on("eth_sendRawTransaction", refusing("some new wording"));
    expect(await answers(b, raws(2))).toEqual(["unknown", "unknown"]);
    expect(sent(b.other)).toEqual([]);
  });

  it("calls the second endpoint only to confirm a final rejection", async () => {
    const b = await bench({ endpoints: 2 });
    const [first, second, third] = raws(3);
    const refuse = refusing("transaction type not supported");
    b.server.on("eth_sendRawTransaction", (params) => (params[0] === second ? refuse() : hashOf(9)));
    expect(await answers(b, [first, second, third] as Hex[])).toEqual(["accepted", "accepted", "accepted"]);
    expect(sent(b.other)).toEqual([second]);
    b.other.on("eth_sendRawTransaction", refuse);
    expect(await answers(b, [second] as Hex[])).toEqual(["rejected"]);
  });

  it.each([
    ["with a used nonce", "nonce too low", "nonceConsumed"],
    ["too expensive for the balance", "insufficient funds for gas * price + value", "insufficientFunds"],
    // The second endpoint did not get the lower nonces, so its "nonce too high" does not mean that lower nonces are
    // missing.
    ["with too high a nonce", "nonce too high", "rejected"],
    ["invalid for an unknown reason", "hmm", "rejected"],
  ])("confirms a final rejection if the second endpoint refuses a transaction %s", async (_, words, answer) => {
    const b = await bench({ endpoints: 2 });
    b.server.on("eth_sendRawTransaction", refusing("oversized data"));
    b.other.on("eth_sendRawTransaction", refusing(words));
    expect(await answers(b, raws(1))).toEqual([answer]);
  });

  it("returns unknown for a rejection while the second endpoint does not answer", async () => {
    const b = await bench({ endpoints: 2 });
    await b.chain.head("latest");
    b.server.on("eth_sendRawTransaction", refusing("oversized data"));
    b.other.failAlways(DOWN);
    for (let times = 0; times < 3; times++) expect(await answers(b, raws(1))).toEqual(["unknown"]);
    const [result] = await submitFreely(b.chain, raws(1));
    expect(result).toMatchObject({ answer: "rejected", detail: expect.stringContaining("oversized data") });
  });

  // protects [Sent again, priced again, stuck] src/application/stages/4-broadcast/broadcast.ts, src/adapters/evm/chain.ts
  it("sends to every endpoint on request", async () => {
    const b = await bench({ endpoints: 2 });
    await submitFreely(b.chain, raws(2));
    expect(sent(b.other)).toEqual([]);
    const again = await submitFreely(b.chain, raws(2), { everywhere: true });
    expect(again.map(({ answer }) => answer)).toEqual(["accepted", "accepted"]);
    expect([sent(b.server), sent(b.other)]).toEqual([[...raws(2), ...raws(2)], raws(2)]);
  });

  // protects [Attacks] src/adapters/evm/rpc/endpoints.ts, src/domain/transaction/attempts.ts, src/adapters/postgres/statements/attempt.ts
  it("sends private transactions only to private endpoints", async () => {
    const [hidden, open, read] = [await startFaultyRpc(), await startFaultyRpc(), await startFaultyRpc()];
    const urls = [`${read.url}#send=never`, open.url, `${hidden.url}#send=only`];
    for (const server of [hidden, open, read]) takeAll(server);
    const { chain } = await bench({ urls });
    try {
      expect(chain.privateEndpoints).toEqual([hidden.url]);
      for (const everywhere of [false, true]) await submitFreely(chain, raws(1), { privately: true, everywhere });
      expect([sent(read).length, sent(open).length, sent(hidden).length]).toEqual([0, 0, 2]);
      hidden.failAlways(DOWN);
      expect((await submitFreely(chain, raws(1), { privately: true }))[0]?.answer).toBe("unknown");
      await submitFreely(chain, raws(1), { everywhere: true });
      await chain.passSigned(raws(1)[0] as Hex, () => true).catch(() => undefined);
      expect([sent(read).length, sent(open).length]).toEqual([0, 1]);
    } finally {
      await Promise.all([hidden, open, read].map((server) => server.close()));
    }
  });

  it("never sends a private payload to a public endpoint", async () => {
    const [hidden, open] = [await startFaultyRpc(), await startFaultyRpc()];
    const { chain } = await bench({ urls: [open.url, `${hidden.url}#send=only`] });
    try {
      hidden.on("eth_chainId", () => "0x1");
      const asked = () => [hidden, open].map((server) => server.calls("eth_sendTransaction").length);
      for (let times = 0; times < 2; times++) {
        const result = await chain.sendUnsigned(ADDRESS, UNSIGNED, () => true, { privately: true });
        expect(result).toMatchObject({ answer: "unknown", txHash: null });
      }
      expect(asked()).toEqual([0, 0]);
    } finally {
      await Promise.all([hidden.close(), open.close()]);
    }
  });

  it("has an unknown result if all endpoints are down", async () => {
    const b = await bench({ endpoints: 2 });
    b.server.failAlways(DOWN);
    b.other.failAlways({ kind: "cut" });
    for (let times = 0; times < 5; times++) expect(await answers(b, raws(2))).toEqual(["unknown", "unknown"]);
    b.other.failAlways(null);
    expect(await answers(b, raws(2))).toEqual(["accepted", "accepted"]);
  });
});

describe("submitting transactions to all endpoints at once", () => {
  const everywhere = true;

  it.each([
    ["one accepts it, one is down", undefined, "down", "accepted"],
    ["one accepts it, one reports its nonce as too low", undefined, "nonce too low", "accepted"],
    ["one has it already, one rejects it", "already known", "exceeds block gas limit", "alreadyKnown"],
    ["one rejects it, one has just gone down", "exceeds block gas limit", "down", "unknown"],
    ["both reject it", "exceeds block gas limit", "oversized data", "rejected"],
    ["one wants a higher fee, one rejects it", "transaction underpriced", "oversized data", "underpriced"],
    ["one error text is unknown, the other is known", "hmm", "insufficient funds for transfer", "insufficientFunds"],
    ["both error texts are unknown", "hmm", "ahem", "unknown"],
  ])("combines the results: %s", async (_, first, second, answer) => {
    const b = await bench({ endpoints: 2 });
    for (const [server, words] of [
      [b.server, first],
      [b.other, second],
    ] as const) {
      if (words === "down") server.failAlways(DOWN);
      else if (words !== undefined) server.on("eth_sendRawTransaction", refusing(words));
    }
    expect(await submitFreely(b.chain, raws(1), { everywhere })).toMatchObject([{ answer }]);
    for (const server of [b.server, b.other]) expect(server.requests.length).toBeGreaterThan(0);
  });

  it("sends every transaction to every endpoint", async () => {
    const b = await bench({ endpoints: 2 });
    await submitFreely(b.chain, raws(120), { everywhere });
    expect([sent(b.server), sent(b.other)]).toEqual([raws(120), raws(120)]);
  });
});

describe("a rejection that names a gas cap per transaction", () => {
  const tooHigh = (cap: number) => refusing(`transaction gas limit too high (cap: ${cap}, tx: 20000000)`);
  const gasCap = async (b: EvmBench) => (await submitFreely(b.chain, raws(1)))[0]?.gasCap;

  it("is returned with that cap", async () => {
    const b = await bench();
    b.server.on("eth_sendRawTransaction", tooHigh(16_777_216));
    expect(await submitFreely(b.chain, raws(1))).toEqual([
      { answer: "rejected", detail: expect.stringContaining("too high"), gasCap: 16_777_216n },
    ]);
  });

  // protects [Attacks] src/application/operations/transaction-actions.ts, src/adapters/evm/submit/submit-transactions.ts
  it("is returned without the cap if only a private endpoint was used", async () => {
    const [hidden, open] = [await startFaultyRpc(), await startFaultyRpc()];
    hidden.on("eth_sendRawTransaction", tooHigh(1_500_000));
    const { chain } = await bench({ urls: [`${hidden.url}#send=only`, open.url] });
    try {
      const [result] = await submitFreely(chain, raws(1), { privately: true });
      expect(result).toMatchObject({ answer: "rejected", detail: expect.stringContaining("too high") });
      expect(result?.gasCap).toBeUndefined();
    } finally {
      await Promise.all([hidden.close(), open.close()]);
    }
  });

  // protects [Holes] src/adapters/evm/submit/submit-transactions.ts, src/application/chain/chain-context.ts
  it("is returned with the higher cap if two endpoints name a cap", async () => {
    const b = await bench({ endpoints: 2 });
    b.server.on("eth_sendRawTransaction", tooHigh(1_500_000));
    b.other.on("eth_sendRawTransaction", tooHigh(16_777_216));
    expect(await gasCap(b)).toBe(16_777_216n);
    b.other.on("eth_sendRawTransaction", refusing("exceeds max transaction gas limit"));
    expect(await gasCap(b)).toBeUndefined();
    b.other.on("eth_sendRawTransaction", refusing("nonce too high"));
    expect(await gasCap(b), "it has not looked at the gas yet").toBeUndefined();
    b.other.on("eth_sendRawTransaction", () => hashOf(1));
    expect(await submitFreely(b.chain, raws(1)), "taken elsewhere").toEqual([{ answer: "accepted", detail: null }]);
  });
});
