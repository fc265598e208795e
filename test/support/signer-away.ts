import { expect } from "vitest";
import { SignerAway } from "../../src/ports/signer.ts";

/** The error of a failed signature, which must be a SignerAway. */
export async function failure(work: Promise<unknown>): Promise<SignerAway> {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SignerAway);
  return error as SignerAway;
}
