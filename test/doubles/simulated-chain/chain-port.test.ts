import { describe, expect, it } from "vitest";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { describeChainContract } from "../../contracts/chain.contract.ts";
import { submitFreely } from "../../support/submit-freely.ts";
import { DirectChain } from "./chain-port.ts";
import { SimulatedChain } from "./core.ts";
import { Faults } from "./faults.ts";
import { chainHarness } from "./harness.ts";
import { SampleSender } from "./sample-transactions.ts";

describeChainContract("simulated chain, direct", { evm: true }, async () => {
  const simulated = new SimulatedChain({ defaultBalance: 0n });
  const chain = new DirectChain(simulated);
  return chainHarness(simulated, chain, () => chain.close());
});

const alice = new SampleSender(1);

describe("the simulated chain without HTTP", () => {
  it("is unavailable for one method as often as the injected fault states", async () => {
    const chain = new DirectChain(new SimulatedChain());
    chain.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount", times: 2 });
    await expect(chain.transactionCount(alice.address, "latest")).rejects.toThrow(ChainUnavailable);
    expect(await chain.balance(alice.address)).toBeGreaterThan(0n);
    await expect(chain.transactionCount(alice.address, "latest")).rejects.toThrow(ChainUnavailable);
    expect((await chain.transactionCount(alice.address, "latest")).count).toBe(0);
  });

  it.each([
    [{ kind: "loseReply" }, 1],
    [{ kind: "hang", executed: true }, 1],
    [{ kind: "hang" }, 0],
    [{ kind: "unavailable" }, 0],
    [{ kind: "httpError", status: 502 }, 0],
    [{ kind: "error", code: -32005, message: "limit exceeded" }, 0],
  ] as const)("answers `unknown` for the fault %o and accepts the payload %i times", async (fault, taken) => {
    const simulated = new SimulatedChain();
    const chain = new DirectChain(simulated);
    chain.faults.inject(fault, { times: 1 });
    const raws = [await alice.sign({ nonce: 0 }), await alice.sign({ nonce: 1 })];
    const results = await submitFreely(chain, raws);
    expect(results.map(({ answer }) => answer)).toEqual(["unknown", "accepted"]);
    expect(simulated.pool.executableSize).toBe(taken * 2);
  });

  it("also returns the answers of a second endpoint", async () => {
    const simulated = new SimulatedChain();
    const lagging = new Faults();
    const chain = new DirectChain(simulated, { elsewhere: { chain: simulated, faults: lagging } });
    lagging.pinHead(0);
    const [block] = simulated.mine();
    expect(await chain.secondOpinion(1)).toEqual({ kind: "behind" });
    const counts = () => chain.transactionCountEverywhere(alice.address, 1);
    expect((await counts()).map(({ kind }) => kind)).toEqual(["says", "behind"]);
    lagging.heal();
    expect(await chain.secondOpinion(1)).toEqual({ kind: "agreed", hash: block?.hash });
    expect((await counts()).map(({ kind }) => kind)).toEqual(["says", "says"]);
    lagging.inject({ kind: "unavailable" });
    expect((await counts()).map(({ kind }) => kind)).toEqual(["says", "silent"]);
    chain.faults.inject({ kind: "unavailable" });
    await expect(counts()).rejects.toThrow(ChainUnavailable);
  });

  it("delays calls by an injected latency", async () => {
    const asked: string[] = [];
    const latency = async (method: string) => void asked.push(method);
    const chain = new DirectChain(new SimulatedChain(), { latency });
    await chain.head("latest");
    await submitFreely(chain, []);
    expect(asked).toEqual(["eth_getBlockByNumber", "eth_sendRawTransaction"]);
  });
});
