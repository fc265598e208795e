/** Implements LaneMoveStore on the lease's connections: a move changes who may act on a lane, as a lease does. */
import { hasLeft, judgeMove, type MoveStep, type Standing } from "../../../domain/cluster/lane-move.ts";
import type { Lane } from "../../../domain/lane.ts";
import type { DeparturePage, LaneMoveStore, MoveDecision, MoveWish } from "../../../ports/lane-move-store.ts";
import { useOf } from "../commit/rows.ts";
import { messageUseOf } from "../commit/signature-rows.ts";
import { ask, type Reading } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import { ensureLanes, insertLaneDecisions, lockLanesByKey } from "../statements/lane.ts";
import * as moves from "../statements/lane-move.ts";
import { readMessageUse, writeMessageUse } from "../statements/signature.ts";
import type { Command } from "../statements/statement.ts";
import { writeLease } from "./leases.ts";

/** Number of rows that one page is made from. Its JSON stays below the size of a request's body. */
const PAGE = 2_000;

export function laneMovesIn(reading: Reading, leasing: DurableRuntime): LaneMoveStore {
  return {
    moveLane: (lane, wish, decision) =>
      writeLease(leasing, {
        locks: [ensureLanes([lane]), lockLanesByKey([lane])],
        find: [moves.readStanding(lane.chainId, lane.signer)],
        decide: ([[row]]): Decision<Awaited<ReturnType<LaneMoveStore["moveLane"]>>> => {
          const { nextNonce: _, held, used, genesisHash, ...known } = row as moves.StandingRow;
          const { place, leftBy, arrivesBy, carried, ...open } = known;
          const before = { place, leftBy, arrivesBy, carried };
          const standing = judgeMove(before, stepOf(wish), { held, used, genesisHash, open });
          const commands = standing === before ? null : changes(lane, { wish, before, standing, decision });
          return { commands, result: { standing, open } };
        },
      }),
    async departurePage(lane, moveId, after) {
      const { chainId, signer } = lane;
      const baggage = moves.readBaggage(chainId, signer);
      const [[row], messageUse] = await reading.read(baggage, readMessageUse([signer], [chainId]));
      if (row?.leftBy !== moveId || !hasLeft(row)) return null;
      const { requests, next } = await requestsAfter(reading, lane, { after, departed: row.departed });
      const { nextNonce, genesisHash } = row;
      const used = messageUse.map((each) => ({ rule: each.rule, ...messageUseOf(each) }));
      return {
        chainId,
        signer,
        moveId,
        genesisHash,
        nextNonce,
        use: useOf(row),
        messageUse: used,
        after,
        next,
        requests,
      };
    },
  };
}

function stepOf(wish: MoveWish): MoveStep {
  return wish.step === "arrive" ? { step: "arrive", ...wish.page } : wish;
}

interface Step {
  readonly wish: MoveWish;
  readonly before: Standing;
  readonly standing: Standing;
  readonly decision: MoveDecision;
}

function changes(lane: Lane, { wish, before, standing, decision }: Step): readonly Command[] {
  const { chainId, signer } = lane;
  const page = wish.step === "arrive" ? wish.page : null;
  const taken = page === null ? [] : carry(lane, page);
  if (standing.place === before.place) return [moves.noteCarried(chainId, signer, standing.carried), ...taken];
  const row = { chainId, signer, action: wish.step, ...decision, nodeId: null, token: 0 };
  const { place, leftBy, arrivesBy, carried } = standing;
  const change =
    page === null
      ? moves.changePlace(chainId, signer, place, leftBy, arrivesBy, carried)
      : moves.openLane(chainId, signer, arrivesBy, page.nextNonce, ...useColumns(page));
  return [change, ...taken, insertLaneDecisions([row])];
}

function carry({ chainId, signer }: Lane, { requests, messageUse, next }: DeparturePage): readonly Command[] {
  const digests = requests.map((digest) => ({ digest: `0x${digest}` as const, chainId }));
  const used = messageUse.map(({ rule, hourMs, hour, day }) => ({
    ...{ chainId, signer, rule, useHour: new Date(hourMs) },
    ...{ hourAmount: hour.amount, hourSignatures: hour.signatures },
    ...{ dayAmount: day.amount, daySignatures: day.signatures },
  }));
  return [
    ...(digests.length === 0 ? [] : [moves.carryRequests(digests)]),
    ...(next !== null || used.length === 0 ? [] : [writeMessageUse(used)]),
  ];
}

function useColumns({ use: { hourMs, hour, day } }: DeparturePage) {
  if (hourMs === 0) return [null, null, null, null, null];
  return [new Date(hourMs).toISOString(), hour.value, hour.cost, day.value, day.cost];
}

const NO_ID = "00000000-0000-0000-0000-000000000000";

type Read = (lane: Lane, key: string) => Command<moves.CarriedRow>;

/** Where request ids are read, in this order. Retention may move one from the first to the last while pages are read. */
const SOURCES: readonly (readonly [start: string, read: Read])[] = [
  [NO_ID, ({ chainId, signer }, key) => moves.carriedByTransactions(chainId, signer, key, PAGE)],
  [NO_ID, ({ chainId, signer }, key) => moves.carriedByReservations(chainId, signer, key, PAGE)],
  [NO_ID, ({ chainId, signer }, key) => moves.carriedBySignatures(chainId, signer, key, PAGE)],
  ["", ({ chainId }, key) => moves.carriedByRemoved(chainId, key, PAGE)],
];

async function requestsAfter(
  reading: Reading,
  lane: Lane,
  { after, departed }: { readonly after: string | null; readonly departed: boolean },
): Promise<Pick<DeparturePage, "requests" | "next">> {
  const [at = 0, from = ""] = after === null ? [] : [Number(after[0]), after.slice(2)];
  const source = SOURCES[at];
  if (source === undefined) return { requests: [], next: null };
  const [start, read] = source;
  const rows = await ask(reading, read(lane, from === "" ? start : from));
  const requests = rows.flatMap(({ digest }) => digest ?? []);
  const last = rows.at(-1);
  if (last !== undefined && rows.length === PAGE) return { requests, next: `${at}:${last.key}` };
  const isLast = at + 1 === SOURCES.length - (departed ? 0 : 1);
  return { requests, next: isLast ? null : `${at + 1}:` };
}
