import { type Static, Type } from "typebox";
import { SIGNATURE_STATES } from "../../domain/messages/record.ts";
import {
  Address,
  After,
  ChainId,
  Decimal,
  Hash,
  Hex,
  HexInput,
  Owner,
  RequestId,
  STORY,
  Timestamp,
  TxId,
} from "./scalars.ts";
import {
  closed,
  described,
  limit,
  list,
  MOSTLY_NULL,
  named,
  nullable,
  object,
  oneOf,
  query,
  record,
  text,
} from "./shapes.ts";

/** Schemas of messages that a key signs: requests, answers, and the rows of the audit. */

const SignatureId = described(TxId, "Fencepost's own id of a requested signature.");
const KINDS = ["personal", "typedData"] as const;
const Rule = text("Name of the rule of the signer's policy that allowed it.", "usdc-permit");

const Domain = text("Name of the EIP-712 domain, else its contract, or domain of a sign-in (ERC-4361).", "USD Coin");

const RawMessage = closed("RawMessage", "Bytes of a personal message.", { raw: HexInput });

const TypedDataField = object({ name: text("", "spender"), type: text("", "address") });

const Fields = Type.Unsafe<readonly Readonly<Static<typeof TypedDataField>>[]>(list(TypedDataField));

/** Typed data in the format of `eth_signTypedData_v4`. Its content is validated in depth by the node. */
export const TypedData = closed(
  "TypedData",
  "As in `eth_signTypedData_v4`. Integers may be decimal text, 0x hex, or numbers up to 2^53 - 1.",
  {
    domain: record(Type.Unknown(), "name, version, chainId, verifyingContract, salt: those that the contract has.", {
      name: "USD Coin",
      version: "2",
      chainId: 31337,
      verifyingContract: STORY.recipient,
    }),
    types: record(Fields, "Fields of each struct; `EIP712Domain` may be left out.", {
      Permit: [
        { name: "owner", type: "address" },
        { name: "spender", type: "address" },
        { name: "value", type: "uint256" },
        { name: "nonce", type: "uint256" },
        { name: "deadline", type: "uint256" },
      ],
    }),
    primaryType: text("Name of the type that is signed: a member of `types`.", "Permit"),
    message: record(Type.Unknown(), "The value: exactly the members of the primary type.", {
      owner: STORY.signer,
      spender: STORY.recipient,
      value: "1000000",
      nonce: "0",
      deadline: "1893456000",
    }),
  },
);
export type TypedData = Static<typeof TypedData>;

export const RequestSignature = closed(
  "RequestSignature",
  "Either `message`, for `personal_sign`, or `typedData`, for `eth_signTypedData_v4`.",
  {
    chainId: Type.Optional(ChainId),
    signer: Address,
    requestId: Type.Optional(
      described(RequestId, "The caller's own id: one signature per signer and chain. Without it, one is made."),
    ),
    message: Type.Optional(
      Type.Unsafe<string | Static<typeof RawMessage>>({
        anyOf: [{ type: "string" }, RawMessage],
        description: "Text, or `{ raw }` with bytes.",
        examples: ["Log in to example.com: nonce 8fd2a1"],
      }),
    ),
    typedData: Type.Optional(TypedData),
  },
);
export type RequestSignature = Static<typeof RequestSignature>;

export const SignedMessage = named("SignedMessage", {
  signatureId: SignatureId,
  chainId: ChainId,
  signer: Address,
  requestId: RequestId,
  kind: oneOf(KINDS, "", "typedData"),
  digest: described(Hash, "The 32 bytes that were signed."),
  signature: nullable(Hex, {
    description: "r, s and v in 65 bytes, with low s and v 27 or 28; null while it waits for approval.",
  }),
  rule: Rule,
  state: oneOf(SIGNATURE_STATES, "", "SIGNED"),
  at: Timestamp,
  expiresAt: nullable(Timestamp, { ...MOSTLY_NULL, description: "Until when it waits, or waited, for approval." }),
});
export type SignedMessage = Static<typeof SignedMessage>;

const SignatureDecision = named("SignatureDecision", "Who approved or rejected it, and why.", {
  actor: text("", "operator:finance"),
  reason: text("", "the invoice was checked"),
  at: Timestamp,
});

export const RequestedSignature = named(
  "RequestedSignature",
  "For audit. The signature itself is left out: its asker gets it by repeating the request.",
  {
    signatureId: SignatureId,
    chainId: ChainId,
    signer: Address,
    requestId: RequestId,
    owner: nullable(Owner),
    kind: oneOf(KINDS, "", "typedData"),
    domain: nullable(Domain),
    state: oneOf(
      SIGNATURE_STATES,
      "ALLOWED: committed and counted, and not signed yet. A repeat of the request has it signed, if the policy still allows it.",
      "SIGNED",
    ),
    rule: Rule,
    amount: described(Decimal, "What its rule counts, in the unit of the rule's field; 0 if it counts none."),
    digest: described(Hash, "The 32 bytes that are signed."),
    message: nullable(text("", "Log in to example.com: nonce 8fd2a1"), {
      ...MOSTLY_NULL,
      description: "Text of a personal message; null for typed data, which is shown in normal form.",
    }),
    typedData: nullable(TypedData),
    createdAt: Timestamp,
    signedAt: nullable(Timestamp),
    expiresAt: nullable(Timestamp, MOSTLY_NULL),
    decision: nullable(SignatureDecision),
  },
);
export type RequestedSignature = Static<typeof RequestedSignature>;

export const SignaturesPage = named("SignaturesPage", {
  items: list(RequestedSignature),
  next: nullable(After, MOSTLY_NULL),
});
export type SignaturesPage = Static<typeof SignaturesPage>;

export const SignaturesQuery = query({
  signer: Address,
  chainId: ChainId,
  key: described(Owner, "The name of the API key that asked."),
  domain: Domain,
  state: oneOf(SIGNATURE_STATES, "Only those in this state."),
  after: After,
  limit: limit(200, 50),
});
export type SignaturesQuery = Static<typeof SignaturesQuery>;

export const SignatureReason = closed("SignatureReason", {
  reason: Type.String({ minLength: 1, maxLength: 1_000, description: "Why; kept with it.", examples: ["checked"] }),
});
export type SignatureReason = Static<typeof SignatureReason>;
