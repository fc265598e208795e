/** First half of a commit: locks the lanes and reads, behind the locks, everything that the plan needs. */
import { compareLanes, type Fence, type Lane } from "../../../domain/lane.ts";
import type { LaneWrite } from "../../../ports/lane-store.ts";
import type { Run } from "../session/connections.ts";
import { type BlockRow, readConfirmations } from "../statements/confirmation.ts";
import { type DatabaseHistoryRow, readDatabaseHistory } from "../statements/database.ts";
import { type HoleRow, readHoles } from "../statements/hole.ts";
import { readIntake, type WaitingIntakeRow } from "../statements/intake.ts";
import { type BoundNonceRow, type LockedLaneRow, lockLanes, readBoundNonces } from "../statements/lane.ts";
import {
  findOpenReservations,
  findReservations,
  type OpenReservationRow,
  type ReservationRow,
} from "../statements/reservation.ts";
import { lockChains } from "../statements/session.ts";
import {
  type CurrentRow,
  type ExistingRow,
  findHeldNonces,
  findRequests,
  findUnwatchable,
  type HeldNonceRow,
  readTransactions,
  type UnwatchableRow,
} from "../statements/transaction.ts";
import { type NonceKeys, nonceKeysOf } from "./nonce-lookup.ts";

export interface Found {
  readonly lanes: readonly LockedLaneRow[];
  readonly requests: readonly ExistingRow[];
  readonly transactions: readonly CurrentRow[];
  readonly intake: readonly WaitingIntakeRow[];
  readonly unwatchable: readonly UnwatchableRow[];
  /** Only where a lane is reconciled. */
  readonly history: readonly DatabaseHistoryRow[];
  readonly blocks: ReadonlyMap<number, readonly BlockRow[]>;
  readonly holes: readonly HoleRow[];
  readonly reservations: readonly ReservationRow[];
  readonly openReservations: readonly OpenReservationRow[];
  readonly bound: readonly BoundNonceRow[];
  readonly heldNonces: readonly HeldNonceRow[];
}

export interface Lookup {
  readonly statements: number;
  readonly waits: number;
  find(run: Run): Promise<Found>;
}

const EVERY = 1_000_000;

/** How many transactions of a lane one commit lets go at most. */
export const UNWATCH_PAGE = 1_000;

/** What to lock and read for these writes. The sending happens in one go, in this order. */
export function lookupFor(writes: readonly LaneWrite[]): Lookup {
  const terms = termsOf(writes);
  const requests = requestsOf(writes);
  const repeated = repeatedIdsOf(writes);
  const transactions = transactionIdsOf(writes, repeated);
  const intake = intakeIdsOf(writes);
  const heights = lowestHeights(writes);
  const chains = [...heights.keys()].sort((a, b) => a - b);
  const unwatched = unwatchedOf(writes);
  const reconciled = writes.filter(({ kind }) => kind === "reconcile");
  const nonces = nonceKeysOf(writes);
  const named = [...nonces.reservations, ...nonces.requests];
  const plain = [requests, transactions, intake, unwatched, reconciled, chains];
  const keysOf = [...plain, nonces.holes, named, nonces.open, nonces.bound, nonces.skipped];
  const lookups = keysOf.filter((keys) => keys.length > 0).length;
  const term = <T>(column: (fence: LaneWrite["fence"]) => T) => terms.map(column);
  const fences = [
    term(({ lane }) => lane.chainId),
    term(({ lane }) => lane.signer),
    term(({ instanceId }) => instanceId),
    term(({ token }) => token),
  ];
  return {
    statements: 1 + lookups + chains.length,
    waits: 1,
    find: async (run) => {
      const [locked, requestRows, transactionRows, intakeRows, unwatchable, history, found, , ...blockRows] =
        await Promise.all([
          run(lockLanes, fences),
          when(requests, () => run(findRequests, requestKeys(requests))),
          when(transactions, () => run(readTransactions, [transactions, repeated])),
          when(intake, () => run(readIntake, [intake])),
          when(unwatched, () => run(findUnwatchable, [JSON.stringify(unwatched), UNWATCH_PAGE])),
          when(reconciled, () => run(readDatabaseHistory, [])),
          findNonces(run, nonces),
          when(chains, () => run(lockChains, [chains])),
          ...chains.map((chainId) => run(readConfirmations, [chainId, heights.get(chainId), EVERY])),
        ]);
      return {
        lanes: locked,
        requests: requestRows,
        transactions: transactionRows,
        intake: intakeRows.filter((row) => row.alias_of === null),
        unwatchable,
        history,
        blocks: new Map(chains.map((chainId, index) => [chainId, blockRows[index] ?? []])),
        ...found,
      };
    },
  };
}

async function findNonces(run: Run, keys: NonceKeys) {
  const named = [...keys.reservations, ...keys.requests];
  const [holes, reservations, openReservations, bound, heldNonces] = await Promise.all([
    when(keys.holes, () => run(readHoles, [signers(keys.holes), chainIds(keys.holes)])),
    when(named, () => run(findReservations, [keys.reservations, keys.requests])),
    when(keys.open, () => run(findOpenReservations, [signers(keys.open), chainIds(keys.open)])),
    when(keys.bound, () => run(readBoundNonces, [signers(keys.bound), chainIds(keys.bound)])),
    when(keys.skipped, () => run(findHeldNonces, heldIn(keys.skipped))),
  ]);
  return { holes, reservations, openReservations, bound, heldNonces };
}

function heldIn(skipped: NonceKeys["skipped"]): readonly unknown[] {
  const lanes = skipped.map(({ fence }) => fence.lane);
  const nonces = skipped.flatMap(({ from, below }) => Array.from({ length: below - from }, (_, index) => from + index));
  return [signers(lanes), chainIds(lanes), [...new Set(nonces)]];
}

function when<Row>(keys: readonly unknown[], read: () => Promise<readonly Row[]>): Promise<readonly Row[]> {
  return keys.length === 0 ? Promise.resolve([]) : read();
}

export function chainIds(lanes: readonly Lane[]): readonly number[] {
  return [...new Set(lanes.map((lane) => lane.chainId))];
}

export function signers(lanes: readonly Lane[]): readonly string[] {
  return [...new Set(lanes.map((lane) => lane.signer))];
}

/** Distinct, ascending: the one lock order. */
function termsOf(writes: readonly LaneWrite[]): readonly Fence[] {
  const terms = writes.map(({ fence }) => fence).sort(compareTerms);
  return terms.filter((term, index) => index === 0 || compareTerms(term, terms[index - 1] as Fence) !== 0);
}

function compareTerms(a: Fence, b: Fence): number {
  const byLane = a === b ? 0 : compareLanes(a.lane, b.lane);
  if (byLane !== 0 || a.instanceId === b.instanceId) return byLane || a.token - b.token;
  return a.instanceId < b.instanceId ? -1 : 1;
}

/** A request id on its lane. */
export interface Request {
  readonly lane: Lane;
  readonly requestId: string;
}

/** As parameters of `findRequests`. */
export function requestKeys(requests: readonly Request[]): readonly unknown[] {
  return [
    requests.map(({ lane }) => lane.chainId),
    requests.map(({ lane }) => lane.signer),
    requests.map(({ requestId }) => requestId),
  ];
}

function requestsOf(writes: readonly LaneWrite[]): readonly Request[] {
  return writes.flatMap((write) => {
    const ids = write.kind === "allocate" ? write.items.map((item) => item.intent.requestId) : requestIdOf(write);
    return ids.flatMap((requestId) => (requestId === null ? [] : { lane: write.fence.lane, requestId }));
  });
}

function requestIdOf(write: LaneWrite): readonly (string | null)[] {
  if (write.kind === "reserve") return [write.requestId];
  return write.kind === "bind" ? [write.intent.requestId] : [];
}

/** Those that move, and those that may exist. */
function transactionIdsOf(writes: readonly LaneWrite[], repeated: readonly string[]): readonly string[] {
  const moving = writes.flatMap((write) => (write.kind === "transition" ? write.items.map(({ txId }) => txId) : []));
  return [...new Set([...moving, ...repeated])].sort();
}

/** What a repeated allocation would bring again: from the intake table, or told twice. */
function repeatedIdsOf(writes: readonly LaneWrite[]): readonly string[] {
  return writes.flatMap((write) => {
    if (write.kind !== "allocate") return [];
    return write.items.flatMap((item) =>
      item.intakeId === undefined && item.mayExist !== true ? [] : [item.intent.txId],
    );
  });
}

function intakeIdsOf(writes: readonly LaneWrite[]): readonly number[] {
  const ids = writes.flatMap((write) => {
    if (write.kind === "settleIntake") return write.fates.map((fate) => fate.intakeId);
    return write.kind === "allocate" ? write.items.flatMap(({ intakeId }) => intakeId ?? []) : [];
  });
  return [...new Set(ids)].sort((a, b) => a - b);
}

function unwatchedOf(writes: readonly LaneWrite[]) {
  return writes.flatMap((write) => {
    if (write.kind !== "unwatch") return [];
    const { chainId, signer } = write.fence.lane;
    return { chain_id: chainId, signer, through_block: write.throughBlock };
  });
}

function lowestHeights(writes: readonly LaneWrite[]): ReadonlyMap<number, number> {
  const lowest = new Map<number, number>();
  for (const write of writes) {
    if (write.kind !== "confirmations") continue;
    const { chainId } = write.fence.lane;
    const from = write.blocks[0]?.number ?? Number.MAX_SAFE_INTEGER;
    lowest.set(chainId, Math.min(from, lowest.get(chainId) ?? Number.MAX_SAFE_INTEGER));
  }
  return lowest;
}
