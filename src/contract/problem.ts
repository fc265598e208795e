import { type Static, Type } from "typebox";
import { ERROR_CATALOGUE, type ErrorCode, REJECTION_REASONS } from "../domain/errors.ts";
import { Hex, nullable, oneOf, TxId } from "./scalars.ts";

const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

const members = {
  type: Type.String({
    format: "uri-reference",
    description: "Where this node explains the code.",
    examples: ["/docs#NOT_FOUND"],
  }),
  title: Type.String({ description: "What the code means, the same each time." }),
  status: Type.Integer({ minimum: 400, maximum: 599, description: "The HTTP status, repeated." }),
  code: oneOf(ERROR_CODES, { description: "Stable; the one member to decide by." }),
  detail: Type.String({ description: "What happened this time, for people." }),
  path: Type.Optional(
    Type.String({ description: "INVALID_REQUEST: the offending field, dotted from the body's root." }),
  ),
  reason: Type.Optional(oneOf(REJECTION_REASONS, { description: "SUBMISSION_REJECTED: why." })),
  revert: Type.Optional(
    Type.Object(
      { name: nullable(Type.String()), message: nullable(Type.String()), data: Hex },
      { description: "SUBMISSION_REJECTED with reason REVERT: what the contract said, decoded where possible." },
    ),
  ),
  dependsOnPending: Type.Optional(
    Type.Boolean({
      description: "SUBMISSION_REJECTED: transactions of the lane that are not mined yet may change this.",
    }),
  ),
  retryAfterSeconds: Type.Optional(Type.Number({ minimum: 0, description: "As in the Retry-After header." })),
  ownerUrl: Type.Optional(nullable(Type.String({ description: "NOT_LEADER: the node to ask." }))),
  txId: Type.Optional(TxId),
  txHash: Type.Optional(
    Type.String({ pattern: "^0x[0-9a-f]{64}$", description: "CONFLICT: the attempt that was mined." }),
  ),
  outcome: Type.Optional(
    oneOf(["unknown"], { description: "UNAVAILABLE: it may have been accepted; look for txId or requestId." }),
  ),
  epoch: Type.Optional(Type.Integer({ description: "EPOCH_CHANGED: the current epoch." })),
  resumeAfter: Type.Optional(
    Type.Integer({ description: "EPOCH_CHANGED, FEED_TRUNCATED: go on after this sequence." }),
  ),
};

/** RFC 9457, `application/problem+json`. */
export const Problem = Type.Object(members, {
  title: "Problem",
  description: "RFC 9457 problem document.",
  additionalProperties: false,
});
export type Problem = Static<typeof Problem>;

export const problemExamples: Readonly<Record<ErrorCode, Problem>> = Object.fromEntries(
  ERROR_CODES.map((code) => [
    code,
    {
      type: `/docs#${code}`,
      title: ERROR_CATALOGUE[code].title,
      status: ERROR_CATALOGUE[code].status,
      code,
      detail: ERROR_CATALOGUE[code].title,
    },
  ]),
) as Record<ErrorCode, Problem>;
