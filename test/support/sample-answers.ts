import type { Readiness } from "../../src/contract/calls/cluster.ts";
import type { NonceReservation } from "../../src/contract/calls/nonces.ts";
import type { CompletionsPage } from "../../src/contract/schemas/completions.ts";
import type { CreatedTransaction } from "../../src/contract/schemas/create.ts";
import type { SignerLanes, SignersPage } from "../../src/contract/schemas/signers.ts";
import type { Explanation, Transaction } from "../../src/contract/schemas/transaction-schema.ts";

/** Sample responses of a node about one order, paid from the first account of development chains. */

const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const txId = "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d";
const txHash = "0x6f4c9d2a1b8e3f70c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c";
const blockHash = "0x91b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";

export const created: CreatedTransaction = {
  txId,
  chainId: 31337,
  signer,
  nonce: 7,
  state: "ALLOCATED",
  requestId: "order-42",
};

const outcome = { ...created, state: "CONFIRMED", subState: null } as const;

const attempt: Transaction["attempts"][number] = {
  ordinal: 1,
  kind: "initial",
  txHash,
  gas: "21000",
  type: "eip1559",
  maxFeePerGas: "3000000000",
  maxPriorityFeePerGas: "1000000000",
  createdAt: "2026-11-02T09:30:00.012Z",
  firstSentAt: "2026-11-02T09:30:00.015Z",
};

export const transaction: Transaction = {
  ...outcome,
  owner: "checkout",
  txHash,
  payload: { to: recipient, data: "0x", value: "1000000000000000" },
  gas: "21000",
  metadata: null,
  validUntil: null,
  heldSince: null,
  attempts: [attempt],
  receipt: {
    txHash,
    blockNumber: 1204,
    blockHash,
    transactionIndex: 0,
    status: "success",
    verified: true,
    gasUsed: "21000",
    effectiveGasPrice: "2000000000",
    contractAddress: null,
  },
  lastError: null,
  submitAttempts: 1,
  lastSubmittedAt: "2026-11-02T09:30:00.015Z",
  nextResubmitAt: null,
  createdAt: "2026-11-02T09:30:00.000Z",
  updatedAt: "2026-11-02T09:30:02.110Z",
  confirmedAt: "2026-11-02T09:30:02.110Z",
};

export const feedPage: CompletionsPage = {
  epoch: 1,
  items: [{ seq: 1, epoch: 1, ...outcome, settled: true, txHash, at: "2026-11-02T09:30:02.110Z" }],
  next: 1,
};

export const reserved: NonceReservation = {
  reservationId: "019a4b7e-9c00-7aa0-8b1c-2d3e4f5a6b7c",
  chainId: 31337,
  signer,
  nonce: 8,
  requestId: "payout-7",
  owner: "wallet",
  expiresAt: "2026-11-02T09:31:00.000Z",
  state: "RESERVED",
  txId: null,
};

export const trackedTransaction: CreatedTransaction = {
  ...created,
  nonce: 8,
  state: "TRACKING",
  requestId: "payout-7",
};

const nodeA = { nodeId: "node-a", instanceId: "019a4b7d-0000-7000-8000-000000000001" };
const lease = { fencingToken: 3, acquiredAt: "2026-11-02T09:00:00.000Z", expiresAt: "2026-11-02T09:30:12.000Z" };

export const signerLanes: SignerLanes = {
  items: [
    {
      chainId: 31337,
      signer,
      name: null,
      cursor: 8,
      chainCounts: { latest: 8, pending: 8, asOf: "2026-01-01T00:00:00.000Z" },
      pending: 0,
      confirmed: 8,
      failed: 0,
      stuck: 0,
      reserved: 0,
      holes: [],
      oldestPendingAgeSeconds: null,
      headOfLine: null,
      balance: "9999990000000000000000",
      balanceAsOf: "2026-01-01T00:00:00.000Z",
      signerAway: null,
      unowned: null,
      window: { configured: 64, open: 64, inFlight: 0, limitedBy: null },
      suspended: false,
      suspendedBy: null,
      owner: { ...nodeA, url: "http://127.0.0.1:3000" },
      lease,
    },
  ],
};

export const lanesPage: SignersPage = { ...signerLanes, next: null };

export const ready: Readiness = {
  ready: true,
  database: true,
  chains: [{ chainId: 31337, reachable: true, head: 1204, headSince: "2025-12-31T23:59:56.000Z", signersAway: 0 }],
  draining: false,
};

export const notReady: Readiness = {
  ...ready,
  ready: false,
  chains: [{ chainId: 31337, reachable: false, head: null, signersAway: 0 }],
};

const offersTooLittle = "offers at most 20 gwei for gas that costs 31 gwei since block 9120";
const behindStuck = `waits behind nonce 7, which is STUCK: ${offersTooLittle}`;

export const explanation: Explanation = {
  summary: `Nonce 8: ${behindStuck}. What helps: offer more for nonce 7.`,
  causes: [{ code: "WAITING_BEHIND", text: behindStuck, data: { nonce: 7, txId, state: "STUCK" } }],
  blockedBy: { txId, nonce: 7 },
  help: [
    { code: "REPRICE", text: "offer more for nonce 7" },
    { code: "CANCEL", text: "give nonce 7 up safely: the nonce is used without effect" },
  ],
  actions: [
    {
      action: "reprice",
      code: "REPRICE",
      label: "Offer more for nonce 7",
      method: "POST",
      path: `/api/v1/tx/${txId}/reprice`,
      body: { reason: "explain: FEE_BELOW_BASE_FEE" },
      scope: "operate",
    },
  ],
};

/**
 * A transaction right after a cancel: the original and the cancel may both still be mined, and the one that is mined
 * decides.
 */
export const cancelling: Transaction = {
  ...transaction,
  state: "TRACKING",
  subState: "PENDING",
  receipt: null,
  confirmedAt: null,
  txHash: blockHash,
  submitAttempts: 2,
  attempts: [
    attempt,
    {
      ...attempt,
      ordinal: 2,
      kind: "cancel",
      txHash: blockHash,
      maxFeePerGas: "3300000000",
      maxPriorityFeePerGas: "1100000000",
      createdAt: "2026-11-02T09:31:00.000Z",
      firstSentAt: "2026-11-02T09:31:00.000Z",
    },
  ],
};
