import type { Hex } from "../lane.ts";
import type { AskedSignature, SignatureRecord } from "../messages/record.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Fenced } from "./fenced.ts";

/** Writes about messages: what was asked is committed before a key signs it. */
export type MessageWrite = SignMessageWrite | SettleMessageWrite;

/** Allows a message by the policy in force, and counts it. A repeat of the request id finds what was committed. */
export interface SignMessageWrite extends Fenced<"signMessage"> {
  readonly asked: AskedSignature;
}

/** A step of a requested signature. */
export interface SettleMessageWrite extends Fenced<"settleMessage"> {
  readonly requestId: string;
  readonly event: MessageEvent;
}

export type MessageEvent =
  | { readonly kind: "sign"; readonly signature: Hex }
  | { readonly kind: "approve" | "reject"; readonly actor: string; readonly reason: string };

export type MessageResult =
  /** `isNew`: this write committed it. False: an earlier one did, and nothing was counted now. */
  | { readonly result: "kept"; readonly record: SignatureRecord; readonly isNew: boolean }
  /** The request id belongs to another message, or to another API key (`another`). */
  | { readonly result: "reused"; readonly another: boolean }
  /** The request id belonged to a signature that retention has deleted. */
  | { readonly result: "spent" }
  /** The lane must first be compared with the chain, or checked by an operator. */
  | { readonly result: "held" }
  | ({ readonly result: "forbidden" } & Forbidden)
  /** The step is not possible in this state; null: there is no such signature. */
  | { readonly result: "conflict"; readonly record: SignatureRecord | null };
