import { JsonRpcProvider } from "ethers";
import { createPublicClient, http } from "viem";
import { describe, expect } from "vitest";
import { FencepostApiError, type FencepostClient } from "../../src/client/index.ts";
import { audit, storedTransactions } from "../support/audit.ts";
import { type Database, it, OTHER_SIGNER, RECIPIENT, SIGNER } from "../support/integration.ts";
import { REVERT_DATA, revertingInitCode } from "../support/reverting-contracts.ts";
import { SAMPLE_ABI, SAMPLE_BYTECODE } from "../support/sample-contract.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

type Address = `0x${string}`;

/** Returns the error with which a create is refused; fails if it is accepted. */
async function refusalOf(sending: Promise<unknown>): Promise<FencepostApiError> {
  const error = await sending.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FencepostApiError);
  return error as FencepostApiError;
}

async function deploy(client: FencepostClient, payload: { bytecode: Address; args?: unknown[] }): Promise<Address> {
  const { bytecode, args } = payload;
  const { txId } = await client.send({
    signer: SIGNER,
    payload: args === undefined ? { bytecode } : { bytecode, abi: SAMPLE_ABI as readonly unknown[], args },
  });
  const { state, receipt } = await client.waitFor(txId);
  expect(state).toBe("CONFIRMED");
  return receipt?.contractAddress as Address;
}

/** Checks that a refused request leaves no row and consumes no nonce. */
async function expectNothingConsumed(database: Database): Promise<void> {
  expect(await storedTransactions(database)).toEqual([]);
  const lanes = await database.query<{ next_nonce: string | null }>("SELECT next_nonce FROM fencepost.lane");
  expect(lanes.map(({ next_nonce }) => next_nonce)).toEqual([null, null]);
}

describe("a transaction on a real EVM", () => {
  it("is CONFIRMED with every stage in its history", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    // protects [The dashboard] src/main/dev/dev.ts, src/adapters/dashboard/files.ts
    expect(await (await fetch(url)).text(), "the same chain id, and no transfers to try").not.toContain("data-dev");
    const answer = await fetch(`${url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(transfer(41)),
    });
    const created = (await answer.json()) as { txId: string };
    expect(answer.status).toBe(202);
    expect(answer.headers.get("location")).toBe(`/api/v1/tx/${created.txId}`);
    expect(created).toMatchObject({ signer: SIGNER, nonce: 0, state: "ALLOCATED", requestId: "request-41" });
    const found = await client.waitFor(created.txId);
    expect(found).toMatchObject({ state: "CONFIRMED", receipt: { status: "success" } });
    const { history = [], confirmations = [] } = await client.get(created.txId, {
      include: ["history", "confirmations"],
    });
    expect(history.map(({ event }) => event)).toEqual(["allocate", "sign", "broadcast", "mine", "confirm"]);
    expect(confirmations.length).toBeGreaterThanOrEqual(2);
    const page = await client.completionsPage({ after: 0 });
    expect(page.items).toMatchObject([{ seq: 1, txId: created.txId, state: "CONFIRMED", settled: true, nonce: 0 }]);
    const balance = await edr.rpc("eth_getBalance", [RECIPIENT, "latest"]);
    expect(BigInt(balance as string)).toBe(42n);
    await audit({ database, rpcUrl: edr.url });
  });

  it("can deploy by bytecode or call by ABI", async ({ edr, nodes }) => {
    const { client } = await nodes.start(edr.url);
    const contract = await deploy(client, { bytecode: SAMPLE_BYTECODE, args: ["7"] });
    const viem = createPublicClient({ transport: http(edr.url) });
    const read = () => viem.readContract({ address: contract, abi: SAMPLE_ABI, functionName: "current" });
    expect(await read()).toBe(7n);
    const { txId } = await client.send({
      signer: SIGNER,
      payload: { to: contract, function: "raise(uint256)", args: ["250"] },
    });
    const raised = await client.waitFor(txId);
    expect(raised).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(await read()).toBe(250n);
    const ethers = new JsonRpcProvider(edr.url);
    const receipt = await ethers.getTransactionReceipt(raised.txHash as string);
    ethers.destroy();
    expect(receipt).toMatchObject({ status: 1, from: SIGNER, blockHash: raised.receipt?.blockHash });
    expect(receipt?.to?.toLowerCase()).toBe(contract.toLowerCase());
  });

  it("ends as FAILED_FINAL/REVERTED if the mined transaction reverts", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const contract = await deploy(client, { bytecode: SAMPLE_BYTECODE, args: ["7"] });
    const raise = (value: string) => ({
      signer: SIGNER,
      payload: { to: contract, function: "raise(uint256)", args: [value], gas: 100_000 },
    });
    // The second call succeeds alone but reverts after the first. Both requests name their gas, so Fencepost does not
    // simulate them and accepts both.
    const results = await client.sendBatch([raise("100"), raise("50")]);
    expect(results.map(({ status }) => status)).toEqual([202, 202]);
    const [raised, reverted] = await Promise.all(
      results.map((result) => client.waitFor((result as { txId: string }).txId)),
    );
    expect(raised).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(reverted).toMatchObject({ state: "FAILED_FINAL", subState: "REVERTED", receipt: { status: "reverted" } });
    const { items } = await client.completionsPage({ after: 1 });
    expect(items).toMatchObject([
      { state: "CONFIRMED" },
      { state: "FAILED_FINAL", subState: "REVERTED", settled: true },
    ]);
    await audit({ database, rpcUrl: edr.url });
  });

  it("belongs to the lane of its signer", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const results = await client.sendBatch([transfer(0), { ...transfer(0), signer: OTHER_SIGNER }, transfer(1)]);
    expect(results).toMatchObject([
      { status: 202, nonce: 0, signer: SIGNER },
      { status: 202, nonce: 0, signer: OTHER_SIGNER },
      { status: 202, nonce: 1, signer: SIGNER },
    ]);
    for (const result of results) await client.waitFor((result as { txId: string }).txId);
    await audit({ database, rpcUrl: edr.url });
    expect(await client.signer(SIGNER)).toMatchObject([{ pending: 0, confirmed: 2 }]);
    expect(await client.signer(OTHER_SIGNER.toLowerCase() as Address)).toMatchObject([{ pending: 0, confirmed: 1 }]);
  });
});

describe("a create is refused with 422 for", () => {
  it("call data to an address without code", async ({ edr, nodes }) => {
    const { client } = await nodes.start(edr.url);
    const call = {
      signer: SIGNER,
      payload: { to: OTHER_SIGNER, function: "transfer(address,uint256)", args: [SIGNER, 1] },
    };
    const { status, problem } = await refusalOf(client.send(call));
    expect({ status, reason: problem?.reason }).toEqual({ status: 422, reason: "NO_CODE" });
    expect((await client.send({ ...call, allowNoCode: true })).nonce).toBe(0);
    const identity = "0x0000000000000000000000000000000000000004";
    const precompile = await client.send({ signer: SIGNER, payload: { to: identity, data: "0x1234" } });
    expect((await client.waitFor(precompile.txId)).state).toBe("CONFIRMED");
  });

  it("a revert, with its reason decoded", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const contract = await deploy(client, { bytecode: revertingInitCode(REVERT_DATA.withReason) });
    const { status, code, problem } = await refusalOf(
      client.send({ signer: SIGNER, requestId: "lunch", payload: { to: contract, data: "0x12345678" } }),
    );
    expect({ status, code }).toEqual({ status: 422, code: "SUBMISSION_REJECTED" });
    expect(problem).toMatchObject({ reason: "REVERT", revert: { name: "Error", message: "no lunch" } });
    expect(await storedTransactions(database)).toHaveLength(1);
    const next = await client.send(transfer(0));
    expect(next.nonce, "the nonce went to the next one").toBe(1);
    // The request id of the refused request can be used again.
    const repaired = await client.send({ signer: SIGNER, requestId: "lunch", payload: { to: RECIPIENT } });
    expect(repaired.nonce).toBe(2);
  });

  it("insufficient funds, a wrong gas limit, an unknown signer or an unknown chain", async ({
    edr,
    nodes,
    database,
  }) => {
    const { client } = await nodes.start(edr.url);
    const send = (payload: Record<string, string>) =>
      refusalOf(client.send({ signer: SIGNER, payload: { to: RECIPIENT, ...payload } }));
    expect((await send({ value: String(10n ** 23n) })).problem).toMatchObject({
      status: 422,
      reason: "INSUFFICIENT_FUNDS",
    });
    expect((await send({ gas: "20999" })).problem).toMatchObject({ status: 422, reason: "GAS_TOO_LOW" });
    expect((await send({ gas: "60000001" })).problem).toMatchObject({ status: 422, reason: "GAS_OVER_BLOCK" });
    const stranger = await refusalOf(client.send({ ...transfer(0), signer: RECIPIENT }));
    expect(stranger).toMatchObject({ status: 422, code: "UNKNOWN_SIGNER" });
    const elsewhere = await refusalOf(client.send({ ...transfer(0), chainId: 1 }));
    expect(elsewhere).toMatchObject({ status: 422, code: "UNKNOWN_CHAIN" });
    await expectNothingConsumed(database);
  });
});

describe("a request id", () => {
  it("creates one transaction, even if used a hundred times at once", async ({ edr, nodes, database }) => {
    const { url } = await nodes.start(edr.url);
    const casings = [SIGNER, SIGNER.toLowerCase(), `0x${SIGNER.slice(2).toUpperCase()}`];
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const body = { ...transfer(7), signer: casings[index % casings.length] };
        const response = await fetch(`${url}/api/v1/tx`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        return { status: response.status, body: (await response.json()) as Record<string, unknown> };
      }),
    );
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(99);
    expect(new Set(answers.map(({ body }) => `${body.txId} ${body.nonce} ${body.signer}`)).size).toBe(1);
    const [lane] = await database.query<{ next_nonce: string }>(
      "SELECT next_nonce FROM fencepost.lane WHERE signer = $1",
      [SIGNER.toLowerCase()],
    );
    expect(lane?.next_nonce).toBe("1");
    await waitUntil(async () => (await storedTransactions(database))[0]?.state === "CONFIRMED", "it is confirmed");
    await audit({ database, rpcUrl: edr.url });
  });

  it("gets 409 if it is used with another payload, and the first transaction continues", async ({
    edr,
    nodes,
    database,
  }) => {
    const { client } = await nodes.start(edr.url);
    const { txId } = await client.send(transfer(1));
    const reused = await refusalOf(client.send({ ...transfer(2), requestId: "request-1" }));
    expect(reused).toMatchObject({ status: 409, code: "REQUEST_ID_REUSED", problem: { txId } });
    expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    const afterwards = await refusalOf(client.send({ ...transfer(2), requestId: "request-1" }));
    expect(afterwards.code).toBe("REQUEST_ID_REUSED");
    expect((await client.send(transfer(1))).txId).toBe(txId);
    const { stored } = await audit({ database, rpcUrl: edr.url });
    expect(stored).toHaveLength(1);
  });
});
