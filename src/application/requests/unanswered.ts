import { DatabaseSilent, FencepostError, outcomeUnknown } from "../../domain/errors.ts";
import { BatchRefused, OutcomeUnknown } from "../../ports/lane-store.ts";

const UNTOLD =
  "the database did not say whether it accepted this; ask for the transaction, or repeat with the same request id";

/** What a create is told where the database did not answer as it should. */
export function failureOf(error: unknown, txId: string): FencepostError {
  if (error instanceof FencepostError) return error;
  if (error instanceof OutcomeUnknown) return untold(txId, error);
  return error instanceof BatchRefused ? unstorable() : new DatabaseSilent("nothing was accepted", error);
}

export function untold(txId: string, cause?: unknown): FencepostError {
  return outcomeUnknown(UNTOLD, { txId, cause });
}

/** What it said names its tables and constraints: that is for the log (writer.failed). */
export function unstorable(): FencepostError {
  return new FencepostError("INVALID_REQUEST", "the database cannot store this request; the node's log says why");
}
