import type { UnconfirmedRefusal } from "../../domain/chain/unconfirmed-refusal.ts";
import type { Change } from "../../domain/ledger/index.ts";

const LOOKED_AT_ONCE = 16;

/**
 * Accepted intents of one lane that an endpoint refuses although the refusal is not confirmed yet, by their id in the
 * intake table. An unconfirmed refusal does not end them. A new owner starts over.
 */
export class UnconfirmedRefusals {
  private readonly byIntake = new Map<number, UnconfirmedRefusal>();

  of(intakeId: number): UnconfirmedRefusal | null {
    return this.byIntake.get(intakeId) ?? null;
  }

  ofTransaction(txId: string): UnconfirmedRefusal | null {
    return this.all.find((each) => each.txId === txId) ?? null;
  }

  get all(): readonly UnconfirmedRefusal[] {
    return [...this.byIntake.values()];
  }

  /**
   * Intents that are not checked at this block, because they are due at a later block or because others have waited
   * longer. A check queries every endpoint and delays the rows behind it. So a full page of such intents, all checked
   * at every block, would block the lane's newer rows for ever.
   */
  restingAt(block: number): readonly number[] {
    const due = [...this.byIntake].filter(([, { nextBlock }]) => nextBlock <= block);
    const longestDue = due.toSorted(([, a], [, b]) => a.nextBlock - b.nextBlock).slice(0, LOOKED_AT_ONCE);
    const looked = new Set(longestDue.map(([intakeId]) => intakeId));
    return [...this.byIntake.keys()].filter((intakeId) => !looked.has(intakeId));
  }

  note(intakeId: number, refusal: UnconfirmedRefusal): void {
    this.byIntake.set(intakeId, refusal);
  }

  forget(intakeId: number): void {
    this.byIntake.delete(intakeId);
  }

  /** Forgets intents that have ended or are put on hold: no endpoint's answer is needed for them any more. */
  fold(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "aliased") this.forget(change.intakeId);
      if (change.kind === "refused" || change.kind === "held") this.forget(change.intake.intakeId);
    }
  }
}
