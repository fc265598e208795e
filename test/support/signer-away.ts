import { expect } from "vitest";
import { SignerAway } from "../../src/ports/signer.ts";

/** Returns the error of a failed signing request; fails if it is not a SignerAway. */
export async function failure(work: Promise<unknown>): Promise<SignerAway> {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SignerAway);
  return error as SignerAway;
}
