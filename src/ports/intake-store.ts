import type { Problem } from "../domain/refusal.ts";
import type { Intent } from "../domain/transaction.ts";
import type { State, SubState } from "../domain/transitions.ts";

/** What became of an intent that was left in the intake table, by the id that it was left under. */
export type Became = { readonly leftAs: string } /** Its lane's owner has not taken it up. */ & (
  | { readonly kind: "waiting" }
  /** A transaction: of that very id, or of another, which had its request id before. Null: it waits for approval. */
  | {
      readonly kind: "taken";
      readonly txId: string;
      readonly nonce: number | null;
      readonly state: State;
      readonly subState: SubState | null;
      readonly lastError: string | null;
    }
  /** There is nothing of it. */
  | { readonly kind: "declined"; readonly problem: Problem | null }
);

/**
 * Creates by way of the intake table, for lanes whose owner cannot be asked. Whoever leaves an intent there waits for what
 * becomes of it, and until it says `accept`, the lane's owner may decline it without a trace: nobody has been told of it.
 * This and sends inside a caller's own transaction are the only writes without a fence. Neither touches a lane's row.
 */
export interface IntakeStore {
  /** Durable, in this order, all or none. Throws `StoreUnavailable` and `BatchRefused` (nothing was left), `OutcomeUnknown`. */
  leave(intents: readonly Intent[]): Promise<void>;
  /** One snapshot. What is missing in the answer is nowhere. */
  whatBecame(txIds: readonly string[]): Promise<readonly Became[]>;
  /** From here on they reach a final state whatever their owner finds. Returns those that were neither taken up nor declined before. */
  accept(txIds: readonly string[]): Promise<readonly string[]>;
}
