import { isDeepStrictEqual } from "node:util";
import { MOST_SUBSCRIBERS, type Subscriber } from "../../../src/domain/webhooks/subscriber.ts";
import { InstanceOver } from "../../../src/ports/lease-store.ts";
import type {
  ClaimedSubscriber,
  NewSubscriber,
  SeenSubscriber,
  StoredProgress,
  SubscriberChange,
  SubscriberDecision,
  SubscriberRecord,
} from "../../../src/ports/subscriber-store.ts";
import { type DatabaseState, isAlive } from "./state.ts";

export interface SubscriberEntry {
  readonly subscriber: Subscriber;
  readonly done: readonly number[];
  readonly owner: string | null;
  readonly token: number;
}

export function listSubscribers(state: DatabaseState, readAt: Date): readonly SubscriberRecord[] {
  const all = [...state.subscribers.values()].sort((a, b) => (a.subscriber.name < b.subscriber.name ? -1 : 1));
  return all.map(({ subscriber, owner, token }) => {
    const row = state.instances.get(owner ?? "");
    const { position } = subscriber;
    const behindSince = state.completions.find(({ seq }) => seq > position)?.at ?? null;
    return {
      ...subscriber,
      ...{ token, readAt, behindSince, behind: behind(state, position) },
      owner: row === undefined || row.dead ? null : { instanceId: row.instanceId, nodeId: row.nodeId },
    };
  });
}

/** The numbers that a new epoch left out are no backlog. */
function behind({ feed: { lastSeq, epochStartsAfter }, completions }: DatabaseState, position: number): number {
  const last = completions.findLast(({ seq }) => seq <= epochStartsAfter)?.seq ?? 0;
  const unused = position < epochStartsAfter ? epochStartsAfter - Math.max(position, last) : 0;
  return Math.max(0, lastSeq - position) - unused;
}

export function addSubscriber(
  state: DatabaseState,
  { after, ...given }: NewSubscriber,
  { actor, now }: { readonly actor: string; readonly now: Date },
): "added" | "taken" | "full" {
  if (state.subscribers.size >= MOST_SUBSCRIBERS) return "full";
  if ([...state.subscribers.values()].some(({ subscriber }) => subscriber.name === given.name)) return "taken";
  const { epoch, lastSeq } = state.feed;
  const subscriber: Subscriber = {
    ...given,
    ...{ generation: 1, rotatedUntil: null, paused: null, position: after ?? lastSeq, epoch },
    ...{ failingSince: null, lastAnswer: null, nextTryAt: null, deliveredAt: null },
    ...{ createdAt: now, changedBy: actor, changedAt: now },
  };
  state.subscribers.set(given.subscriberId, { subscriber, done: [], owner: null, token: 0 });
  return "added";
}

export function changeSubscriber(state: DatabaseState, decision: SubscriberDecision, now: Date): boolean {
  const { seen, change, actor: changedBy } = decision;
  const entry = asSeen(state, seen);
  if (entry === undefined) return false;
  if (change.action === "rotate" && change.generation !== entry.subscriber.generation) return false;
  const changed = changes(entry, { ...decision, now });
  const subscriber = { ...entry.subscriber, ...changed.subscriber, changedBy, changedAt: now };
  state.subscribers.set(seen.subscriberId, { ...entry, ...changed, subscriber, token: entry.token + 1 });
  return true;
}

export function removeSubscriber(state: DatabaseState, seen: SeenSubscriber): boolean {
  return asSeen(state, seen) !== undefined && state.subscribers.delete(seen.subscriberId);
}

/** The subscriber, if it still has the filter that was seen. */
function asSeen(state: DatabaseState, { subscriberId, filter }: SeenSubscriber): SubscriberEntry | undefined {
  const entry = state.subscribers.get(subscriberId);
  return entry !== undefined && isDeepStrictEqual(entry.subscriber.filter, filter) ? entry : undefined;
}

type Changes = Partial<Omit<SubscriberEntry, "subscriber">> & { readonly subscriber?: Partial<Subscriber> };

function changes(
  { subscriber }: SubscriberEntry,
  {
    change,
    reason,
    now,
  }: Pick<SubscriberDecision, "reason"> & { readonly change: SubscriberChange; readonly now: Date },
): Changes {
  const untroubled = { failingSince: null, nextTryAt: null };
  switch (change.action) {
    case "pause": {
      const paused = { by: "OPERATOR", why: reason ?? "no reason was given", at: now } as const;
      return { owner: null, subscriber: { paused: subscriber.paused ?? paused } };
    }
    case "resume":
      return { subscriber: { paused: null, ...untroubled } };
    case "replay":
      return { done: [], subscriber: { position: change.after, ...untroubled } };
    case "rotate": {
      const rotatedUntil = new Date(now.getTime() + change.overlapMs);
      return { subscriber: { generation: change.generation + 1, secretId: change.secretId, rotatedUntil } };
    }
    default: {
      const { action: _, ...given } = change;
      return { subscriber: given };
    }
  }
}

export function claimSubscribers(
  state: DatabaseState,
  { subscriberIds, instanceId }: { readonly subscriberIds: readonly string[]; readonly instanceId: string },
  now: Date,
): readonly ClaimedSubscriber[] {
  if (subscriberIds.length === 0) return [];
  if (!isAlive(state.instances.get(instanceId), now)) throw new InstanceOver(instanceId);
  return [...subscriberIds].sort().flatMap((subscriberId) => {
    const entry = state.subscribers.get(subscriberId);
    if (entry === undefined || entry.subscriber.paused !== null) return [];
    const isKept = entry.owner === instanceId;
    const isFree = entry.owner === null || state.instances.get(entry.owner)?.dead !== false;
    if (!isKept && !isFree) return [];
    const held = isKept ? entry : { ...entry, owner: instanceId, token: entry.token + 1 };
    state.subscribers.set(subscriberId, held);
    return { subscriber: held.subscriber, term: { subscriberId, instanceId, token: held.token }, done: held.done };
  });
}

export function writeDeliveries(
  state: DatabaseState,
  { progress, instanceId }: { readonly progress: readonly StoredProgress[]; readonly instanceId: string },
  now: Date,
): ReadonlySet<string> {
  const written = new Set<string>();
  for (const { term, done, paused, ...rest } of progress) {
    const entry = state.subscribers.get(term.subscriberId);
    if (entry === undefined || entry.owner !== instanceId || entry.token !== term.token) continue;
    if (!isAlive(state.instances.get(instanceId), now)) continue;
    const subscriber = { ...entry.subscriber, ...rest, paused: paused && { ...paused, at: now } };
    state.subscribers.set(term.subscriberId, {
      ...entry,
      subscriber,
      done,
      owner: paused === null ? instanceId : null,
    });
    written.add(term.subscriberId);
  }
  return written;
}
