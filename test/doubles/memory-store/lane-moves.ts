import { createHash } from "node:crypto";
import { hasLeft, judgeMove, type OpenWork } from "../../../src/domain/cluster/lane-move.ts";
import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import { type Ledger, type LedgerWrite, Part, type Spent } from "../../../src/domain/ledger/index.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import { NOTHING, UNUSED } from "../../../src/domain/policy/use.ts";
import type { DeparturePage, MoveDecision, Moved, MoveWish } from "../../../src/ports/lane-move-store.ts";
import { unusedGuard } from "../../support/whole-ledger.ts";
import { type DatabaseState, LaneRow, sameLane, waitingIntake } from "./state.ts";

/** Number of request ids on one page; small, so that tests read several. */
const PAGE = 3;
const NO_POLICIES: Policies = {
  signers: new Map(),
  keys: new Map(),
  asksApproval: false,
  unreadable: [],
  hash: "0x",
  document: {},
};
const SPENT: Spent = { spent: true };

export function moveLane(
  state: DatabaseState,
  lane: Lane,
  { wish, decision, now }: { readonly wish: MoveWish; readonly decision: MoveDecision; readonly now: Date },
): Moved {
  const row = state.lane(lane) ?? new LaneRow(lane);
  const open = openWork(state, row);
  const step = wish.step === "arrive" ? ({ step: "arrive", ...wish.page } as const) : wish;
  const before = row.standing;
  const facts = {
    used: isUsed(state, row),
    held: row.suspendedBy === "HISTORY" || row.reconciledEpoch < state.feed.epoch,
    genesisHash: state.geneses.get(lane.chainId) ?? null,
    open,
  };
  const standing = judgeMove(before, step, facts);
  state.lanes.set(laneKey(lane), row);
  if (standing === before) return { standing, open };
  row.standing = standing;
  if (wish.step === "arrive") for (const digest of wish.page.requests) state.carried.add(digest);
  if (standing.place === before.place) return { standing, open };
  row.owner = null;
  row.ledger = { ...row.ledger, place: standing.place };
  row.decisions = [{ ...decision, action: wish.step, nodeId: null, token: 0, at: now }, ...row.decisions];
  if (wish.step === "arrive") unpack(row, wish.page);
  return { standing, open };
}

function openWork(state: DatabaseState, { lane, ledger }: LaneRow): OpenWork {
  const isOpen = ({ state: now }: { readonly state: string }) => ["ALLOCATED", "TRACKING", "STUCK"].includes(now);
  return {
    transactions: [...state.transactions.values()].filter((tx) => sameLane(tx.lane, lane) && tx.live && isOpen(tx))
      .length,
    intents: waitingIntake(state).filter(({ intent }) => sameLane(intent.lane, lane)).length,
    reservations: ledger.reserved.size,
    holes: ledger.holes.size,
  };
}

function isUsed(state: DatabaseState, { lane, ledger }: LaneRow): boolean {
  const isOwn = (each: { readonly lane: Lane }) => sameLane(each.lane, lane);
  const hasIntents = [...state.intake.values()].some(({ intent }) => isOwn(intent));
  return ledger.departedBelow !== null || hasIntents || ledger.reservations.size > 0 || ledger.transactions.size > 0;
}

/** Its transactions stay where it left, so all nonces below its next one count as removed. */
function unpack(row: LaneRow, { nextNonce, use, messageUse }: DeparturePage) {
  const { ledger } = row;
  const guard = ledger.guard ?? (use.hourMs === 0 ? null : unusedGuard(NO_POLICIES));
  const rules = messageUse.map(({ rule, ...each }) => [rule, each] as const);
  row.reconciledEpoch = 0;
  row.ledger = {
    ...ledger,
    cursor: nextNonce,
    departedBelow: nextNonce === null ? ledger.departedBelow : Math.max(ledger.departedBelow ?? 0, nextNonce),
    guard: guard === null ? null : { ...guard, use },
    messageUse: Part.of("use of rule", { kind: "all" }, rules),
  };
}

export function departurePage(
  state: DatabaseState,
  lane: Lane,
  { moveId, after }: { readonly moveId: string; readonly after: string | null },
): DeparturePage | null {
  const row = state.lane(lane);
  if (row === undefined || row.standing.leftBy !== moveId || !hasLeft(row.standing)) return null;
  const all = digestsOf(row).sort();
  const from = after === null ? "" : after.slice(2);
  const requests = all.filter((digest) => digest > from).slice(0, PAGE);
  const last = requests.at(-1);
  const next = last !== undefined && last !== all.at(-1) ? `0:${last}` : null;
  return {
    ...{ ...lane, moveId, genesisHash: state.geneses.get(lane.chainId) ?? null, nextNonce: row.cursor },
    use: row.ledger.guard?.use ?? { ...UNUSED, hour: NOTHING, day: NOTHING },
    messageUse: row.ledger.messageUse.every().map(([rule, use]) => ({ rule, ...use })),
    ...{ after, next, requests },
  };
}

function digestsOf({ lane, ledger }: LaneRow): string[] {
  const ids = [...ledger.requests.every(), ...ledger.reservedAs.every()].map(([requestId]) => requestId);
  const messages = ledger.messages.every().map(([requestId]) => digestOf(lane, requestId, `sign ${lane.signer}`));
  return [...new Set([...ids.map((requestId) => digestOf(lane, requestId)), ...messages])];
}

/** As `request_digest` of the database. */
function digestOf({ chainId, signer }: Lane, requestId: string, scope: string = signer): string {
  return createHash("sha256")
    .update(`${chainId} ${Buffer.byteLength(scope)} ${scope} ${requestId}`)
    .digest("hex");
}

/** True if the lane used this request id at another cell. */
export function isCarried(state: DatabaseState, lane: Lane, requestId: string): boolean {
  return state.carried.size > 0 && state.carried.has(digestOf(lane, requestId));
}

/** The ledger with those request ids of the write that the lane used at another cell. */
export function withCarried(state: DatabaseState, ledger: Ledger, write: LedgerWrite): Ledger {
  if (state.carried.size === 0) return ledger;
  const { lane } = ledger;
  const isSpentHere = (requestId: string) =>
    ledger.requests.get(requestId) === null && isCarried(state, lane, requestId);
  const spent = requestIdsOf(write).filter(isSpentHere);
  const message = write.kind === "signMessage" ? write.asked.requestId : null;
  const isAsked = message !== null && state.carried.has(digestOf(lane, message, `sign ${lane.signer}`));
  return {
    ...ledger,
    requests: ledger.requests.with(spent.map((requestId) => [requestId, SPENT])),
    messages:
      isAsked && ledger.messages.get(message) === null ? ledger.messages.with([[message, SPENT]]) : ledger.messages,
  };
}

function requestIdsOf(write: LedgerWrite): readonly string[] {
  if (write.kind === "allocate") return write.items.flatMap(({ intent }) => intent.requestId ?? []);
  if (write.kind === "bind") return write.intent.requestId === null ? [] : [write.intent.requestId];
  return write.kind === "reserve" && write.requestId !== null ? [write.requestId] : [];
}
