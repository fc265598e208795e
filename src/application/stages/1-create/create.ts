/**
 * Stage 1: takes requests in and answers each with its own fate.
 *
 * Road: normalise → own the lane → idempotency pre-check → prepare → allocate (stage 2) → answer. Reads: the chain and
 * existing request ids. Writes: nothing itself. Invariants: I4, I5; a queue that is full says so before anything is
 * consumed. A crash before stage 2 commits leaves nothing; after it, the caller's repeat finds the transaction by its
 * request id.
 */
import { DatabaseSilent, FencepostError, outcomeUnknown, queueFull, unavailable } from "../../../domain/errors.ts";
import { isFullyPriced } from "../../../domain/fees.ts";
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { Intent, PreparedIntent } from "../../../domain/transaction.ts";
import { type AllocateFate, type ExistingTransaction, OutcomeUnknown } from "../../../ports/lane-store.ts";
import type { ForwardedCreate } from "../../../ports/peers.ts";
import type { QueryStore } from "../../../ports/query-store.ts";
import type { CreateResultLabel } from "../../../ports/telemetry.ts";
import type { Created, CreateRequest } from "../../api.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { Outbox } from "../../cluster/outbox.ts";
import type { Router } from "../../cluster/route.ts";
import { BetweenOwners, underNextTerm } from "../../lane/between-owners.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { hear, type NormalisePorts } from "../../requests/normalise.ts";
import { type AllocatePorts, allocate } from "../2-allocate/allocate.ts";
import type { Gathering } from "./gather.ts";
import { asksChain, prepare, prepareUnasked } from "./prepare.ts";
import type { RequestIds } from "./request-ids.ts";

export interface CreatePorts extends AllocatePorts {
  readonly intents: NormalisePorts;
  readonly requestIds: RequestIds;
  readonly store: Pick<QueryStore, "transaction">;
  readonly lanes: { own(lane: Intent["lane"]): Promise<OwnedLane> };
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly admission: Admission;
  /** Takes creates to the lane's owner; null: what this node cannot do itself is refused with the owner's name. */
  readonly router: Pick<Router, "run"> | null;
  readonly outbox: Pick<Outbox, "send">;
  readonly gathering: Gathering<Heard, Fate>;
}

/** Bounded queues: how many creates may be under way on one lane, and on the node. */
export interface Admission {
  readonly perLane: number;
  readonly perNode: number;
  underWay: number;
}

type Fate = Created | FencepostError;

interface Item {
  readonly index: number;
  readonly intent: Intent;
}

interface Prepared extends Item {
  readonly intent: PreparedIntent;
}

/** Heard from a caller: with the words it was asked in, which another node may have to hear too. */
export interface Heard extends Item {
  readonly request: CreateRequest;
}

/** Items of one lane, and where the fates of all requests are noted. */
interface Batch {
  readonly items: readonly Item[];
  readonly fates: Fate[];
  /** Another node may have created them already, unheard: their ids are looked for first. */
  readonly repeat?: boolean;
}

export async function create(ports: CreatePorts, requests: readonly CreateRequest[]): Promise<readonly Fate[]> {
  const startedMs = ports.clock.monotonicMs();
  const fates = new Array<Fate>(requests.length);
  const heard: Heard[] = [];
  requests.forEach((request, index) => {
    const intent = hear(ports.intents, request);
    if (intent instanceof FencepostError) fates[index] = intent;
    else heard.push({ index, intent, request });
  });
  await createTogether(ports, heard, (at, fate) => {
    fates[(heard[at] as Heard).index] = fate;
  });
  const durationMs = ports.clock.monotonicMs() - startedMs;
  for (const fate of fates) ports.telemetry.emit({ type: "create.answered", result: labelOf(fate), durationMs });
  return fates;
}

/** One create by itself; where the chain need not be asked, in the company of others that arrived with it. */
export async function createOne(ports: CreatePorts, request: CreateRequest): Promise<Created> {
  const startedMs = ports.clock.monotonicMs();
  const fate = await fateOfOne(ports, request);
  const durationMs = ports.clock.monotonicMs() - startedMs;
  ports.telemetry.emit({ type: "create.answered", result: labelOf(fate), durationMs });
  if (fate instanceof FencepostError) throw fate;
  return fate;
}

function fateOfOne(ports: CreatePorts, request: CreateRequest): Fate | Promise<Fate> {
  const intent = hear(ports.intents, request);
  if (intent instanceof FencepostError) return intent;
  const heard = { index: 0, intent, request };
  const { payload } = intent;
  // Whoever must ask the chain may wait for it long, and keeps nobody else waiting.
  if (payload.gas !== undefined && isFullyPriced(payload)) return ports.gathering.add(heard);
  return createAlone(ports, heard);
}

async function createAlone(ports: CreatePorts, heard: Heard): Promise<Fate> {
  const fates = new Array<Fate>(1);
  await routeOrCreate(ports, [heard], fates);
  return fates[0] as Fate;
}

/** Creates of any lanes. Each is told its fate as soon as its own lane has it: one that waits keeps no other waiting. */
export async function createTogether(
  ports: CreatePorts,
  heard: readonly Heard[],
  tell: (at: number, fate: Fate) => void,
): Promise<void> {
  const fates = new Array<Fate>(heard.length);
  const groups = new Map<LaneKey, Heard[]>();
  heard.forEach(({ intent, request }, index) => {
    push(groups, laneKey(intent.lane), { index, intent, request });
  });
  const createGroup = async (items: readonly Heard[]): Promise<void> => {
    await routeOrCreate(ports, items, fates);
    for (const { index } of items) tell(index, fates[index] as Fate);
  };
  await Promise.all([...groups.values()].map(createGroup));
}

/** Creates that another node heard and forwarded here: done here, or refused, but never forwarded again. */
export async function createForwarded(
  ports: CreatePorts,
  creates: readonly ForwardedCreate[],
  repeat: boolean,
): Promise<readonly Fate[]> {
  const fates = new Array<Fate>(creates.length);
  const groups = new Map<LaneKey, Item[]>();
  creates.forEach(({ txId, request }, index) => {
    const intent = hear(ports.intents, request, txId);
    if (intent instanceof FencepostError) fates[index] = intent;
    else push(groups, laneKey(intent.lane), { index, intent });
  });
  await Promise.all([...groups.values()].map((items) => createOnLane(ports, { items, fates, repeat })));
  return fates.map((fate) => (fate instanceof BetweenOwners ? fate.toPeer() : fate));
}

async function routeOrCreate(ports: CreatePorts, items: readonly Heard[], fates: Fate[]): Promise<void> {
  if (ports.router === null) return createOnLane(ports, { items, fates });
  const heard = (at: number): Heard => items[at] as Heard;
  const routed = await ports.router.run<Created>({
    lane: heard(0).intent.lane,
    items: items.length,
    repeatable: true,
    locally: async (which, repeat) => {
      const local = new Array<Fate>(which.length);
      const chosen = which.map((at, index) => ({ index, intent: heard(at).intent }));
      await createOnLane(ports, { items: chosen, fates: local, repeat });
      return local;
    },
    remotely: (url, which, telling) => {
      const creates = which.map((at) => {
        const { intent, request } = heard(at);
        // What is the only chain here may be one of several there.
        return { txId: intent.txId, request: { ...request, chainId: intent.lane.chainId } };
      });
      return ports.outbox.send(url, creates, telling);
    },
    unknown: (at) => unanswered(heard(at).intent),
  });
  items.forEach(({ index }, at) => {
    fates[index] = routed[at] as Fate;
  });
}

async function createOnLane(ports: CreatePorts, batch: Batch): Promise<void> {
  const { items, fates } = batch;
  try {
    const { lane } = (items[0] as Item).intent;
    const owned = await ports.lanes.own(lane);
    const admitted = admit(ports.admission, owned, batch);
    ports.admission.underWay += admitted.length;
    try {
      const work = () => createAdmitted(ports, owned, { ...batch, items: admitted });
      await counted(owned, admitted.length, work);
    } finally {
      ports.admission.underWay -= admitted.length;
    }
  } catch (error) {
    for (const { index, intent } of items) fates[index] ??= failure(error, intent);
  }
}

/** While creates are under way, the lane is not let go, and what comes after them is prepared as what stands behind them. */
async function counted<T>(lane: OwnedLane, creates: number, work: () => Promise<T>): Promise<T> {
  lane.creating += creates;
  try {
    return await work();
  } finally {
    lane.creating -= creates;
  }
}

/** Lets in what the queues have room for; the rest is told to come back. */
function admit(admission: Admission, lane: OwnedLane, batch: Batch): readonly Item[] {
  const { items, fates } = batch;
  const room = Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay);
  for (const { index } of items.slice(Math.max(0, room))) fates[index] = queueFull();
  return items.slice(0, Math.max(0, room));
}

async function createAdmitted(ports: CreatePorts, lane: OwnedLane, batch: Batch): Promise<void> {
  const { fates } = batch;
  const items = batch.repeat === true ? await answerRepeated(ports, batch) : batch.items;
  const unseen = await preCheck(ports, lane, { ...batch, items });
  const prepared = await prepareAll(ports, lane, { items: unseen, fates });
  if (prepared.length === 0) return;
  await ports.failpoint("create.prepared");
  const mayExist = batch.repeat ?? false;
  const transactions = prepared.map(({ intent }) => (mayExist ? { intent, mayExist } : { intent }));
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const allocateOn = (owned: OwnedLane) => allocate(ports, context, { lane: owned, items: transactions });
  // A lane lost while its creates waited is acquired once more; nothing had been consumed.
  const allocated = await underNextTerm(ports.lanes, lane, (owned) =>
    owned === lane ? allocateOn(owned) : counted(owned, transactions.length, () => allocateOn(owned)),
  );
  allocated.forEach((fate, at) => {
    const { index, intent } = prepared[at] as Item;
    fates[index] = answer(fate, intent);
  });
}

/** Answers what an earlier telling of the same creates has made, and returns the rest. */
async function answerRepeated(ports: CreatePorts, { items, fates }: Batch): Promise<readonly Item[]> {
  const found = await Promise.all(items.map(({ intent }) => ports.store.transaction(intent.txId)));
  return items.filter(({ index, intent }, at) => {
    const record = found[at] ?? null;
    if (record === null) return true;
    const { txId, lane, requestId } = intent;
    fates[index] = { outcome: "created", txId, lane, requestId, nonce: record.nonce, state: record.state };
    return false;
  });
}

/**
 * The idempotency check before preparation spares the chain questions about what exists already. Where none would be
 * asked it spares nothing: the check that binds is stage 2's, under the lane's lock. But nobody overtakes those who are
 * being checked.
 */
async function preCheck(ports: CreatePorts, lane: OwnedLane, { items, fates }: Batch): Promise<readonly Item[]> {
  const behindOthers = lane.hasUnminedBefore(items.length);
  const costly = items.some(({ intent }, at) => asksChain(intent, { behindPending: at > 0 || behindOthers }));
  return costly || ports.requestIds.isAsking(lane.lane) ? answerExisting(ports, items, fates) : items;
}

/** Answers what is known by request id, and returns the rest. */
async function answerExisting(ports: CreatePorts, items: readonly Item[], fates: Fate[]): Promise<readonly Item[]> {
  const named = items.filter(({ intent }) => intent.requestId !== null);
  if (named.length === 0) return items;
  const ids = named.map(({ intent }) => intent.requestId as string);
  const existing = await ports.requestIds.find((named[0] as Item).intent.lane, ids);
  return items.filter(({ index, intent }) => {
    const found = intent.requestId === null ? undefined : existing.get(intent.requestId);
    if (found !== undefined) fates[index] = answerWith(found, found.fingerprint === intent.fingerprint);
    return found === undefined;
  });
}

async function prepareAll(ports: CreatePorts, lane: OwnedLane, batch: Batch): Promise<readonly Prepared[]> {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const behindOthers = lane.hasUnminedBefore(batch.items.length);
  const laneKnown = lane.cursor !== null;
  const refused: Item[] = [];
  const refuse = ({ index, intent }: Item, error: unknown): null => {
    batch.fates[index] = failure(error, intent);
    refused.push({ index, intent });
    return null;
  };
  const prepared = batch.items.map((item, position): Prepared | null | Promise<Prepared | null> => {
    const { index, intent } = item;
    const behindPending = position > 0 || behindOthers;
    try {
      const unasked = prepareUnasked(context, intent, { behindPending });
      if (unasked !== null) return { index, intent: unasked };
    } catch (error) {
      return refuse(item, error);
    }
    return prepare(context, intent, { behindPending, laneKnown }).then(
      (intent) => ({ index, intent }),
      (error) => refuse(item, error),
    );
  });
  const settled = await Promise.all(prepared);
  // A repeat may have been accepted while this one was being refused: an existing transaction wins.
  if (refused.length > 0) await answerExisting(ports, refused, batch.fates);
  return settled.filter((item) => item !== null);
}

const HELD =
  "the database's history changed; this signer waits to be compared with the chain, or for an operator to resume it; nothing was accepted";

function answer(fate: AllocateFate, intent: Intent): Fate {
  const { txId, lane, requestId } = intent;
  switch (fate.fate) {
    case "created":
      return { outcome: "created", txId, lane, requestId, nonce: fate.nonce, state: "ALLOCATED" };
    case "duplicate":
      // Its own id: created by an earlier telling of this very request.
      if (fate.existing.txId === txId)
        return { outcome: "created", txId, lane, requestId, nonce: fate.existing.nonce, state: fate.existing.state };
      return answerWith(fate.existing, fate.samePayload);
    case "noCursor":
      return unavailable("this signer's nonce is not known yet; nothing was accepted");
    case "held":
      return unavailable(HELD);
    case "refused":
      return new FencepostError("INVALID_REQUEST", `the database cannot store this request: ${fate.detail}`);
  }
}

function answerWith(existing: ExistingTransaction, samePayload: boolean): Fate {
  const { txId, lane, requestId, nonce, state } = existing;
  if (samePayload) return { outcome: "existing", txId, lane, requestId, nonce, state };
  return new FencepostError("REQUEST_ID_REUSED", `request id ${requestId} belongs to ${txId}, whose payload differs`, {
    txId,
  });
}

function failure(error: unknown, intent: Intent): FencepostError {
  if (error instanceof FencepostError) return error;
  if (error instanceof OutcomeUnknown) {
    return outcomeUnknown(
      "the database did not say whether it accepted this; ask for the transaction, or repeat with the same request id",
      { txId: intent.txId, cause: error },
    );
  }
  return new DatabaseSilent("nothing was accepted", error);
}

/** The owner may have created it: whoever asks for the transaction, or repeats the request id, finds it. */
function unanswered({ txId }: Intent): FencepostError {
  const detail = "the node that acts for this signer did not answer; ask for the transaction, or repeat the request id";
  return outcomeUnknown(detail, { txId });
}

function push<K, V>(groups: Map<K, V[]>, key: K, value: V): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}

function labelOf(fate: Fate): CreateResultLabel {
  if (!(fate instanceof FencepostError)) return fate.outcome === "created" ? "created" : "duplicate";
  switch (fate.code) {
    case "REQUEST_ID_REUSED":
      return "reused";
    case "QUEUE_FULL":
      return "queueFull";
    case "NOT_LEADER":
      return "notLeader";
    case "UNAVAILABLE":
      return fate.extras.outcome === "unknown" ? "unknown" : "unavailable";
    case "INVALID_REQUEST":
      return "invalid";
    default:
      return "rejected";
  }
}
