import type { Webhook } from "../../../src/contract/calls/webhooks.ts";
import type { RequestedSignature } from "../../../src/contract/schemas/message-signing.ts";

/** Webhooks and requested signatures of the staged night. */

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const CHAIN = 8453;
export const FAILING_WEBHOOK = "019a4b7e-9c1d-7e20-8f31-4a5b6c7d8e01";
export const PAUSED_WEBHOOK = "019a4b7e-9c1d-7e20-8f31-4a5b6c7d8e02";
export const WAITING_SIGNATURE = "019a4b7e-8a90-7cc1-b1d2-0000000000b1";
export const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";

type At = (secondsAgo: number) => string;

export function stagedWebhooks(at: At): readonly Webhook[] {
  const usual = {
    ...{ signers: null, chains: null, keys: null, states: null, paused: null, epoch: 3, behind: 0, behindSince: null },
    ...{ failingSince: null, nextTryAt: null, giveUpAfterSeconds: 259_200, generation: 1, rotatedUntil: null },
    ...{ createdBy: "ops", createdAt: at(900_000), changedBy: "operator:ops", changedAt: at(900_000) },
  };
  return [
    {
      ...usual,
      ...{ subscriberId: "019a4b7e-9c1d-7e20-8f31-4a5b6c7d8e00", name: "books", state: "ACTIVE" },
      ...{ url: "https://books.example/outcomes", position: 20_461, nodeId: "node-a", deliveredAt: at(2) },
      lastAnswer: { status: 204, reason: null, at: at(2) },
    },
    {
      ...usual,
      ...{
        subscriberId: FAILING_WEBHOOK,
        name: "ledger",
        state: "FAILING",
        url: "https://ledger.example/hooks/fencepost",
      },
      ...{ position: 19_870, behind: 591, behindSince: at(1_900), failingSince: at(1_850), nextTryAt: at(-240) },
      ...{ states: ["CONFIRMED", "FAILED_FINAL"], chains: [CHAIN], nodeId: "node-b", deliveredAt: at(1_860) },
      lastAnswer: { status: 503, reason: null, at: at(60) },
    },
    {
      ...usual,
      ...{ subscriberId: PAUSED_WEBHOOK, name: "mailer", state: "PAUSED", url: "https://mailer.example/" },
      ...{ position: 12_004, behind: 8_457, behindSince: at(86_000), nodeId: null, deliveredAt: at(86_400) },
      paused: { by: "GONE", why: "HTTP 410", at: at(86_000) },
      lastAnswer: { status: 410, reason: null, at: at(86_000) },
    },
  ];
}

const PERMIT = [
  { name: "owner", type: "address" },
  { name: "spender", type: "address" },
  { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint256" },
];

export function stagedSignatures(at: At, words?: string): readonly RequestedSignature[] {
  const hash = (digit: string) => `0x${digit.repeat(64)}` as const;
  const usual = { chainId: CHAIN, signer: SIGNER, signedAt: null, expiresAt: null, decision: null } as const;
  const typedData = {
    domain: {
      name: words ?? "USD Coin",
      version: "2",
      chainId: String(CHAIN),
      verifyingContract: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
    },
    types: { Permit: PERMIT },
    primaryType: "Permit",
    message: {
      ...{ owner: SIGNER.toLowerCase(), spender: "0x000000000022d473030f116ddee9f6b43ac78ba3" },
      ...{ value: "750000000", nonce: "4", deadline: "1893456000" },
    },
  };
  return [
    {
      ...usual,
      ...{ signatureId: WAITING_SIGNATURE, requestId: words ?? "permit-81", owner: "checkout", kind: "typedData" },
      ...{ domain: typedData.domain.name, state: "AWAITING_APPROVAL", rule: "usdc-permit", amount: "750000000" },
      ...{ digest: hash("d"), message: null, typedData, createdAt: at(140), expiresAt: at(-3_460) },
    },
    {
      ...usual,
      ...{
        signatureId: "019a4b7e-8a90-7cc1-b1d2-0000000000b0",
        requestId: "permit-80",
        owner: "checkout",
        kind: "typedData",
      },
      ...{ domain: typedData.domain.name, state: "SIGNED", rule: "usdc-permit", amount: "20000000", digest: hash("c") },
      ...{ message: null, typedData, createdAt: at(900), signedAt: at(900), expiresAt: at(-2_700) },
      decision: { actor: "operator:finance", reason: "the invoice was checked", at: at(880) },
    },
    {
      ...usual,
      ...{ signatureId: "019a4b7e-8a90-7cc1-b1d2-0000000000a9", requestId: "login-7", owner: "web", kind: "personal" },
      ...{ domain: "example.com", state: "SIGNED", rule: "login", amount: "0", digest: hash("b"), typedData: null },
      message:
        words ??
        `example.com wants you to sign in with your Ethereum account:\n${SIGNER}\n\n\nURI: https://example.com/login\nVersion: 1\nChain ID: ${CHAIN}\nNonce: 8fd2a1bc\nIssued At: 2026-11-17T02:50:00Z`,
      ...{ createdAt: at(7_400), signedAt: at(7_400) },
    },
  ];
}
