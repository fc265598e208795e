import { DatabaseClock } from "../../../src/application/database-clock.ts";
import { type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import type { ReceiverAnswer } from "../../../src/domain/webhooks/receiver-answers.ts";
import type { OutcomeFilter } from "../../../src/domain/webhooks/subscriber.ts";
import type { CompletionRecord } from "../../../src/ports/query-store.ts";
import type { ClaimedSubscriber } from "../../../src/ports/subscriber-store.ts";
import type { WebhookMessage } from "../../../src/ports/webhook-sender.ts";
import type { SubscriberEntry } from "../../doubles/memory-store/subscribers.ts";
import type { World, WorldNode } from "../world.ts";
import { CLERKS } from "./subscribers.ts";
import { WatchedMap } from "./watched-map.ts";

/** Shortest pause before a failed delivery is tried again. */
const SHORTEST_PAUSE_MS = 500;
const MOST_AT_ONCE = 64;
/** Time in ms after which a node must have noticed that its term for a subscriber is over. */
const NOTICED_MS = 15_000;

/** One request on its way to a receiver. */
interface Delivery {
  readonly run: Run | null;
  readonly message: WebhookMessage;
}

interface LastOfLane {
  readonly seq: number;
  readonly state: "under way" | "failed" | "delivered";
  readonly atMs: number;
}

/** Deliveries of one node for one subscriber, under one term. */
interface Run {
  readonly claimed: ClaimedSubscriber;
  /** What was stored as delivered when the run began, and the epoch that the receiver knows. */
  position: number;
  done: ReadonlySet<number>;
  epoch: number;
  readonly lanes: Map<LaneKey, LastOfLane>;
  /** Outcomes that the receiver took from this run. A replay does not take them back: it begins another run. */
  readonly taken: Set<number>;
  underWay: number;
  limit: number;
  /** The largest limit of an instant. Of answers that arrive at once, the node may read any one first. */
  most: { readonly atMs: number; readonly limit: number };
  notBeforeMs: number;
  deliveredAtMs: number;
  isGone: boolean;
}

interface Watched {
  /** Outcomes that the receiver took, as the node learned, since the last replay. */
  readonly taken: Set<number>;
  /** Ids under which outcomes and events about the feed were delivered. */
  readonly ids: Map<string, string>;
  /** Positions to which somebody asked to go back. */
  readonly replays: Set<number>;
  /** All filters that the subscriber has had, the newest last. */
  readonly filters: OutcomeFilter[];
  isGone: boolean;
  endedAtMs: number;
}

/**
 * Checks every delivery when it begins, and every change of a subscriber's row: nothing that is stored as delivered is
 * missing, order per lane, stable ids, only wanted outcomes, pauses, and positions that go back only if asked to.
 */
export class DeliveryWatch {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  private readonly world: World;
  private readonly runs = new Map<string, Run>();
  private readonly watched = new Map<string, Watched>();
  /** The clock of each node, by its URL. */
  private readonly clocks = new Map<string, DatabaseClock>();

  constructor(world: World) {
    this.world = world;
    const { state } = world.database;
    state.subscribers = new WatchedMap(state.subscribers, (id, before, after) => this.changed(id, before, after));
  }

  /** Follows the terms that this node gets, and its clock. */
  follow({ store, url, peers }: WorldNode): void {
    const nodeClock = new DatabaseClock(this.world.clock);
    this.clocks.set(url, nodeClock);
    const know = peers.know.bind(peers);
    // A node reads the time from the list of instances, and at once passes the list on to its connections to peers.
    peers.know = (instances) => {
      if (instances[0] !== undefined) nodeClock.observe(instances[0].readAt);
      know(instances);
    };
    const claim = store.claimSubscribers.bind(store);
    store.claimSubscribers = async (...asked) => {
      const claimed = await claim(...asked);
      for (const each of claimed) this.runs.set(`${url} ${each.term.subscriberId}`, this.runOf(each));
      return claimed;
    };
  }

  /** Call this before a request to replay may be carried out. */
  mayReplay(subscriberId: string, after: number): void {
    this.of(subscriberId).replays.add(after);
  }

  /** All filters that the subscriber has had, the newest last. */
  filtersOf(subscriberId: string): readonly OutcomeFilter[] {
    return this.of(subscriberId).filters;
  }

  begun(node: WorldNode, message: WebhookMessage): Delivery {
    if (message.event.kind === "test") return { run: null, message };
    const run = this.runs.get(`${node.url} ${message.subscriberId}`);
    if (run === undefined) {
      this.violations.push(`${node.url} delivers ${message.eventId} without a term`);
      return { run: null, message };
    }
    const why = this.forbidden(node, run, message) ?? this.misplaced(run, message);
    if (why !== null) this.violations.push(`${node.url} delivers ${message.eventId}: ${why}`);
    run.underWay++;
    const { event } = message;
    if (event.kind === "completion") this.noteLane(run, event.completion, "under way");
    return { run, message };
  }

  answered({ run, message }: Delivery, answer: ReceiverAnswer): void {
    const { event } = message;
    if (run === null) this.count("webhook tested");
    if (run === null) return;
    run.underWay--;
    const code = answer.kind === "status" ? answer.status : null;
    const isTaken = code !== null && code >= 200 && code < 300;
    if (event.kind === "completion") this.noteLane(run, event.completion, isTaken ? "delivered" : "failed");
    if (isTaken) this.noteTaken(run, message);
    else this.noteFailure(run, answer, code);
  }

  /** Subscribers that are not at the end of the feed, for a simulation that is not over yet. */
  behind(): readonly string[] {
    const { subscribers, completions, feed } = this.world.database.state;
    const last = completions.at(-1)?.seq ?? 0;
    return [...subscribers.values()].flatMap(({ subscriber: { name, position, epoch, paused } }) => {
      if (paused !== null) return [`subscriber ${name} is paused`];
      if (position >= last && epoch === feed.epoch) return [];
      return [`subscriber ${name} is at ${position} of ${last}, epoch ${epoch} of ${feed.epoch}`];
    });
  }

  private runOf(claimed: ClaimedSubscriber): Run {
    const { position, epoch, nextTryAt } = claimed.subscriber;
    const { clock } = this.world;
    const waitMs = (nextTryAt?.getTime() ?? 0) - clock.now().getTime();
    return {
      ...{ claimed, position, epoch, done: new Set(claimed.done), lanes: new Map(), taken: new Set() },
      ...{ underWay: 0, limit: 1, most: { atMs: 0, limit: 1 } },
      ...{ notBeforeMs: clock.monotonicMs() + waitMs, deliveredAtMs: Number.NEGATIVE_INFINITY, isGone: false },
    };
  }

  private of(subscriberId: string): Watched {
    const known = this.watched.get(subscriberId);
    if (known !== undefined) return known;
    const made: Watched = {
      ...{ taken: new Set<number>(), ids: new Map<string, string>(), replays: new Set<number>() },
      ...{ filters: [], isGone: false, endedAtMs: 0 },
    };
    this.watched.set(subscriberId, made);
    return made;
  }

  /** Why this node may deliver nothing now for this subscriber; null if it may. */
  private forbidden({ url }: WorldNode, run: Run, message: WebhookMessage): string | null {
    const { clock, database } = this.world;
    const { subscriberId, instanceId, token } = run.claimed.term;
    const nowMs = clock.monotonicMs();
    const instance = database.state.instances.get(instanceId);
    if (instance === undefined || instance.expiresAt <= clock.now()) return `after the deadline of ${url}`;
    const entry = database.state.subscribers.get(subscriberId);
    const isOver = entry === undefined || entry.token !== token || entry.subscriber.paused !== null;
    if (isOver && nowMs - this.of(subscriberId).endedAtMs > NOTICED_MS) return "long after its term was over";
    if (run.isGone) return "after the receiver was gone";
    if (nowMs < run.notBeforeMs) return "before the receiver is to be tried again";
    const limit = run.most.atMs === nowMs ? run.most.limit : run.limit;
    if (run.underWay >= limit) return `beside ${run.underWay} others, of ${limit}`;
    const { url: receiver } = run.claimed.subscriber;
    const isSigned = message.generations.join() === this.generations(url, run).join();
    if (!isSigned) return `signed by generations ${message.generations}`;
    return message.url === receiver ? null : `to ${message.url}`;
  }

  /** Generations that sign now. After a late answer of the database, the node's clock is behind, and never ahead. */
  private generations(url: string, { claimed }: Run): readonly number[] {
    const { generation, rotatedUntil } = claimed.subscriber;
    const now = this.world.clock.now();
    const known = this.clocks.get(url)?.now() ?? now;
    const isRotating = rotatedUntil !== null && rotatedUntil > (known < now ? known : now);
    return isRotating ? [generation, generation - 1] : [generation];
  }

  /** Why this event may not be delivered now; null if it may. */
  private misplaced(run: Run, { event, eventId, subscriberId }: WebhookMessage): string | null {
    const { ids } = this.of(subscriberId);
    if (event.kind === "test") return null;
    if (event.kind !== "completion") return this.misplacedNotice(run, event);
    const { seq, epoch, lane, txId } = event.completion;
    if (this.completion(seq)?.txId !== txId || epoch !== this.completion(seq)?.epoch) return "it is not in the feed";
    const key = `${seq}`;
    if ((ids.get(key) ?? eventId) !== eventId) return `under another id than ${ids.get(key)}`;
    const isShared = !ids.has(key) && [...ids.values()].includes(eventId);
    if (isShared) return "under the id of another outcome";
    ids.set(key, eventId);
    const { filter, createdBy } = run.claimed.subscriber;
    if (!this.isWanted(filter, event.completion)) return "it is not wanted";
    if (CLERKS.get(createdBy ?? "")?.signers?.has(lane.signer) === false) return `its key may not see ${lane.signer}`;
    if (epoch > run.epoch) return `of epoch ${epoch}, before that epoch was told`;
    if (seq <= run.position || run.done.has(seq)) return "it was stored as delivered";
    return this.outOfSequence(run, event.completion);
  }

  private outOfSequence(run: Run, completion: CompletionRecord): string | null {
    const { seq, lane } = completion;
    const last = run.lanes.get(laneKey(lane));
    const nowMs = this.world.clock.monotonicMs();
    if (last?.state === "under way") return `while ${last.seq} of its lane is on its way`;
    if (last?.state === "delivered" && seq <= last.seq) return `after ${last.seq} of its lane`;
    if (last?.state === "failed") {
      if (seq !== last.seq) return `although ${last.seq} of its lane failed`;
      const isEarly = nowMs < last.atMs + SHORTEST_PAUSE_MS && run.deliveredAtMs < last.atMs;
      if (isEarly) return `${nowMs - last.atMs} ms after it failed`;
    }
    const skipped = this.between(run.position, seq - 1).find(
      (each) => laneKey(each.lane) === laneKey(lane) && !run.done.has(each.seq) && !run.taken.has(each.seq),
    );
    const isSkipped = skipped !== undefined && this.isWanted(run.claimed.subscriber.filter, skipped);
    return isSkipped ? `before ${skipped.seq} of its lane` : null;
  }

  private misplacedNotice(run: Run, event: Exclude<WebhookMessage["event"], { kind: "completion" | "test" }>) {
    const { feed } = this.world.database.state;
    if (event.kind !== "epoch.changed") return "nothing was removed from the feed";
    if (event.epoch <= run.epoch || event.epoch > feed.epoch) return `epoch ${event.epoch} is not new`;
    if (run.underWay > 0) return "while outcomes before it are on their way";
    const { subscriberId } = run.claimed.term;
    const missing = this.between(run.position, event.resumeAfter).find(
      ({ seq }) => !run.done.has(seq) && !this.isDone(subscriberId, run.claimed.subscriber.filter, seq),
    );
    return missing === undefined ? null : `${missing.seq} would be left out`;
  }

  private noteLane({ lanes }: Run, { seq, lane }: CompletionRecord, state: LastOfLane["state"]): void {
    lanes.set(laneKey(lane), { seq, state, atMs: this.world.clock.monotonicMs() });
  }

  private noteTaken(run: Run, { subscriberId, event }: WebhookMessage): void {
    const { taken } = this.of(subscriberId);
    this.limit(run, Math.min(MOST_AT_ONCE, run.limit + 1));
    run.notBeforeMs = 0;
    run.deliveredAtMs = this.world.clock.monotonicMs();
    if (event.kind === "completion") {
      const { seq } = event.completion;
      this.count(taken.has(seq) ? "outcome delivered again" : "outcome delivered");
      if (CLERKS.has(run.claimed.subscriber.createdBy ?? "")) this.count("outcome delivered to a limited key");
      taken.add(seq);
      run.taken.add(seq);
    } else if (event.kind === "epoch.changed") {
      this.count("epoch delivered");
      Object.assign(run, { position: event.resumeAfter, done: new Set(), epoch: event.epoch });
      run.lanes.clear();
      run.taken.clear();
    }
  }

  private limit(run: Run, limit: number): void {
    const atMs = this.world.clock.monotonicMs();
    const before = run.most.atMs === atMs ? run.most.limit : run.limit;
    run.most = { atMs, limit: Math.max(before, limit) };
    run.limit = limit;
  }

  private noteFailure(run: Run, answer: ReceiverAnswer, code: number | null): void {
    const nowMs = this.world.clock.monotonicMs();
    this.limit(run, 1);
    this.count(code === null ? "delivery unanswered" : `delivery answered ${code}`);
    if (code === 410) {
      run.isGone = true;
      this.of(run.claimed.term.subscriberId).isGone = true;
    }
    const isThrottled = answer.kind === "status" && (code === 429 || code === 503);
    // Of several requests that were on their way together, the first refusal counts.
    if (isThrottled && nowMs >= run.notBeforeMs)
      run.notBeforeMs = nowMs + Math.max(answer.retryAfterMs ?? 0, SHORTEST_PAUSE_MS);
  }

  /** Checks a change of a subscriber's row, at the moment in which the database makes it. */
  private changed(id: string, before: SubscriberEntry | undefined, after: SubscriberEntry | undefined): void {
    const watched = this.of(id);
    const isOver = after?.token !== before?.token || after?.subscriber.paused !== null;
    if (isOver) watched.endedAtMs = this.world.clock.monotonicMs();
    if (after !== undefined && after.subscriber.filter !== before?.subscriber.filter)
      watched.filters.push(after.subscriber.filter);
    if (before === undefined || after === undefined) return;
    if (after.token === before.token) this.stored(id, before, after);
    else if (after.owner !== before.owner && after.owner !== null) this.claimed(before, after);
    else this.decided(id, before, after);
  }

  private claimed(before: SubscriberEntry, after: SubscriberEntry) {
    if (before.owner !== null) this.count("subscriber taken over");
    if (before.subscriber !== after.subscriber) this.violations.push("a claim changed a subscriber");
  }

  private decided(id: string, { subscriber: before }: SubscriberEntry, { subscriber: after }: SubscriberEntry): void {
    const { replays, taken } = this.of(id);
    if (after.position === before.position && after.epoch === before.epoch) return;
    if (!replays.has(after.position)) this.violations.push(`${id} went to ${after.position}, which nobody asked for`);
    for (const seq of taken) if (seq > after.position) taken.delete(seq);
    this.count("subscriber replayed");
  }

  /** Progress was stored: everything that it newly covers must have been taken by the receiver, or be unwanted. */
  private stored(id: string, before: SubscriberEntry, after: SubscriberEntry): void {
    const { position, epoch, filter, paused } = after.subscriber;
    const goesBack = position < before.subscriber.position;
    if (goesBack && epoch === before.subscriber.epoch)
      this.violations.push(`${id} went back from ${before.subscriber.position} to ${position}`);
    if (epoch < before.subscriber.epoch) this.violations.push(`${id} went back to epoch ${epoch}`);
    if (paused?.by === "GONE" && !this.of(id).isGone) this.violations.push(`${id} was paused as gone, and is not`);
    if (paused?.by === "GAVE_UP") this.violations.push(`${id} was given up within a minute`);
    const covered = new Set(before.done);
    const most = Math.max(position, ...after.done);
    for (const { seq } of this.between(before.subscriber.position, most)) {
      const isNew = (seq <= position || after.done.includes(seq)) && !covered.has(seq);
      if (isNew && !this.isDone(id, filter, seq)) this.violations.push(`${id} stored ${seq}, which nobody took`);
    }
  }

  private isDone(subscriberId: string, filter: OutcomeFilter, seq: number) {
    const completion = this.completion(seq);
    return this.of(subscriberId).taken.has(seq) || completion === undefined || !this.isWanted(filter, completion);
  }

  private isWanted({ signers, chains, keys, states }: OutcomeFilter, { lane, state, txId }: CompletionRecord) {
    const owner = this.world.database.state.transactions.get(txId)?.owner ?? null;
    const isOneOf = <T>(list: readonly T[] | null, value: T | null) =>
      list === null || (value !== null && list.includes(value));
    return (
      isOneOf(signers, lane.signer) && isOneOf(chains, lane.chainId) && isOneOf(states, state) && isOneOf(keys, owner)
    );
  }

  private completion(seq: number): CompletionRecord | undefined {
    const [found] = this.between(seq - 1, seq);
    return found;
  }

  /** Completions after one position, up to another: the feed is in order, with gaps only between epochs. */
  private between(after: number, through: number): readonly CompletionRecord[] {
    const { completions } = this.world.database.state;
    let [low, high] = [0, completions.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((completions[middle]?.seq ?? 0) <= after) low = middle + 1;
      else high = middle;
    }
    let end = low;
    while (end < completions.length && (completions[end]?.seq ?? 0) <= through) end++;
    return completions.slice(low, end);
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}
