/**
 * Masks secrets in the texts of stuck hooks and signers. Both call external services, and their texts are stored in a
 * transaction's history for ever. So the texts are masked at this boundary, for every adapter, module or embedding
 * program. Texts of RPC endpoints are masked by the transport.
 */

import { type Mask, maskTexts } from "../../domain/text/mask.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type Signer, SignerAway, SigningRefused } from "../../ports/signer.ts";
import type { StuckDecision, StuckResolutionHook } from "../../ports/stuck-hook.ts";

export function maskedHook(hook: StuckResolutionHook, mask: Mask): StuckResolutionHook {
  return {
    decide: async (context) => {
      try {
        return maskedDecision(await hook.decide(context), mask);
      } catch (error) {
        throw new Error(mask(messageOf(error)), { cause: error });
      }
    },
  };
}

/**
 * Masks the reason and the audit data of a stuck hook's decision; the payload is not masked, because it is signed
 * unchanged. A value that is not a valid decision is passed on, and refused by later validation.
 */
function maskedDecision(decision: StuckDecision, mask: Mask): StuckDecision {
  if (typeof decision !== "object" || decision === null) return decision;
  const texts = Object.entries(decision).filter(([name]) => name === "reason" || name === "audit");
  return { ...decision, ...Object.fromEntries(texts.map(([name, value]) => [name, maskTexts(mask, value)])) };
}

export function maskedSigner(signer: Signer, mask: Mask): Signer {
  const masked = <T>(signing: Promise<T>) =>
    signing.catch((error: unknown) => Promise.reject(maskedError(error, mask)));
  return {
    addresses: () => signer.addresses(),
    custody: (address) => signer.custody(address),
    sign: (address, transactions, term) => masked(signer.sign(address, transactions, term)),
    signMessages: (address, messages, term) => masked(signer.signMessages(address, messages, term)),
    adoptPolicies: (signers) => signer.adoptPolicies?.(signers),
    close: () => signer.close(),
  };
}

function maskedError(error: unknown, mask: Mask) {
  if (error instanceof SigningRefused) return new SigningRefused(error.index, mask(error.message), error.undeclared);
  if (!(error instanceof SignerAway)) return error;
  const { signed, lies, cause } = error;
  return new SignerAway(mask(error.message), { signed, lies, cause });
}
