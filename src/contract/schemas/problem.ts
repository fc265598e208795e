import { type Static, type TObject, Type } from "typebox";
import { ERROR_CATALOGUE, type ErrorCode, REJECTION_REASONS } from "../../domain/errors.ts";
import { Hash, Hex, TxId } from "./scalars.ts";
import { amount, closed, count, described, list, nullable, object, oneOf, optional, text, truth } from "./shapes.ts";

const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

const members = {
  type: Type.String({
    format: "uri-reference",
    description: "Where this node explains the code.",
    examples: ["/docs#NOT_FOUND"],
  }),
  title: text("What the code means, the same each time."),
  status: Type.Integer({ minimum: 400, maximum: 599, description: "The HTTP status, repeated." }),
  code: oneOf(ERROR_CODES, "Stable; the one member to decide by."),
  detail: text("What happened this time, for people."),
  ...optional({
    path: text("INVALID_REQUEST: the offending field, dotted from the body's root."),
    hint: text("INVALID_REQUEST: what was probably meant.", "did you mean `signer`?"),
    reason: oneOf(REJECTION_REASONS, "SUBMISSION_REJECTED: why."),
    revert: object(
      {
        name: nullable(text()),
        message: nullable(text()),
        data: Hex,
        args: Type.Optional(
          Type.Unsafe<readonly unknown[]>(list(Type.Unknown(), "Of an error of the `abi` that was given.")),
        ),
      },
      "SUBMISSION_REJECTED with reason REVERT: what the contract said, decoded where possible: Solidity's own errors always, others by the `abi` of the payload.",
    ),
    dependsOnPending: truth("SUBMISSION_REJECTED: transactions of the lane that are not mined yet may change this."),
    baseFeePerGas: Type.String({
      pattern: "^[0-9]+$",
      description:
        "In wei. SUBMISSION_REJECTED with reason FEE_TOO_LOW: of the newest block. UNAVAILABLE: as one endpoint says, and no block yet.",
    }),
    retryAfterSeconds: amount("As in the Retry-After header."),
    ownerUrl: nullable(text("NOT_LEADER: the node to ask.")),
    rule: text("FORBIDDEN, QUOTA_EXCEEDED: what does not allow it."),
    limit: count("QUOTA_EXCEEDED: how much that rule allows."),
    txId: TxId,
    txHash: described(Hash, "CONFLICT: the attempt that was mined."),
    nextNonce: count("CONFLICT at /rpc: the only nonce that could have been given."),
    outcome: oneOf(["unknown"], "UNAVAILABLE: it may have been accepted; look for txId or requestId."),
    epoch: Type.Integer({ description: "EPOCH_CHANGED: the current epoch." }),
    resumeAfter: Type.Integer({ description: "EPOCH_CHANGED, FEED_TRUNCATED: go on after this sequence." }),
  }),
};

/** Schema of an error response (RFC 9457, `application/problem+json`). */
export const Problem = closed(
  "Problem",
  {
    description: "RFC 9457 problem document.",
    examples: [problemDocument("INVALID_REQUEST", "payload.to: the checksum of the address is wrong")],
  },
  members,
);
export type Problem = Static<typeof Problem>;

/** A node's error response: `type` links to its own reference, which has an anchor for each code. */
export function problemDocument(code: ErrorCode, detail: string): Static<TObject<typeof members>> {
  const { status, title } = ERROR_CATALOGUE[code];
  return { type: `/docs#${code}`, title, status, code, detail };
}

export const problemExamples = Object.fromEntries(
  ERROR_CODES.map((code) => [code, problemDocument(code, ERROR_CATALOGUE[code].title)]),
) as Readonly<Record<ErrorCode, Problem>>;
