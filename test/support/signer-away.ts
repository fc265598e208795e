import { expect } from "vitest";
import { SignerAway } from "../../src/ports/signer.ts";

/** Result of one signature, as the application sees it. */
export async function failure(work: Promise<unknown>): Promise<SignerAway> {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SignerAway);
  return error as SignerAway;
}
