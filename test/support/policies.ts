import { createCodec } from "../../src/adapters/evm/codec.ts";
import type { Address } from "../../src/domain/lane.ts";
import { parsePolicies } from "../../src/domain/policy/parse.ts";
import type { Policies } from "../../src/domain/policy/policy.ts";

/** As a policy document says them; throws with its mistakes. */
export function policiesOf(document: unknown): Policies {
  const parsed = parsePolicies(document, createCodec());
  if ("mistakes" in parsed) throw new Error(parsed.mistakes.join("\n"));
  return parsed.policies;
}

/** The policy of one signer. */
export function forSigner(signer: Address, policy: object): Policies {
  return policiesOf({ signers: { [signer]: policy } });
}
