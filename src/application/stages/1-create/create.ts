/**
 * Stage 1: takes requests in and answers each with its own fate.
 *
 * Road: normalise → own the lane → idempotency pre-check → prepare → allocate (stage 2) → answer. Reads: the chain and
 * existing request ids. Writes: nothing itself. Invariants: I4, I5; a queue that is full says so before anything is
 * consumed. A crash before stage 2 commits leaves nothing; after it, the caller's repeat finds the transaction by its
 * request id.
 */
import { FencepostError, unavailable } from "../../../domain/errors.ts";
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { Intent, PreparedIntent } from "../../../domain/transaction.ts";
import { type AllocateFate, type ExistingTransaction, OutcomeUnknown } from "../../../ports/lane-store.ts";
import type { CreateResultLabel } from "../../../ports/telemetry.ts";
import type { Created, CreateRequest } from "../../api.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { type AllocatePorts, allocate } from "../2-allocate/allocate.ts";
import { type NormalisePorts, normalise } from "./normalise.ts";
import { asksChain, prepare } from "./prepare.ts";
import type { RequestIds } from "./request-ids.ts";

export interface CreatePorts extends AllocatePorts {
  readonly intents: NormalisePorts;
  readonly requestIds: RequestIds;
  readonly lanes: { own(lane: Intent["lane"]): Promise<OwnedLane> };
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly admission: Admission;
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

/** Items of one lane, and where the fates of all requests are noted. */
interface Batch {
  readonly items: readonly Item[];
  readonly fates: Fate[];
}

export async function create(ports: CreatePorts, requests: readonly CreateRequest[]): Promise<readonly Fate[]> {
  const startedMs = ports.clock.monotonicMs();
  const fates = new Array<Fate>(requests.length);
  const groups = new Map<LaneKey, Item[]>();
  requests.forEach((request, index) => {
    const intent = attempt(() => normalise(ports.intents, request));
    if (intent instanceof FencepostError) fates[index] = intent;
    else push(groups, laneKey(intent.lane), { index, intent });
  });
  await Promise.all([...groups.values()].map((items) => createOnLane(ports, items, fates)));
  const durationMs = ports.clock.monotonicMs() - startedMs;
  for (const fate of fates) ports.telemetry.emit({ type: "create.answered", result: labelOf(fate), durationMs });
  return fates;
}

async function createOnLane(ports: CreatePorts, items: readonly Item[], fates: Fate[]): Promise<void> {
  try {
    const { lane } = (items[0] as Item).intent;
    const owned = await ports.lanes.own(lane);
    const admitted = admit(ports.admission, owned, { items, fates });
    owned.creating += admitted.length;
    ports.admission.underWay += admitted.length;
    try {
      await createAdmitted(ports, owned, { items: admitted, fates });
    } finally {
      owned.creating -= admitted.length;
      ports.admission.underWay -= admitted.length;
    }
  } catch (error) {
    for (const { index, intent } of items) fates[index] ??= failure(error, intent);
  }
}

/** Lets in what the queues have room for; the rest is told to come back. */
function admit(admission: Admission, lane: OwnedLane, batch: Batch): readonly Item[] {
  const { items, fates } = batch;
  const room = Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay);
  for (const { index } of items.slice(Math.max(0, room))) {
    fates[index] = new FencepostError("QUEUE_FULL", "too many creates are waiting; nothing was accepted", {
      retryAfterSeconds: 1,
    });
  }
  return items.slice(0, Math.max(0, room));
}

async function createAdmitted(ports: CreatePorts, lane: OwnedLane, batch: Batch): Promise<void> {
  const { fates } = batch;
  const unseen = await preCheck(ports, lane, batch);
  const prepared = await prepareAll(ports, lane, { items: unseen, fates });
  if (prepared.length === 0) return;
  await ports.failpoint("create.prepared");
  const allocated = await allocateOrReroute(ports, lane, prepared);
  allocated.forEach((fate, at) => {
    const { index, intent } = prepared[at] as Item;
    fates[index] = answer(fate, intent);
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

async function prepareAll(
  ports: CreatePorts,
  lane: OwnedLane,
  batch: Batch,
): Promise<readonly (Item & { readonly intent: PreparedIntent })[]> {
  const refused: Item[] = [];
  const prepared = await Promise.all(
    batch.items.map(async ({ index, intent }, position) => {
      try {
        const context = ports.chains.get(intent.lane.chainId) as ChainContext;
        const behindPending = position > 0 || lane.hasUnminedBefore(batch.items.length);
        return { index, intent: await prepare(context, intent, { behindPending, laneKnown: lane.cursor !== null }) };
      } catch (error) {
        batch.fates[index] = failure(error, intent);
        refused.push({ index, intent });
        return null;
      }
    }),
  );
  // A repeat may have been accepted while this one was being refused: an existing transaction wins.
  if (refused.length > 0) await answerExisting(ports, refused, batch.fates);
  return prepared.filter((item) => item !== null);
}

/** A lane lost while its creates waited is acquired once more; nothing had been consumed. */
async function allocateOrReroute(
  ports: CreatePorts,
  lane: OwnedLane,
  items: readonly { readonly intent: PreparedIntent }[],
): Promise<readonly AllocateFate[]> {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const transactions = items.map(({ intent }) => ({ intent }));
  const first = await allocate(ports, context, { lane, items: transactions });
  if (first !== "fenced") return first;
  const again = await ports.lanes.own(lane.lane);
  const second = await allocate(ports, context, { lane: again, items: transactions });
  if (second !== "fenced") return second;
  throw new FencepostError("NOT_LEADER", "another node took this signer over", {
    retryAfterSeconds: 1,
    ownerUrl: null,
  });
}

function answer(fate: AllocateFate, intent: Intent): Fate {
  const { txId, lane, requestId } = intent;
  switch (fate.fate) {
    case "created":
      return { outcome: "created", txId, lane, requestId, nonce: fate.nonce, state: "ALLOCATED" };
    case "duplicate":
      return answerWith(fate.existing, fate.samePayload);
    case "noCursor":
      return unavailable("this signer's nonce is not known yet; nothing was accepted");
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
    return new FencepostError(
      "UNAVAILABLE",
      "the database did not say whether it accepted this; ask for the transaction, or repeat with the same request id",
      { txId: intent.txId, outcome: "unknown", retryAfterSeconds: 1, cause: error },
    );
  }
  return unavailable("the database does not answer; nothing was accepted", error);
}

function attempt<T>(work: () => T): T | FencepostError {
  try {
    return work();
  } catch (error) {
    if (error instanceof FencepostError) return error;
    throw error;
  }
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
