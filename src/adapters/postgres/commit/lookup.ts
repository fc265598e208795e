/** First half of a commit: locks the lanes and reads, behind the locks, everything that its writes are judged by. */
import type { Confirmation } from "../../../domain/chain/confirmations.ts";
import { type Lane, laneKey } from "../../../domain/lane.ts";
import type { AskedOfPool, ExistingTransaction } from "../../../ports/lane-store.ts";
import { type Flat, laneOf, recordset, rowsOf } from "../rows/columns.ts";
import type { WriteTransaction } from "../session/write-transaction.ts";
import { type AttemptRow, readAttempts } from "../statements/attempt.ts";
import { readConfirmations } from "../statements/confirmation.ts";
import { type DatabaseHistoryRow, readDatabaseHistory } from "../statements/database.ts";
import { type EpochFloorRow, readEpochFloors } from "../statements/feed.ts";
import { type HoleRow, readHoles } from "../statements/hole.ts";
import { findAwaited, type IntakeRow, readIntake } from "../statements/intake.ts";
import { type BoundNonceRow, type LockedLaneRow, lockLanes, readBoundNonces } from "../statements/lane.ts";
import { findOrderKeys, type OrderKeyRow } from "../statements/order-key.ts";
import {
  type ChargeRow,
  type KeyUseRow,
  readCharges,
  readKeyUse,
  readLaneUse,
  type UseColumns,
} from "../statements/policy.ts";
import { findPooled, type PooledRow } from "../statements/pool-choice.ts";
import {
  findOpenReservations,
  findRepairs,
  findReservations,
  type RepairRow,
  type ReservationRow,
} from "../statements/reservation.ts";
import { lockChains } from "../statements/session.ts";
import { findSpent, type SpentRow } from "../statements/spent-request.ts";
import type { Statement } from "../statements/statement.ts";
import {
  type CurrentRow,
  findFixedNonces,
  findHeldNonces,
  findRequests,
  findUnwatchable,
  type HeldNonceRow,
  readTransactions,
  type UnwatchableRow,
} from "../statements/transaction.ts";
import type { Needs } from "./needs.ts";
import { inLane, inPool, type Request, requestOf } from "./spent-requests.ts";

/** Rows of a sort are missing where no write needs them. */
export interface Found {
  readonly lanes: readonly LockedLaneRow[];
  readonly requests?: readonly Flat<ExistingTransaction>[];
  readonly awaited?: readonly Flat<ExistingTransaction>[];
  readonly pooled?: readonly PooledRow[];
  readonly spent?: readonly SpentRow[];
  readonly transactions?: readonly CurrentRow[];
  readonly attempts?: readonly AttemptRow[];
  /** Transactions whose attempts, and whose block, were asked for. */
  readonly naming?: ReadonlySet<string>;
  readonly watching?: ReadonlySet<string>;
  readonly intake?: readonly IntakeRow[];
  readonly unwatchable?: readonly UnwatchableRow[];
  /** Only where a lane is reconciled. */
  readonly history?: readonly DatabaseHistoryRow[];
  readonly blocks?: ReadonlyMap<number, readonly Confirmation[]>;
  readonly holes?: readonly HoleRow[];
  readonly reservations?: readonly ReservationRow[];
  readonly openReservations?: readonly ReservationRow[];
  readonly repairs?: readonly RepairRow[];
  readonly bound?: readonly BoundNonceRow[];
  readonly heldNonces?: readonly HeldNonceRow[];
  readonly fixed?: readonly HeldNonceRow[];
  readonly epochFloors?: readonly EpochFloorRow[];
  readonly laneUse?: readonly (Lane & UseColumns)[];
  readonly charges?: readonly ChargeRow[];
  readonly keyUse?: readonly KeyUseRow[];
  readonly orders?: readonly OrderKeyRow[];
}

export type Lookup = Pick<WriteTransaction<Found, unknown>, "statements" | "waits" | "find">;

const EVERY = 1_000_000;

/** How many transactions of a lane one commit lets go at most: creates of the same lanes wait for it. */
export const UNWATCH_PAGE = 100;

/** What to lock and read for these writes. The sending happens in one go, in this order. */
export function lookupFor(needs: readonly Needs[]): Lookup {
  const heights = lowestHeights(needs);
  const chains = [...heights.keys()].sort((a, b) => a - b);
  const unwatched = unwatchedOf(needs);
  const watching = watchingOf(needs, unwatched);
  const reads = readsFor(needs, unwatched, watching);
  return {
    statements: 1 + reads.length + (chains.length === 0 ? 0 : 1 + chains.length),
    waits: 1,
    find: async (run) => {
      const locked = run(lockLanes, termsOf(needs));
      const found = reads.map(async ({ as, statement, values }) => [as, await run(statement, values)] as const);
      const lockedChains = chains.length === 0 ? [] : [run(lockChains, [chains])];
      const blocks = chains.map((chainId) => run(readConfirmations, [chainId, heights.get(chainId), EVERY]));
      const rows = await Promise.all([locked, Promise.all(found), Promise.all(blocks), ...lockedChains]);
      return {
        lanes: rows[0],
        naming: new Set(needs.flatMap(({ attempts = [] }) => attempts)),
        watching: new Set(watching),
        ...Object.fromEntries(rows[1]),
        blocks: new Map(chains.map((chainId, index) => [chainId, rows[2][index] ?? []])),
      };
    },
  };
}

type Rows = Required<Omit<Found, "lanes" | "blocks" | "naming" | "watching">>;

interface Read {
  readonly as: keyof Rows;
  readonly statement: Statement<unknown>;
  readonly values: readonly unknown[];
}

/** `values` null: there is nothing to ask about. */
function read<Of extends keyof Rows>(
  as: Of,
  statement: Statement<Rows[Of][number]>,
  values: Read["values"] | null,
): readonly Read[] {
  return values === null ? [] : [{ as, statement, values }];
}

function about(keys: readonly unknown[], values: Read["values"] = [keys]): Read["values"] | null {
  return keys.length === 0 ? null : values;
}

type LaneNeed = "holes" | "openReservations" | "repairs" | "boundNonce" | "nonces" | "limits" | "fixed" | "epochFloor";

/** Most commits are about transactions alone, and read nothing else. */
function readsFor(needs: readonly Needs[], unwatched: readonly object[], watching: readonly string[]): readonly Read[] {
  const each = <T>(of: (need: Needs) => readonly T[] | undefined) => [
    ...new Set(needs.flatMap((need) => of(need) ?? [])),
  ];
  const lanes = (of: LaneNeed) => {
    const asking = needs.filter((need) => need[of]).map(({ fence }) => fence.lane);
    return about(asking, [signers(asking), chainIds(asking)]);
  };
  const transactions = each((need) => need.transactions).sort();
  const requests = needs.flatMap(({ fence: { lane }, requests = [] }) =>
    requests.map((requestId) => requestOf(lane, requestId)),
  );
  const pooled = needs.flatMap(({ fence: { lane }, pooled = [] }) =>
    pooled.map((each) => ({ chainId: lane.chainId, ...each })),
  );
  const intake = each((need) => need.intake).sort((a, b) => a - b);
  const named = [each((need) => need.reservations).sort(), each((need) => need.reservedAs)];
  const nonces = each((need) => need.nonces);
  const compared = each((need) => need.compared);
  const limited = needs.filter((need) => need.limits).map(({ fence }) => fence.lane);
  const charged = each(({ limits }) => limits?.charged);
  const owners = each(({ limits }) => limits?.owners);
  const reconciled = needs.filter((need) => need.mayHaveLost);
  return [
    ...read("requests", findRequests, about(requests, rowsOf(findRequests, requests))),
    ...read("awaited", findAwaited, awaitedOf(needs)),
    ...read("pooled", findPooled, about(pooled, rowsOf(findPooled, pooled))),
    // Behind the two above: a transaction that leaves in this moment was found there, or is found here.
    ...read("spent", findSpent, spentOf(requests, pooled)),
    ...read("transactions", readTransactions, about(transactions, [transactions, compared, watching])),
    ...read("attempts", readAttempts, about(each((need) => need.attempts))),
    ...read("intake", readIntake, about(intake)),
    ...read("unwatchable", findUnwatchable, about(unwatched, [recordset(unwatched), UNWATCH_PAGE])),
    ...read("history", readDatabaseHistory, about(reconciled, [])),
    ...read("holes", readHoles, lanes("holes")),
    ...read("reservations", findReservations, about(named.flat(), named)),
    ...read("openReservations", findOpenReservations, lanes("openReservations")),
    ...read("repairs", findRepairs, lanes("repairs")),
    ...read("bound", readBoundNonces, lanes("boundNonce")),
    ...read("fixed", findFixedNonces, lanes("fixed")),
    ...read("epochFloors", readEpochFloors, lanes("epochFloor")),
    ...read("laneUse", readLaneUse, lanes("limits")),
    ...read("charges", readCharges, about(charged)),
    ...read("keyUse", readKeyUse, about([...charged, ...owners], [owners, charged, chainIds(limited)])),
    ...read("orders", findOrderKeys, ordersOf(needs)),
    ...read("heldNonces", findHeldNonces, about(nonces, [...(lanes("nonces") ?? []), nonces])),
  ];
}

function spentOf(requests: readonly Request[], pooled: readonly AskedOfPool[]): Read["values"] | null {
  const asked = [...requests.map(inLane), ...pooled.map(inPool)];
  return about(asked, rowsOf(findSpent, asked));
}

function ordersOf(needs: readonly Needs[]): Read["values"] | null {
  const asked = needs.flatMap(({ fence: { lane }, orders = [] }) => orders.map((order) => ({ ...lane, ...order })));
  return about(asked, rowsOf(findOrderKeys, asked));
}

function awaitedOf(needs: readonly Needs[]): Read["values"] | null {
  const asking = needs.filter(({ awaited }) => awaited);
  const requests = asking.flatMap((need) => need.requests ?? []);
  const ids = asking.flatMap((need) => need.transactions ?? []);
  return about([...requests, ...ids], [requests, signers(asking.map(({ fence }) => fence.lane)), ids]);
}

export function chainIds(lanes: readonly Lane[]): readonly number[] {
  return [...new Set(lanes.map((lane) => lane.chainId))];
}

export function signers(lanes: readonly Lane[]): readonly string[] {
  return [...new Set(lanes.map((lane) => lane.signer))];
}

/** As parameters of `lockLanes`, each term once: it locks them in its own order. */
export function termsOf(needs: readonly Pick<Needs, "fence">[]): readonly unknown[] {
  const terms = needs.map(({ fence: { lane, instanceId, token } }) => {
    const term = { chainId: lane.chainId, signer: lane.signer, instanceId, token };
    return [`${laneKey(lane)}:${instanceId}:${token}`, term] as const;
  });
  return rowsOf(lockLanes, [...new Map(terms).values()]);
}

/** Each lane once, up to the highest block. */
function unwatchedOf(needs: readonly Needs[]) {
  const lanes = new Map<string, Lane & { throughBlock: number }>();
  for (const { fence, watchedThrough } of needs) {
    if (watchedThrough === undefined) continue;
    const key = laneKey(fence.lane);
    const throughBlock = Math.max(watchedThrough, lanes.get(key)?.throughBlock ?? 0);
    lanes.set(key, { ...laneOf(fence.lane), throughBlock });
  }
  return [...lanes.values()];
}

/** What moves on lanes whose watched transactions are let go in the same commit: in which block it stands decides there. */
function watchingOf(needs: readonly Needs[], unwatched: readonly Lane[]): readonly string[] {
  if (unwatched.length === 0) return [];
  const lanes = new Set(unwatched.map(laneKey));
  return needs.flatMap(({ fence, transactions = [] }) => (lanes.has(laneKey(fence.lane)) ? transactions : []));
}

function lowestHeights(needs: readonly Needs[]): ReadonlyMap<number, number> {
  const lowest = new Map<number, number>();
  for (const { fence, blocksFrom } of needs) {
    const { chainId } = fence.lane;
    if (blocksFrom !== undefined) lowest.set(chainId, Math.min(blocksFrom, lowest.get(chainId) ?? blocksFrom));
  }
  return lowest;
}
