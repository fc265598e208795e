/** Tests `eth_sendTransaction`: its response, and when the transaction is sent. */
import { afterEach, describe, expect, it } from "vitest";
import { OutcomeUnknown } from "../../../src/ports/lane-store.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { call, RpcFace, transaction } from "../../support/json-rpc.ts";
import { startTwo } from "../../support/operations.ts";
import { forSigner } from "../../support/policies.ts";
import { SIGNER, SIGNERS, TO, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<void> {
  world = new World(options);
  entry = await world.startNode();
  rpc = new RpcFace(world, entry);
}

/**
 * REPEATED lists the error codes after which client libraries repeat a request automatically. viem does so for all of
 * them; it has another name for -32000.
 */
const DOOMED = "0x00000000000000000000000000000000000d003d";
const REPEATED = [-32603, -32005, -32000];
const ANSWERED_WITHIN_MS = 8_000;
const NEVER = () => new Promise(() => undefined);

const lane = (action: "suspend" | "resume") =>
  world.settle(
    entry.node.api.actOnLane({ action, signer: SIGNER, actor: "operator:test", request: { reason: "test" } }),
  );

describe("eth_sendTransaction", () => {
  it("returns the first attempt's hash once the attempt is stored", async () => {
    await start();
    const { result } = await rpc.send();
    const [row] = world.rows();
    expect(row?.attempts[0]?.txHash).toBe(result);
    await world.allSettled(1);
    const { result: receipt } = await rpc.call<{ status: string }>("eth_getTransactionReceipt", [result]);
    expect(receipt).toMatchObject({ status: "0x1", transactionHash: result });
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("returns the hash even if an embedded node processes the request late", async () => {
    world = new World({ hints: true });
    const embedded = await world.startNode({ embedded: true, signers: [SIGNER] });
    entry = await world.startNode({ signers: SIGNERS.slice(1) });
    rpc = new RpcFace(world, entry);
    await world.until(() => world.ownerOf(SIGNER) === "node-1", 30_000);
    await world.clock.advance(1_000);
    expect((await rpc.send()).result).toBe(world.rows()[0]?.attempts[0]?.txHash);
    embedded.store.pause();
    world.clock.after(4_500, () => embedded.store.resume());
    const { result } = await rpc.send({ value: "0x2" });
    expect(result).toBe(world.rows()[1]?.attempts[0]?.txHash);
    const named = await rpc.send({ nonce: "0x2", value: "0x3" });
    expect(named.result).toBe(world.rows()[2]?.attempts[0]?.txHash);
    const refused = await rpc.send({ nonce: "0x9", value: "0x4" });
    expect(refused.error).toMatchObject({ code: -32003, data: { nextNonce: 3 } });
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("accepts call data to an address without code only if the object or the URL permits it", async () => {
    await start();
    const data = { data: "0xa9059cbb", gas: "0xea60" };
    const { error } = await rpc.send(data);
    expect(error).toMatchObject({ code: -32003, data: { reason: "NO_CODE" } });
    expect(error?.message).toContain("allowNoCode: true");
    expect((await rpc.send({ ...data, allowNoCode: true })).result).toBeDefined();
    await world.allSettled(1);
    expect((await rpc.send(data, { url: "/rpc?noCode=allow" })).result).toBeDefined();
    expect((await rpc.send({ ...data, allowNoCode: "yes" })).error).toMatchObject({
      ...{ code: -32602, data: { path: "params.0.allowNoCode" } },
    });
    await world.allSettled(2);
  });

  it("suggests the intended field name if a field is unknown", async () => {
    await start();
    expect((await rpc.send({ vlaue: "0x1" })).error).toMatchObject({
      ...{ code: -32602, message: "params.0.vlaue: is not a known field; did you mean `value`?" },
    });
    expect((await rpc.send({ gasLimit: "0x5208" })).error?.message).toContain("did you mean `gas`?");
    expect(world.rows()).toEqual([]);
  });

  it("uses the gas, fees, type, access list and input of the request", async () => {
    await start();
    world.chain.burnGasAt(TO, 0n);
    const accessList = [{ address: TO, storageKeys: [`0x${"0".repeat(63)}1`] }];
    const fees = { maxFeePerGas: null, maxPriorityFeePerGas: null };
    await rpc.send({
      ...fees,
      gasPrice: "0x2540be400",
      gas: "0xffff",
      type: "0x1",
      accessList,
      input: "0xAB",
      data: "0xab",
    });
    await rpc.send({ to: undefined, data: "0x60006000", gas: "0x186a0" });
    expect(world.rows().map(({ payload }) => payload)).toMatchObject([
      { type: "eip2930", gasPrice: 10_000_000_000n, gas: 65_535n, accessList, data: "0xab", to: TO },
      { to: null, data: "0x60006000" },
    ]);
  });

  it.each([
    ["from", { from: undefined }, "params.0.from"],
    ["an address", { from: "0x12" }, "params.0.from"],
    ["a receiver, or code to deploy", { to: undefined }, "params.0.to"],
    ["a receiver that is an address", { to: "0x" }, "params.0.to"],
    ["a value in hex", { value: "10" }, "params.0.value"],
    ["a value as a hex string, not as a JSON number", { value: 10 }, "params.0.value"],
    ["equal data and input", { data: "0xaa", input: "0xbb" }, "params.0.input"],
    ["the chain of this endpoint", { chainId: "0x1" }, "params.0.chainId"],
    ["only known fields", { gaz: "0x1" }, "params.0.gaz"],
    ["no blobs", { blobVersionedHashes: [] }, "params.0.blobVersionedHashes"],
    ["no blob type", { type: "0x3" }, "params.0.type"],
    ["no delegation", { type: "0x4" }, "params.0.type"],
    ["a known type", { type: "0x9" }, "params.0.type"],
    ["fees that do not contradict each other", { gasPrice: "0x1" }, "params.0.gasPrice"],
    ["a nonce in hex", { nonce: 3 }, "params.0.nonce"],
    ["a nonce in the valid range", { nonce: `0x${"f".repeat(64)}` }, "params.0.nonce"],
    ["a printable request id", { fencepostRequestId: "a\u0000b" }, "params.0.fencepostRequestId"],
  ])("requires %s", async (_, overrides, path) => {
    await start();
    const { error } = await rpc.send(overrides);
    expect(error).toMatchObject({ code: -32602, data: { path } });
    expect(world.rows()).toEqual([]);
  });

  it("returns a revert as code 3 with the revert data", async () => {
    await start();
    world.chain.revertCallsTo(DOOMED, "0x");
    const doomed = await rpc.send({ to: DOOMED });
    expect(doomed.error).toMatchObject({ code: 3, data: expect.stringMatching(/^0x/) });
    expect(doomed.error?.message).toMatch(/^execution reverted/);
    const poor = await rpc.send({ value: "0xffffffffffffffffffffffff" });
    expect(poor.error).toMatchObject({ code: -32003, data: { reason: "INSUFFICIENT_FUNDS" } });
    expect(poor.error?.message).toMatch(/^insufficient funds for gas \* price \+ value/);
    expect(world.rows()).toEqual([]);
  });

  it("returns -32003 if the fee is above a ceiling", async () => {
    await start({
      settings: { maxFeeWei: 30_000_000_000n },
      policies: forSigner(SIGNER, { maxValue: { perTransaction: "10" } }),
    });
    const dear = await rpc.send({ maxFeePerGas: "0xba43b7400" });
    expect(dear.error).toMatchObject({ code: -32003, data: { reason: "FEE_OVER_CEILING" } });
    const large = await rpc.send({ value: "0x64" });
    expect(large.error).toMatchObject({
      code: -32003,
      data: { code: "FORBIDDEN", rule: expect.stringContaining("maxValue") },
    });
    expect(world.rows()).toEqual([]);
  });
});

describe("an eth_sendTransaction that is accepted but not signed yet", () => {
  it.each([
    ["its lane is suspended", async () => void (await lane("suspend"))],
    [
      "everything is stopped",
      async () =>
        void (await world.settle(
          entry.node.api.kill({ signer: null, actor: "operator:test", request: { reason: "test" } }),
        )),
    ],
    [
      "its signer is unavailable",
      async () => void Object.assign(entry.signer, { sign: () => Promise.reject(new Error("connection refused")) }),
    ],
    // protects [JSON-RPC] src/adapters/http/rpc/sends.ts, src/adapters/http/rpc/error-codes.ts
  ])("returns -32003 with its transaction id (cause: %s)", async (_, happen) => {
    await start();
    await happen();
    const before = world.clock.monotonicMs();
    const { error } = await rpc.send();
    expect(world.clock.monotonicMs() - before).toBeLessThan(ANSWERED_WITHIN_MS);
    const [row] = world.rows();
    expect(error).toMatchObject({ code: -32003, data: { txId: row?.txId, outcome: "accepted" } });
    expect(error?.message).toMatch(/^accepted, not signed yet/);
    expect((await rpc.call("fencepost_getTransaction", [row?.txId])).result).toMatchObject({
      txId: row?.txId,
      nonce: 0,
    });
  });

  // protects [JSON-RPC] src/domain/ledger/allocate.ts
  it("returns at once if it waits for approval", async () => {
    await start({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "10", expiresAfter: "60s" } }) });
    const { error } = await rpc.send({ value: "0x64" });
    expect(error).toMatchObject({ code: -32003, data: { outcome: "accepted", txId: expect.any(String) } });
    expect(error?.message).toContain("waits for approval");
    const named = await rpc.send({ value: "0x64", nonce: "0x0" });
    expect(named.error).toMatchObject({ code: -32003, data: { code: "FORBIDDEN" } });
  });

  it("returns its hash if the request id is repeated after signing", async () => {
    await start();
    await lane("suspend");
    expect((await rpc.send({ fencepostRequestId: "once" })).error?.code).toBe(-32003);
    await lane("resume");
    const { result } = await rpc.send({ fencepostRequestId: "once" });
    expect(world.rows().map(({ attempts }) => attempts[0]?.txHash)).toEqual([result]);
  });
});

describe("an eth_sendTransaction with an unknown outcome", () => {
  it("returns the hash or an error that names the transaction", async () => {
    await start();
    const commit = entry.store.commit.bind(entry.store);
    let isLost = false;
    entry.store.commit = async (writes) => {
      const committed = await commit(writes);
      if (isLost || !writes.some(({ kind }) => kind === "allocate")) return committed;
      isLost = true;
      throw new OutcomeUnknown("the connection died at COMMIT");
    };
    const { result, error } = await rpc.send();
    const [row, ...others] = world.rows();
    expect(others).toEqual([]);
    if (error === undefined) expect(row?.attempts[0]?.txHash).toBe(result);
    else expect(error).toMatchObject({ code: -32003, data: { txId: row?.txId } });
  });

  it.each([
    ["the database hangs", () => void Object.assign(entry.store, { commit: NEVER })],
    ["the database fails", () => void entry.store.cut()],
    ["the chain hangs", () => void Object.assign(entry.rpc, { simulate: NEVER })],
    [
      "something unforeseen happens",
      () => void Object.assign(entry.node.api, { createNamed: () => Promise.reject(new Error("a bug")) }),
    ],
    // protects [JSON-RPC] src/adapters/http/rpc/sends.ts, src/adapters/http/rpc/error-codes.ts
  ])("returns an error code that clients do not retry (cause: %s)", async (_, happen) => {
    await start();
    await rpc.send();
    happen();
    const before = world.clock.monotonicMs();
    const { error } = await rpc.send({ gas: undefined });
    expect(world.clock.monotonicMs() - before).toBeLessThan(ANSWERED_WITHIN_MS);
    expect(REPEATED).not.toContain(error?.code);
    expect([-32003, -32002]).toContain(error?.code);
    if (error?.code === -32003) expect(error.data).toMatchObject({ txId: expect.any(String), outcome: "unknown" });
  });
});

describe("a nonce that the caller names", () => {
  it("is used exactly, or refused with geth's message without consuming a nonce", async () => {
    await start();
    expect((await rpc.send({ nonce: "0x0" })).result).toBeDefined();
    const low = await rpc.send({ nonce: "0x0", value: "0x2" });
    expect(low.error).toMatchObject({ code: -32003, data: { nextNonce: 1 } });
    expect(low.error?.message).toBe("nonce too low: next nonce 1, tx nonce 0");
    const high = await rpc.send({ nonce: "0x7" });
    expect(high.error?.message).toBe("nonce too high: next nonce 1, tx nonce 7");
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0]);
  });

  // protects [JSON-RPC] src/application/stages/1-create/answer-existing.ts
  it("returns the existing hash if the same payload already has the nonce", async () => {
    await start();
    const first = await rpc.send({ nonce: "0x0" });
    const again = await rpc.send({ nonce: "0x0" });
    expect(again.result).toBe(first.result);
    expect(world.rows()).toHaveLength(1);
  });

  // protects [JSON-RPC] src/domain/ledger/allocate.ts, src/domain/ledger/allocate.ts
  it("is used by only one of many concurrent sends", async () => {
    await start();
    const asked = Array.from({ length: 20 }, (_, at) =>
      rpc.post(call("eth_sendTransaction", [transaction({ nonce: "0x0", value: `0x${at + 1}` })])),
    );
    const answers = (await world.settle(Promise.all(asked))).map(({ text }) => JSON.parse(text));
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(1);
    expect(answers.filter(({ error }) => /^nonce too low/.test(error?.message))).toHaveLength(19);
    expect(world.rows()).toHaveLength(1);
  });

  // protects [JSON-RPC] src/domain/ledger/allocate.ts, src/application/lane/owned-lane.ts
  it("stays the same even if a lower nonce becomes free", async () => {
    await start();
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    await lane("suspend");
    const named = world.settle(rpc.post(call("eth_sendTransaction", [transaction({ nonce: "0x1" })])));
    await named;
    await world.settle(entry.node.api.releaseNonce(reservation.reservationId));
    await lane("resume");
    await world.until(() => (world.rows()[0]?.attempts.length ?? 0) > 0);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([1]);
    expect((await rpc.send({ nonce: "0x0", value: "0x9" })).error?.message).toMatch(/^nonce too low/);
  });

  // protects [JSON-RPC] src/adapters/postgres/statements/transaction.ts
  it("is not changed by the lane's next owner either", async () => {
    await start();
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    await lane("suspend");
    await world.settle(rpc.post(call("eth_sendTransaction", [transaction({ nonce: "0x1" })])));
    world.crash(entry);
    entry = await world.startNode();
    await world.until(() => world.ownerOf(SIGNER) === "node-2", 30_000);
    await world.settle(entry.node.api.releaseNonce(reservation.reservationId));
    await lane("resume");
    await world.until(() => (world.rows()[0]?.attempts.length ?? 0) > 0);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([1]);
  });

  it("is ignored only if the URL has nonce=ignore", async () => {
    await start();
    await rpc.send({ nonce: "0x63" }, { url: "/rpc?nonce=ignore" });
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0]);
    expect((await rpc.send({}, { url: "/rpc?nonce=no" })).error).toMatchObject({ code: -32602 });
  });

  // protects [JSON-RPC] src/domain/ledger/allocate.ts, src/domain/ledger/allocate.ts
  it("is checked by the lane's owner, whichever node receives the send", async () => {
    const two = await startTwo();
    world = two.world;
    entry = two.other;
    rpc = new RpcFace(world, entry);
    expect((await rpc.send({ nonce: "0x5" })).error?.message).toBe("nonce too high: next nonce 0, tx nonce 5");
    expect((await rpc.send({ nonce: "0x0" })).result).toBeDefined();
    expect((await rpc.send({ nonce: "0x0" })).result).toBe(world.rows()[0]?.attempts[0]?.txHash);
    expect(world.rows()).toHaveLength(1);
  });

  it("is treated the same in POST /tx and in the library's send", async () => {
    await start();
    const send = (request: object) =>
      entry.node.api.create({ signer: SIGNER, payload: { to: TO, value: 1 }, ...request });
    const refused = await world.refusal(send({ nonce: 1 }));
    expect(refused).toMatchObject({ code: "CONFLICT", extras: { nextNonce: 0 } });
    const created = await world.settle(send({ nonce: 0 }));
    expect(created).toMatchObject({ outcome: "created", nonce: 0 });
    expect(await world.settle(send({ nonce: 0 }))).toMatchObject({ outcome: "existing", txId: created.txId });
    const other = await world.refusal(send({ nonce: 0, payload: { to: TO, value: 2 } }));
    expect(other.message).toBe("nonce too low: next nonce 1, tx nonce 0");
    const pooled = await world.refusal(send({ nonce: 1, signer: { pool: "payouts" } }));
    expect(pooled.code).toBe("INVALID_REQUEST");
    expect(world.rows()).toHaveLength(1);
  });
});

describe("a request id sent over JSON-RPC", () => {
  it.each([
    ["the header Idempotency-Key", {}, { "idempotency-key": "once" }],
    ["the header X-Fencepost-Request-Id", {}, { "x-fencepost-request-id": "once" }],
    ["a field of the transaction", { fencepostRequestId: "once" }, {}],
    ["a field, which wins over a header", { fencepostRequestId: "once" }, { "idempotency-key": "other" }],
  ])("makes a repeated send return the same transaction, if it is given by %s", async (_, fields, headers) => {
    await start();
    const first = await rpc.send(fields, { headers });
    const second = await rpc.send(fields, { headers });
    expect(second.result).toBe(first.result);
    expect(world.rows().map(({ requestId }) => requestId)).toEqual(["once"]);
  });

  it("is refused if it is used with another payload", async () => {
    await start();
    await rpc.send({ fencepostRequestId: "once" });
    const { error } = await rpc.send({ fencepostRequestId: "once", value: "0x2" });
    expect(error).toMatchObject({ code: -32003, data: { code: "REQUEST_ID_REUSED", txId: world.rows()[0]?.txId } });
  });

  it("gets each call's position appended if a header gives it for a whole batch", async () => {
    await start();
    const batch = [
      call("eth_chainId"),
      call("eth_sendTransaction", [transaction()]),
      call("eth_sendTransaction", [transaction()]),
    ];
    const headers = { "idempotency-key": "order" };
    const first = await rpc.ask<readonly { result: string }[]>(batch, { headers });
    const second = await rpc.ask<readonly { result: string }[]>(batch, { headers });
    expect(second.map(({ result }) => result)).toEqual(first.map(({ result }) => result));
    expect(world.rows().map(({ requestId }) => requestId)).toEqual(["order:1", "order:2"]);
  });
});
