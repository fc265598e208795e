/**
 * Rules of a policy about messages, and the check of a message by them. A message is refused unless a rule allows it:
 * a permit moves money as a transaction does.
 */
import type { Address } from "../lane.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Message, TypedDomain } from "./message.ts";

/** Numbers of signatures that a rule allows; null: not limited. */
export interface SignatureLimit {
  readonly perHour: number | null;
  readonly perDay: number | null;
}

/** Bounds of one field of typed data. Null: not bounded in that way. */
export interface FieldBound {
  /** Names from the primary type down to the field. A list on the way stands for every element. */
  readonly path: readonly string[];
  /** The only allowed values, in the normal form of the field's type. */
  readonly in: ReadonlySet<string> | null;
  readonly min: bigint | null;
  readonly max: bigint | null;
  /** The field is a time in seconds, and at most this far in the future. */
  readonly withinSeconds: number | null;
}

/** The field that the limits on amounts count, in its own unit. In a list, the sum of the elements counts. */
export interface AmountLimit {
  readonly path: readonly string[];
  readonly perSignature: bigint | null;
  readonly perHour: bigint | null;
  readonly perDay: bigint | null;
}

/** Signatures above this amount wait for a second key; `aboveAmount` null: every signature does. */
export interface MessageApproval {
  readonly aboveAmount: bigint | null;
  readonly expiresAfterMs: number;
}

interface AnyRule {
  /** Name of the rule within its policy. */
  readonly name: string;
  readonly signatures: SignatureLimit;
  readonly requireApproval: MessageApproval | null;
}

export interface TypedDataRule extends AnyRule {
  /** Compared exactly. A domain field that is absent here must be absent in the message. */
  readonly domain: TypedDomain;
  /** `encodeType` of the primary type, compared exactly. */
  readonly type: string;
  readonly fields: readonly FieldBound[];
  readonly amount: AmountLimit | null;
}

export interface PrefixRule extends AnyRule {
  readonly prefix: string;
  /** Bytes of the message in UTF-8, prefix included. */
  readonly maxLength: number;
}

/** Sign-In with Ethereum (ERC-4361). */
export interface SignInRule extends AnyRule {
  readonly signIn: {
    readonly domain: string;
    readonly chainId: number;
    readonly uri: string;
    /** Resources that the message may name; the message may leave some out. */
    readonly resources: ReadonlySet<string>;
  };
}

export type PersonalRule = PrefixRule | SignInRule;
export type MessageRule = TypedDataRule | PersonalRule;

/** Rules of one policy, in the order of the document. */
export interface MessageRules {
  readonly typedData: readonly TypedDataRule[];
  readonly personal: readonly PersonalRule[];
}

/** Who signs, where and when. `at` null: rules about time are skipped, as by a key holder without the database's clock. */
export interface MessageContext {
  readonly chainId: number;
  readonly signer: Address;
  readonly at: Date | null;
}

/** The rule that allows a message, and the amount that it counts; 0 if the rule counts no amount. */
export interface AllowedMessage {
  readonly rule: MessageRule;
  readonly amount: bigint;
}

/** The rule that allows the message, or why none does. Windows and approval are judged by the lane's owner. */
export type JudgeMessage = (
  rules: MessageRules | null,
  message: Message,
  context: MessageContext,
) => AllowedMessage | { readonly forbidden: Forbidden };
