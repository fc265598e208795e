import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import type { Address } from "../../src/domain/lane.ts";
import { parsePolicies } from "../../src/domain/policy/parse.ts";
import type { Policies } from "../../src/domain/policy/policy.ts";
import type { PolicyStore } from "../../src/ports/policy-store.ts";

/** Parses a policy document; throws an error that lists the document's mistakes. */
export function policiesOf(document: unknown): Policies {
  const parsed = parsePolicies(document, createCodec());
  if ("mistakes" in parsed) throw new Error(parsed.mistakes.join("\n"));
  return parsed.policies;
}

/** Puts exactly these policies in force and returns the store. */
export async function enforced<S extends PolicyStore>(store: S, policies = policiesOf({})): Promise<S> {
  const change = { policies, actor: "operator:test", reason: "a test", nodeId: "test", expectedVersion: null };
  const { version } = await store.readPolicy();
  if (version > 0 || Object.keys(policies.document).length > 0) await store.changePolicy(change);
  return store;
}

/** A document with the policy of one signer. */
export function forSigner(signer: Address, policy: object): Policies {
  return policiesOf({ signers: { [signer]: policy } });
}
