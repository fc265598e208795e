import type { ClusterNodes, LaneLeases, Readiness } from "../calls/cluster.ts";
import type { AddKey, Keys, NewKey, RevokedKey } from "../calls/keys.ts";
import type { NonceReservation, ReserveNonce, SubmitReserved, UseReserved } from "../calls/nonces.ts";
import type { CompletionsPage } from "../schemas/completions.ts";
import type { BatchResults, CreateBatch, CreatedTransaction, CreateTransaction } from "../schemas/create.ts";
import { problemExamples } from "../schemas/problem.ts";
import type { SignerLanes, SignersPage } from "../schemas/signers.ts";
import type { Explanation, Transaction, TransactionPage } from "../schemas/transaction-schema.ts";

/** The story the reference tells: one order, paid from the first dev account. Tests validate each against its schema. */

export const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
export const recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
/** One letter's case is wrong, so its EIP-55 checksum is. */
const mistyped = "0x70997970c51812dc3A010C7d01b50e0d17dc79C8";
const txId = "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d";
export const txHash = "0x6f4c9d2a1b8e3f70c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c";
const blockHash = "0x91b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";

const transfer: CreateTransaction = {
  signer,
  requestId: "order-42",
  payload: { to: recipient, value: "1000000000000000" },
};

export const creates: Readonly<Record<string, CreateTransaction>> = {
  transfer,
  call: {
    signer,
    requestId: "order-43",
    payload: {
      to: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
      function: "transfer(address,uint256)",
      args: [recipient, "250"],
    },
    metadata: { customer: "c-17" },
  },
  deploy: { signer, chainId: 31337, payload: { bytecode: "0x600a600c600039600a6000f3602a60005260206000f3" } },
};

export const batch: CreateBatch = { transactions: [transfer, { signer, payload: { to: mistyped } }] };

export const created: CreatedTransaction = {
  txId,
  chainId: 31337,
  signer,
  nonce: 7,
  state: "ALLOCATED",
  requestId: "order-42",
};

export const batchResults: BatchResults = {
  results: [
    { status: 202, ...created },
    {
      ...problemExamples.INVALID_REQUEST,
      detail: "payload.to: the checksum of the address is wrong",
      path: "payload.to",
    },
  ],
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

export const transactionPage: TransactionPage = { items: [transaction], next: null };

export const feedPage: CompletionsPage = {
  epoch: 1,
  items: [{ seq: 1, epoch: 1, ...outcome, settled: true, txHash, at: "2026-11-02T09:30:02.110Z" }],
  next: 1,
};

export const reserve: ReserveNonce = { signer, ttl: "60s", requestId: "payout-7" };

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

export const released: NonceReservation = { ...reserved, state: "RELEASED" };

export const handedIn: SubmitReserved = { rawTransaction: "0x02f8730182a4b1" };

export const sentByCaller: UseReserved = { txHash };

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
      cursor: 8,
      chainCounts: { latest: 8, pending: 8 },
      pending: 0,
      confirmed: 8,
      failed: 0,
      stuck: 0,
      reserved: 0,
      holes: [],
      oldestPendingAgeSeconds: null,
      headOfLine: null,
      balance: "9999990000000000000000",
      signerAway: null,
      window: { configured: 64, open: 64, inFlight: 0, limitedBy: null },
      suspended: false,
      suspendedBy: null,
      owner: { ...nodeA, url: "http://127.0.0.1:3000" },
      lease,
    },
  ],
};

export const lanesPage: SignersPage = { ...signerLanes, next: null };

export const clusterNodes: ClusterNodes = {
  items: [
    {
      ...nodeA,
      url: "http://10.0.0.7:3000",
      version: "0.1.0",
      mode: "worker-queue",
      startedAt: "2026-11-02T09:00:00.000Z",
      heartbeatAt: "2026-11-02T09:30:02.000Z",
      lanes: 12,
    },
  ],
};

export const laneLeases: LaneLeases = { items: [{ chainId: 31337, signer, ...nodeA, ...lease }] };

export const ready: Readiness = {
  ready: true,
  database: true,
  chains: [{ chainId: 31337, reachable: true, head: 1204, signersAway: 0 }],
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

const reason = "wrong recipient, ticket 4711";

export const orders = {
  resubmit: { reason: "the node was restarted" },
  reprice: { reason: "needed today", maxFeePerGas: "6000000000", maxPriorityFeePerGas: "2000000000" },
  cancel: { reason, audit: { ticket: 4711 } },
  replace: { reason, payload: { to: recipient, value: "1000000000000000" } },
  resolve: { reason, action: "CANCEL" },
  approve: { reason: "the invoice was checked", audit: { ticket: 4711 } },
  reject: { reason: "no such invoice" },
  suspend: { reason: "the invoice is being checked" },
  resume: { reason: "the invoice was checked" },
  lane: { reason: "key rotation" },
} as const;

/** Right after a cancel: both payloads are tracked, and whichever is mined decides. */
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

export const killOrder = { reason: "the key may be stolen" };

export const killed = {
  durable: true,
  kills: [
    {
      killId: "019a4b7e-5d2c-7c3e-9f10-2b4d6f8a0c1e",
      signer: null,
      actor: "operator:on-call",
      reason: "the key may be stolen",
    },
  ],
  nodes: [{ nodeId: "node-b", url: "http://10.0.0.6:3000", told: true }],
};

export const unkilled = { durable: true, kills: [], nodes: [] };

export const asked: AddKey = { name: "checkout", scopes: ["read", "submit"], signers: [signer] };

const keyTerms = {
  name: "checkout",
  scopes: ["read", "submit"] as ("read" | "submit")[],
  signers: [signer],
  chains: null,
  createsPerSecond: 50,
  readsPerSecond: 200,
  queueShare: 0.25,
};

export const newKey: NewKey = { ...keyTerms, secret: "pZ3vX0c6JH2mSmVZ8kq1uYy4n7wE5rTb", secretId: "5f1d7a84" };

export const revokedKey: RevokedKey = { name: "checkout", secretId: null };

export const keys: Keys = {
  items: [
    {
      ...keyTerms,
      createdAt: "2026-11-02T09:30:00.000Z",
      secrets: [{ secretId: "5f1d7a84", createdAt: "2026-11-02T09:30:00.000Z" }],
    },
  ],
};

export const check = {
  signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  payload: { to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: "1000000000000000" },
  key: "payments",
};
export const verdict = {
  allowed: false,
  value: "1000000000000000",
  cost: "1042000000000000",
  rule: "signer.maxCost.perDay",
  detail: "1042000000000000 wei would be above maxCost.perDay of this signer, which is 1000000000000000",
};
const policyDocument = { signers: { "*": { maxCost: { perDay: "1000000000000000" } } } };
export const inForce = {
  version: 3,
  hash: "0x2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
  policies: policyDocument,
  changedAt: "2026-11-02T09:30:00.000Z",
  changedBy: "operator:alice",
  reason: "a lower limit for the weekend",
};
export const changed = { policies: policyDocument, reason: "a lower limit for the weekend", expectedVersion: 2 };
const usedNow = { value: "1000000000000000", cost: "1042000000000000", maxValue: null };
export const usage = {
  at: "2026-11-02T09:30:00.000Z",
  signers: [
    {
      chainId: 31337,
      signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
      since: "2026-11-02T09:00:00.000Z",
      hour: { ...usedNow, maxCost: null },
      day: { ...usedNow, maxCost: "1000000000000000000" },
    },
  ],
  keys: [],
};
