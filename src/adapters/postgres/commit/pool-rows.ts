/**
 * Pools' request ids that the writes of one commit take. Two lanes of a pool in one commit must not both take the same:
 * each is judged by its own lane's ledger, which does not have the other one's changes.
 */
import type { Change, Ledger } from "../../../domain/ledger/index.ts";
import { poolKeyOf } from "../../../domain/nonces/pool.ts";
import type { ExistingTransaction, LaneWrite } from "../../../ports/lane-store.ts";

export class PoolRows {
  /** Pool requests taken in this commit, by chain and key. */
  private readonly taken = new Map<string, ExistingTransaction>();

  /** The lane's ledger, with what other lanes of this commit have taken. */
  beside(ledger: Ledger, write: LaneWrite): Ledger {
    if (this.taken.size === 0 || write.kind !== "allocate") return ledger;
    const known = write.items.flatMap(({ intent }) => {
      const key = poolKeyOf(intent);
      const owner = key === null ? undefined : this.taken.get(`${ledger.lane.chainId}:${key}`);
      return key === null || owner === undefined ? [] : [[key, owner] as const];
    });
    return { ...ledger, pooled: ledger.pooled.with(known) };
  }

  /** An intent that gets a nonce, or begins to wait for approval; one that waited before has its row. */
  keep({ lane }: Ledger, change: Change): void {
    if ((change.kind !== "allocated" && change.kind !== "awaits") || change.intake !== null) return;
    const { requestId, txId, owner, fingerprint } = change.intent;
    const key = poolKeyOf(change.intent);
    if (key === null) return;
    const standing =
      change.kind === "allocated"
        ? ({ nonce: change.nonce, state: "ALLOCATED" } as const)
        : ({ nonce: null, state: "CREATED" } as const);
    this.taken.set(`${lane.chainId}:${key}`, { txId, lane, requestId, owner, fingerprint, ...standing });
  }
}
