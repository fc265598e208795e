import { getAddress } from "viem";
import type { SignMessageRequest } from "../../../src/application/api.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";

import { aPermit, GREETING_RULE, type PermitParts, permitRule, SPENDER } from "../message-samples.ts";
import { policiesOf } from "../policies.ts";
import { CHAIN_ID, SIGNERS } from "../world.ts";
import { PAYER_ALONE } from "./clerks.ts";
import { PAYER } from "./payers.ts";

/**
 * What the rules below say about a message: "allowed", as far as its windows have room; "approval": a second key must
 * approve it; "never". Told by how the message is drawn, not by the code that judges it.
 */
export type Verdict = "allowed" | "approval" | "never";

export interface Wanted {
  readonly signer: Address;
  readonly owner: string | null;
  readonly request: SignMessageRequest;
  readonly verdict: Verdict;
  readonly kind: "permit" | "batch" | "greeting" | "signIn";
  readonly value: bigint;
}

/** The API key that may ask for small permits alone. */
const SMALL = "small";
const OWNERS = [null, "shop", SMALL] as const;
/** Signers that may sign permits, and greetings. The third one has no policy, so it signs no message. */
const [OF_PERMITS, OF_GREETINGS] = SIGNERS as readonly [Address, Address];

/** Limits by rule: of an hour, and of a day for batches. */
export const WINDOWS = {
  usdc: { amount: 200n, signatures: 6 },
  batch: { amount: 150n, signatures: 2 },
  greeting: { amount: null, signatures: 3 },
  login: { amount: null, signatures: 2 },
} as const;
const MOST_VALUE = 100n;
const MOST_WITHOUT_APPROVAL = 60n;
const MOST_OF_SMALL = 30n;
/** Largest value while the tight policies are in force. They allow no greeting. */
export const MOST_TIGHT = 20n;
const DEADLINE_S = 3_600;
const MOST_NONCE = 1_000_000;
const BATCH_TYPE = "Batch(address[] spenders,uint256[] values)";
const BATCH_FIELDS = [
  { name: "spenders", type: "address[]" },
  { name: "values", type: "uint256[]" },
];
const STRANGER = `0x${"9".repeat(40)}`;
const SITE = { domain: "example.com", uri: "https://example.com/login" };
/** A permit with a member more than its rule's type has. */
const LONGER = [
  ...(aPermit(SPENDER).types as { readonly Permit: readonly object[] }).Permit,
  { name: "memo", type: "string" },
];

function documentWith(most: bigint, personal: readonly object[]) {
  const { amount, signatures } = WINDOWS.usdc;
  const nonce = { min: "1", max: String(MOST_NONCE) };
  const fields = { spender: permitRule().fields.spender, deadline: { withinSeconds: DEADLINE_S }, nonce };
  const bounds = { field: "value", perSignature: String(most), perHour: String(amount) };
  const requireApproval = { aboveAmount: String(MOST_WITHOUT_APPROVAL), expiresAfter: "2s" };
  const usdc = { fields, amount: bounds, signatures: { perHour: signatures }, requireApproval };
  const small = { amount: { field: "value", perSignature: String(MOST_OF_SMALL) } };
  return {
    signers: {
      [OF_PERMITS]: {
        messages: { typedData: [permitRule(usdc, CHAIN_ID), batchRule(), permitRule({ name: "abroad" }, 1)], personal },
      },
      [OF_GREETINGS]: { messages: { personal } },
    },
    keys: {
      [SMALL]: { messages: { typedData: [permitRule(small, CHAIN_ID)] } },
      [PAYER]: { requireApproval: { aboveValue: String(PAYER_ALONE), expiresAfter: "2s" } },
    },
  };
}

function batchRule() {
  const { amount, signatures } = WINDOWS.batch;
  return {
    ...permitRule({ name: "batch", type: BATCH_TYPE, fields: { spenders: { in: [SPENDER] } } }, CHAIN_ID),
    amount: { field: "values", perSignature: String(MOST_VALUE), perDay: String(amount) },
    signatures: { perDay: signatures },
  };
}

const LOGINS = [
  { name: "login", signIn: { ...SITE, chainId: CHAIN_ID }, signatures: { perHour: WINDOWS.login.signatures } },
  { name: "login-abroad", signIn: { ...SITE, chainId: 1 } },
];
const GREETINGS = [{ ...GREETING_RULE, signatures: { perHour: WINDOWS.greeting.signatures } }, ...LOGINS];
export const USUAL_POLICIES = policiesOf(documentWith(MOST_VALUE, GREETINGS));
export const TIGHT_POLICIES = policiesOf(documentWith(MOST_TIGHT, []));

/** Draws a message that some rule allows, or that is beyond the rules in one way. `serial` makes it unlike all others. */
export function drawMessage(dice: Dice, serial: number, now: Date): Wanted {
  const owner = dice.pick(OWNERS);
  const drawn = dice.weighted([
    [5, () => aPermitAt(dice, serial, now)],
    [2, () => aBatch(dice)],
    [4, () => aGreeting(dice, serial)],
    [2, () => aSignIn(dice, serial)],
  ])();
  const { signer, kind, value } = drawn;
  const isKeyTooSmall = owner === SMALL && (kind !== "permit" || value > MOST_OF_SMALL);
  const isAllowed = drawn.isAllowed && !isKeyTooSmall;
  const asks = kind === "permit" && value > MOST_WITHOUT_APPROVAL;
  const verdict = isAllowed ? (asks ? "approval" : "allowed") : "never";
  const request = { signer, requestId: `message ${serial}`, ...drawn.message };
  return { signer, owner, request, verdict, kind, value };
}

interface Drawn extends Pick<Wanted, "signer" | "kind" | "value"> {
  readonly message: Pick<SignMessageRequest, "message" | "typedData">;
  readonly isAllowed: boolean;
}

function aPermitAt(dice: Dice, serial: number, now: Date): Drawn {
  const seconds = Math.floor(now.getTime() / 1_000);
  const value = dice.pick([1n, 15n, 30n, 31n, 60n, 61n, MOST_VALUE]);
  const fair = { value: String(value), nonce: String(serial), deadline: String(seconds + 60), chainId: CHAIN_ID };
  const isFoul = dice.chance(0.35);
  const foul = dice.pick<PermitParts>([
    { value: String(MOST_VALUE + 1n) },
    { value: String(2n ** 255n) },
    { spender: `0x${"9".repeat(40)}` },
    { deadline: String(seconds + 10 * DEADLINE_S) },
    { domain: { version: "1" } },
    { domain: { name: "USD Сoin" } },
    { domain: { name: "usd coin" } },
    { domain: { salt: `0x${"0".repeat(64)}` } },
    { domain: { verifyingContract: `0x${"8".repeat(40)}` } },
    { chainId: 1 },
    { nonce: "0" },
    { nonce: String(MOST_NONCE + 1) },
  ]);
  const signer = dice.weighted([
    [8, OF_PERMITS],
    [1, dice.pick(SIGNERS)],
  ]);
  const typedData = aPermit(signer, { ...fair, ...(isFoul ? foul : {}) });
  const drawn = { signer, kind: "permit", value } as const;
  if (isFoul && dice.chance(0.1)) {
    const longer = { ...typedData, types: { Permit: LONGER }, message: { ...(typedData.message as object), memo: "" } };
    return { ...drawn, message: { typedData: longer }, isAllowed: false };
  }
  return { ...drawn, message: { typedData }, isAllowed: !isFoul && signer === OF_PERMITS };
}

/** Permits of several amounts in one message: each spender must be allowed, and the amounts count together. */
function aBatch(dice: Dice): Drawn {
  const values = dice.pick([[10n], [20n, 30n], [60n, 40n], [60n, 41n], [1n, 1n, 99n]]);
  const value = values.reduce((sum, each) => sum + each, 0n);
  const isFoul = dice.chance(0.3);
  const spenders = isFoul ? [SPENDER, STRANGER] : values.map(() => SPENDER);
  const signer = OF_PERMITS;
  const { domain } = aPermit(signer, { chainId: CHAIN_ID });
  const message = { spenders, values: values.map(String) };
  const typedData = { domain, types: { Batch: BATCH_FIELDS }, primaryType: "Batch", message };
  return { signer, kind: "batch", value, message: { typedData }, isAllowed: !isFoul && value <= MOST_VALUE };
}

/** A sign-in (ERC-4361), or one for another site, address, page or chain. */
function aSignIn(dice: Dice, serial: number): Drawn {
  const signer = dice.pick([OF_PERMITS, OF_GREETINGS]);
  const foul = dice.pick([
    { domain: "example.org" },
    { address: dice.pick(SIGNERS.slice(2)) },
    { uri: "https://example.com/pay" },
    { chainId: 1 },
  ]);
  const isFoul = dice.chance(0.4);
  const fair = { ...SITE, address: signer, chainId: CHAIN_ID };
  const { domain, address, uri, chainId } = isFoul ? { ...fair, ...foul } : fair;
  const message =
    `${domain} wants you to sign in with your Ethereum account:\n${getAddress(address)}\n\n\nURI: ${uri}\n` +
    `Version: 1\nChain ID: ${chainId}\nNonce: nonce${String(serial).padStart(8, "0")}\nIssued At: 2026-11-02T10:00:00Z`;
  return { signer, kind: "signIn", value: 0n, message: { message }, isAllowed: !isFoul };
}

function aGreeting(dice: Dice, serial: number): Drawn {
  const { prefix, maxLength } = GREETING_RULE;
  const isFoul = dice.chance(0.5);
  const fair = `${prefix}nonce number ${serial}`;
  const foul = dice.pick([
    `Log in to example.org: nonce ${serial}`,
    fair.padEnd(maxLength + 1, "."),
    // 32 bytes, which may be a digest.
    `${prefix}${String(serial).padStart(32 - prefix.length, "0")}`,
    `${prefix}evil.com wants you to sign in with your Ethereum account: ${serial}`,
    `${prefix}\u202e${serial}`,
    ` ${fair}`,
  ]);
  const signer = dice.pick([OF_PERMITS, OF_GREETINGS, OF_GREETINGS, ...SIGNERS]);
  const isAllowed = !isFoul && (signer === OF_PERMITS || signer === OF_GREETINGS);
  return { signer, kind: "greeting", value: 0n, message: { message: isFoul ? foul : fair }, isAllowed };
}
