import type { Address } from "../../../src/domain/lane.ts";

export interface Account {
  readonly nonce: number;
  readonly balance: bigint;
}

/** For each account that a block changed, the account's state before the block. */
export type Undo = ReadonlyMap<Address, Account>;

/** Accounts whose changes can be undone: each block leaves a record with which a reorg can revert it. */
export class Ledger {
  readonly #accounts = new Map<Address, Account>();
  readonly #unseen: Account;
  #journal: Map<Address, Account> | null = null;

  constructor(defaultBalance: bigint) {
    this.#unseen = { nonce: 0, balance: defaultBalance };
  }

  account(address: Address): Account {
    return this.#accounts.get(address) ?? this.#unseen;
  }

  update(address: Address, change: Partial<Account>): void {
    const before = this.account(address);
    if (this.#journal !== null && !this.#journal.has(address)) this.#journal.set(address, before);
    this.#accounts.set(address, { ...before, ...change });
  }

  /** Runs `work` and returns the record for undoing it. */
  record(work: () => void): Undo {
    const journal = new Map<Address, Account>();
    this.#journal = journal;
    try {
      work();
    } finally {
      this.#journal = null;
    }
    return journal;
  }

  revert(undo: Undo): void {
    for (const [address, account] of undo) this.#accounts.set(address, account);
  }
}
