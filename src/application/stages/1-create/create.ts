/**
 * Stage 1: accepts creates and answers each with its own result.
 *
 * Steps: drain → trace → parse → choose the lane (pools.ts) → deliver to the lane's owner (cluster/route.ts) → on the
 * owner: share → admit → idempotency → prepare → allocate (stage 2) → answer. The source is a parameter (`inlet`): a
 * caller's creates are forwarded to the owner; creates from a peer or from the waiting requests are made here or
 * refused. Reads: the chain and existing request ids. Writes: nothing itself. Invariants: I4, I5; a full queue refuses
 * before anything is consumed. A crash before stage 2 commits leaves nothing; after it, the caller's repeat finds the
 * transaction by its request id.
 */
import {
  FencepostError,
  forbiddenBy,
  otherNonce,
  outcomeUnknown,
  queueFull,
  tooLate,
  unavailable,
} from "../../../domain/errors.ts";
import { grouped } from "../../../domain/grouped.ts";
import { spentRequestId } from "../../../domain/keys/principal.ts";
import { type Lane, laneKey } from "../../../domain/lane.ts";
import type { Intent, PreparedIntent } from "../../../domain/transaction/transaction.ts";
import type { AllocateResult, LaneStore } from "../../../ports/lane-store.ts";
import type { ForwardedCreate } from "../../../ports/peers.ts";
import type { QueryStore } from "../../../ports/query-store.ts";
import type { CreateResultLabel } from "../../../ports/telemetry.ts";
import type { Tracer } from "../../../ports/tracer.ts";
import type { Created } from "../../api.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { type ForwardCreates, Gathering } from "../../cluster/gather.ts";
import type { PendingCreates } from "../../cluster/pending-creates.ts";
import type { Router } from "../../cluster/route.ts";
import { BetweenOwners, underNextTerm } from "../../lane/between-owners.ts";
import type { LaneWriterPorts } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import type { NormalisePorts } from "../../requests/normalise.ts";
import { WORTH_A_COMMIT } from "../../writer/batch.ts";
import { allocate } from "../2-allocate/allocate.ts";
import {
  answerExisting,
  answerHeldNonces,
  answerWith,
  type Entering,
  enterShares,
  failureOf,
  type Item,
  isOpen,
  NO_SHARE,
  type RequestIds,
  type Result,
  unstorable,
} from "./answer-existing.ts";
import {
  type AskedCreate,
  type CreateItem,
  type Inlet,
  isItem,
  isPooled,
  parseCreate,
  traced,
  withNamedRevert,
} from "./asked-create.ts";
import type { PoolChoice } from "./pools.ts";
import { asksChain, isComplete, isSoonPrepared, prepareAsking, prepareUnasked } from "./prepare.ts";

export interface CreatePorts extends LaneWriterPorts {
  readonly intents: NormalisePorts;
  readonly store: Pick<QueryStore, "transaction" | "transactionAt"> & Pick<LaneStore, "openOf">;
  readonly lanes: { own(lane: Lane): Promise<OwnedLane>; find(lane: Lane): OwnedLane | null };
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly requestIds: RequestIds;
  readonly admission: Admission;
  /** Counts creates under way; refuses callers if this node shuts down and there is no other node. */
  readonly reception: { turnedAway(): FencepostError | null; counted<T>(creates: Promise<T>): Promise<T> };
  readonly tracer?: Tracer;
  readonly router: Pick<Router, "deliver">;
  readonly forwardCreates: Pick<ForwardCreates, "send">;
  readonly pendingCreates: Pick<PendingCreates, "enqueue">;
}

/** Capacity of the queues: how many creates may be under way on one lane, and on the node. */
export interface Admission {
  readonly perLane: number;
  readonly perNode: number;
  underWay: number;
}

/** A create on its lane, processed by the lane's owner. */
interface LaneItem extends Item, Entering {
  prepared: PreparedIntent | null;
}

/**
 * Entry point of all creates: single ones and batches, from callers, from other nodes and from the table of waiting
 * requests.
 */
export class Creates {
  private readonly ports: CreatePorts;
  private readonly pools: Pick<PoolChoice, "choose">;
  private readonly gathering: Gathering<CreateItem, void>;

  constructor(ports: CreatePorts, pools: Pick<PoolChoice, "choose">) {
    this.ports = ports;
    this.pools = pools;
    const together = (items: readonly CreateItem[], answer: (at: number) => void) =>
      this.deliverByLane(items, "caller", answer);
    this.gathering = new Gathering<CreateItem, void>(ports.clock, together, WORTH_A_COMMIT);
  }

  /** Makes creates; returns one result for each, in order. */
  create(asked: readonly AskedCreate[], inlet: Inlet = "caller"): Promise<readonly Result[]> {
    const { reception, tracer } = this.ports;
    const turnedAway = inlet === "caller" ? reception.turnedAway() : null;
    if (turnedAway !== null) return Promise.resolve(asked.map(() => turnedAway));
    const work = (all: readonly AskedCreate[]) => this.take(all, inlet);
    // Creates from another node already have that node's trace context.
    const isTraced = inlet === "caller" && tracer !== undefined;
    return reception.counted(isTraced ? traced(tracer, asked, work) : work(asked));
  }

  private async take(asked: readonly AskedCreate[], inlet: Inlet) {
    const { ports, pools } = this;
    const startedMs = ports.clock.monotonicMs();
    const parsed = asked.map((each) => parseCreate(ports.intents, each, inlet));
    const items = parsed.filter(isItem);
    const deliver = (open: readonly CreateItem[]) => this.deliver(open, inlet);
    await (items.some(isPooled) ? pools.choose(items, deliver) : deliver(items));
    if (inlet === "caller") await answerHeldNonces(ports, items);
    const results = parsed.map((each) => {
      if (each instanceof FencepostError) return each;
      return withNamedRevert(ports.intents.codec, each.asked.request, each.result as Result);
    });
    if (inlet !== "caller") return results.map((each) => (each instanceof BetweenOwners ? each.toPeer() : each));
    const durationMs = ports.clock.monotonicMs() - startedMs;
    for (const each of results) ports.telemetry.emit({ type: "create.answered", result: labelOf(each), durationMs });
    return results;
  }

  /**
   * A create that needs a call to the chain may wait long for it, so it is not batched with others, which would wait,
   * too.
   */
  private async deliver(items: readonly CreateItem[], inlet: Inlet) {
    const [single, ...others] = items;
    if (single === undefined) return;
    const isAlone = others.length === 0 && inlet === "caller" && isSoonPrepared(this.ports, single.intent);
    await (isAlone ? this.gathering.add(single) : this.deliverByLane(items, inlet, () => undefined));
  }

  /**
   * Delivers creates lane by lane. `answered` is called for each as soon as its own lane has its result, so that a slow
   * lane delays no other.
   */
  private async deliverByLane(items: readonly CreateItem[], inlet: Inlet, answered: (at: number) => void) {
    const places = items.map((item, at) => ({ item, at, key: laneKey(item.intent.lane) }));
    const onOneLane = async (group: Readonly<typeof places>) => {
      const own = group.map(({ item }) => item);
      const { ports } = this;
      const results = await (inlet === "caller" ? byOwner(ports, own) : createOnLane(ports, own, inlet.repeat));
      group.forEach(({ item, at }, index) => {
        item.result = results[index] as Result;
        answered(at);
      });
    };
    await Promise.all([...grouped(places, ({ key }) => key).values()].map(onOneLane));
  }
}

/**
 * Delivers creates to the lane's owner: this node, another node, or, through the table of waiting requests, an owner
 * without a URL.
 */
function byOwner(ports: CreatePorts, items: readonly CreateItem[]) {
  const itemAt = (at: number): CreateItem => items[at] as CreateItem;
  return ports.router.deliver<Created>({
    lane: itemAt(0).intent.lane,
    items: items.length,
    repeatable: true,
    here: (which, repeat) => createOnLane(ports, which.map(itemAt), repeat),
    at: (url, which, sending) => {
      const creates = which.map((at) => forwardedAs(itemAt(at)));
      return ports.forwardCreates.send(url, creates, sending);
    },
    enqueue: (which) => enqueue(ports, which.map(itemAt)),
    unknown: (at) => unanswered(itemAt(at).intent),
  });
}

/**
 * A create in the form that another node receives. It names the chain: the only chain of this node may be one of
 * several on the other.
 */
function forwardedAs({ intent, asked: { request }, queueShare }: CreateItem): ForwardedCreate {
  const { txId, owner, lane, pool } = intent;
  const named = { txId, owner, request: { ...request, chainId: lane.chainId } };
  const chosen = pool === undefined ? {} : { chosen: lane.signer };
  return { ...named, ...chosen, ...(queueShare === null ? {} : { queueShare }) };
}

/**
 * All creates of a lane are enqueued in one table: with two tables, a create that names its nonce would overtake
 * earlier ones.
 */
async function enqueue(ports: CreatePorts, items: readonly CreateItem[]) {
  const open = items.map((item) => ({ item, intent: item.intent, result: null as Result | null }));
  try {
    const unseen = await answerExisting(ports, open);
    const [first] = unseen;
    if (first !== undefined) {
      const creates = unseen.map(({ item, intent }) => ({ create: forwardedAs(item), intent }));
      const mayShare = unseen.every(({ intent }) => isComplete(intent));
      const results = await ports.pendingCreates.enqueue(first.intent.lane, creates, mayShare);
      unseen.forEach((each, at) => {
        each.result = results[at] as Result;
      });
    }
  } catch (error) {
    for (const each of open) each.result = failureOf(error, each.intent.txId);
  }
  return open.map(({ result }) => result as Result);
}

/**
 * The part of this stage that runs on the lane's owner, for creates of one lane. `repeat`: another node may already
 * have made these creates without answering, so they are first looked up by their ids.
 */
async function createOnLane(ports: CreatePorts, entering: readonly Entering[], repeat: boolean) {
  const { lanes, admission } = ports;
  const items = entering.map(
    ({ intent, queueShare }): LaneItem => ({ intent, queueShare, result: null, prepared: null }),
  );
  try {
    const lane = await lanes.own((items[0] as LaneItem).intent.lane);
    const isShared = items.some(({ queueShare }) => queueShare !== null);
    const share = isShared ? await enterShares(ports, lane, items) : NO_SHARE;
    const admitted = admit(admission, lane, share.refused.length === 0 ? items : items.filter(isOpen));
    admission.underWay += admitted.length;
    lane.count("creating", admitted.length);
    try {
      const unmade = repeat ? await answerMade(ports, admitted) : admitted;
      const unseen = await answerSeen(ports, lane, unmade);
      const prepared = await prepareAll(ports, lane, unseen);
      if (prepared.length > 0) await allocateAll(ports, lane, prepared, repeat);
    } finally {
      lane.count("creating", -admitted.length);
      admission.underWay -= admitted.length;
      share.leave();
    }
    // A repeat of an accepted create is answered even if the key's share is full: it needs no further place in the
    // queue.
    if (share.refused.length > 0) await answerExisting(ports, share.refused);
    // If an earlier send made a create, the create itself may have filled the share.
    if (repeat) await answerMade(ports, share.refused);
  } catch (error) {
    for (const item of items) item.result ??= failureOf(error, item.intent.txId);
  }
  return items.map(({ result }) => result as Result);
}

/** Admits as many creates as the queues have places for; the rest is refused and may be retried. */
function admit(admission: Admission, lane: OwnedLane, items: readonly LaneItem[]) {
  const room = Math.max(0, Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay));
  for (const item of items.slice(room)) item.result = queueFull();
  return items.slice(0, room);
}

/** Answers creates that an earlier send of the same request already made, and returns the others. */
async function answerMade(ports: CreatePorts, items: readonly LaneItem[]) {
  const found = await Promise.all(items.map(({ intent }) => ports.store.transaction(intent.txId)));
  items.forEach((item, at) => {
    const record = found[at] ?? null;
    if (record !== null) item.result = createdAs(item.intent, record);
  });
  return items.filter(isOpen);
}

/**
 * Checks for existing request ids before preparation, to avoid calls to the chain for known requests. The check is
 * skipped if preparation would make no call, because stage 2 checks again under the lane's lock. It is not skipped
 * while other creates of the lane are being checked: this create must not overtake them.
 */
async function answerSeen(ports: CreatePorts, lane: OwnedLane, items: readonly LaneItem[]) {
  const behindOthers = lane.hasUnminedBefore(items.length);
  const costly = items.some(({ intent }, at) => asksChain(intent, { behindPending: at > 0 || behindOthers }));
  return costly || ports.requestIds.isAsking(lane.lane) ? answerExisting(ports, items) : items;
}

async function prepareAll(ports: CreatePorts, lane: OwnedLane, items: readonly LaneItem[]) {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const behindOthers = lane.hasUnminedBefore(items.length);
  const laneKnown = lane.cursor !== null;
  const asking: Promise<void>[] = [];
  items.forEach((item, position) => {
    const standing = { behindPending: position > 0 || behindOthers, laneKnown };
    const refuse = (error: unknown) => {
      item.result = failureOf(error, item.intent.txId);
    };
    const keep = (prepared: PreparedIntent) => {
      item.prepared = prepared;
    };
    try {
      item.prepared = prepareUnasked(context, item.intent, standing);
      if (item.prepared === null) asking.push(prepareAsking(context, item.intent, standing).then(keep, refuse));
    } catch (error) {
      refuse(error);
    }
  });
  if (asking.length > 0) await Promise.all(asking);
  // A repeat may have been accepted while this create was being refused: an existing transaction takes precedence.
  const refused = items.filter(({ prepared }) => prepared === null);
  if (refused.length === 0) return items;
  await answerExisting(ports, refused);
  return items.filter(({ prepared }) => prepared !== null);
}

async function allocateAll(ports: CreatePorts, lane: OwnedLane, items: readonly LaneItem[], mayExist: boolean) {
  await ports.failpoint("create.prepared");
  const transactions = items.map(({ prepared }) => {
    const intent = prepared as PreparedIntent;
    return mayExist ? { intent, mayExist } : { intent };
  });
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  // If the lane was lost while its creates waited, it is acquired once more; nothing had been consumed.
  const allocated = await underNextTerm(ports.lanes, lane, async (owned) => {
    if (owned === lane) return allocate(ports, context, owned, transactions);
    owned.count("creating", transactions.length);
    try {
      return await allocate(ports, context, owned, transactions);
    } finally {
      owned.count("creating", -transactions.length);
    }
  });
  items.forEach((item, at) => {
    item.result = answer(allocated[at] as AllocateResult, item.intent);
  });
}

const HELD =
  "the database's history changed; this signer's lane is held until it has been compared with the chain, or an operator resumes it; nothing was accepted";

const UNREADABLE = "this node cannot read the policy document in force, so it allocates no nonce; nothing was accepted";

function answer(result: AllocateResult, intent: Intent) {
  switch (result.result) {
    case "created":
      return createdAs(intent, { nonce: result.nonce, state: "ALLOCATED" });
    case "duplicate":
      // The existing transaction has the id of this intent, so an earlier send of the same request created it.
      if (result.existing.txId === intent.txId) return createdAs(intent, result.existing);
      return answerWith(result.existing, intent, result.samePayload);
    case "spent":
      return spentRequestId(intent.requestId);
    case "awaiting":
      return createdAs(intent, { nonce: null, state: "CREATED" });
    case "otherNonce":
      return otherNonce(intent.exactNonce, result.next);
    case "noCursor":
      return unavailable("this signer's nonce is not known yet; nothing was accepted");
    case "held":
      return unavailable(result.unreadable === true ? UNREADABLE : HELD);
    case "expired":
      return tooLate();
    case "forbidden":
      return forbiddenBy(result);
    case "refused":
      return unstorable();
  }
}

function createdAs({ txId, lane, requestId }: Intent, { nonce, state }: Pick<Created, "nonce" | "state">): Created {
  return { outcome: "created", txId, lane, requestId, nonce, state };
}

/**
 * Error for a create that got no answer. The owner may have made it: the caller finds out by reading the transaction,
 * or by repeating the request id.
 */
function unanswered({ txId }: Intent) {
  const detail = "the node that acts for this signer did not answer; ask for the transaction, or repeat the request id";
  return outcomeUnknown(detail, { txId });
}

const LABELS: Partial<Record<FencepostError["code"], CreateResultLabel>> = {
  REQUEST_ID_REUSED: "reused",
  QUEUE_FULL: "queueFull",
  QUOTA_EXCEEDED: "queueFull",
  NOT_LEADER: "notLeader",
  UNAVAILABLE: "unavailable",
  INVALID_REQUEST: "invalid",
};

function labelOf(result: Result) {
  if (!(result instanceof FencepostError)) return result.outcome === "created" ? "created" : "duplicate";
  return result.extras.outcome === "unknown" ? "unknown" : (LABELS[result.code] ?? "rejected");
}
