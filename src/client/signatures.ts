import type * as schemas from "../contract/schemas/message-signing.ts";
import type { CallOptions } from "./deadline.ts";

/** Calls about messages that a signer's key signs under its policy. */
export interface SignatureCalls {
  /**
   * Signs a personal message, or typed data, if a rule of the signer's policy allows it. `signature` is null while it
   * waits for approval: repeat the call with the same requestId afterwards. Without a requestId it gets a UUID as one.
   */
  sign(request: schemas.RequestSignature, options?: CallOptions): Promise<schemas.SignedMessage>;
  /** One page of requested signatures, newest first; pass `next` as `after` until it is null. */
  signatures(query?: schemas.SignaturesQuery, options?: CallOptions): Promise<schemas.SignaturesPage>;
  /** A requested signature for audit: what was shown, who asked, and the rule that allowed it. */
  signature(signatureId: string, options?: CallOptions): Promise<schemas.RequestedSignature>;
  /** Approves a signature that waits for approval. Needs an API key with `approve` other than the one that asked. */
  approveSignature(
    signatureId: string,
    request: schemas.SignatureReason,
    options?: CallOptions,
  ): Promise<schemas.RequestedSignature>;
  /** Rejects a signature that waits for approval. Needs an API key with `approve` other than the one that asked. */
  rejectSignature(
    signatureId: string,
    request: schemas.SignatureReason,
    options?: CallOptions,
  ): Promise<schemas.RequestedSignature>;
}

const expects = "signatureId";

export const SIGNATURE_PATHS = {
  sign: { at: "post /sign", expects, named: true },
  signatures: { at: "get /signatures", expects: "items", query: true },
  signature: { at: "get /signatures/{signatureId}", expects },
  approveSignature: { at: "post /signatures/{signatureId}/approve", expects },
  rejectSignature: { at: "post /signatures/{signatureId}/reject", expects },
} as const;
