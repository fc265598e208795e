import { DatabaseSilent, FencepostError, outcomeUnknown } from "../../domain/errors.ts";
import { BatchRefused, OutcomeUnknown } from "../../ports/lane-store.ts";

const UNANSWERED =
  "the database did not say whether it accepted this; ask for the transaction, or repeat with the same request id";

/** The result of a create that the database did not answer as it should. */
export function failureOf(error: unknown, txId: string): FencepostError {
  if (error instanceof FencepostError) return error;
  if (error instanceof OutcomeUnknown) return outcomeUnknown(UNANSWERED, { txId, cause: error });
  return error instanceof BatchRefused ? unstorable() : new DatabaseSilent("nothing was accepted", error);
}

/** The database's own message names its tables and constraints: it goes to the log alone (writer.failed). */
export function unstorable(): FencepostError {
  return new FencepostError("INVALID_REQUEST", "the database cannot store this request; the node's log says why");
}
