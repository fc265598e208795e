/**
 * Stage 1: creates that are answered without a nonce. These are repeats, found by their request id or by the nonce that
 * they name (I5); creates that failed; and creates of an API key that has filled its share of the lane's queue. Only
 * the lane's owner checks the share: it counts the key's creates that are under way, or have a nonce and are in no
 * block.
 *
 * Reads: request ids, in rounds that creates of all lanes share; transactions; a key's open transactions, once under a
 * term. Writes: nothing. The check that counts is stage 2's, under the lane's lock. A crash here leaves nothing behind.
 */
import { DatabaseSilent, FencepostError, outcomeUnknown } from "../../../domain/errors.ts";
import { grouped } from "../../../domain/grouped.ts";
import { anothersRequestId, isAnothers, spentRequestId } from "../../../domain/keys/principal.ts";
import { type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import { Departures, Flow } from "../../../domain/pace/departures.ts";
import { fingerprint } from "../../../domain/transaction/fingerprint.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { Clock } from "../../../ports/clock.ts";
import {
  type AskedRequests,
  BatchRefused,
  type ExistingTransaction,
  type LaneStore,
  OutcomeUnknown,
  type Spent,
  type SpentRequest,
} from "../../../ports/lane-store.ts";
import type { QueryStore } from "../../../ports/query-store.ts";
import type { Created } from "../../api.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import type { QueueShare } from "../../lane/queue-shares.ts";

export type Result = Created | FencepostError;

/** One create that is being processed; `result` is null until its result is known. */
export interface Item {
  readonly intent: Intent;
  result: Result | null;
}

export function isOpen({ result }: Item): boolean {
  return result === null;
}

/** Answers those creates of one lane whose request id exists already, and returns the others. */
export async function answerExisting<I extends Item>(
  { requestIds }: { readonly requestIds: RequestIds },
  items: readonly I[],
): Promise<readonly I[]> {
  const named = items.filter(({ intent }) => intent.requestId !== null);
  const [first] = named;
  if (first === undefined) return items;
  const ids = named.map(({ intent }) => intent.requestId as string);
  const existing = await requestIds.find(first.intent.lane, ids);
  return items.filter((item) => {
    const { intent } = item;
    const found = intent.requestId === null ? undefined : existing.get(intent.requestId);
    if (found !== undefined) item.result = answerOwned(found, intent);
    return found === undefined;
  });
}

/**
 * The answer to a create whose request id belongs to `owner`: an existing transaction, or one that retention has
 * already deleted.
 */
export function answerOwned(owner: ExistingTransaction | Spent, asked: Intent): Result {
  if (isSpent(owner)) return spentRequestId(asked.requestId);
  return answerWith(owner, asked, owner.fingerprint === asked.fingerprint);
}

export function answerWith(existing: ExistingTransaction, asked: Intent, samePayload: boolean): Result {
  if (isAnothers(existing.owner, asked.owner)) return anothersRequestId(existing.requestId);
  return samePayload ? existingAs(existing) : reusedRequestId(existing);
}

export function existingAs({ txId, lane, requestId, nonce, state }: Omit<Created, "outcome">): Created {
  return { outcome: "existing", txId, lane, requestId, nonce, state };
}

function reusedRequestId({ txId, requestId }: Pick<ExistingTransaction, "txId" | "requestId">) {
  const detail = `request id ${requestId} belongs to ${txId}, whose payload differs`;
  return new FencepostError("REQUEST_ID_REUSED", detail, { txId });
}

/**
 * Answers creates that were refused because they name a nonce other than the next one. If a transaction with the same
 * payload already has that nonce, the create is a repeat of it. Stage 2 decided the refusal under the lane's lock, so a
 * transaction that has the nonce is already stored.
 */
export async function answerHeldNonces(
  { store }: { readonly store: Pick<QueryStore, "transactionAt"> },
  items: readonly Item[],
): Promise<void> {
  const refused = items.filter(
    ({ result }) => result instanceof FencepostError && result.extras.nextNonce !== undefined,
  );
  const look = async (item: Item) => {
    const { lane, exactNonce, owner } = item.intent;
    const found = exactNonce === undefined ? null : await store.transactionAt(lane, exactNonce);
    if (found === null || isAnothers(found.owner, owner)) return;
    if (fingerprint(found.payload, found) === item.intent.fingerprint) item.result = existingAs(found);
  };
  // Without the database's answer the create may be a repeat of an accepted one. The other creates keep their results.
  const lookSafely = (item: Item) =>
    look(item).catch((error: unknown) => {
      item.result = failureOf(error, item.intent.txId);
    });
  await Promise.all(refused.map(lookSafely));
}

type Owner = ExistingTransaction | SpentRequest;
type Found = ReadonlyMap<string, Owner>;

interface Round {
  readonly asked: Map<LaneKey, { readonly lane: Lane; readonly ids: Set<string> }>;
  /** Number of request ids to look up in this round, repeats included. */
  size: number;
  readonly found: Promise<ReadonlyMap<LaneKey, Found>>;
}

/**
 * Interval between shared queries under steady load: each costs the database a transaction, whether it is for one
 * create or a hundred.
 */
const ROUND_EVERY_MS = 10;
const ROUNDS_IN_RESERVE = 4;
/**
 * Number of ids per second from which shared queries wait for the whole interval. At a clearly lower rate they start
 * almost at once: the database has capacity for more queries then.
 */
const IDS_TO_GATHER = 850;
/** Maximum number of simultaneous rounds: more than one, so that a round that hangs does not delay the next. */
const ROUNDS_AT_ONCE = 2;
/**
 * Maximum number of ids in one round: without it, the ids that gather during a pause could make one query too large to
 * finish.
 */
const ENOUGH = 1_000;
const NOTHING: Found = new Map();

/**
 * Looks up request ids in rounds. All creates that arrive before the next round begins, of any lane, share that round.
 * A thousand lanes with one create each then cost a few reads, not a thousand.
 */
export class RequestIds {
  private readonly store: Pick<LaneStore, "findByRequestIds">;
  private readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  private readonly flow = new Flow(IDS_TO_GATHER);
  private readonly pace = new Departures(ROUND_EVERY_MS, ROUNDS_IN_RESERVE, this.flow);
  private readonly running = new Set<Promise<unknown>>();
  /**
   * For each lane, its last query that is not answered yet: all creates of the lane share the answer and continue
   * together.
   */
  private readonly asking = new Map<LaneKey, { readonly round: Round; readonly answer: Promise<Found> }>();
  private next: Round | null = null;

  constructor(store: Pick<LaneStore, "findByRequestIds">, clock: Pick<Clock, "monotonicMs" | "sleep">) {
    this.store = store;
    this.clock = clock;
  }

  /** True if a look-up of request ids for this lane is in progress or about to begin. */
  isAsking(lane: Lane): boolean {
    return this.asking.has(laneKey(lane));
  }

  async find(lane: Lane, ids: readonly string[]): Promise<Found> {
    if (ids.length === 0) return NOTHING;
    const key = laneKey(lane);
    this.flow.add(this.clock.monotonicMs(), ids.length);
    if (this.next === null || this.next.size >= ENOUGH) this.next = this.open();
    const round = this.next;
    join(round, lane, ids);
    const question = this.questionOn(key, round);
    try {
      return await question.answer;
    } finally {
      if (this.asking.get(key) === question) this.asking.delete(key);
    }
  }

  private questionOn(key: LaneKey, round: Round) {
    const before = this.asking.get(key);
    if (before?.round === round) return before;
    const question = { round, answer: this.inTurn(key, round, before?.answer) };
    this.asking.set(key, question);
    return question;
  }

  /**
   * Keeps the creates of one lane in order: if two queries run at the same time, the later one may be answered first.
   */
  private async inTurn(key: LaneKey, { found }: Round, before: Promise<Found> | undefined) {
    await before?.catch(() => undefined);
    return (await found).get(key) ?? NOTHING;
  }

  private open(): Round {
    const asked: Round["asked"] = new Map();
    const found = this.take(asked);
    found.catch(() => undefined);
    return { asked, found, size: 0 };
  }

  private async take(asked: Round["asked"]) {
    await Promise.resolve();
    while (this.running.size >= ROUNDS_AT_ONCE) await Promise.race(this.running).catch(() => undefined);
    const waitMs = this.pace.waitMs(this.clock.monotonicMs());
    if (waitMs > 0) await this.clock.sleep(waitMs);
    if (this.next?.asked === asked) this.next = null;
    this.pace.left(this.clock.monotonicMs());
    const query = this.store.findByRequestIds(
      [...asked.values()].map(({ lane, ids }): AskedRequests => ({ lane, requestIds: [...ids] })),
    );
    this.running.add(query);
    try {
      return byLane(await query);
    } finally {
      this.running.delete(query);
    }
  }
}

function join(round: Round, lane: Lane, ids: readonly string[]) {
  const { asked } = round;
  round.size += ids.length;
  const own = asked.get(laneKey(lane)) ?? { lane, ids: new Set() };
  asked.set(laneKey(lane), own);
  for (const id of ids) own.ids.add(id);
}

function byLane(rows: readonly Owner[]) {
  const lanes = [...grouped(rows, ({ lane }) => laneKey(lane))];
  return new Map(lanes.map(([key, own]) => [key, new Map(own.map((row) => [row.requestId as string, row]))]));
}

const UNANSWERED =
  "the database did not say whether it accepted this; ask for the transaction, or repeat with the same request id";

/** The result of a create after a database error. */
export function failureOf(error: unknown, txId: string): FencepostError {
  if (error instanceof FencepostError) return error;
  if (error instanceof OutcomeUnknown) return outcomeUnknown(UNANSWERED, { txId, cause: error });
  return error instanceof BatchRefused ? unstorable() : new DatabaseSilent("nothing was accepted", error);
}

/** The database's own message names tables and constraints, so it goes only to the log (writer.failed). */
export function unstorable(): FencepostError {
  return new FencepostError("INVALID_REQUEST", "the database cannot store this request; the node's log says why");
}

/** A create that needs a place in the lane's queue. */
export interface Entering {
  readonly intent: Intent;
  /** Share of the queue that the create's key may fill; null for all of it. */
  readonly queueShare: number | null;
}

interface SharePorts {
  readonly store: Pick<LaneStore, "openOf">;
  /** Capacity of a lane's queue. */
  readonly admission: { readonly perLane: number };
}

/** Result of giving creates places in the lane's queue, within the shares of their API keys. */
interface Share<I> {
  /** Creates that were refused because their key's share is full. */
  readonly refused: readonly I[];
  /** Frees the places of creates that got no nonce. */
  leave(): void;
}

export const NO_SHARE = { refused: [], leave: () => undefined };

/** Gives creates places in the lane's queue, in order, for each key up to its share. Refuses those beyond it. */
export async function enterShares<I extends Item & Entering>(
  { store, admission }: SharePorts,
  lane: OwnedLane,
  items: readonly I[],
): Promise<Share<I>> {
  const owners = new Set(items.flatMap(({ queueShare, intent }) => (queueShare === null ? [] : (intent.owner ?? []))));
  const read = async (owner: string): Promise<readonly [string, QueueShare]> => {
    return [owner, await lane.queueShares.of(owner, () => store.openOf(lane.lane, owner))];
  };
  const shares = new Map(await Promise.all([...owners].map(read)));
  // No await from here on: two simultaneous creates must not both take the last place.
  const refused = items.filter((item) => {
    const { intent, queueShare } = item;
    const share = queueShare === null ? undefined : shares.get(intent.owner ?? "");
    if (share === undefined || queueShare === null) return false;
    const most = Math.max(1, Math.floor(queueShare * admission.perLane));
    if (share.size >= most) item.result = shareFull(most);
    else share.enter(intent.txId);
    return item.result !== null;
  });
  const within = refused.length === 0 ? items : items.filter(({ result }) => result === null);
  const leave = () => {
    for (const { intent, result } of within)
      if (!hasNonce(result, intent)) shares.get(intent.owner ?? "")?.leave(intent.txId);
  };
  return { refused, leave };
}

/** A create that waits for approval has no place in a queue: it gets one with its nonce. */
function hasNonce(result: Result | null, { txId }: Intent) {
  return result !== null && !(result instanceof FencepostError) && result.txId === txId && result.nonce !== null;
}

function shareFull(limit: number) {
  const detail = `this API key has ${limit} transactions of this signer waiting, as many as it may; nothing was accepted`;
  return new FencepostError("QUOTA_EXCEEDED", detail, { rule: "queueShare", limit, retryAfterSeconds: 1 });
}
