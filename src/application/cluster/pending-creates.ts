/**
 * Creates for a lane whose owner could not be called, mostly because it has no URL: enqueued as requests
 * (pending-requests.ts), unchanged and with the ids assigned here, as if they were forwarded to another node. The owner
 * carries them out and writes its answers.
 *
 * Reads and writes: waiting requests. Invariants: I4, I5, I10. A row that the owner has not begun in time is withdrawn.
 * Its creates are then accepted without a nonce, in the intake table; a row with a create that names its nonce or comes
 * from a pool is refused as a whole instead, because the intake table has no column for either. If a row was begun and
 * not answered, the outcome of its creates is unknown, and the result names their ids. A crash has the same effect as a
 * crash of a node that forwards a request.
 */
import { FencepostError, invalid, outcomeUnknown, queueFull, unavailable } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { jsonText } from "../../domain/text/json-text.ts";
import { errorFrom } from "../../domain/text/refusal.ts";
import type { Intent } from "../../domain/transaction/transaction.ts";
import type { ForwardedAnswer, ForwardedCreate, LaneAnswer } from "../../ports/peers.ts";
import { readForwardedAnswer } from "../../ports/peers.ts";
import type { PendingRequests } from "./pending-requests.ts";
import type { Result } from "./route.ts";

/** Name under which creates are enqueued for a lane's owner; the same in every release. */
export const CREATE_ACTION = "create";

interface PendingCreatePorts {
  readonly requests: Pick<PendingRequests, "ask">;
  /** Maximum number of creates that may wait for one lane's owner. */
  readonly perLane: number;
}

export interface PendingCreate {
  readonly create: ForwardedCreate;
  readonly intent: Intent;
}

/** Creates of one call that are carried out together and in order. */
interface Unit {
  readonly creates: readonly Sized[];
  /** True if none of the creates needs a call to the chain. Then they may share a row with creates of other calls. */
  readonly mayShare: boolean;
  resolve(answer: Answer): void;
}

interface Sized extends PendingCreate {
  readonly bytes: number;
  readonly index: number;
}

type Answer = Result<LaneAnswer>;
type CreateResult = Result<ForwardedAnswer>;

/** Maximum size of one row of enqueued creates; the owner reads a row as a whole. */
const MOST_BYTES = 1024 * 1024;
const MOST_AT_ONCE = 200;

const UNANSWERED =
  "the process that acts for this signer did not say whether it accepted this; ask for the transaction, or repeat with the same request id";
const NOT_JSON = "must be JSON: it is passed to another process, which acts for this signer";
const TOO_LARGE = `another process acts for this signer, and takes at most ${MOST_BYTES / 1024} KiB from outside; nothing was accepted`;
const NOT_ENQUEUED = "what stands before this in its batch was not answered; nothing of this was accepted";

export class PendingCreates {
  private readonly ports;
  private readonly unsent = new Map<LaneKey, Unit[]>();
  private readonly underWay = new Map<LaneKey, number>();

  constructor(ports: PendingCreatePorts) {
    this.ports = ports;
  }

  /**
   * Enqueues creates of one lane, in order; returns one result for each. `mayShare`: none of them needs a call to the
   * chain.
   */
  async enqueue(lane: Lane, creates: readonly PendingCreate[], mayShare: boolean): Promise<readonly CreateResult[]> {
    const key = laneKey(lane);
    const room = Math.max(0, this.ports.perLane - (this.underWay.get(key) ?? 0));
    const within = creates.slice(0, room);
    this.count(key, within.length);
    try {
      return [...(await this.inRows(lane, within, mayShare)), ...creates.slice(room).map(queueFull)];
    } finally {
      this.count(key, -within.length);
    }
  }

  private count(key: LaneKey, creates: number) {
    const left = (this.underWay.get(key) ?? 0) + creates;
    if (left === 0) this.underWay.delete(key);
    else this.underWay.set(key, left);
  }

  /**
   * If the creates do not fit in one row, each row is enqueued after the one before was answered. Otherwise the owner
   * would carry out several rows at the same time, and their order would be lost.
   */
  private async inRows(lane: Lane, creates: readonly PendingCreate[], mayShare: boolean) {
    const results = new Array<CreateResult>(creates.length);
    let open = creates.flatMap((each, index): readonly Sized[] => {
      const bytes = bytesOf(each.create);
      if (bytes !== null && bytes <= MOST_BYTES) return [{ ...each, bytes, index }];
      results[index] = bytes === null ? invalid("", NOT_JSON) : new FencepostError("PAYLOAD_TOO_LARGE", TOO_LARGE);
      return [];
    });
    for (let isAnswered = true; open.length > 0; ) {
      const row = open.slice(
        0,
        fitting(open, (create) => [create]),
      );
      open = open.slice(row.length);
      const answer: Answer = isAnswered
        ? await this.queue(lane, { creates: row, mayShare })
        : unavailable(NOT_ENQUEUED);
      isAnswered &&= !(answer instanceof FencepostError);
      row.forEach(({ create, index }, at) => {
        results[index] = resultOf(answer, create.txId, at);
      });
    }
    return results;
  }

  private queue(lane: Lane, unit: Omit<Unit, "resolve">): Promise<Answer> {
    return new Promise((resolve) => {
      const unsent = this.unsent.get(laneKey(lane));
      if (unsent !== undefined) unsent.push({ ...unit, resolve });
      else void this.send(lane, [{ ...unit, resolve }]);
    });
  }

  /**
   * Writes one row at a time, so that creates keep the order of their calls. Creates that arrive during a write may
   * share the next row.
   */
  private async send(lane: Lane, unsent: Unit[]) {
    this.unsent.set(laneKey(lane), unsent);
    await Promise.resolve();
    while (unsent.length > 0) await this.write(lane, unsent.splice(0, sharing(unsent)));
    this.unsent.delete(laneKey(lane));
  }

  /**
   * Resolves once the row is written or writing has failed; the creates get their results when the owner has answered.
   */
  private write(lane: Lane, units: readonly Unit[]): Promise<void> {
    const creates = units.flatMap((unit) => unit.creates);
    const words = creates.map(({ create: { owner, ...rest } }) => (owner === null ? rest : { ...rest, owner }));
    const accepts = creates.every(isAcceptable) ? creates.map(({ intent }) => intent) : [];
    return new Promise((resolve) => {
      const request = { action: CREATE_ACTION, body: { creates: words }, owner: null, repeatable: true };
      const asking = this.ports.requests.ask(lane, request, { onWritten: resolve, accepts });
      const failed = (cause: unknown) => outcomeUnknown(UNANSWERED, { cause });
      void asking.catch(failed).then((answer) => {
        let from = 0;
        for (const unit of units) {
          unit.resolve(answer instanceof FencepostError ? answer : part(answer, from, unit.creates.length));
          from += unit.creates.length;
        }
        resolve();
      });
    });
  }
}

function isAcceptable({ intent: { pool, exactNonce } }: PendingCreate) {
  return pool === undefined && exactNonce === undefined;
}

/** Size of a create in bytes; null if it cannot be serialized as JSON. */
function bytesOf(create: ForwardedCreate) {
  try {
    return Buffer.byteLength(jsonText(create));
  } catch {
    return null;
  }
}

/** How many of the given items, in order, fit in one row; at least one. */
function fitting<T>(all: readonly T[], createsOf: (each: T) => readonly Sized[]) {
  let [bytes, count] = [0, 0];
  const end = all.findIndex((each, at) => {
    for (const create of createsOf(each)) bytes += create.bytes;
    count += createsOf(each).length;
    return at > 0 && (bytes > MOST_BYTES || count > MOST_AT_ONCE);
  });
  return end === -1 ? all.length : end;
}

/**
 * Selects the units (creates of one call) of the next row. A unit that waits for the chain gets a row of its own, so
 * that it delays no other caller. Units that can be accepted without a nonce do not share a row with units that cannot.
 */
function sharing(unsent: readonly Unit[]) {
  const isLike = (unit: Unit) =>
    unit.mayShare && unit.creates.every(isAcceptable) === unsent[0]?.creates.every(isAcceptable);
  const end = unsent.findIndex((unit) => !isLike(unit));
  return fitting(unsent.slice(0, end === -1 ? unsent.length : Math.max(1, end)), ({ creates }) => creates);
}

function resultsOf({ answer }: LaneAnswer): readonly unknown[] {
  const { results } = Object(answer) as { readonly results?: unknown };
  return Array.isArray(results) ? results : [];
}

function part(answer: LaneAnswer, from: number, length: number): LaneAnswer {
  return { answer: { results: resultsOf(answer).slice(from, from + length) } };
}

function resultOf(answer: Answer, txId: string, at: number): CreateResult {
  if (answer instanceof FencepostError) {
    return answer.extras.outcome === "unknown" ? outcomeUnknown(UNANSWERED, { txId, cause: answer }) : answer;
  }
  const result = resultsOf(answer)[at];
  if (typeof result !== "object" || result === null) return outcomeUnknown(UNANSWERED, { txId });
  const fields = result as Readonly<Record<string, unknown>>;
  const read = typeof fields.code === "string" ? errorFrom(fields) : readForwardedAnswer(fields);
  return read === null || typeof read === "string" ? outcomeUnknown(UNANSWERED, { txId }) : read;
}
