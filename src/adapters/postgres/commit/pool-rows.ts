/**
 * What the writes of one commit take of pools' request ids. Two lanes of a pool in one commit must not both take the same:
 * each is judged by its own lane's ledger, which the other one's changes are not in.
 */
import type { Change, Ledger } from "../../../domain/ledger/index.ts";
import { poolKeyOf } from "../../../domain/nonces/pool.ts";
import type { ExistingTransaction, LaneWrite } from "../../../ports/lane-store.ts";
import { rowsOf } from "../rows/columns.ts";
import { insertPoolChoices } from "../statements/pool-choice.ts";
import type { Command } from "../statements/statement.ts";

interface Choice {
  readonly requestId: string | null;
  readonly pool: string;
  readonly chainId: number;
  readonly signer: string;
  readonly txId: string;
}

export class PoolRows {
  private readonly choices: Choice[] = [];
  /** By chain and key. */
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

  /** Of what gets a nonce, and of what begins to wait for approval; what waited before has its row. */
  keep({ lane }: Ledger, change: Change): void {
    if (change.kind !== "allocated" && change.kind !== "awaits") return;
    const { intent, intake } = change;
    const { pool, requestId, txId, owner, fingerprint } = intent;
    if (pool === undefined || intake !== null) return;
    this.choices.push({ requestId, pool, ...lane, txId });
    const key = poolKeyOf(intent);
    const isAllocated = change.kind === "allocated";
    const standing = {
      nonce: isAllocated ? change.nonce : null,
      state: isAllocated ? "ALLOCATED" : "CREATED",
    } as const;
    if (key !== null)
      this.taken.set(`${lane.chainId}:${key}`, { txId, lane, requestId, owner, fingerprint, ...standing });
  }

  commands(marker: string | null): readonly Command[] {
    const { choices } = this;
    if (choices.length === 0) return [];
    const values = rowsOf(insertPoolChoices, choices, choices.length, marker);
    return [{ statement: insertPoolChoices, values }];
  }
}
