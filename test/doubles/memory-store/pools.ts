import type { Lane } from "../../../src/domain/lane.ts";
import { type Change, type LedgerWrite, Part } from "../../../src/domain/ledger/index.ts";
import { poolKeyOf } from "../../../src/domain/nonces/pool.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import {
  type AskedOfPool,
  BatchRefused,
  type ExistingTransaction,
  type LaneQueue,
  type PooledTransaction,
} from "../../../src/ports/lane-store.ts";
import type { Work } from "./commit.ts";
import { type DatabaseState, sameLane } from "./state.ts";

/** A row of the table of pool choices: the lane that a pool chose for a request. */
export interface PoolChoiceRow extends Lane {
  readonly txId: string;
  readonly pool: string;
  readonly requestId: string | null;
}

/** For each request in this write that names a pool: the transaction that already has its request id, or null. */
export function pooledFor(state: DatabaseState, { chainId }: Lane, write: LedgerWrite) {
  const items = write.kind === "allocate" ? write.items : [];
  const rows = items.flatMap(({ intent }) => {
    const key = poolKeyOf(intent);
    const { pool, requestId } = intent;
    if (key === null || pool === undefined || requestId === null) return [];
    const [found] = findPooled(state, [{ chainId, pool, requestId }]);
    return [[key, found ?? null] as const];
  });
  return Part.of<string, ExistingTransaction>("pool's request id", { kind: "named" }, rows);
}

export function findPooled(state: DatabaseState, asked: readonly AskedOfPool[]): readonly PooledTransaction[] {
  return asked.flatMap(({ chainId, pool, requestId }) => {
    const row = [...state.poolChoices.values()].find(
      (each) => each.chainId === chainId && each.pool === pool && each.requestId === requestId,
    );
    const owner = row === undefined ? null : existing(state, row);
    return owner === null ? [] : [{ ...owner, pool }];
  });
}

function existing(
  state: DatabaseState,
  { txId, chainId, signer, requestId }: PoolChoiceRow,
): ExistingTransaction | null {
  const lane = { chainId, signer };
  const row = state.transactions.get(txId);
  if (row !== undefined) {
    const { owner, nonce, state: stands, fingerprint } = row;
    return { txId, lane, requestId, owner, nonce, state: stands, fingerprint };
  }
  const entry = [...state.intake.values()].find(({ intent }) => intent.txId === txId);
  if (entry === undefined) return null;
  const { owner, fingerprint } = entry.intent;
  return { txId, lane, requestId, owner, nonce: null, state: "CREATED", fingerprint };
}

/**
 * Adds the row with the pool's choice, in the same write that assigns the nonce or starts the wait for approval. A
 * second row for one request violates the unique constraint.
 */
export function keepChoice({ state, log }: Work, { chainId, signer }: Lane, change: Change): void {
  if (change.kind !== "allocated" && change.kind !== "awaits") return;
  const { intent, intake } = change;
  const { txId, pool, requestId } = intent;
  if (pool === undefined || intake !== null) return;
  const isTaken =
    requestId !== null &&
    [...state.poolChoices.values()].some(
      (each) => each.requestId === requestId && each.pool === pool && each.chainId === chainId,
    );
  if (isTaken) throw new BatchRefused(`the pool ${pool} has given the request ${requestId} a lane`);
  log.set(state.poolChoices, txId, { txId, pool, requestId, chainId, signer });
}

export function queues(state: DatabaseState, lanes: readonly Lane[], now: Date): readonly LaneQueue[] {
  return lanes.flatMap((lane) => {
    const row = state.lane(lane);
    if (row === undefined) return [];
    const open = [...state.transactions.values()].filter(
      (tx) =>
        sameLane(tx.lane, lane) && tx.live && !isSettled(tx.state) && tx.subState !== "MINED" && tx.nonce !== null,
    );
    const [head] = open.sort((a, b) => (a.nonce ?? 0) - (b.nonce ?? 0));
    const ahead = head === undefined || head.nonce === null ? 0 : (row.cursor ?? 0) - head.nonce;
    const headAgeMs = head === undefined ? 0 : now.getTime() - head.createdAt.getTime();
    return [{ lane, suspended: row.suspendedBy !== null, ahead, headAgeMs, isStuck: head?.state === "STUCK" }];
  });
}
