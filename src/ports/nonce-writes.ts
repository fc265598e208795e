export type * from "../domain/ledger/nonce-writes.ts";
