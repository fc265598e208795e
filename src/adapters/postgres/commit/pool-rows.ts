/**
 * Request ids of pools that the writes of one commit use. Two lanes of a pool must not use the same id in one commit:
 * each write is decided by its own lane's ledger, which lacks the other lane's changes.
 */
import type { Change, Ledger } from "../../../domain/ledger/index.ts";
import { poolKeyOf } from "../../../domain/nonces/pool.ts";
import type { ExistingTransaction, LaneWrite } from "../../../ports/lane-store.ts";

export class PoolRows {
  /** Pool request ids used in this commit, by chain and key. */
  private readonly taken = new Map<string, ExistingTransaction>();

  /** The lane's ledger, including pool request ids that other lanes of this commit have used. */
  beside(ledger: Ledger, write: LaneWrite): Ledger {
    if (this.taken.size === 0 || write.kind !== "allocate") return ledger;
    const known = write.items.flatMap(({ intent }) => {
      const key = poolKeyOf(intent);
      const owner = key === null ? undefined : this.taken.get(`${ledger.lane.chainId}:${key}`);
      return key === null || owner === undefined ? [] : [[key, owner] as const];
    });
    return { ...ledger, pooled: ledger.pooled.with(known) };
  }

  /**
   * Records the pool request id of an intent that gets a nonce or begins to wait for approval. An intent that waited
   * before already has a row.
   */
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
