import {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyUsageQuery,
  PolicyVerdict,
} from "../policies.ts";
import { ADMIN, declared, READ, TRANSACTION_BYTES } from "./call.ts";

/** ABIs take most of it. */
const DOCUMENT_BYTES = 1024 * 1024;

export const policies = declared({
  checkPolicy: {
    at: "post /api/v1/policy/check",
    scope: { scope: "read", or: "submit" },
    by: "any node",
    face: "checkPolicy",
    takes: ["body", "key"],
    summary: "Ask what policies would say to a transaction",
    description:
      "A dry run: prepared and priced as a create is, judged by what is used now, and forgotten. `key` asks for another API key than the one that is shown, which takes `operate`.",
    body: PolicyCheck,
    bodyBytes: TRANSACTION_BYTES,
    metered: true,
    answers: { 200: { description: "Allowed or not.", schema: PolicyVerdict } },
    errors: ["QUOTA_EXCEEDED", "UNKNOWN_CHAIN", "SUBMISSION_REJECTED"],
  },
  getPolicies: {
    at: "get /api/v1/policy",
    scope: READ,
    by: "any node",
    face: "policies",
    summary: "Read the policies in force",
    answers: { 200: { description: "On every node.", schema: PoliciesInForce } },
  },
  applyPolicies: {
    at: "put /api/v1/policy",
    scope: ADMIN,
    by: "any node",
    face: "applyPolicies",
    audited: true,
    summary: "Change the policies",
    description:
      "In force on every node when this is answered: whatever gets a nonce or a further payload from then on is judged by it. The same document again changes nothing. Up to 1 MiB.",
    body: ApplyPolicies,
    bodyBytes: DOCUMENT_BYTES,
    answers: { 200: { description: "In force.", schema: PoliciesInForce } },
    errors: ["CONFLICT"],
  },
  getPolicyUsage: {
    at: "get /api/v1/policy/usage",
    scope: READ,
    by: "any node",
    face: "policyUsage",
    summary: "Read what is used of the limits",
    description: "In the present hour and day, UTC, by the database's clock.",
    query: PolicyUsageQuery,
    answers: { 200: { description: "By signer and by key.", schema: PolicyUsage } },
  },
});
