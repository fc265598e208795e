/**
 * `/rpc?repeat=merge`: which sends are merged into one payment, by time, by API key and across an upgrade; and repeats
 * of a named nonce.
 */
import { hash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { ApiKey } from "../../../src/adapters/http/exchange/options.ts";
import { RpcFace, transaction } from "../../support/json-rpc.ts";
import { CHAIN_ID, SIGNER, TO, World, type WorldNode } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
afterEach(() => world.close());

const secretOf = (name: string) => `${name}-0123456789abcdefghijkl`;
const key = (name: string): ApiKey => ({ name, secret: secretOf(name) });
const merging = (name: string) => ({
  url: "/rpc?repeat=merge",
  headers: { authorization: `Bearer ${secretOf(name)}` },
});
const WINDOW_MS = 60_000;

async function start(): Promise<void> {
  world = new World();
  entry = await world.startNode();
  rpc = new RpcFace(world, entry, { apiKeys: [key("shop"), key("other")] });
}

/** Advances the clock to the given second of the next minute. */
async function toSecond(second: number): Promise<void> {
  const into = world.clock.now().getTime() % WINDOW_MS;
  await world.clock.advance(WINDOW_MS - into + second * 1_000);
}

describe("identical sends to /rpc?repeat=merge", () => {
  it.each([
    ["within one minute of the clock", 5, 30],
    ["across its end", 50, 59],
  ])("make one transaction if at most a minute apart, %s", async (_, second, apart) => {
    await start();
    await toSecond(second);
    const { result } = await rpc.send({}, merging("shop"));
    await world.clock.advance(apart * 1_000);
    expect((await rpc.send({}, merging("shop"))).result).toBe(result);
    expect(world.rows()).toHaveLength(1);
  });

  it.each([
    ["beginning of a minute of the clock", 1, 61],
    ["beginning of one, almost two later", 1, 115],
    ["end of one", 55, 61],
    // protects [JSON-RPC] src/adapters/http/rpc/sends.ts
  ])("make two transactions if more than a minute apart, from the %s", async (_, second, apart) => {
    await start();
    await toSecond(second);
    const { result } = await rpc.send({}, merging("shop"));
    await world.clock.advance(apart * 1_000);
    const again = await rpc.send({}, merging("shop"));
    expect(again.error).toBeUndefined();
    expect(again.result).not.toBe(result);
    expect(world.rows()).toHaveLength(2);
  });

  // protects [JSON-RPC] src/adapters/http/rpc/sends.ts
  it("make separate transactions if they come from different API keys", async () => {
    await start();
    const { result } = await rpc.send({}, merging("shop"));
    const others = await rpc.send({}, merging("other"));
    expect(others.error).toBeUndefined();
    expect(others.result).not.toBe(result);
    expect((await rpc.send({}, merging("other"))).result).toBe(others.result);
    expect(world.rows().map(({ owner }) => owner)).toEqual(["shop", "other"]);
  });

  it.each([
    ["in the same minute of the clock", 5, 20],
    ["in the minute before", 50, 30],
    // protects [JSON-RPC] src/adapters/http/rpc/sends.ts
  ])("return the transaction that the previous release made, %s", async (_, second, apart) => {
    await start();
    await toSecond(second);
    const sent = { payload: payloadOf(transaction()) };
    const request = { chainId: CHAIN_ID, signer: SIGNER, ...sent };
    const contents = hash("sha256", JSON.stringify(request).toLowerCase(), "hex");
    const window = Math.floor(world.clock.now().getTime() / WINDOW_MS);
    const requestId = `repeat:${contents}:0:${window}`;
    const { txId } = await world.settle(entry.node.api.create({ ...request, requestId }, "shop"));
    await world.clock.advance(apart * 1_000);
    const again = await rpc.send({}, merging("shop"));
    expect(world.rows().map((row) => row.txId)).toEqual([txId]);
    expect(again.result).toBe(world.rows()[0]?.attempts[0]?.txHash);
    expect((await rpc.send({}, merging("other"))).error).toBeUndefined();
    expect(world.rows()).toHaveLength(2);
  });
});

/** The payload that `eth_sendTransaction` derives from this transaction. */
function payloadOf({ from: _, to, ...quantities }: ReturnType<typeof transaction>) {
  const { value, gas, maxFeePerGas, maxPriorityFeePerGas } = quantities;
  return { to, value, gas, maxFeePerGas, maxPriorityFeePerGas };
}

describe("a create with a nonce and a validUntil", () => {
  // protects [JSON-RPC] src/application/stages/1-create/answer-existing.ts
  it("cannot be repeated with another validUntil", async () => {
    await start();
    const validUntil = new Date(world.clock.now().getTime() + 3_600_000).toISOString();
    const send = (more: object = {}) =>
      entry.node.api.create({ signer: SIGNER, nonce: 0, validUntil, payload: { to: TO, value: 1 }, ...more });
    const created = await world.settle(send());
    expect(created).toMatchObject({ outcome: "created", nonce: 0 });
    expect(await world.settle(send())).toMatchObject({ outcome: "existing", txId: created.txId });
    const later = new Date(world.clock.now().getTime() + 7_200_000).toISOString();
    for (const other of [{ validUntil: later }, { validUntil: undefined }, { payload: { to: TO, value: 2 } }]) {
      expect((await world.refusal(send(other))).message).toBe("nonce too low: next nonce 1, tx nonce 0");
    }
    expect(world.rows()).toHaveLength(1);
  });
});
