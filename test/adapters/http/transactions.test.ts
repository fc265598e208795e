import { Compile } from "typebox/compile";
import { describe, expect, it, vi } from "vitest";
import type { TransactionView } from "../../../src/application/api.ts";
import { Transaction, TransactionPage } from "../../../src/contract/schemas/transaction-schema.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import {
  CHAIN_ID,
  RECIPIENT,
  RECIPIENT_EIP55,
  SIGNER,
  SIGNER_EIP55,
  sampleHash,
  sampleTransaction,
  sampleTxId,
} from "../../support/scripted-api.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));

const settled = sampleTransaction({
  state: "CONFIRMED",
  subState: "REPLACED",
  payload: {
    to: null,
    data: "0x6001",
    value: 2n ** 256n - 1n,
    gas: 100_000n,
    type: "eip2930",
    gasPrice: 5n,
    accessList: [{ address: RECIPIENT, storageKeys: [sampleHash(9)] }],
  },
  metadata: { order: 42, nested: { list: [1, "two", null] } },
  attempts: [
    ...sampleTransaction().attempts,
    {
      ordinal: 2,
      kind: "reprice",
      txHash: sampleHash(2),
      gas: 21_000n,
      fees: { type: "legacy", gasPrice: 2n ** 70n },
      createdAt: at(2),
      firstSentAt: null,
    },
  ],
  receipt: {
    txHash: sampleHash(2),
    blockNumber: 1204,
    blockHash: sampleHash(0xb10c),
    transactionIndex: 3,
    status: "success",
    gasUsed: 20_999n,
    effectiveGasPrice: 2n ** 70n,
    contractAddress: RECIPIENT,
  },
  confirmedAt: at(5),
  nextResubmitAt: at(9),
  lastError: "<b>nonce too low</b>",
  history: [
    {
      ordinal: 1,
      event: "allocate",
      fromState: null,
      state: "ALLOCATED",
      subState: null,
      nodeId: "node-a",
      token: 3,
      reason: null,
      count: 1,
      firstAt: at(0),
      lastAt: at(0),
    },
  ],
  confirmations: [{ number: 1205, hash: sampleHash(0xb10d) }],
});

function answering(view: TransactionView) {
  return vi.fn((..._: readonly unknown[]) => Promise.resolve(view));
}

describe("GET /api/v1/tx/{txId}", () => {
  it("returns every field of the contract", async () => {
    const transaction = answering(settled);
    const response = await httpApp({ transaction }).inject(`/api/v1/tx/${sampleTxId(1)}?include=history,confirmations`);
    expect(response.statusCode).toBe(200);
    expect(transaction).toHaveBeenCalledExactlyOnceWith(sampleTxId(1), ["history", "confirmations"]);
    expect(response.json()).toEqual({
      txId: sampleTxId(1),
      chainId: CHAIN_ID,
      signer: SIGNER_EIP55,
      requestId: "order-42",
      owner: "checkout",
      nonce: 7,
      state: "CONFIRMED",
      subState: "REPLACED",
      txHash: sampleHash(1),
      payload: {
        to: null,
        data: "0x6001",
        value: (2n ** 256n - 1n).toString(),
        gas: "100000",
        type: "eip2930",
        gasPrice: "5",
        accessList: [{ address: RECIPIENT_EIP55, storageKeys: [sampleHash(9)] }],
      },
      gas: "21000",
      metadata: { order: 42, nested: { list: [1, "two", null] } },
      attempts: [
        {
          ordinal: 1,
          kind: "initial",
          txHash: sampleHash(1),
          gas: "21000",
          type: "eip1559",
          maxFeePerGas: "3000000000",
          maxPriorityFeePerGas: "1000000000",
          createdAt: "2026-01-01T00:00:00.000Z",
          firstSentAt: "2026-01-01T00:00:00.000Z",
        },
        {
          ordinal: 2,
          kind: "reprice",
          txHash: sampleHash(2),
          gas: "21000",
          type: "legacy",
          gasPrice: (2n ** 70n).toString(),
          createdAt: "2026-01-01T00:00:02.000Z",
          firstSentAt: null,
        },
      ],
      receipt: {
        txHash: sampleHash(2),
        blockNumber: 1204,
        blockHash: sampleHash(0xb10c),
        transactionIndex: 3,
        status: "success",
        verified: true,
        gasUsed: "20999",
        effectiveGasPrice: (2n ** 70n).toString(),
        contractAddress: RECIPIENT_EIP55,
      },
      validUntil: null,
      heldSince: null,
      lastError: "<b>nonce too low</b>",
      submitAttempts: 1,
      lastSubmittedAt: "2026-01-01T00:00:00.000Z",
      nextResubmitAt: "2026-01-01T00:00:09.000Z",
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "2026-01-01T00:00:00.000Z",
      confirmedAt: "2026-01-01T00:00:05.000Z",
      history: [
        {
          ordinal: 1,
          event: "allocate",
          fromState: null,
          state: "ALLOCATED",
          subState: null,
          nodeId: "node-a",
          fencingToken: 3,
          actor: null,
          audit: null,
          reason: null,
          count: 1,
          firstAt: "2026-01-01T00:00:00.000Z",
          lastAt: "2026-01-01T00:00:00.000Z",
        },
      ],
      confirmations: [{ number: 1205, hash: sampleHash(0xb10d) }],
    });
  });

  it.each([
    ["settled", settled],
    ["in flight", sampleTransaction()],
    [
      "refused before allocation",
      sampleTransaction({
        nonce: null,
        gas: null,
        attempts: [],
        txHash: null,
        requestId: null,
        lastSubmittedAt: null,
        state: "FAILED_FINAL",
        subState: "REJECTED",
      }),
    ],
  ])("matches the contract's schema: %s", async (_, view) => {
    const response = await httpApp({ transaction: answering(view) }).inject(`/api/v1/tx/${sampleTxId(1)}`);
    expect([...Compile(Transaction).Errors(response.json())]).toEqual([]);
  });

  it("omits history and confirmations unless they are requested", async () => {
    const transaction = answering(sampleTransaction());
    const response = await httpApp({ transaction }).inject(`/api/v1/tx/${sampleTxId(1)}`);
    expect(transaction).toHaveBeenCalledExactlyOnceWith(sampleTxId(1), []);
    expect(response.json()).not.toHaveProperty("history");
    expect(response.json()).not.toHaveProperty("confirmations");
  });

  it("accepts an id in upper or lower case", async () => {
    const transaction = answering(sampleTransaction());
    await httpApp({ transaction }).inject(`/api/v1/tx/${sampleTxId(10).toUpperCase()}`);
    expect(transaction).toHaveBeenCalledExactlyOnceWith(sampleTxId(10), []);
  });

  it.each([
    ["nonsense"],
    ["1"],
    ["%00"],
    [`${sampleTxId(1)}0`],
    ["019a4b7e000070008000000000000001"],
    ["'%20OR%201=1--"],
  ])("does not query the database for the invalid id %s", async (id) => {
    const transaction = answering(sampleTransaction());
    const response = await httpApp({ transaction }).inject(`/api/v1/tx/${id}`);
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ code: "NOT_FOUND" });
    expect(transaction).not.toHaveBeenCalled();
  });

  it("answers 404 for an unknown id", async () => {
    const transaction = () => Promise.reject(new FencepostError("NOT_FOUND", "no such transaction"));
    const response = await httpApp({ transaction }).inject(`/api/v1/tx/${sampleTxId(1)}`);
    expect(response.statusCode).toBe(404);
  });
});

describe("GET /api/v1/tx/by-request", () => {
  it("is not handled as GET /api/v1/tx/{txId}, and its query is passed on", async () => {
    const transactionByRequest = answering(sampleTransaction());
    const response = await httpApp({ transactionByRequest }).inject({
      url: "/api/v1/tx/by-request",
      query: { signer: SIGNER_EIP55, requestId: "a+b & c/é", chainId: "31337", include: "history" },
    });
    expect(response.statusCode).toBe(200);
    expect(transactionByRequest).toHaveBeenCalledExactlyOnceWith(
      { signer: SIGNER_EIP55, requestId: "a+b & c/é", chainId: 31337 },
      ["history"],
    );
  });

  it("finds every request id that a create accepts, up to 255 characters of any byte length", async () => {
    const app = httpApp({ transactionByRequest: answering(sampleTransaction()) });
    const statusOf = async (requestId: string) => {
      const query = { signer: SIGNER_EIP55, requestId };
      return (await app.inject({ url: "/api/v1/tx/by-request", query })).statusCode;
    };
    expect(await statusOf("🦊".repeat(255))).toBe(200);
    expect(await statusOf("🦊".repeat(256))).toBe(400);
  });
});

describe("GET /api/v1/tx", () => {
  it("passes on every filter and returns a page", async () => {
    const transactions = vi.fn((_: unknown) =>
      Promise.resolve({ items: [settled, sampleTransaction({ txId: sampleTxId(2) })], next: "cursor==" }),
    );
    const response = await httpApp({ transactions }).inject({
      url: "/api/v1/tx",
      query: {
        signer: SIGNER,
        chainId: "1",
        state: "FAILED_FINAL",
        requestId: "x",
        txHash: sampleHash(5).toUpperCase().replace("0X", "0x"),
        order: "oldest",
        after: "opaque",
        limit: "1000",
      },
    });
    expect(response.statusCode).toBe(200);
    expect(transactions).toHaveBeenCalledExactlyOnceWith({
      signer: SIGNER,
      chainId: 1,
      state: "FAILED_FINAL",
      requestId: "x",
      txHash: sampleHash(5),
      order: "oldest",
      after: "opaque",
      limit: 1000,
    });
    const page = response.json();
    expect([...Compile(TransactionPage).Errors(page)]).toEqual([]);
    expect(page.items.map(({ txId }: { txId: string }) => txId)).toEqual([sampleTxId(1), sampleTxId(2)]);
    expect(page.next).toBe("cursor==");
  });

  it("adds no filter of its own", async () => {
    const transactions = vi.fn((_: unknown) => Promise.resolve({ items: [], next: null }));
    const response = await httpApp({ transactions }).inject("/api/v1/tx");
    expect(transactions).toHaveBeenCalledExactlyOnceWith({});
    expect(response.json()).toEqual({ items: [], next: null });
  });
});
