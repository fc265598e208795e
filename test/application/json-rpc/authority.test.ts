/** Tests the permissions at `/rpc`, and which signed transactions a caller may submit there. */
import { afterEach, describe, expect, it } from "vitest";
import type { ApiKey, HttpServerOptions } from "../../../src/adapters/http/exchange/options.ts";
import { NOT_STARTED } from "../../../src/domain/chain/answers.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import { deferred } from "../../support/deferred.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { call, RpcFace, STRANGER, signedBy, transaction } from "../../support/json-rpc.ts";
import { SIGNER, SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
afterEach(() => world.close());

async function start(options: Partial<HttpServerOptions> = {}, of: WorldOptions = {}): Promise<void> {
  world = new World(of);
  entry = await world.startNode();
  rpc = new RpcFace(world, entry, options);
}

const secretOf = (name: string) => `${name}-0123456789abcdefghijkl`;
const key = (name: string, more: Partial<ApiKey> = {}): ApiKey => ({ name, secret: secretOf(name), ...more });
const as = (name: string, url?: string) => ({
  headers: { authorization: `Bearer ${secretOf(name)}` },
  ...(url === undefined ? {} : { url }),
});
const raw = (rawTransaction: string) => call("eth_sendRawTransaction", [rawTransaction]);

describe("an API key for JSON-RPC", () => {
  it("is required; without a valid one the HTTP status is 401", async () => {
    await start({ apiKeys: [key("shop")] });
    expect((await world.settle(rpc.post(call("eth_chainId")))).status).toBe(401);
    expect((await world.settle(rpc.post(call("eth_chainId"), as("nobody")))).status).toBe(401);
    expect((await rpc.call("eth_chainId", [], as("shop"))).result).toBeDefined();
  });

  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/application/authority.ts
  it("may make only the calls that its scopes permit", async () => {
    await start({ apiKeys: [key("reader", { scopes: ["read"] }), key("sender", { scopes: ["submit"] })] });
    const packet = [
      call("eth_chainId"),
      call("eth_blockNumber"),
      call("eth_sendTransaction", [transaction()]),
      raw(await signedBy(SIGNER, 9)),
    ];
    const codes = async (name: string) =>
      (await rpc.ask<readonly { error?: { code: number } }[]>(packet, as(name))).map(({ error }) => error?.code);
    expect(await codes("reader")).toEqual([undefined, undefined, 4100, 4100]);
    expect(await codes("sender")).toEqual([undefined, 4100, undefined, -32003]);
    expect(world.rows()).toHaveLength(1);
    expect(rpc.refusals.map(({ rule, key: name }) => `${name} ${rule}`).sort()).toEqual([
      ...["reader scope:submit", "reader scope:submit", "sender scope:read"],
    ]);
  });

  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/application/authority.ts
  it("gets the error 4100 for signers and chains outside its limits", async () => {
    const own = SIGNERS[1] as typeof SIGNER;
    await start({ apiKeys: [key("own", { signers: [own] }), key("elsewhere", { chains: [1] })] });
    expect((await rpc.call("eth_accounts", [], as("own"))).result).toEqual([own]);
    expect((await rpc.send({}, as("own"))).error).toMatchObject({ code: 4100, data: { rule: "signers" } });
    expect((await rpc.send({ from: own }, as("own"))).result).toBeDefined();
    const foreign = await rpc.ask(raw(await signedBy(SIGNER, 0)), as("own"));
    expect(foreign.error).toMatchObject({ code: 4100 });
    expect((await rpc.send({}, as("elsewhere", "/rpc/31337"))).error).toMatchObject({ code: 4100 });
    expect(
      (await rpc.send({ from: STRANGER })).error ?? (await rpc.send({ from: STRANGER }, as("own"))).error,
    ).toBeDefined();
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/application/authority.ts
  it("sees no transaction of other signers, neither by hash nor by id", async () => {
    await start({ apiKeys: [key("all"), key("own", { signers: [SIGNERS[1] as typeof SIGNER] })] });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const { result: hash } = await rpc.send({}, as("all"));
    const { txId } = world.rows()[0] ?? {};
    for (const name of [hash, txId])
      expect((await rpc.call("fencepost_getTransaction", [name], as("own"))).result).toBeNull();
    expect((await rpc.call("eth_getTransactionByHash", [hash], as("own"))).result).toBeNull();
    expect((await rpc.call("eth_getTransactionByHash", [hash], as("all"))).result).toMatchObject({ hash });
  });

  // protects [Attacks] src/application/key-rates.ts, src/application/authority.ts
  it("is limited in forwarded reads per second", async () => {
    await start({ apiKeys: [key("slow", { readsPerSecond: 2 }), key("other")] });
    const packet = Array.from({ length: 4 }, (_, at) => call("eth_getBalance", [SIGNERS[0], `0x${at}`]));
    packet.push(call("eth_chainId"));
    const codes = async (name: string) =>
      (await rpc.ask<readonly { error?: { code: number } }[]>(packet, as(name))).map(({ error }) => error?.code);
    expect(await codes("slow")).toEqual([undefined, undefined, -32005, -32005, undefined]);
    const { error } = await rpc.call("eth_blockNumber", [], as("slow"));
    expect(error).toMatchObject({ code: -32005, data: { rule: "readsPerSecond", limit: 2 } });
    expect(await codes("other")).toEqual([undefined, undefined, undefined, undefined, undefined]);
    await world.clock.advance(1_000);
    expect((await rpc.call("eth_blockNumber", [], as("slow"))).error).toBeUndefined();
    expect(rpc.refusals.every(({ rule, key: name }) => rule === "readsPerSecond" && name === "slow")).toBe(true);
  });

  it("gets -32005 for each call above its rate", async () => {
    await start({ apiKeys: [key("slow", { createsPerSecond: 2 })] });
    const packet = Array.from({ length: 5 }, (_, at) =>
      call("eth_sendTransaction", [transaction({ value: `0x${at + 1}` })]),
    );
    const answers = await rpc.ask<readonly { result?: string; error?: { code: number } }[]>(packet, as("slow"));
    expect(answers.map(({ error }) => error?.code)).toEqual([undefined, undefined, -32005, -32005, -32005]);
    expect(world.rows()).toHaveLength(2);
    expect((await rpc.ask(raw(await signedBy(SIGNER, 2)), as("slow"))).error?.code).toBe(-32005);
  });

  it("gets -32005 if the lane's queue is full, and consumes no nonce", async () => {
    await start({}, { node: { queueLimit: 2 } });
    const packet = Array.from({ length: 5 }, (_, at) =>
      call("eth_sendTransaction", [transaction({ value: `0x${at + 1}` })]),
    );
    const answers = await rpc.ask<readonly { error?: { code: number } }[]>(packet);
    expect(answers.filter(({ error }) => error?.code === -32005)).toHaveLength(3);
    expect(world.rows()).toHaveLength(2);
  });
});

describe("an API key in the URL path", () => {
  const url = (name: string) => `/rpc/key/${secretOf(name)}`;

  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/adapters/http/exchange/problems.ts
  it("is accepted if a setting permits keys in the path", async () => {
    const apiKeys = [
      key("boss", { scopes: ["read", "submit", "operate", "admin"] }),
      key("none", { scopes: ["operate"] }),
    ];
    await start({ apiKeys, rpc: { keyInPath: true, foreignRaw: "refuse" } });
    expect((await rpc.call("eth_chainId", [], { url: url("boss") })).result).toBeDefined();
    expect((await rpc.send({}, { url: `/rpc/31337/key/${secretOf("boss")}` })).result).toBeDefined();
    expect(world.rows()[0]?.owner).toBe("boss");
    expect((await world.settle(rpc.post(call("eth_chainId"), { url: url("none") }))).status).toBe(403);
    expect((await world.settle(rpc.post(call("eth_chainId"), { url: url("nobody") }))).status).toBe(401);
  });

  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/adapters/http/exchange/problems.ts
  it("is refused with 404 if no setting permits keys in the path", async () => {
    for (const keyInPath of [true, false]) {
      await start({ apiKeys: [key("shop")], rpc: { keyInPath, foreignRaw: "refuse" } });
      const tried = [url("shop"), url("nobody"), `${url("shop")}/more`, `/rpc/31337/key/${secretOf("shop")}`];
      const texts = await Promise.all(tried.map((each) => world.settle(rpc.post(call("eth_nonsense"), { url: each }))));
      if (!keyInPath) expect(texts.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
      const got = await rpc.app.inject({ method: "GET", url: url("shop") });
      const seen = JSON.stringify([texts, got.body, rpc.refusals, rpc.routes]);
      expect(seen).not.toContain(secretOf("shop"));
      expect(seen).not.toContain(secretOf("nobody"));
      await world.close();
    }
  });
});

describe("eth_sendRawTransaction", () => {
  it("is accepted for a managed signer at the lane's next nonce", async () => {
    await start();
    const first = await signedBy(SIGNER, 0);
    const { result: hash } = await rpc.ask<{ result: string }>(raw(first));
    expect(world.rows()).toMatchObject([{ nonce: 0, state: "TRACKING", attempts: [{ txHash: hash }] }]);
    expect((await rpc.send()).result).toBeDefined();
    await world.allSettled(2);
    expect(world.rows().map(({ state, nonce }) => [state, nonce])).toEqual([
      ["CONFIRMED", 0],
      ["CONFIRMED", 1],
    ]);
    expect((await rpc.ask(raw(first))).result).toBe(hash);
    expect(world.rows()).toHaveLength(2);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/operations/reservations.ts
  it("is refused with geth's message if the nonce is not the lane's next", async () => {
    await start();
    await rpc.send();
    expect((await rpc.ask(raw(await signedBy(SIGNER, 0)))).error?.message).toBe(
      "nonce too low: next nonce 1, tx nonce 0",
    );
    const high = (await rpc.ask(raw(await signedBy(SIGNER, 2)))).error;
    expect(high).toMatchObject({
      code: -32003,
      message: "nonce too high: next nonce 1, tx nonce 2",
      data: { nextNonce: 1 },
    });
    expect(world.rows()).toHaveLength(1);
  });

  // protects [JSON-RPC] src/domain/ledger/bind.ts, src/application/operations/reservations.ts
  it("is accepted at a nonce that the same API key reserved", async () => {
    await start({ apiKeys: [key("mine", { scopes: ["read", "submit", "reserve"] }), key("other")] });
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }, "mine"));
    const bytes = await signedBy(SIGNER, 0);
    expect((await rpc.ask(raw(bytes), as("other"))).error?.message).toMatch(/^nonce too low: next nonce 1/);
    expect((await rpc.ask(raw(bytes), as("mine"))).result).toBeDefined();
    expect(await entry.node.api.reservation(reservation.reservationId)).toMatchObject({ state: "SUBMITTED" });
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [JSON-RPC] src/domain/ledger/bind.ts, src/application/operations/reservations.ts
  it("succeeds for only one of two concurrent transactions with the same nonce", async () => {
    await start();
    const both = await Promise.all([1n, 2n].map((value) => signedBy(SIGNER, 0, value)));
    const answers = await world.settle(Promise.all(both.map((bytes) => rpc.post(raw(bytes)))));
    const outcomes = answers.map(({ text }) => JSON.parse(text) as { result?: string; error?: { message: string } });
    expect(outcomes.filter(({ result }) => result !== undefined)).toHaveLength(1);
    expect(outcomes.find(({ error }) => error)?.error?.message).toMatch(/^nonce too low/);
    expect(world.rows()).toHaveLength(1);
  });

  it("keeps the order of calls within a batch, so that each call can use the next nonce", async () => {
    await start();
    const packet = await Promise.all([0, 1, 2].map(async (nonce) => raw(await signedBy(SIGNER, nonce))));
    const answers = await rpc.ask<readonly { result?: string }[]>(packet);
    expect(answers.every(({ result }) => result !== undefined)).toBe(true);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
  });

  it("refuses fees above the ceiling, and bytes that are not a transaction", async () => {
    await start({}, { settings: { maxFeeWei: 1_000_000_000n } });
    expect((await rpc.ask(raw(await signedBy(SIGNER, 0)))).error).toMatchObject({
      code: -32003,
      data: { reason: "FEE_OVER_CEILING" },
    });
    expect((await rpc.ask(raw("0xzz"))).error?.code).toBe(-32602);
    expect((await rpc.call("eth_sendRawTransaction", [7])).error?.code).toBe(-32602);
    expect(world.rows()).toEqual([]);
  });

  // protects [JSON-RPC] src/application/stages/1-create/prepare.ts, src/application/operations/reservations.ts
  it("is refused with FEE_TOO_LOW below half of the base fee, as POST /tx is", async () => {
    await start();
    const api = entry.node.api;
    const payload = { to: TO, value: 5, gas: 21_000, maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
    const asked = await world.refusal(api.create({ signer: SIGNER, payload }));
    expect(asked).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "FEE_TOO_LOW" } });
    const bytes = await signedBy(SIGNER, 0, 5n, 1n);
    expect((await rpc.ask(raw(bytes))).error).toMatchObject({ code: -32003, data: asked.extras });
    expect(world.rows()).toEqual([]);
    // The caller may already have sent the bytes for a reserved nonce. If Fencepost refused them, no node would track
    // that transaction.
    const { reservation } = await world.settle(api.reserveNonce({ signer: SIGNER }));
    await world.settle(api.submitReserved(reservation.reservationId, { rawTransaction: bytes }));
    expect(world.rows()).toMatchObject([{ state: "TRACKING" }]);
  });

  it("is refused for an unmanaged signer, or forwarded if the setting permits it", async () => {
    await start();
    const bytes = await signedBy(STRANGER, 0);
    expect((await rpc.ask(raw(bytes))).error).toMatchObject({
      code: 4100,
      message: expect.stringContaining("FENCEPOST_RPC_FOREIGN_RAW"),
    });
    const passed: string[] = [];
    entry.rpc.passSigned = async (sent) => {
      passed.push(sent);
      return passed.length === 1
        ? { kind: "result", result: "0xhash" }
        : { kind: "error", code: -32000, message: "nonce too low" };
    };
    const open = new RpcFace(world, entry, { rpc: { foreignRaw: "pass", keyInPath: false } });
    expect((await open.ask(raw(bytes))).result).toBe("0xhash");
    expect((await open.ask(raw(bytes))).error).toMatchObject({ code: -32003, message: "nonce too low" });
    expect(passed).toEqual([bytes, bytes]);
    expect(world.rows()).toEqual([]);
  });

  // protects [Attacks] src/adapters/evm/reads/pass-on.ts, src/application/operations/json-rpc.ts
  it("is not forwarded for an unmanaged signer during a kill", async () => {
    await start();
    const open = new RpcFace(world, entry, { rpc: { foreignRaw: "pass", keyInPath: false } });
    const bytes = await signedBy(STRANGER, 0);
    const left: boolean[] = [];
    const arrived = deferred();
    const connected = deferred();
    entry.rpc.passSigned = async (_, mayLeave) => {
      arrived.resolve();
      await connected.promise;
      left.push(mayLeave());
      return left.at(-1) === true ? { kind: "result", result: "0xhash" } : NOT_STARTED;
    };
    const asking = open.ask(raw(bytes));
    await arrived.promise;
    const actionRequest = { signer: null, actor: "operator:test", request: { reason: "stolen" } };
    await world.settle(entry.node.api.kill(actionRequest));
    connected.resolve();
    const { error } = await asking;
    expect(error).toMatchObject({ code: -32002, data: { code: "UNAVAILABLE" } });
    expect((await open.ask(raw(bytes))).error?.code).toBe(-32002);
    expect(left).toEqual([false, false]);
    await world.settle(entry.node.api.endKill(actionRequest));
    expect((await open.ask(raw(bytes))).result).toBe("0xhash");
    // A node that cannot renew its lease cannot see a kill either, so it must not pass the bytes on.
    entry.store.pause();
    await world.clock.advance(60_000);
    expect(left.at(-1)).toBe(true);
    expect((await open.ask(raw(bytes))).error).toBeDefined();
    expect(left.filter((may) => may)).toHaveLength(1);
    entry.store.resume();
  });

  // protects [Attacks] src/application/operations/reservations.ts
  it("does not treat a signer with a known lane as unmanaged, even while no node holds its key", async () => {
    await start();
    await rpc.send();
    world.crash(entry);
    const others = await world.startNode({ signers: [SIGNERS[1] as typeof SIGNER] });
    // Wait until no live node holds the signer's key. Then only the row of its lane shows that the signer ever existed.
    const unknown = () => world.settle(others.node.api.create(transfer()).catch((error: FencepostError) => error.code));
    while ((await unknown()) !== "UNKNOWN_SIGNER") await world.clock.advance(1_000);
    const open = new RpcFace(world, others, { rpc: { foreignRaw: "pass", keyInPath: false } });
    let passed = 0;
    others.rpc.passSigned = async () => {
      passed++;
      return { kind: "result", result: "0xhash" };
    };
    const { error } = await open.ask(raw(await signedBy(SIGNER, 1)));
    expect(error?.code).not.toBe(4100);
    expect([-32002, -32003]).toContain(error?.code);
    expect(passed).toBe(0);
  });
});
