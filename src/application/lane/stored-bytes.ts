/** Signed payloads as they are stored: read back, decoded, and judged whether they can be signed again here. */
import { attemptToSend } from "../../domain/attempts.ts";
import type { UnsignedTransaction } from "../../domain/transaction.ts";
import type { Codec, DecodedTransaction } from "../../ports/codec.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { Tracked } from "./tracked.ts";

export interface StoredBytes {
  readonly store: Pick<LaneStore, "loadRawTransactions">;
  readonly codec: Pick<Codec, "decodeTransaction">;
}

/** The newest payload that is ours to send. Null: only its hash is known, or the chain node signs it. */
export async function decodedNewest({ store, codec }: StoredBytes, tx: Tracked): Promise<DecodedTransaction | null> {
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true) return null;
  const [bytes] = await store.loadRawTransactions([{ txId: tx.txId, ordinal: newest.ordinal }]);
  return bytes === undefined ? null : codec.decodeTransaction(bytes);
}

/** Null for blobs (EIP-4844) and delegations (EIP-7702): signed again without them it would do something else. */
export function rebuildable({ envelope, unsigned }: DecodedTransaction): UnsignedTransaction | null {
  return envelope === "eip4844" || envelope === "eip7702" ? null : unsigned;
}
