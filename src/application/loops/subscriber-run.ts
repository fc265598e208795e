/**
 * Deliveries of one subscriber under one term: reads the feed after its position, posts the outcomes that it wants, in
 * order per lane and side by side across lanes, and tries again what fails.
 *
 * Reads: the feed. Writes: nothing itself; deliveries.ts stores its progress under the term. A crash leaves deliveries
 * that are not stored, at most one window of them: the next owner repeats these under the same ids.
 */
import { laneKey } from "../../domain/lane.ts";
import { at } from "../../domain/pace/when.ts";
import { DeliveryWindow, WINDOW } from "../../domain/webhooks/delivery-window.ts";
import {
  type DeliveryResult,
  pauseMs,
  type ReceiverAnswer,
  reasonOf,
  resultOf,
} from "../../domain/webhooks/receiver-answers.ts";
import { afterDelivery, afterFailure, FRESH, isDown, mayTry } from "../../domain/webhooks/receiver-pace.ts";
import type { Ports } from "../../ports/ports.ts";
import type { CompletionRecord, FeedPage } from "../../ports/query-store.ts";
import type { ClaimedSubscriber, StoredProgress } from "../../ports/subscriber-store.ts";
import type { WebhookEvent, WebhookSender } from "../../ports/webhook-sender.ts";
import { type OutcomeFeed, PAGE } from "./outcome-feed.ts";

export interface RunPorts extends Pick<Ports, "clock" | "entropy" | "telemetry"> {
  readonly sender: Pick<WebhookSender, "send">;
  readonly feed: OutcomeFeed;
  /** True while this instance may act: after its own deadline no delivery begins. */
  readonly mayAct: () => boolean;
  /** True if the node may have one more request on its way. A subscriber with few of them may have one more anyway. */
  readonly hasRoom: () => boolean;
  /** There is progress to store. `failed`: only of failures, after which the next owner would merely try too soon. */
  readonly onProgress: (run: SubscriberRun, failed: boolean) => void;
}

type Notice = Extract<WebhookEvent, { readonly kind: "epoch.changed" | "feed.truncated" }>;

/** Smallest page while deliveries are under way: many small reads would cost more than they bring. */
const LEAST_PAGE = 100;
/** Outcomes that are read ahead for each request that the receiver gets at a time. */
const READ_AHEAD = 4;
/** Requests that a subscriber may have on their way even if silent receivers hold all others of the node. */
const FEW = 4;

export class SubscriberRun {
  readonly claimed: ClaimedSubscriber;
  private readonly ports;
  private readonly stopping = new AbortController();
  private window;
  private pace = FRESH;
  private epoch;
  private lastAnswer;
  private deliveredAt;
  private paused: StoredProgress["paused"] = null;
  /** An event about the feed. It is sent when everything before it is delivered, and nothing is read until then. */
  private notice: Notice | null = null;
  private noticeFailingSince: Date | null = null;
  private readonly sending = new Set<Promise<ReceiverAnswer>>();
  private isDraining = false;
  private unstored = 0;
  private isLoading = false;
  private isCaughtUp = false;
  private cancelTimer: () => void = () => undefined;

  constructor(claimed: ClaimedSubscriber, ports: RunPorts) {
    const { subscriber, done } = claimed;
    this.claimed = claimed;
    this.ports = ports;
    this.window = new DeliveryWindow<CompletionRecord>({ ...subscriber, done });
    this.epoch = subscriber.epoch;
    this.lastAnswer = subscriber.lastAnswer;
    this.deliveredAt = subscriber.deliveredAt;
    const { nextTryAt } = subscriber;
    const waitMs = nextTryAt === null ? 0 : nextTryAt.getTime() - ports.clock.now().getTime();
    if (waitMs > 0) this.pace = { ...FRESH, retry: at(ports.clock.monotonicMs() + waitMs) };
  }

  get inFlight(): number {
    return this.sending.size;
  }

  get isOver(): boolean {
    return this.stopping.signal.aborted || this.paused !== null;
  }

  /** The feed may have grown. */
  grew(): void {
    this.isCaughtUp = false;
    // A receiver that is down or silent waits for a timer or an answer, whichever way the feed grows. It grows many times
    // a second, so that a hundred of them would cost the node more than the outcomes.
    const mayGetMore = mayTry(this.pace, this.sending.size, this.ports.clock.monotonicMs());
    if (this.window.isEmpty || mayGetMore) this.pump();
  }

  /** Begins no further delivery; resolves when those under way have ended. */
  async drain(): Promise<void> {
    this.isDraining = true;
    while (this.sending.size > 0) await Promise.race(this.sending);
  }

  /** Ends the run: requests on their way are cut, and their results are dropped. */
  stop(): void {
    this.stopping.abort();
    this.cancelTimer();
  }

  /** Progress to store now, and the number of deliveries that it covers. */
  snapshot(): { readonly progress: StoredProgress; readonly covers: number } {
    const { clock } = this.ports;
    const { epoch, lastAnswer, deliveredAt, paused, pace } = this;
    const failingSince = this.noticeFailingSince ?? this.window.failingSince;
    const dueMs = pace.retry.kind === "at" ? pace.retry.ms : failingSince === null ? null : this.window.dueMs;
    const nextTryAt =
      failingSince === null || dueMs === null ? null : new Date(clock.now().getTime() + dueMs - clock.monotonicMs());
    const { term } = this.claimed;
    const state = { lastAnswer, deliveredAt, failingSince, nextTryAt, paused };
    return { progress: { term, epoch, ...this.window.progress, ...state }, covers: this.unstored };
  }

  /** The progress of a snapshot is durable. */
  stored(covers: number): void {
    this.unstored -= covers;
    this.pump();
  }

  private pump(): void {
    if (this.isOver) return;
    this.fill();
    const nowMs = this.ports.clock.monotonicMs();
    while (this.mayBegin(nowMs)) {
      const outcome = this.window.take(nowMs);
      if (outcome === null) break;
      void this.deliver(outcome);
    }
    if (this.notice !== null && this.window.isEmpty && this.mayBegin(nowMs)) void this.announce(this.notice);
    this.sleep(nowMs);
  }

  private mayBegin(nowMs: number) {
    const { mayAct, hasRoom } = this.ports;
    const underWay = this.sending.size;
    if (this.isDraining || !mayTry(this.pace, underWay, nowMs) || this.unstored + underWay >= WINDOW) return false;
    return mayAct() && (underWay < FEW || hasRoom());
  }

  private sleep(nowMs: number) {
    this.cancelTimer();
    const { retry } = this.pace;
    const waits = retry.kind === "at" && retry.ms > nowMs ? retry.ms : this.window.dueMs;
    // No timer for a lane that is due already: the end of a request or of a write begins it.
    if (waits === null || waits <= nowMs || (this.window.isEmpty && this.notice === null)) return;
    this.cancelTimer = this.ports.clock.after(waits - nowMs, () => this.pump());
  }

  private fill() {
    const { room } = this.window;
    if (this.isLoading || this.isCaughtUp || this.notice !== null) return;
    if (room <= 0 || (room < LEAST_PAGE && this.sending.size > 0)) return;
    // Enough for the next requests. Where lanes wait after a failure, others may be further on in the feed.
    const isEnough = this.window.size >= READ_AHEAD * this.pace.limit;
    if (isEnough && this.window.mayTake(this.ports.clock.monotonicMs())) return;
    // Do not fill memory with the outcomes of a receiver that is down.
    if (isDown(this.pace) && !this.window.isEmpty) return;
    this.isLoading = true;
    const loading = this.load(Math.min(PAGE, room)).catch(() => {
      // The database does not answer: the next poll reads again.
      this.isCaughtUp = true;
    });
    void loading.then(() => {
      this.isLoading = false;
      this.pump();
    });
  }

  private async load(limit: number) {
    const after = this.window.through;
    // From here on a hint that the feed grew counts again.
    this.isCaughtUp = true;
    const page = await this.ports.feed.read(after, limit);
    if (this.isOver) return;
    this.notice = this.noticeIn(page, after);
    if (this.notice !== null) return;
    const wanted = await this.ports.feed.wanted(this.claimed.subscriber.filter, page.items);
    if (this.isOver) return;
    const through = page.items.at(-1)?.seq ?? after;
    this.window.admit(wanted, through);
    if (page.items.length === limit) this.isCaughtUp = false;
    if (through > after && wanted.length === 0) this.ports.onProgress(this, false);
  }

  private noticeIn(page: FeedPage, after: number): Notice | null {
    const { epoch, truncatedThrough, epochStartsAfter } = page;
    if (after < truncatedThrough) return { kind: "feed.truncated", after, resumeAfter: truncatedThrough };
    if (epoch === this.epoch) return null;
    return { kind: "epoch.changed", epoch, resumeAfter: Math.min(after, epochStartsAfter) };
  }

  private async deliver(outcome: CompletionRecord) {
    const eventId = `${outcome.epoch}_${outcome.seq}`;
    const answered = await this.post(eventId, { kind: "completion", completion: outcome });
    if (answered === null) return;
    const { answer, result } = answered;
    const { nowMs, now, pause } = this.failure(answer);
    if (result === "delivered") {
      this.window.delivered(outcome);
      this.works();
    } else {
      this.window.failed(outcome, { nowMs, now, pauseMs: pause });
      this.fails(answered, laneKey(outcome.lane), this.window.failingSince);
    }
    this.settle();
  }

  private async announce(notice: Notice) {
    const { resumeAfter } = notice;
    const eventId =
      notice.kind === "epoch.changed" ? `${notice.epoch}_epoch` : `${this.epoch}_truncated_${resumeAfter}`;
    const answered = await this.post(eventId, notice);
    if (answered === null) return;
    if (answered.result === "delivered") {
      this.epoch = notice.kind === "epoch.changed" ? notice.epoch : this.epoch;
      this.window = new DeliveryWindow<CompletionRecord>({ position: resumeAfter, done: [], failingSince: null });
      this.notice = null;
      this.noticeFailingSince = null;
      this.isCaughtUp = false;
      this.works();
    } else {
      this.noticeFailingSince ??= this.ports.clock.now();
      this.fails(answered, null, this.noticeFailingSince);
    }
    this.settle();
  }

  /** Posts one event. Null: the run ended meanwhile. */
  private async post(eventId: string, event: WebhookEvent) {
    const { clock, sender, telemetry } = this.ports;
    const { subscriberId, url, name, generation, rotatedUntil } = this.claimed.subscriber;
    const beganMs = clock.monotonicMs();
    const isRotating = rotatedUntil !== null && rotatedUntil > clock.now();
    const generations = isRotating ? [generation, generation - 1] : [generation];
    const sent = sender.send({ url, subscriberId, generations, eventId, event, signal: this.stopping.signal });
    this.sending.add(sent);
    const answer = await sent;
    this.sending.delete(sent);
    if (this.stopping.signal.aborted) return null;
    const result = resultOf(answer);
    // Count it before anything else can begin a delivery: no more than one window is ever unstored.
    if (result === "delivered") this.unstored++;
    const status = answer.kind === "status" ? answer.status : null;
    this.lastAnswer = { status, reason: answer.kind === "silence" ? answer.reason : null, at: clock.now() };
    telemetry.emit({
      ...{ type: "webhook.answered", subscriber: name, eventId, result, status },
      durationMs: clock.monotonicMs() - beganMs,
    });
    return { answer, result };
  }

  private works() {
    if (isDown(this.pace)) this.window.retryAll();
    this.pace = afterDelivery(this.pace);
    this.deliveredAt = this.ports.clock.now();
  }

  private failure(answer: ReceiverAnswer) {
    const { clock, entropy } = this.ports;
    const pause = (failures: number) => pauseMs(answer, failures, entropy.random());
    return { nowMs: clock.monotonicMs(), now: clock.now(), pause };
  }

  private fails(
    { answer, result }: { readonly answer: ReceiverAnswer; readonly result: DeliveryResult },
    lane: string | null,
    since: Date | null,
  ) {
    const { nowMs, now, pause } = this.failure(answer);
    const { giveUpAfterMs } = this.claimed.subscriber;
    this.pace = afterFailure(this.pace, { nowMs, lane, throttled: result === "throttled", pauseMs: pause });
    const failedMs = now.getTime() - (since ?? now).getTime();
    if (result === "gone") this.paused ??= { by: "GONE", why: reasonOf(answer) };
    else if (failedMs >= giveUpAfterMs) this.paused ??= { by: "GAVE_UP", why: reasonOf(answer) };
  }

  private settle() {
    this.ports.onProgress(this, this.unstored === 0 && this.paused === null);
    this.pump();
  }
}
