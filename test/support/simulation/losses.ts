import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { CompletionRecord } from "../../../src/ports/query-store.ts";
import type { DatabaseState, TransactionRow } from "../../doubles/memory-store/state.ts";
import type { World } from "../world.ts";

/**
 * A failover to a standby that is behind, or a backup that is restored: commits that the database had acknowledged are
 * gone. Remembers what was lost, because nobody can be promised that. Everything else must hold.
 */
export class Losses {
  /** Transactions that the database has lost, or whose newest steps it has lost. */
  private readonly touched = new Set<string>();
  private readonly completions = new Set<string>();
  private readonly world: World;
  private readonly dice: Dice;
  private snapshot: DatabaseState | null = null;
  private hasLost = false;

  constructor(world: World, dice: Dice) {
    this.world = world;
    this.dice = dice;
  }

  /** Copies the database now and then, and returns true if it is to lose everything since. */
  step(): boolean {
    if (this.hasLost) return false;
    if (this.snapshot === null || this.dice.chance(0.2)) this.snapshot = this.world.database.snapshot();
    return this.dice.chance(0.06);
  }

  /** Goes back to the copy. False if there is none, or if commits were lost before. */
  lose(): boolean {
    const { database, hidden, wire } = this.world;
    const { snapshot } = this;
    if (snapshot === null || this.hasLost) return false;
    this.hasLost = true;
    const before = database.snapshot();
    database.restore(snapshot);
    const { transactions, intake, completions } = database.state;
    for (const [txId, row] of before.transactions) {
      const kept = transactions.get(txId);
      if (kept === row) continue;
      this.touched.add(txId);
      // What is known of it on the chain only is another program's, for the database that is left.
      for (const { txHash } of lostOf(row, kept)) {
        if (txHash !== null) hidden.set(txHash, { signer: row.lane.signer, nonce: row.nonce ?? -1 });
      }
    }
    for (const [intakeId, entry] of before.intake) if (!intake.has(intakeId)) this.touched.add(entry.intent.txId);
    for (const each of before.completions) if (!completions.includes(each)) this.completions.add(keyOf(each));
    wire.forgetOwners();
    return true;
  }

  /** True if nothing is promised about this transaction. */
  has(txId: string): boolean {
    return this.touched.has(txId);
  }

  /** What is left of these sentences, each of which names a transaction, without those about lost ones. */
  unlost(sentences: readonly string[]): readonly string[] {
    return sentences.filter((sentence) => ![...this.touched].some((txId) => sentence.includes(txId)));
  }

  /** What is left of these completions. */
  left(completions: readonly CompletionRecord[]): readonly CompletionRecord[] {
    return this.hasLost ? completions.filter((each) => !this.completions.has(keyOf(each))) : completions;
  }

  /** True if this answer could only be given because of a loss: what it is about is gone. */
  explains(answer: string): boolean {
    return this.hasLost && /there is no /.test(answer);
  }
}

const keyOf = ({ epoch, seq }: CompletionRecord) => `${epoch} ${seq}`;

/** Attempts that are gone, or whose claim is gone, so that the database believes that they were never sent. */
function lostOf({ attempts }: TransactionRow, kept: TransactionRow | undefined) {
  const known = new Map(kept?.attempts.map(({ txHash, firstSentAt }) => [txHash, firstSentAt]));
  return attempts.filter(({ txHash, firstSentAt }) => firstSentAt !== null && (known.get(txHash) ?? null) === null);
}
