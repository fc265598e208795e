/**
 * Stage 1: takes requests in and answers each with its own fate.
 *
 * Road: normalise → own the lane → idempotency pre-check → prepare → allocate (stage 2) → answer. Reads: the chain and
 * existing request ids. Writes: nothing itself. Invariants: I4, I5; a queue that is full says so before anything is
 * consumed. A crash before stage 2 commits leaves nothing; after it, the caller's repeat finds the transaction by its
 * request id.
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
import { laneKey } from "../../../domain/lane.ts";
import { spentRequestId } from "../../../domain/principal.ts";
import type { Intent, PreparedIntent } from "../../../domain/transaction.ts";
import type { AllocateFate, LaneStore } from "../../../ports/lane-store.ts";
import type { ForwardedCreate } from "../../../ports/peers.ts";
import type { QueryStore } from "../../../ports/query-store.ts";
import type { CreateResultLabel } from "../../../ports/telemetry.ts";
import type { Created, CreateRequest } from "../../api.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { Outbox } from "../../cluster/outbox.ts";
import type { Router } from "../../cluster/route.ts";
import { BetweenOwners, underNextTerm } from "../../lane/between-owners.ts";
import type { LaneWriterPorts } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { hear, type Naming, type NormalisePorts } from "../../requests/normalise.ts";
import { failureOf, unstorable } from "../../requests/unanswered.ts";
import { WORTH_A_COMMIT } from "../../writer/batch.ts";
import { allocate } from "../2-allocate/allocate.ts";
import { answerExisting, answerWith, type Fate, type Item } from "./answer-existing.ts";
import { Gathering } from "./gather.ts";
import { withNamedRevert } from "./named-revert.ts";
import { asksChain, isComplete, prepare, prepareUnasked } from "./prepare.ts";
import { type Entering, enterShares, hasShares } from "./queue-shares.ts";
import { leaveUntaken, type UntakenPorts } from "./untaken.ts";

export interface CreatePorts extends LaneWriterPorts, UntakenPorts {
  readonly intents: NormalisePorts;
  readonly store: Pick<QueryStore, "transaction"> & Pick<LaneStore, "openOf">;
  readonly lanes: { own(lane: Intent["lane"]): Promise<OwnedLane> };
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly admission: Admission;
  /** Takes creates to the lane's owner; null: what this node cannot do itself is refused with the owner's name. */
  readonly router: Pick<Router, "run"> | null;
  readonly outbox: Pick<Outbox, "send">;
}

/** Bounded queues: how many creates may be under way on one lane, and on the node. */
export interface Admission {
  readonly perLane: number;
  readonly perNode: number;
  underWay: number;
}

/** As it was asked for; `txId` where another node heard it first. */
export interface Told extends Naming {
  readonly request: CreateRequest;
  /** As another node told of it, which was shown the key. */
  readonly queueShare?: number;
  /** Where it was heard before it was told here, and may have its answer: it names a pool (pools.ts). */
  readonly heard?: Intent | Fate;
}

/** A peer has creates done here, or refused, but never told to a third node. */
export type Teller = "caller" | { readonly repeat: boolean };

/** With the words it was asked in, which another node may have to hear too. */
interface Heard extends Entering {
  /** Among all that were told. */
  readonly place: number;
  readonly request: CreateRequest;
}

interface Prepared extends Item {
  readonly intent: PreparedIntent;
}

/** Items of one lane, and where their fates are noted. */
interface Batch {
  readonly items: readonly Item[];
  readonly fates: Fate[];
}

/** The one entrance of creates: single ones and batches, of callers and of other nodes. */
export class Creates {
  private readonly ports: CreatePorts;
  private readonly gathering: Gathering<Heard, Fate>;

  constructor(ports: CreatePorts) {
    this.ports = ports;
    const together = (heard: readonly Heard[], tell: Tell) => this.byLane(heard, tell, "caller");
    this.gathering = new Gathering(ports.clock, together, WORTH_A_COMMIT);
  }

  /** One fate for each, in order. */
  async create(told: readonly Told[], by: Teller = "caller"): Promise<readonly Fate[]> {
    const { clock, intents, telemetry } = this.ports;
    const startedMs = clock.monotonicMs();
    const fates = new Array<Fate>(told.length);
    const heard: Heard[] = [];
    told.forEach((each, place) => {
      const { request } = each;
      const intent = each.heard ?? hear(intents, request, each);
      if (intent instanceof FencepostError || "outcome" in intent) fates[place] = intent;
      else heard.push({ place, intent, request, queueShare: each.limits?.queueShare ?? each.queueShare ?? null });
    });
    const tell: Tell = (at, fate) => {
      const { place, request } = heard[at] as Heard;
      fates[place] = withNamedRevert(intents.codec, request, fate);
    };
    const [single] = told.length === 1 && by === "caller" ? heard : [];
    // A create that must ask the chain may wait for it long: it does not join others, which would wait with it.
    if (single !== undefined && isComplete(single.intent)) tell(0, await this.gathering.add(single));
    else await this.byLane(heard, tell, by);
    if (by !== "caller") return fates.map((fate) => (fate instanceof BetweenOwners ? fate.toPeer() : fate));
    const durationMs = clock.monotonicMs() - startedMs;
    for (const fate of fates) telemetry.emit({ type: "create.answered", result: labelOf(fate), durationMs });
    return fates;
  }

  /** Each is told its fate as soon as its own lane has it: one that waits keeps no other waiting. */
  private async byLane(heard: readonly Heard[], tell: Tell, by: Teller): Promise<void> {
    const places = heard.map(({ intent }, at) => ({ at, key: laneKey(intent.lane) }));
    const createGroup = async (group: Readonly<typeof places>): Promise<void> => {
      const own = group.map(({ at }) => heard[at] as Heard);
      const fates = await this.onOneLane(own, by);
      group.forEach(({ at }, index) => void tell(at, fates[index] as Fate));
    };
    await Promise.all([...grouped(places, ({ key }) => key).values()].map(createGroup));
  }

  private async onOneLane(heard: readonly Heard[], by: Teller): Promise<readonly Fate[]> {
    if (by !== "caller") return createOnLane(this.ports, heard, by.repeat);
    const untaken = heard.map((each) => ({ ...each, forwarded: () => forwardedAs(each) }));
    return leaveUntaken(this.ports, untaken, await this.byOwner(heard));
  }

  /** Here, or by the lane's owner. */
  private byOwner(heard: readonly Heard[]): Promise<readonly Fate[]> {
    const { ports } = this;
    if (ports.router === null) return createOnLane(ports, heard, false);
    const heardAt = (at: number): Heard => heard[at] as Heard;
    return ports.router.run<Created>({
      lane: heardAt(0).intent.lane,
      items: heard.length,
      repeatable: true,
      locally: (which, repeat) => createOnLane(ports, which.map(heardAt), repeat),
      remotely: (url, which, telling) => {
        const creates = which.map((at) => forwardedAs(heardAt(at)));
        return ports.outbox.send(url, creates, telling);
      },
      unknown: (at) => unanswered(heardAt(at).intent),
    });
  }
}

type Tell = (at: number, fate: Fate) => void;

/** As another node is told of it. What is the only chain here may be one of several there. */
function forwardedAs({ intent, request, queueShare }: Heard): ForwardedCreate {
  const { txId, owner, lane, pool } = intent;
  const told = { txId, owner, request: { ...request, chainId: lane.chainId } };
  const chosen = pool === undefined ? {} : { chosen: lane.signer };
  return { ...told, ...chosen, ...(queueShare === null ? {} : { queueShare }) };
}

/** `repeat`: another node may have created them already, unheard; so they are looked for by their ids first. */
async function createOnLane(
  ports: CreatePorts,
  entering: readonly Entering[],
  repeat: boolean,
): Promise<readonly Fate[]> {
  const { lanes, admission } = ports;
  const fates = new Array<Fate>(entering.length);
  const items = entering.map(({ intent }, index) => ({ index, intent }));
  try {
    const lane = await lanes.own((entering[0] as Entering).intent.lane);
    const visit = hasShares(entering) ? await enterShares(ports, lane, entering) : null;
    const refused = visit === null ? [] : items.filter(({ index }) => visit.refused.has(index));
    for (const { index } of refused) fates[index] = visit?.refused.get(index) as FencepostError;
    const within = refused.length === 0 ? items : items.filter(({ index }) => fates[index] === undefined);
    const admitted = admit(admission, lane, { items: within, fates });
    admission.underWay += admitted.length;
    try {
      const work = () => createAdmitted(ports, lane, { items: admitted, fates, repeat });
      await counted(lane, admitted.length, work);
    } finally {
      admission.underWay -= admitted.length;
      visit?.leave(({ txId }, index) => isMade(fates[index], txId));
    }
    // A repeat of what was taken takes no more of the queue.
    if (refused.length > 0) await answerExisting(ports, refused, fates);
  } catch (error) {
    for (const { index, intent } of items) fates[index] ??= failureOf(error, intent.txId);
  }
  return fates;
}

/** What waits for approval stands in no queue: it enters one with its nonce. */
function isMade(fate: Fate | undefined, txId: string): boolean {
  return fate !== undefined && !(fate instanceof FencepostError) && fate.txId === txId && fate.nonce !== null;
}

/** While creates are under way, the lane is not let go, and what comes after them is prepared as what stands behind them. */
async function counted<T>(lane: OwnedLane, creates: number, work: () => Promise<T>): Promise<T> {
  lane.count("creating", creates);
  try {
    return await work();
  } finally {
    lane.count("creating", -creates);
  }
}

/** Lets in what the queues have room for; the rest is told to come back. */
function admit(admission: Admission, lane: OwnedLane, batch: Batch): readonly Item[] {
  const { items, fates } = batch;
  const room = Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay);
  for (const { index } of items.slice(Math.max(0, room))) fates[index] = queueFull();
  return items.slice(0, Math.max(0, room));
}

async function createAdmitted(
  ports: CreatePorts,
  lane: OwnedLane,
  batch: Batch & { readonly repeat: boolean },
): Promise<void> {
  const { fates, repeat: mayExist } = batch;
  const items = mayExist ? await answerRepeated(ports, batch) : batch.items;
  const unseen = await preCheck(ports, lane, { items, fates });
  const prepared = await prepareAll(ports, lane, { items: unseen, fates });
  if (prepared.length === 0) return;
  await ports.failpoint("create.prepared");
  const transactions = prepared.map(({ intent }) => (mayExist ? { intent, mayExist } : { intent }));
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const allocateOn = (owned: OwnedLane) => allocate(ports, context, owned, transactions);
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
    fates[index] = createdAs(intent, record);
    return false;
  });
}

/**
 * The idempotency check before preparation spares the chain questions about what exists already. Where none would be
 * asked it spares nothing: the check that binds is stage 2's, under the lane's lock. But no create overtakes
 * one of its lane that is being checked.
 */
async function preCheck(ports: CreatePorts, lane: OwnedLane, { items, fates }: Batch): Promise<readonly Item[]> {
  const behindOthers = lane.hasUnminedBefore(items.length);
  const costly = items.some(({ intent }, at) => asksChain(intent, { behindPending: at > 0 || behindOthers }));
  return costly || ports.requestIds.isAsking(lane.lane) ? answerExisting(ports, items, fates) : items;
}

async function prepareAll(ports: CreatePorts, lane: OwnedLane, batch: Batch): Promise<readonly Prepared[]> {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const behindOthers = lane.hasUnminedBefore(batch.items.length);
  const laneKnown = lane.cursor !== null;
  const refused: Item[] = [];
  const refuse = ({ index, intent }: Item, error: unknown): null => {
    batch.fates[index] = failureOf(error, intent.txId);
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

const UNREADABLE = "this node cannot read the policy document in force, and gives no nonce by it; nothing was accepted";

function answer(fate: AllocateFate, intent: Intent): Fate {
  switch (fate.fate) {
    case "created":
      return createdAs(intent, { nonce: fate.nonce, state: "ALLOCATED" });
    case "duplicate":
      // Its own id: created by an earlier telling of this very request.
      if (fate.existing.txId === intent.txId) return createdAs(intent, fate.existing);
      return answerWith(fate.existing, intent, fate.samePayload);
    case "spent":
      return spentRequestId(intent.requestId);
    case "awaiting":
      return createdAs(intent, { nonce: null, state: "CREATED" });
    case "otherNonce":
      return otherNonce(intent.exactNonce, fate.next);
    case "noCursor":
      return unavailable("this signer's nonce is not known yet; nothing was accepted");
    case "held":
      return unavailable(fate.unreadable === true ? UNREADABLE : HELD);
    case "expired":
      return tooLate();
    case "forbidden":
      return forbiddenBy(fate);
    case "refused":
      return unstorable();
  }
}

function createdAs({ txId, lane, requestId }: Intent, { nonce, state }: Pick<Created, "nonce" | "state">): Created {
  return { outcome: "created", txId, lane, requestId, nonce, state };
}

/** The owner may have created it: its caller finds it by asking for the transaction, or by repeating the request id. */
function unanswered({ txId }: Intent): FencepostError {
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

function labelOf(fate: Fate): CreateResultLabel {
  if (!(fate instanceof FencepostError)) return fate.outcome === "created" ? "created" : "duplicate";
  return fate.extras.outcome === "unknown" ? "unknown" : (LABELS[fate.code] ?? "rejected");
}
