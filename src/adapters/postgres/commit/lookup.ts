/** First half of a commit: locks the lanes and reads, behind the locks, everything that its writes are judged by. */
import type { Confirmation } from "../../../domain/confirmations.ts";
import { type Lane, laneKey } from "../../../domain/lane.ts";
import type { ExistingTransaction, LaneWrite } from "../../../ports/lane-store.ts";
import type { Flat } from "../columns.ts";
import { recordset } from "../lists.ts";
import type { WriteTransaction } from "../session/write-transaction.ts";
import { type AttemptRow, readAttempts } from "../statements/attempt.ts";
import { readConfirmations } from "../statements/confirmation.ts";
import { type DatabaseHistoryRow, readDatabaseHistory } from "../statements/database.ts";
import { type HoleRow, readHoles } from "../statements/hole.ts";
import { type IntakeRow, readIntake } from "../statements/intake.ts";
import { type BoundNonceRow, type LockedLaneRow, lockLanes, readBoundNonces } from "../statements/lane.ts";
import { findOpenReservations, findReservations, type ReservationRow } from "../statements/reservation.ts";
import { lockChains } from "../statements/session.ts";
import type { Statement } from "../statements/statement.ts";
import {
  type CurrentRow,
  findHeldNonces,
  findRequests,
  findUnwatchable,
  type HeldNonceRow,
  readTransactions,
  type UnwatchableRow,
} from "../statements/transaction.ts";
import type { Needs } from "./needs.ts";

export interface Found {
  readonly lanes: readonly LockedLaneRow[];
  readonly requests: readonly Flat<ExistingTransaction>[];
  readonly transactions: readonly CurrentRow[];
  readonly attempts: readonly AttemptRow[];
  /** Transactions whose attempts, and whose block, were asked for. */
  readonly naming: ReadonlySet<string>;
  readonly watching: ReadonlySet<string>;
  readonly intake: readonly IntakeRow[];
  readonly unwatchable: readonly UnwatchableRow[];
  /** Only where a lane is reconciled. */
  readonly history: readonly DatabaseHistoryRow[];
  readonly blocks: ReadonlyMap<number, readonly Confirmation[]>;
  readonly holes: readonly HoleRow[];
  readonly reservations: readonly ReservationRow[];
  readonly openReservations: readonly ReservationRow[];
  readonly bound: readonly BoundNonceRow[];
  readonly heldNonces: readonly HeldNonceRow[];
}

export const NOTHING_FOUND: Found = {
  ...{ lanes: [], requests: [], transactions: [], attempts: [], intake: [], unwatchable: [], history: [] },
  ...{ naming: new Set(), watching: new Set() },
  ...{ blocks: new Map(), holes: [], reservations: [], openReservations: [], bound: [], heldNonces: [] },
};

export type Lookup = Pick<WriteTransaction<Found, unknown>, "statements" | "waits" | "find">;

const EVERY = 1_000_000;

/** How many transactions of a lane one commit lets go at most. */
export const UNWATCH_PAGE = 1_000;

/** What to lock and read for these writes. The sending happens in one go, in this order. */
export function lookupFor(writes: readonly LaneWrite[], needs: readonly Needs[]): Lookup {
  const heights = lowestHeights(writes);
  const chains = [...heights.keys()].sort((a, b) => a - b);
  const unwatched = unwatchedOf(writes, needs);
  const watching = watchingOf(writes, needs, unwatched);
  const reads = readsFor(writes, needs, { unwatched, watching });
  return {
    statements: 1 + reads.length + (chains.length === 0 ? 0 : 1 + chains.length),
    waits: 1,
    find: async (run) => {
      const locked = run(lockLanes, fencesOf(writes));
      const found = reads.map(async ({ as, statement, values }) => [as, await run(statement, values)] as const);
      const lockedChains = chains.length === 0 ? [] : [run(lockChains, [chains])];
      const blocks = chains.map((chainId) => run(readConfirmations, [chainId, heights.get(chainId), EVERY]));
      const rows = await Promise.all([locked, Promise.all(found), Promise.all(blocks), ...lockedChains]);
      return {
        ...NOTHING_FOUND,
        lanes: rows[0],
        naming: new Set(needs.flatMap(({ attempts }) => attempts)),
        watching: new Set(watching),
        ...Object.fromEntries(rows[1]),
        blocks: new Map(chains.map((chainId, index) => [chainId, rows[2][index] ?? []])),
      };
    },
  };
}

type Rows = { readonly [Of in Exclude<keyof Found, "lanes" | "blocks" | "naming" | "watching">]: Found[Of][number] };

interface Read {
  readonly as: keyof Rows;
  readonly statement: Statement<unknown>;
  readonly values: readonly unknown[];
}

/** `values` null: there is nothing to ask about. */
function read<Of extends keyof Rows>(
  as: Of,
  statement: Statement<Rows[Of]>,
  values: Read["values"] | null,
): readonly Read[] {
  return values === null ? [] : [{ as, statement, values }];
}

function about(keys: readonly unknown[], values: Read["values"]): Read["values"] | null {
  return keys.length === 0 ? null : values;
}

/** Most commits are about transactions alone, and read nothing else. */
function readsFor(
  writes: readonly LaneWrite[],
  needs: readonly Needs[],
  { unwatched, watching }: { readonly unwatched: readonly object[]; readonly watching: readonly string[] },
): readonly Read[] {
  const each = <T>(of: (need: Needs) => readonly T[]) => [...new Set(needs.flatMap(of))];
  const lanes = (need: (need: Needs) => boolean) => {
    const asking = writes.filter((_, index) => need(needs[index] as Needs)).map(({ fence }) => fence.lane);
    return { asking, keys: [signers(asking), chainIds(asking)] };
  };
  const transactions = each((need) => need.transactions).sort();
  const compared = each((need) => need.compared);
  const attempts = each((need) => need.attempts);
  const requests = requestsOf(writes, needs);
  const intake = each((need) => need.intake).sort((a, b) => a - b);
  const named = [each((need) => need.reservations).sort(), each((need) => need.reservedAs)];
  const nonces = each((need) => need.nonces);
  const [holes, open] = [lanes((need) => need.holes), lanes((need) => need.openReservations)];
  const [bound, skipped] = [lanes((need) => need.boundNonce), lanes((need) => need.nonces.length > 0)];
  const reconciled = needs.filter((need) => need.mayHaveLost);
  return [
    ...read("requests", findRequests, about(requests, requestKeys(requests))),
    ...read("transactions", readTransactions, about(transactions, [transactions, compared, watching])),
    ...read("attempts", readAttempts, about(attempts, [attempts])),
    ...read("intake", readIntake, about(intake, [intake])),
    ...read("unwatchable", findUnwatchable, about(unwatched, [recordset(unwatched), UNWATCH_PAGE])),
    ...read("history", readDatabaseHistory, about(reconciled, [])),
    ...read("holes", readHoles, about(holes.asking, holes.keys)),
    ...read("reservations", findReservations, about(named.flat(), named)),
    ...read("openReservations", findOpenReservations, about(open.asking, open.keys)),
    ...read("bound", readBoundNonces, about(bound.asking, bound.keys)),
    ...read("heldNonces", findHeldNonces, about(skipped.asking, [...skipped.keys, nonces])),
  ];
}

export function chainIds(lanes: readonly Lane[]): readonly number[] {
  return [...new Set(lanes.map((lane) => lane.chainId))];
}

export function signers(lanes: readonly Lane[]): readonly string[] {
  return [...new Set(lanes.map((lane) => lane.signer))];
}

/** As parameters of `lockLanes`, each term once: it locks them in its own order. */
function fencesOf(writes: readonly LaneWrite[]): readonly unknown[] {
  const named = writes.map(
    ({ fence }) => [`${laneKey(fence.lane)}:${fence.instanceId}:${fence.token}`, fence] as const,
  );
  const terms = [...new Map(named).values()];
  return [
    terms.map(({ lane }) => lane.chainId),
    terms.map(({ lane }) => lane.signer),
    terms.map(({ instanceId }) => instanceId),
    terms.map(({ token }) => token),
  ];
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

function requestsOf(writes: readonly LaneWrite[], needs: readonly Needs[]): readonly Request[] {
  return writes.flatMap(({ fence: { lane } }, index) =>
    (needs[index] as Needs).requests.map((requestId) => ({ lane, requestId })),
  );
}

/** Each lane once, up to the highest block. */
function unwatchedOf(writes: readonly LaneWrite[], needs: readonly Needs[]) {
  const lanes = new Map<string, Lane & { throughBlock: number }>();
  for (const [index, { fence }] of writes.entries()) {
    const { watchedThrough } = needs[index] as Needs;
    if (watchedThrough === null) continue;
    const key = laneKey(fence.lane);
    const throughBlock = Math.max(watchedThrough, lanes.get(key)?.throughBlock ?? 0);
    lanes.set(key, { chainId: fence.lane.chainId, signer: fence.lane.signer, throughBlock });
  }
  return [...lanes.values()];
}

/** What moves on lanes whose watched transactions are let go in the same commit: in which block it stands decides there. */
function watchingOf(
  writes: readonly LaneWrite[],
  needs: readonly Needs[],
  unwatched: ReturnType<typeof unwatchedOf>,
): readonly string[] {
  if (unwatched.length === 0) return [];
  const lanes = new Set(unwatched.map(laneKey));
  return writes.flatMap(({ fence }, index) =>
    lanes.has(laneKey(fence.lane)) ? (needs[index] as Needs).transactions : [],
  );
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
