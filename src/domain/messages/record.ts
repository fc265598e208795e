import type { Hash, Hex, Lane } from "../lane.ts";
import type { Message } from "./message.ts";

/**
 * States of a requested signature. ALLOWED: committed and counted, but its signature is not stored yet; a repeat of the
 * request has the same digest signed if the policy in force still allows it. All others except AWAITING_APPROVAL are
 * final.
 */
export const SIGNATURE_STATES = ["AWAITING_APPROVAL", "ALLOWED", "SIGNED", "REJECTED", "EXPIRED"] as const;
export type SignatureState = (typeof SIGNATURE_STATES)[number];

/** A message to sign, as its caller asked for it. */
export interface AskedSignature {
  readonly signatureId: string;
  readonly requestId: string;
  /** Name of the API key that asks; null if no key is required. */
  readonly owner: string | null;
  readonly message: Message;
  readonly digest: Hash;
}

/** A requested signature as it is kept: what was shown, who asked, and the rule that allowed it. */
export interface SignatureRecord extends AskedSignature {
  readonly lane: Lane;
  readonly state: SignatureState;
  /** Name of the rule of the signer's policy that allowed it. */
  readonly rule: string;
  /** Amount that the rule counts; 0 if it counts none. */
  readonly amount: bigint;
  readonly signature: Hex | null;
  readonly createdAt: Date;
  readonly signedAt: Date | null;
  /** Time until which it waits for approval; null if it needed none. */
  readonly expiresAt: Date | null;
  /** Approval or rejection by a second API key; null if there was none. */
  readonly decision: SignatureDecision | null;
}

export interface SignatureDecision {
  readonly actor: string;
  readonly reason: string;
  readonly at: Date;
}
