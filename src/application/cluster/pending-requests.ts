/**
 * Requests for a lane's owner that could not be called: it has no URL because it is embedded in another process, or the
 * sender has none itself and no node carried the request out (`isUnasked` in route.ts). They are enqueued in the
 * database; the owner carries them out (owner-actions.ts) and writes its answer. The sender waits for that answer, so
 * its caller gets the result that the owner itself would have given.
 *
 * Reads and writes: waiting requests. Writes nothing of a lane. A request that the owner has not begun in time is
 * withdrawn: nothing was done, or its intents were accepted in the same statement. If a request was begun and is not
 * answered, its outcome is unknown. After a crash of this process a request is either carried out, with no process
 * reading its answer, or never begun because it expires.
 */
import { DatabaseSilent, outcomeUnknown, queueFull, unavailable } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { jsonText } from "../../domain/text/json-text.ts";
import { errorFrom } from "../../domain/text/refusal.ts";
import type { Intent } from "../../domain/transaction/transaction.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";
import type { LeftRequest } from "../../ports/left-request-store.ts";
import type { LaneAnswer, LaneRequest } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Result } from "./route.ts";

export interface PendingRequestPorts {
  readonly store: Pick<Ports["store"], "leaveRequests" | "leftStanding" | "withdrawRequest">;
  readonly entropy: Pick<Ports["entropy"], "uuid">;
  readonly clock: Pick<Ports["clock"], "monotonicMs" | "sleep">;
  readonly wakeUps: Pick<Ports["wakeUps"], "isListening">;
  /** Maximum number of requests that may wait for one lane's owner. */
  readonly perLane: number;
  /**
   * Called when this node has enqueued requests or intents, so that the lane's owner reads them. The owner may be this
   * node or another.
   */
  readonly onEnqueued: () => void;
}

export interface Enqueuing {
  /** Called once the request is stored, where the owner can read it. Not called if storing failed. */
  readonly onWritten?: () => void;
  /**
   * The creates that this request consists of. If the owner does not begin the request in time, they are accepted
   * without a nonce. If absent, nothing is done in that case.
   */
  readonly accepts?: readonly Intent[];
}

interface Waiting {
  readonly key: LaneKey;
  readonly characters: number;
  readonly accepts: readonly Intent[];
  /**
   * At `beginByMs` the request is withdrawn unless the owner has begun it; at `answerByMs` the wait ends in any case.
   */
  readonly beginByMs: number;
  readonly answerByMs: number;
  resolve(result: Result<LaneAnswer>): void;
}

interface Unwritten extends LeftRequest {
  readonly onWritten: (() => void) | undefined;
}

/** Time within which the owner must begin a request; equal to the time that a forwarded request may take. */
const BEGUN_WITHIN_MS = 4_000;
/**
 * Time in ms within which the owner must answer. A request that was begun may have to wait until a send in progress has
 * ended, or until the transaction is no longer being changed.
 */
const ANSWERED_WITHIN_MS = 8_000;
/**
 * Pause in ms between two reads of the answers. The longer one is used while NOTIFY works, because then the reads are
 * needed only for lost notifications.
 */
const READ_EVERY_MS = { notified: 250, polling: 25 };

/**
 * Maximum total size, in characters, of the requests that this process waits for: they stay in memory until they are
 * answered.
 */
const MOST_CHARACTERS = 64 * 1024 * 1024;

/** Maximum number of requests in one write. */
const MOST_AT_ONCE = 50;

const UNANSWERED =
  "the process that acts for this signer did not say whether this was done; look whether it was before you repeat it";
const NOT_BEGUN =
  "the process that acts for this signer did not take this up in time, and will not any more; nothing was done, repeat it";

export class PendingRequests {
  private readonly ports;
  private readonly waiting = new Map<string, Waiting>();
  private readonly unwritten: Unwritten[] = [];
  private isWriting = false;
  private isWatching = false;
  private isClosing = false;
  private pause = new AbortController();

  constructor(ports: PendingRequestPorts) {
    this.ports = ports;
  }

  async ask(
    lane: Lane,
    request: LaneRequest,
    { onWritten, accepts = [] }: Enqueuing = {},
  ): Promise<Result<LaneAnswer>> {
    const { clock, entropy } = this.ports;
    const { action, owner, repeatable = false } = request;
    const body = jsonText(request.body);
    const key = laneKey(lane);
    if (!this.hasRoom(key, body.length)) return queueFull();
    const leftId = entropy.uuid();
    const nowMs = clock.monotonicMs();
    return new Promise((resolve) => {
      const times = { beginByMs: nowMs + BEGUN_WITHIN_MS, answerByMs: nowMs + ANSWERED_WITHIN_MS };
      this.waiting.set(leftId, { key, characters: body.length, accepts, ...times, resolve });
      this.unwritten.push({ leftId, lane, action, owner, repeatable, body, onWritten });
      void this.writeAll();
    });
  }

  /** Reads the answers now instead of after the pause, because an owner has answered a request. */
  look(): void {
    this.pause.abort();
  }

  /**
   * Called when this process ends: requests that were not begun are withdrawn now; the outcome of the others is
   * unknown.
   */
  close(): void {
    this.isClosing = true;
    this.look();
  }

  /**
   * Writes requests one batch at a time, in the order of the calls; requests that arrive meanwhile share the next
   * batch.
   */
  private async writeAll() {
    if (this.isWriting) return;
    this.isWriting = true;
    await Promise.resolve();
    while (this.unwritten.length > 0) await this.write(this.unwritten.splice(0, MOST_AT_ONCE));
    this.isWriting = false;
  }

  private async write(unwritten: readonly Unwritten[]) {
    const { store, onEnqueued } = this.ports;
    try {
      const requests = unwritten.map(({ onWritten: _, ...request }) => request);
      const leave = () => store.leaveRequests(requests, BEGUN_WITHIN_MS);
      // A busy server aborted the transaction before COMMIT was sent: nothing was written, so try once more.
      await leave().catch((error) =>
        error instanceof StoreUnavailable && error.busy ? leave() : Promise.reject(error),
      );
      onEnqueued();
      for (const { onWritten } of unwritten) onWritten?.();
      void this.watch();
    } catch (error) {
      for (const { leftId } of unwritten) this.answer(leftId, notEnqueued(error));
    }
  }

  private hasRoom(key: LaneKey, characters: number) {
    const waiting = [...this.waiting.values()];
    const all = waiting.reduce((sum, each) => sum + each.characters, characters);
    return all <= MOST_CHARACTERS && waiting.filter((each) => each.key === key).length < this.ports.perLane;
  }

  /** Reads answers until no request is waiting. */
  private async watch() {
    if (this.isWatching) return;
    this.isWatching = true;
    const { clock, wakeUps } = this.ports;
    while (this.waiting.size > 0) {
      if (!this.isClosing) {
        const pauseMs = wakeUps.isListening ? READ_EVERY_MS.notified : READ_EVERY_MS.polling;
        await clock.sleep(pauseMs, this.pause.signal).catch(() => undefined);
      }
      this.pause = new AbortController();
      // If the database is unavailable, nothing is known about the requests; after their deadline, their outcome is
      // reported as unknown.
      await this.read([...this.waiting]).catch(() => undefined);
      this.giveUp();
    }
    this.isWatching = false;
  }

  private async read(all: readonly (readonly [string, Waiting])[]) {
    const { store, clock, onEnqueued } = this.ports;
    for (const { leftId, answer } of await store.leftStanding(all.map(([leftId]) => leftId))) {
      if (answer !== null) this.answer(leftId, readAnswer(answer));
    }
    const nowMs = clock.monotonicMs();
    for (const [leftId, { accepts, beginByMs }] of all) {
      const isLate = this.waiting.has(leftId) && (this.isClosing || nowMs >= beginByMs);
      if (!isLate || !(await store.withdrawRequest(leftId, accepts))) continue;
      this.answer(leftId, accepts.length === 0 ? unavailable(NOT_BEGUN) : accepted(accepts));
      if (accepts.length > 0) onEnqueued();
    }
  }

  private giveUp() {
    const nowMs = this.ports.clock.monotonicMs();
    for (const [leftId, { answerByMs }] of this.waiting) {
      if (this.isClosing || nowMs >= answerByMs) this.answer(leftId, outcomeUnknown(UNANSWERED));
    }
  }

  private answer(leftId: string, result: Result<LaneAnswer>) {
    this.waiting.get(leftId)?.resolve(result);
    this.waiting.delete(leftId);
  }
}

function notEnqueued(error: unknown) {
  if (error instanceof OutcomeUnknown) return outcomeUnknown(UNANSWERED, { cause: error });
  return new DatabaseSilent("nothing was done", error);
}

/** The answer for creates that were accepted without a nonce, in the form that an owner would give. */
function accepted(intents: readonly Intent[]): LaneAnswer {
  const withoutNonce = { outcome: "created", nonce: null, state: "CREATED" };
  return {
    answer: { results: intents.map(({ txId, lane, requestId }) => ({ txId, lane, requestId, ...withoutNonce })) },
  };
}

/**
 * If an answer cannot be parsed, it was written by another version. The action was carried out or refused, but which is
 * unknown. Other answers are still read.
 */
function readAnswer(text: string): Result<LaneAnswer> {
  const said = parsed(text);
  if (said === null) return outcomeUnknown(UNANSWERED);
  if (said.problem === undefined) return { answer: said.answer };
  const newer = "the process that acts for this signer refused this in words that only a newer version knows";
  return errorFrom(Object(said.problem)) ?? unavailable(newer);
}

function parsed(text: string): { readonly answer?: unknown; readonly problem?: unknown } | null {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "object" ? said : null;
  } catch {
    return null;
  }
}
