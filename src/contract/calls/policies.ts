import { type Static, Type } from "typebox";
import { CreateTransaction } from "../schemas/create.ts";
import { exampleOf } from "../schemas/example-of.ts";
import { RequestSignature } from "../schemas/message-signing.ts";
import { Address, ChainId, Decimal, STORY, Timestamp } from "../schemas/scalars.ts";
import { closed, count, list, named, nullable, object, optional, query, text, truth } from "../schemas/shapes.ts";
import { ADMIN, declared, ok, READ, TRANSACTION_BYTES } from "./call.ts";

const KeyName = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "The name of an API key.",
  examples: ["payments"],
});
const Rule = text(
  "Which rule does not allow it, or has it wait for approval: `signer` or `key`, and the name that it has in the policy.",
  "signer.maxCost.perDay",
);

const { payload, ...ofCreate } = CreateTransaction.properties;
const { message, typedData } = RequestSignature.properties;

export const PolicyCheck = closed("PolicyCheck", "Of a create, or of a message as in POST /sign.", {
  ...ofCreate,
  payload: Type.Optional(payload),
  message,
  typedData,
  key: Type.Optional(KeyName),
});
export type PolicyCheck = Static<typeof PolicyCheck>;

const counted = object({
  amount: Decimal,
  signatures: count("", 3),
  maxAmount: nullable(Decimal),
  maxSignatures: nullable(count("", 20)),
});

export const PolicyVerdict = named("PolicyVerdict", {
  allowed: truth("", true),
  value: Decimal,
  cost: Decimal,
  ...optional({
    awaitsApproval: truth("It would wait until a second API key has approved it; `rule` says why."),
    rule: Rule,
    detail: text("The same in words."),
    counts: object(
      {
        rule: text("The rule that allows it.", "usdc-permit"),
        amount: Decimal,
        since: Timestamp,
        hour: counted,
        day: counted,
      },
      "Of a message: what it would count, and what this hour and day have counted already.",
    ),
  }),
});
export type PolicyVerdict = Static<typeof PolicyVerdict>;

const Document = Type.Unsafe<Readonly<Record<string, unknown>>>({
  type: "object",
  additionalProperties: true,
  description: "The policy document.",
  examples: [{ signers: { "*": { maxCost: { perDay: "100000000000000000000" } } } }],
});
const Version = count("Counts changes of the document.", 3);

const LOWER = "a lower limit for the weekend";

export const PoliciesInForce = named("PoliciesInForce", {
  version: Version,
  hash: nullable(text("SHA-256 of the policies; null where there are none.", "0x00")),
  policies: nullable(Document),
  changedAt: nullable(Timestamp),
  changedBy: nullable(
    text("`operator:<name of the API key>`, or `node:<node id>` for what a node's file seeded.", "operator:alice"),
  ),
  reason: nullable(text("", LOWER)),
});
export type PoliciesInForce = Static<typeof PoliciesInForce>;

export const ApplyPolicies = closed("ApplyPolicies", {
  policies: Document,
  reason: Type.String({ minLength: 1, maxLength: 1_000, description: "Why; kept for the audit.", examples: [LOWER] }),
  ...optional({
    expectedVersion: count("The version that was read before: 409 where another one is in force."),
  }),
});
export type ApplyPolicies = Static<typeof ApplyPolicies>;

const windows = object({
  value: Decimal,
  cost: Decimal,
  maxValue: nullable(Decimal),
  maxCost: nullable(Decimal),
});
const used = { since: Timestamp, hour: windows, day: windows };

export const PolicyUsage = named("PolicyUsage", {
  at: Timestamp,
  signers: list(object({ chainId: ChainId, signer: Address, ...used })),
  keys: list(object({ chainId: ChainId, key: KeyName, ...used })),
});
export type PolicyUsage = Static<typeof PolicyUsage>;

export const PolicyUsageQuery = query({ key: KeyName, signer: Address });

/** Maximum size of a policy document; ABIs take most of it. */
const DOCUMENT_BYTES = 1024 * 1024;

export const policies = declared({
  checkPolicy: {
    at: "post /api/v1/policy/check",
    scope: { scope: "read", or: "submit" },
    face: "checkPolicy",
    takes: ["body", "key"],
    summary: "Ask what policies would say to a transaction or a message",
    description:
      "A dry run: prepared and priced as a create is, or parsed as a message to sign is, judged by what is used now, and forgotten. `key` asks for another API key than the one that is shown, which takes `operate`.",
    body: PolicyCheck,
    examples: {
      transaction: { ...(exampleOf(PolicyCheck) as object), message: undefined, typedData: undefined },
      message: { signer: STORY.signer, message: "Log in to example.com: nonce 8fd2a1" },
    },
    bodyBytes: TRANSACTION_BYTES,
    metered: true,
    answers: ok("Allowed or not.", PolicyVerdict),
    errors: ["QUOTA_EXCEEDED", "UNKNOWN_CHAIN", "SUBMISSION_REJECTED"],
  },
  getPolicies: {
    at: "get /api/v1/policy",
    scope: READ,
    face: "policies",
    summary: "Read the policies in force",
    answers: ok("On every node.", PoliciesInForce),
  },
  applyPolicies: {
    at: "put /api/v1/policy",
    scope: ADMIN,
    face: "applyPolicies",
    audited: true,
    summary: "Change the policies",
    description:
      "In force on every node when this is answered: whatever gets a nonce or a further payload from then on is judged by it. The same document again changes nothing. Up to 1 MiB.",
    body: ApplyPolicies,
    examples: { apply: { policies: exampleOf(Document), reason: LOWER, expectedVersion: 2 } },
    bodyBytes: DOCUMENT_BYTES,
    answers: ok("In force.", PoliciesInForce),
    errors: ["CONFLICT"],
  },
  getPolicyUsage: {
    at: "get /api/v1/policy/usage",
    scope: READ,
    face: "policyUsage",
    summary: "Read what is used of the limits",
    description: "In the present hour and day, UTC, by the database's clock.",
    query: PolicyUsageQuery,
    answers: ok("By signer and by key.", PolicyUsage),
  },
});
