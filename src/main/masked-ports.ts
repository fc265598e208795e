/**
 * Whoever decides or signs for us speaks to a service of its own, and its words are kept for ever in a transaction's
 * history. So they are masked where they come in, whichever adapter, module or embedding program is behind it. What an RPC
 * endpoint says is masked by its transport.
 */
import { type Mask, maskTexts } from "../domain/mask.ts";
import { type Signer, SignerAway, SigningRefused } from "../ports/signer.ts";
import type { StuckDecision, StuckResolutionHook } from "../ports/stuck-hook.ts";

export function maskedHook(hook: StuckResolutionHook, mask: Mask): StuckResolutionHook {
  return {
    decide: async (context) => {
      try {
        return maskedDecision(await hook.decide(context), mask);
      } catch (error) {
        throw new Error(mask(error instanceof Error ? error.message : String(error)), { cause: error });
      }
    },
  };
}

/** Its payload is signed as it is. What is no decision at all is judged where decisions are. */
function maskedDecision(decision: StuckDecision, mask: Mask): StuckDecision {
  if (typeof decision !== "object" || decision === null) return decision;
  const words = Object.entries(decision).filter(([name]) => name === "reason" || name === "audit");
  return { ...decision, ...Object.fromEntries(words.map(([name, said]) => [name, maskTexts(mask, said)])) };
}

export function maskedSigner(signer: Signer, mask: Mask): Signer {
  return {
    addresses: () => signer.addresses(),
    custody: (address) => signer.custody(address),
    sign: (address, transactions, term) =>
      signer.sign(address, transactions, term).catch((error: unknown) => {
        if (error instanceof SigningRefused)
          throw new SigningRefused(error.index, mask(error.message), error.undeclared);
        if (!(error instanceof SignerAway)) throw error;
        const { signed, lies, cause } = error;
        throw new SignerAway(mask(error.message), { signed, lies, cause });
      }),
    adoptPolicies: (signers) => signer.adoptPolicies?.(signers),
    close: () => signer.close(),
  };
}
