/** First half of a commit: locks the lanes, and then reads all rows that are needed to decide the writes. */
import type { Confirmation } from "../../../domain/chain/confirmations.ts";
import { type Lane, laneKey } from "../../../domain/lane.ts";
import type { Answers } from "../session/connections.ts";
import { findActionKeys } from "../statements/action-key.ts";
import { readAttempts } from "../statements/attempt.ts";
import { readConfirmations } from "../statements/confirmation.ts";
import { readDatabaseHistory } from "../statements/database.ts";
import { readEpochFloors } from "../statements/feed.ts";
import { readHoles } from "../statements/hole.ts";
import { findAwaited, readIntake } from "../statements/intake.ts";
import { type LockedLaneRow, lockLanes, readBoundNonces } from "../statements/lane.ts";
import { readCharges, readKeyUse, readLaneUse } from "../statements/policy.ts";
import { findPooled } from "../statements/pool-choice.ts";
import { findOpenReservations, findRepairs, findReservations } from "../statements/reservation.ts";
import { lockChains } from "../statements/session.ts";
import { findSignatures, readMessageUse } from "../statements/signature.ts";
import { findSpent } from "../statements/spent-request.ts";
import type { Command } from "../statements/statement.ts";
import {
  findFixedNonces,
  findHeldNonces,
  findRequests,
  findUnwatchable,
  readTransactions,
} from "../statements/transaction.ts";
import type { Needs } from "./needs.ts";
import { inLane, inMessages, inPool, requestOf } from "./spent-requests.ts";

type Reads = ReturnType<typeof readsFor>;

/** Rows that a commit has read, by kind. A kind is absent if no write needs it. */
export type Found = {
  readonly [Of in keyof Reads]?: NonNullable<Reads[Of]> extends Command<infer Row> ? readonly Row[] : never;
} & {
  readonly lanes: readonly LockedLaneRow[];
  /**
   * `naming`: ids of the transactions whose attempts were read. `watching`: ids of the transactions whose block was
   * read.
   */
  readonly naming?: ReadonlySet<string>;
  readonly watching?: ReadonlySet<string>;
  readonly blocks?: ReadonlyMap<number, readonly Confirmation[]>;
};

const EVERY = 1_000_000;

/**
 * Largest number of a lane's transactions that one commit stops watching for reorgs. It is small, because creates of
 * the same lanes wait for the commit.
 */
export const UNWATCH_PAGE = 100;

/** Commands that lock and read the rows for these writes, in this order. */
export function lookupFor(needs: readonly Needs[]) {
  const heights = lowestHeights(needs);
  const chains = [...heights.keys()].sort((a, b) => a - b);
  const unwatched = unwatchedOf(needs);
  const watching = watchingOf(needs, unwatched);
  const reads = Object.entries(readsFor(needs, unwatched, watching)).flatMap(([as, command]) =>
    command === null ? [] : [[as, command as Command] as const],
  );
  const blocks = chains.map((chainId) => readConfirmations(chainId, heights.get(chainId), EVERY));
  const locks = chains.length === 0 ? [] : [lockChains(chains)];
  return {
    find: [lockLanes(termsOf(needs)), ...reads.map(([, command]) => command), ...locks, ...blocks] as const,
    found([lanes, ...rows]: Answers<readonly [Command<LockedLaneRow>, ...Command[]]>): Found {
      const stored = rows.slice(reads.length + locks.length) as (readonly Confirmation[])[];
      return {
        lanes,
        naming: new Set(needs.flatMap(({ attempts = [] }) => attempts)),
        watching: new Set(watching),
        ...Object.fromEntries(reads.map(([as], place) => [as, rows[place]])),
        blocks: new Map(chains.map((chainId, place) => [chainId, stored[place] ?? []])),
      };
    },
  };
}

/** Makes a read command, or null if there is nothing to look up. */
function about<Row, Of>(keys: readonly Of[], command: (keys: readonly Of[]) => Command<Row>) {
  return keys.length === 0 ? null : command(keys);
}

type LaneNeed =
  | "messageUse"
  | "holes"
  | "openReservations"
  | "repairs"
  | "boundNonce"
  | "nonces"
  | "limits"
  | "fixed"
  | "epochFloor";

/** Read commands for the needed rows. Most commits concern only transactions and read nothing else. */
function readsFor(needs: readonly Needs[], unwatched: readonly Unwatched[], watching: readonly string[]) {
  const each = <T>(of: (need: Needs) => readonly T[] | undefined) => [
    ...new Set(needs.flatMap((need) => of(need) ?? [])),
  ];
  const ofLanes = <Row>(of: LaneNeed, command: (signers: unknown, chainIds: unknown) => Command<Row>) => {
    const asking = needs.filter((need) => need[of]).map(({ fence }) => fence.lane);
    return about(asking, (lanes) => command(signers(lanes), chainIds(lanes)));
  };
  const requests = needs.flatMap(({ fence: { lane }, requests = [] }) =>
    requests.map((requestId) => requestOf(lane, requestId)),
  );
  const pooled = needs.flatMap(({ fence: { lane }, pooled = [] }) =>
    pooled.map((each) => ({ chainId: lane.chainId, ...each })),
  );
  const messages = needs.flatMap(({ fence: { lane }, messages = [] }) => messages.map((id) => requestOf(lane, id)));
  const named = [each((need) => need.reservations).sort(), each((need) => need.reservedAs)];
  const charged = each(({ limits }) => limits?.charged);
  const owners = each(({ limits }) => limits?.owners);
  return {
    requests: about(requests, findRequests),
    awaited: awaitedOf(needs),
    pooled: about(pooled, findPooled),
    // Read spent request ids after `requests`, `pooled` and `messages`. In the other order, a transaction that retention removes
    // between the reads would be found by neither.
    messages: about(messages, findSignatures),
    spent: about([...requests.map(inLane), ...pooled.map(inPool), ...messages.map(inMessages)], findSpent),
    messageUse: ofLanes("messageUse", readMessageUse),
    transactions: about(each((need) => need.transactions).sort(), (ids) =>
      readTransactions(
        ids,
        each((need) => need.compared),
        watching,
      ),
    ),
    attempts: about(
      each((need) => need.attempts),
      readAttempts,
    ),
    intake: about(
      each((need) => need.intake).sort((a, b) => a - b),
      readIntake,
    ),
    unwatchable: about(unwatched, (lanes) => findUnwatchable(lanes, UNWATCH_PAGE)),
    history: needs.some((need) => need.mayHaveLost) ? readDatabaseHistory() : null,
    holes: ofLanes("holes", readHoles),
    reservations: about(named.flat(), () => findReservations(...named)),
    openReservations: ofLanes("openReservations", findOpenReservations),
    repairs: ofLanes("repairs", findRepairs),
    bound: ofLanes("boundNonce", readBoundNonces),
    fixed: ofLanes("fixed", findFixedNonces),
    epochFloors: ofLanes("epochFloor", readEpochFloors),
    laneUse: ofLanes("limits", readLaneUse),
    charges: about(charged, readCharges),
    keyUse:
      charged.length + owners.length === 0
        ? null
        : ofLanes("limits", (_, chainIds) => readKeyUse(owners, charged, chainIds)),
    actionKeys: about(
      needs.flatMap(({ fence: { lane }, actionKeys = [] }) => actionKeys.map((key) => ({ ...lane, ...key }))),
      findActionKeys,
    ),
    heldNonces: ofLanes("nonces", (signers, chainIds) =>
      findHeldNonces(
        signers,
        chainIds,
        each((need) => need.nonces),
      ),
    ),
  };
}

function awaitedOf(needs: readonly Needs[]) {
  const asking = needs.filter(({ awaited }) => awaited);
  const requests = asking.flatMap((need) => need.requests ?? []);
  const ids = asking.flatMap((need) => need.transactions ?? []);
  return about([...requests, ...ids], () => findAwaited(requests, signers(asking.map(({ fence }) => fence.lane)), ids));
}

export function chainIds(lanes: readonly Lane[]): readonly number[] {
  return [...new Set(lanes.map((lane) => lane.chainId))];
}

export function signers(lanes: readonly Lane[]): readonly string[] {
  return [...new Set(lanes.map((lane) => lane.signer))];
}

/**
 * Parameter rows of `lockLanes`: one row per term (one ownership of a lane). `lockLanes` sorts the lanes itself before
 * it locks them.
 */
export function termsOf(needs: readonly Pick<Needs, "fence">[]) {
  const terms = needs.map(({ fence: { lane, instanceId, token } }) => {
    const term = { chainId: lane.chainId, signer: lane.signer, instanceId, token };
    return [`${laneKey(lane)}:${instanceId}:${token}`, term] as const;
  });
  return [...new Map(terms).values()];
}

type Unwatched = Lane & { readonly throughBlock: number };

/**
 * Lanes for which this commit ends the watch for reorgs of settled transactions, each with the block through which it
 * ends. If several writes name a block for a lane, the highest is taken.
 */
function unwatchedOf(needs: readonly Needs[]) {
  const lanes = new Map<string, Unwatched>();
  for (const { fence, watchedThrough } of needs) {
    if (watchedThrough === undefined) continue;
    const key = laneKey(fence.lane);
    const throughBlock = Math.max(watchedThrough, lanes.get(key)?.throughBlock ?? 0);
    lanes.set(key, { ...fence.lane, throughBlock });
  }
  return [...lanes.values()];
}

/**
 * Transactions that change in this commit, on lanes where the same commit stops watching settled transactions for
 * reorgs. Their block is read, because it decides whether they are still watched.
 */
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
