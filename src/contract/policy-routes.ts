import * as examples from "./examples.ts";
import {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyUsageQuery,
  PolicyVerdict,
} from "./policies.ts";
import type { WrittenRoute } from "./routes.ts";

export const policyRoutes: Readonly<Record<string, WrittenRoute>> = {
  checkPolicy: {
    at: "post /api/v1/policy/check",
    summary: "Ask what policies would say to a transaction",
    description:
      "A dry run: prepared and priced as a create is, judged by what is used now, and forgotten. `key` asks for another API key than the one that is shown, which takes `operate`.",
    body: { schema: PolicyCheck, examples: { check: examples.policyCheck } },
    responses: {
      200: { description: "Allowed or not.", schema: PolicyVerdict, example: examples.policyVerdict },
    },
    errors: ["QUOTA_EXCEEDED", "UNKNOWN_CHAIN", "SUBMISSION_REJECTED"],
  },
  getPolicies: {
    at: "get /api/v1/policy",
    summary: "Read the policies in force",
    responses: {
      200: { description: "On every node.", schema: PoliciesInForce, example: examples.policiesInForce },
    },
  },
  applyPolicies: {
    at: "put /api/v1/policy",
    summary: "Change the policies",
    description:
      "In force on every node when this is answered: whatever gets a nonce or a further payload from then on is judged by it. The same document again changes nothing. Up to 1 MiB.",
    body: { schema: ApplyPolicies, examples: { apply: examples.applyPolicies } },
    responses: {
      200: { description: "In force.", schema: PoliciesInForce, example: examples.policiesInForce },
    },
    errors: ["CONFLICT"],
  },
  getPolicyUsage: {
    at: "get /api/v1/policy/usage",
    summary: "Read what is used of the limits",
    description: "In the present hour and day, UTC, by the database's clock.",
    query: PolicyUsageQuery,
    responses: {
      200: { description: "By signer and by key.", schema: PolicyUsage, example: examples.policyUsage },
    },
  },
};
