import { exampleOf } from "../schemas/example-of.ts";
import {
  RequestedSignature,
  RequestSignature,
  SignatureReason,
  SignaturesPage,
  SignaturesQuery,
  SignedMessage,
} from "../schemas/message-signing.ts";
import { STORY } from "../schemas/scalars.ts";
import { type ActionCall, APPROVE, declared, ok, READ, TRANSACTION_BYTES } from "./call.ts";

/** API calls about messages that a key signs under policy. */

/** Declares a decision about a requested signature. */
function decision<const A extends "approve" | "reject">(name: A, own: Pick<ActionCall, "summary" | "description">) {
  return {
    at: `post /api/v1/signatures/{signatureId}/${name}` as `post /api/v1/signatures/{signatureId}/${A}`,
    scope: APPROVE,
    by: "owner",
    face: `${name}Signature` as `${A}Signature`,
    does: "decideSignature",
    action: name,
    body: SignatureReason,
    answers: ok("It.", RequestedSignature),
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT", "REQUEST_ID_REUSED"],
    ...own,
  } as const;
}

export const messages = declared({
  requestSignature: {
    at: "post /api/v1/sign",
    scope: { scope: "sign" },
    by: "owner",
    face: "sign",
    does: "requestSignature",
    summary: "Have a message signed",
    description:
      "Only what a rule of the signer's policy allows. What is signed, for whom and by which rule is committed before the key signs. Repeat it with the same requestId as often as you like: it is counted once, and the answer is the same signature.",
    body: RequestSignature,
    examples: {
      typedData: { ...(exampleOf(RequestSignature) as object), message: undefined, requestId: "permit-7" },
      personal: { signer: STORY.signer, requestId: "login-7", message: "Log in to example.com: nonce 8fd2a1" },
    },
    bodyBytes: TRANSACTION_BYTES,
    metered: true,
    noStore: true,
    answers: {
      200: { description: "Signed.", schema: SignedMessage },
      202: {
        description: "It waits for the approval of a second key; repeat the request afterwards.",
        schema: SignedMessage,
        example: { state: "AWAITING_APPROVAL", signature: null },
      },
    },
    errors: ["NOT_LEADER", "CONFLICT", "QUOTA_EXCEEDED", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
  },
  listSignatures: {
    at: "get /api/v1/signatures",
    scope: READ,
    face: "signatures",
    summary: "List requested signatures",
    description: "Newest first: what was shown, who asked, and the rule that allowed it.",
    query: SignaturesQuery,
    answers: ok("One page.", SignaturesPage),
  },
  getSignature: {
    at: "get /api/v1/signatures/{signatureId}",
    scope: READ,
    face: "signature",
    summary: "Read a requested signature",
    answers: ok("It.", RequestedSignature),
    errors: ["NOT_FOUND"],
  },
  approveSignature: decision("approve", {
    summary: "Allow a message that waits for approval",
    description:
      "By a key with `approve` that did not ask for it. All rules and limits are judged again, and it is counted now. Its asker gets the signature by repeating the request.",
  }),
  rejectSignature: decision("reject", {
    summary: "Refuse a message that waits for approval",
    description: "By the same keys. Its asker gets 409 CONFLICT from then on.",
  }),
});
