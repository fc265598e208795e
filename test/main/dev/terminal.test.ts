import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevChain, startEmbeddedChain } from "../../../src/main/dev/embedded/start-chain.ts";
import { devKeys, handleKeys } from "../../../src/main/dev/terminal.ts";

let chain: DevChain;
beforeAll(async () => {
  chain = await startEmbeddedChain();
});
afterAll(() => chain.stop());

function playing(own: { readonly chain?: DevChain | null; readonly send?: () => Promise<string> } = {}) {
  const said: string[] = [];
  let restarts = 0;
  const keys = devKeys({
    chain: own.chain === undefined ? chain : own.chain,
    blockTimeMs: 20,
    send: own.send ?? (async () => "sent"),
    restart: async () => {
      restarts++;
      return 4711;
    },
    say: (line) => said.push(line),
  });
  return { keys, said, restarts: () => restarts };
}

const KILLED = "kill -9 4711: another node has taken over, and continues from the database";

const height = async () => Number(await chain.rpc("eth_blockNumber"));
const hashAt = async (number: number) =>
  ((await chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, false])) as { hash: string }).hash;

const baseFee = async () =>
  BigInt(((await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { baseFeePerGas: string }).baseFeePerGas);

describe("terminal keys of fencepost dev", () => {
  it("are explained in lines that fit the terminal", async () => {
    const said: string[] = [];
    const terminal = { ask: async () => "", columns: () => 60, onKey: () => () => undefined };
    const node = { url: "http://127.0.0.1:1", signers: [] };
    const session = { chain, blockTimeMs: 20, restart: async () => undefined, say: (line: string) => said.push(line) };
    const stop = handleKeys(terminal, { node, ...session });
    await stop();
    const lines = said.join("\n").split("\n");
    expect(lines.join(" ")).toMatch(/^Keys: s send a transfer, r reorg of 3 blocks, .*, q quit$/);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
  });

  it("include r, which replaces the last blocks by a longer branch", async () => {
    const { keys, said } = playing();
    for (let round = 0; round < 2; round++) {
      await chain.mine(3);
      await keys.remember();
      await chain.mine(3);
      const before = await height();
      const last = await hashAt(before);
      await keys.press("r");
      expect(await height()).toBe(before + 1);
      expect(await hashAt(before)).not.toBe(last);
      expect(said.at(-1)).toContain(`blocks ${before - 2} to ${before} were replaced`);
    }
  });

  it("include r, which prints a message if there are too few blocks", async () => {
    const { keys, said } = playing();
    await keys.press("r");
    expect(said).toEqual(["reorg: there are too few blocks yet"]);
  });

  it("include f, which raises the base fee of the next block fifty times", async () => {
    const { keys, said } = playing();
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", ["0x3b9aca00"]);
    await chain.mine();
    const before = await baseFee();
    await keys.press("f");
    await chain.mine();
    expect(await baseFee()).toBe(50n * before);
    expect(said[0]).toMatch(/^fee spike: the next block costs \d+ gwei/);
  });

  it("include f, which raises the base fee even from almost zero", async () => {
    const { keys, said } = playing();
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", ["0x7"]);
    await chain.mine();
    await keys.press("f");
    await chain.mine();
    expect(await baseFee()).toBe(20_000_000_000n);
    expect(said[0]).toContain("costs 20 gwei");
  });

  it("include p, which pauses and resumes mining", async () => {
    const { keys, said } = playing();
    await keys.press("p");
    await keys.press("p");
    await keys.press("p");
    expect(said).toEqual([
      "mining is paused: transactions wait; p resumes",
      "mining is resumed",
      "mining is paused: transactions wait; p resumes",
    ]);
  });

  it("include k, which kills the node", async () => {
    const { keys, said, restarts } = playing();
    await keys.press("k");
    await keys.press("s");
    await keys.press("?");
    expect(restarts()).toBe(1);
    expect(said.slice(0, 2)).toEqual([KILLED, "sent"]);
    expect(said[2]).toMatch(/^Keys: s .*, r .*, f .*, p .*, k .*, q quit$/);
  });

  it("print one line if an action fails", async () => {
    const { keys, said } = playing({ send: () => Promise.reject(new Error("the node is away")) });
    await keys.press("s");
    await keys.press("k");
    expect(said).toEqual(["send a transfer: the node is away", KILLED]);
  });

  it("do not change a chain that the user provided", async () => {
    const { keys, said } = playing({ chain: null });
    await keys.press("r");
    await keys.remember();
    expect(said[0]).toMatch(/^Keys: s [^,]*, k [^,]*, q quit$/);
  });
});
