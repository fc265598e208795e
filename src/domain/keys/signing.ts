/**
 * Checks that the key holder makes before it signs, for every requester. It checks the chain, the ceilings, and the
 * policy rules that need no database, for transactions and messages. It also checks that a second, different payload at a
 * nonce has a declared reason.
 * These checks are a second line of defence: the database already assigns each nonce to one transaction
 * (ledger/index.ts), and the checks here detect bugs in the code above it.
 */
import { hash } from "node:crypto";
import { FencepostError } from "../errors.ts";
import { bounded, type Ceilings } from "../fees/ceilings.ts";
import type { Address } from "../lane.ts";
import type { MessageToSign } from "../messages/message.ts";
import { judgeMessage } from "../policy/message-rules.ts";
import { forbidden, outsideOf, type Policy, policyFor, timeless } from "../policy/policy.ts";
import { UNUSED } from "../policy/use.ts";
import { type Fees, feeCap } from "../transaction/fees.ts";
import type { UnsignedTransaction } from "../transaction/transaction.ts";

/**
 * Reasons for signing a second payload at the same nonce. `again`: the database confirmed that the earlier payload was
 * never committed.
 */
export const DECLARATIONS = ["reprice", "cancel", "replace", "placeholder", "shift-down", "again"] as const;
export type Declaration = (typeof DECLARATIONS)[number];

/**
 * Reason why this payload may use a nonce for which another payload was signed. Absent: it is the nonce's first
 * payload.
 */
export interface Declared {
  readonly because?: Declaration | undefined;
}

export type ToSign = UnsignedTransaction & Declared;

export interface SigningBounds {
  /** Ceilings by chain id. Nothing is signed for other chains. */
  readonly ceilings: ReadonlyMap<number, Ceilings>;
  /**
   * Policies by signer address. The node sends them again after every change of the policy document. Null: no policies
   * were received yet, so nothing is signed.
   */
  readonly policies: ReadonlyMap<string, Policy> | null;
}

/**
 * Returns the reason why the payload must not be signed; null if it is within the ceilings and policies. The caller
 * must first refuse if `policies` is null: here null limits nothing.
 */
export function beyondBounds(bounds: SigningBounds, signer: Address, asked: ToSign): string | null {
  const { chainId, to, data, value, gas, fees, because } = asked;
  const ceilings = bounds.ceilings.get(chainId);
  if (ceilings === undefined) return notConfigured(chainId);
  const movesNothing = because === "cancel" || because === "placeholder";
  if (movesNothing && !isNothing(signer, asked))
    return `it is declared as ${because}, but is no transfer of nothing to ${signer}`;
  const dear = overCeiling(ceilings, asked);
  if (dear !== null) return dear;
  const policy = bounds.policies && policyFor(bounds.policies, signer);
  if (policy === null) return null;
  const worst = { value, cost: value + gas * feeCap(fees) };
  const judge = { scope: "signer", policy: timeless(policy), use: UNUSED } as const;
  const about = movesNothing ? "cost" : "payload";
  const rule = forbidden([judge], { chainId, payload: { to, data }, worst, more: worst, about }, new Date(0));
  return rule === null ? null : `${rule.detail} (${rule.rule})`;
}

/**
 * Returns the reason why the message must not be signed; null if a rule of the signer's policy allows it. A signer
 * without rules for messages signs none. Rules about time and windows need the database, so they are not checked here.
 */
export function beyondMessageBounds(
  { ceilings, policies }: SigningBounds,
  signer: Address,
  { chainId, message }: Pick<MessageToSign, "chainId" | "message">,
): string | null {
  if (!ceilings.has(chainId)) return notConfigured(chainId);
  const policy = policies && policyFor(policies, signer);
  const outside = policy && outsideOf({ scope: "signer", policy }, chainId, null);
  const judged = outside ?? judgeMessage(policy?.messages ?? null, message, { chainId, signer, at: null });
  if ("amount" in judged) return null;
  const { rule, detail } = "refused" in judged ? judged.refused : judged;
  return `${detail} (signer.${rule})`;
}

const notConfigured = (chainId: number) => `chain ${chainId} is not one of those that are configured`;

function isNothing(signer: Address, { to, data, value, accessList }: UnsignedTransaction) {
  return to === signer && value === 0n && data === "0x" && accessList.length === 0;
}

function overCeiling(ceilings: Ceilings, asked: UnsignedTransaction): string | null {
  try {
    bounded(ceilings, asked);
    return null;
  } catch (error) {
    if (error instanceof FencepostError) return error.message;
    throw error;
  }
}

/**
 * Identity of a payload: its content, and its price with the gas limit. Two payloads with the same identity are the
 * same payload.
 */
export interface PayloadIdentity {
  readonly content: string;
  readonly price: string;
}

export function identityOf({ to, data, value, accessList, gas, fees }: UnsignedTransaction): PayloadIdentity {
  const entries = accessList.length === 0 ? "" : JSON.stringify(accessList);
  const content = hash("sha256", `${to} ${value} ${data} ${entries}`, "base64");
  return { content, price: `${gas} ${priceOf(fees)}` };
}

function priceOf(fees: Fees) {
  const { type } = fees;
  return fees.type === "eip1559"
    ? `${type} ${fees.maxFeePerGas} ${fees.maxPriorityFeePerGas}`
    : `${type} ${fees.gasPrice}`;
}

/** Payloads known to have been signed for a nonce. */
export interface SignedBefore {
  readonly payloads: readonly PayloadIdentity[];
  /**
   * True if `payloads` includes the first payload signed for the nonce. False: this key holder may not know of earlier
   * ones.
   */
  readonly hasFirst: boolean;
}

/**
 * Refusal to sign a payload. `undeclared`: true if the payload would be signed with a valid reason for a second
 * payload.
 */
export interface MemoryRefusal {
  readonly message: string;
  readonly undeclared: boolean;
}

/** Decides if this payload may be signed although other payloads were already signed for its nonce. */
export function secondPayload(
  { payloads, hasFirst }: SignedBefore,
  { nonce, because }: ToSign,
  { content, price }: PayloadIdentity,
): MemoryRefusal | null {
  const alike = payloads.filter((each) => each.content === content);
  if (alike.some((each) => each.price === price)) return null;
  if (because === undefined)
    return { message: `nonce ${nonce} has been signed with another payload, and nothing says why`, undeclared: true };
  if (because !== "reprice" || !hasFirst || alike.length > 0) return null;
  const message = `nonce ${nonce} is declared as reprice, but receiver, value, data or access list are not what was signed`;
  return { message, undeclared: false };
}

/** True if a payload with this declared reason counts as the first payload of its nonce. */
export function isFirst(because: Declaration | undefined): boolean {
  return because === undefined || because === "again" || because === "shift-down";
}
