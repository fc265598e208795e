import type { Created, SignatureView, TransactionView } from "../../src/application/api.ts";
import type { FencepostApi } from "../../src/application/operations/calls.ts";
import type { SignerView } from "../../src/application/queries/signers.ts";
import type { Address, Hash } from "../../src/domain/lane.ts";
import type { Checksummed } from "../../src/domain/text/checksum.ts";
import type { InstanceRecord, LeaseRecord } from "../../src/ports/lease-store.ts";
import type { CompletionRecord } from "../../src/ports/query-store.ts";
import { aPermit } from "./message-samples.ts";

/** A FencepostApi with the methods that a test scripts; a method without a script fails its request. */
export function scriptedApi(script: Partial<FencepostApi> = {}): FencepostApi {
  const unscripted = (method: string) => () => Promise.reject(new Error(`the test scripted no ${method}`));
  return {
    create: unscripted("create"),
    createBatch: unscripted("createBatch"),
    newIds: unscripted("newIds"),
    createNamed: unscripted("createNamed"),
    submitSigned: unscripted("submitSigned"),
    firstHash: unscripted("firstHash"),
    signedAs: unscripted("signedAs"),
    askChain: unscripted("askChain"),
    passSigned: unscripted("passSigned"),
    transaction: unscripted("transaction"),
    explain: unscripted("explain"),
    transactionByRequest: unscripted("transactionByRequest"),
    transactions: unscripted("transactions"),
    completions: unscripted("completions"),
    signers: unscripted("signers"),
    signer: unscripted("signer"),
    checkPolicy: unscripted("checkPolicy"),
    policies: unscripted("policies"),
    applyPolicies: unscripted("applyPolicies"),
    policyUsage: unscripted("policyUsage"),
    attention: unscripted("attention"),
    overview: unscripted("overview"),
    search: unscripted("search"),
    nonceRuler: unscripted("nonceRuler"),
    notices: unscripted("notices"),
    acknowledge: unscripted("acknowledge"),
    clusterHistory: unscripted("clusterHistory"),
    nodes: unscripted("nodes"),
    me: unscripted("me"),
    namedSigners: unscripted("namedSigners"),
    costs: unscripted("costs"),
    abis: unscripted("abis"),
    putAbis: unscripted("putAbis"),
    history: unscripted("history"),
    leases: unscripted("leases"),
    readiness: unscripted("readiness"),
    keys: unscripted("keys"),
    addKey: unscripted("addKey"),
    revokeKey: unscripted("revokeKey"),
    webhooks: unscripted("webhooks"),
    webhook: unscripted("webhook"),
    addWebhook: unscripted("addWebhook"),
    changeWebhook: unscripted("changeWebhook"),
    removeWebhook: unscripted("removeWebhook"),
    pauseWebhook: unscripted("pauseWebhook"),
    resumeWebhook: unscripted("resumeWebhook"),
    replayWebhook: unscripted("replayWebhook"),
    testWebhook: unscripted("testWebhook"),
    rotateWebhook: unscripted("rotateWebhook"),
    act: unscripted("act"),
    actOnLane: unscripted("actOnLane"),
    reserveNonce: unscripted("reserveNonce"),
    reservation: unscripted("reservation"),
    submitReserved: unscripted("submitReserved"),
    markUsed: unscripted("markUsed"),
    releaseNonce: unscripted("releaseNonce"),
    requestSignature: unscripted("requestSignature"),
    decideSignature: unscripted("decideSignature"),
    signature: unscripted("signature"),
    signatures: unscripted("signatures"),
    kill: unscripted("kill"),
    endKill: unscripted("endKill"),
    ...script,
  };
}

export const SIGNER: Address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
export const SIGNER_EIP55 = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
export const RECIPIENT: Address = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
export const RECIPIENT_EIP55 = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
export const CHAIN_ID = 31337;

const EIP55 = new Map<Address, Checksummed>([
  [SIGNER, SIGNER_EIP55],
  [RECIPIENT, RECIPIENT_EIP55],
]);

/**
 * A fake checksum: the checksummed form of the two sample accounts, and any other address in upper case, so that a test
 * sees that the function was called.
 */
export function sampleChecksum(address: Address): Checksummed {
  return EIP55.get(address) ?? `0x${address.slice(2).toUpperCase()}`;
}

/** The nth id of a test, in UUID form. */
export function sampleTxId(n: number): string {
  return `019a4b7e-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

export function sampleHash(n: number): Hash {
  return `0x${n.toString(16).padStart(64, "0")}`;
}

const LONG_AGO = new Date("2026-01-01T00:00:00.000Z");

export function sampleCreated(overrides: Partial<Created> = {}): Created {
  return {
    outcome: "created",
    txId: sampleTxId(1),
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    requestId: "order-42",
    nonce: 7,
    state: "ALLOCATED",
    ...overrides,
  };
}

export function sampleTransaction(overrides: Partial<TransactionView> = {}): TransactionView {
  return {
    txId: sampleTxId(1),
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    requestId: "order-42",
    owner: "checkout",
    nonce: 7,
    state: "TRACKING",
    subState: "BROADCAST",
    payload: { to: RECIPIENT, data: "0x", value: 10n ** 18n },
    gas: 21_000n,
    metadata: null,
    attempts: [
      {
        ordinal: 1,
        kind: "initial",
        txHash: sampleHash(1),
        gas: 21_000n,
        fees: { type: "eip1559", maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
        createdAt: LONG_AGO,
        firstSentAt: LONG_AGO,
      },
    ],
    receipt: null,
    lastError: null,
    submitAttempts: 1,
    lastSubmittedAt: LONG_AGO,
    nextResubmitAt: null,
    createdAt: LONG_AGO,
    updatedAt: LONG_AGO,
    confirmedAt: null,
    txHash: sampleHash(1),
    ...overrides,
  };
}

export function sampleCompletion(overrides: Partial<CompletionRecord> = {}): CompletionRecord {
  return {
    seq: 1,
    epoch: 1,
    txId: sampleTxId(1),
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    requestId: "order-42",
    nonce: 7,
    state: "CONFIRMED",
    subState: null,
    settled: true,
    txHash: sampleHash(1),
    at: LONG_AGO,
    ...overrides,
  };
}

export function sampleSigner(overrides: Partial<SignerView> = {}): SignerView {
  return {
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    address: SIGNER,
    name: null,
    signerAway: null,
    unowned: null,
    window: { configured: 64, open: 64, inFlight: 1, limitedBy: null },
    cursor: 8,
    suspendedBy: null,
    owner: {
      instanceId: "instance-1",
      nodeId: "node-a",
      url: "http://127.0.0.1:3000",
      expiresAt: new Date("2026-01-01T00:00:10.000Z"),
    },
    token: 3,
    acquiredAt: LONG_AGO,
    pending: 1,
    confirmed: 7,
    failed: 0,
    stuck: 0,
    oldestPendingAt: LONG_AGO,
    headOfLine: { txId: sampleTxId(1), nonce: 7, state: "TRACKING", createdAt: LONG_AGO, held: false },
    chainCounts: { latest: 7, pending: 8, asOf: LONG_AGO },
    balance: 9_999n * 10n ** 18n,
    balanceAsOf: LONG_AGO,
    reserved: 0,
    holes: [],
    ...overrides,
  };
}

export function sampleInstance(overrides: Partial<InstanceRecord> = {}): InstanceRecord {
  return {
    instanceId: "instance-1",
    nodeId: "node-a",
    url: "http://127.0.0.1:3000",
    version: "1.2.3",
    mode: "worker-queue",
    startedAt: LONG_AGO,
    heartbeatAt: new Date("2026-01-01T00:00:05.000Z"),
    expiresAt: new Date("2026-01-01T00:00:15.000Z"),
    counter: 6,
    dead: false,
    expired: false,
    lanes: 3,
    killChanges: 0,
    readAt: new Date("2026-01-01T00:00:10.000Z"),
    chains: [CHAIN_ID],
    draining: false,
    standsBack: false,
    keysAway: [],
    publicKey: null,
    keyProof: null,
    lock: "none",
    ...overrides,
  };
}

export function sampleLease(overrides: Partial<LeaseRecord> = {}): LeaseRecord {
  const { instanceId, nodeId, url, expiresAt } = sampleInstance();
  return {
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    owner: { instanceId, nodeId, url, expiresAt },
    token: 3,
    acquiredAt: LONG_AGO,
    ...overrides,
  };
}

/** A requested signature of a permit, as it is shown for audit. */
export function sampleSignature(): SignatureView {
  const at = new Date("2026-11-18T12:00:00.000Z");
  return {
    ...{ signatureId: sampleTxId(77), lane: { chainId: CHAIN_ID, signer: SIGNER }, requestId: "permit-1" },
    ...{
      owner: "checkout",
      kind: "typedData",
      domain: "USD Coin",
      state: "SIGNED",
      rule: "usdc",
      amount: 100n,
      digest: sampleHash(1),
    },
    ...{ message: null, typedData: aPermit(SIGNER), createdAt: at, signedAt: at, expiresAt: null },
    decision: { actor: "operator:boss", reason: "checked", at },
  };
}
