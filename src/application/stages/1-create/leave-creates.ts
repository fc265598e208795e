/**
 * Stage 1, beside the road: creates that only the lane's owner can decide about, for an owner that cannot be asked. They name
 * a nonce, or a pool gave them their lane, and the intake table has a place for neither. They are left in the database in the
 * words of their callers and with the ids that they got here, as another node would be told of them. The owner makes them and
 * writes its answers (take-creates.ts).
 *
 * Reads and writes: requests that were left (cluster/through-database.ts). Invariants: I4, I5, I10. What the owner has not begun
 * in time is never begun, and its caller hears that nothing was accepted; what was begun and not heard of is told as unknown,
 * with its id. A crash leaves what a crash of a node that forwarded would.
 */
import { FencepostError, invalid, outcomeUnknown, queueFull, unavailable } from "../../../domain/errors.ts";
import { jsonText } from "../../../domain/json-text.ts";
import { type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import { errorFrom } from "../../../domain/refusal.ts";
import { readForwardedAnswer } from "../../../ports/forwarded-answer.ts";
import type { ForwardedCreate, LaneAnswer } from "../../../ports/peers.ts";
import type { Fate as AnswerOf } from "../../cluster/journey.ts";
import type { ThroughDatabase } from "../../cluster/through-database.ts";
import type { Fate } from "./answer-existing.ts";

/** The name that every owner knows them under. */
export const CREATES_LEFT = "create";

export interface LeaveCreatesPorts {
  readonly throughDatabase: Pick<ThroughDatabase, "ask">;
  /** How many may wait for one lane's owner. */
  readonly perLane: number;
}

/** Creates of one call that are made together, and in order. */
interface Unit {
  readonly creates: readonly ForwardedCreate[];
  readonly bytes: number;
  /** None of them waits for the chain: they may share a row with those of other calls. */
  readonly mayShare: boolean;
  resolve(answer: Answer): void;
}

type Answer = AnswerOf<LaneAnswer>;

/** Of one row, which its owner reads as a whole. */
const MOST_BYTES = 1024 * 1024;
const MOST_AT_ONCE = 200;

const UNHEARD =
  "the process that acts for this signer did not say whether it accepted this; ask for the transaction, or repeat with the same request id";
const NOT_LEFT = "what stands before this in its batch was not answered; nothing of this was accepted";

export class LeaveCreates {
  private readonly ports: LeaveCreatesPorts;
  private readonly unsent = new Map<LaneKey, Unit[]>();
  private readonly underWay = new Map<LaneKey, number>();

  constructor(ports: LeaveCreatesPorts) {
    this.ports = ports;
  }

  /** Of one lane, in order: one fate for each. `mayShare`: nothing about them has to be asked of the chain. */
  async leave(lane: Lane, creates: readonly ForwardedCreate[], mayShare: boolean): Promise<readonly Fate[]> {
    const key = laneKey(lane);
    const room = Math.max(0, this.ports.perLane - (this.underWay.get(key) ?? 0));
    const within = creates.slice(0, room);
    this.count(key, within.length);
    try {
      return [...(await this.inParcels(lane, within, mayShare)), ...creates.slice(room).map(queueFull)];
    } finally {
      this.count(key, -within.length);
    }
  }

  private count(key: LaneKey, creates: number): void {
    const left = (this.underWay.get(key) ?? 0) + creates;
    if (left === 0) this.underWay.delete(key);
    else this.underWay.set(key, left);
  }

  /** More than a row holds is left one row after the other: the owner carries out what it finds at once. */
  private async inParcels(lane: Lane, creates: readonly ForwardedCreate[], mayShare: boolean): Promise<Fate[]> {
    const sized = creates.map((create) => ({ create, bytes: bytesOf(create) }));
    const fates = sized.map(({ bytes }) => refusalOf(bytes));
    let open = sized.flatMap(({ create, bytes }, index) =>
      fates[index] === null ? [{ create, bytes: bytes ?? 0, index }] : [],
    );
    for (let isAnswered = true; open.length > 0; ) {
      const parcel = open.slice(0, most(open, 1));
      open = open.slice(parcel.length);
      const unit = { creates: parcel.map(({ create }) => create), bytes: sum(parcel), mayShare };
      const answer: Answer = isAnswered ? await this.queue(lane, unit) : unavailable(NOT_LEFT);
      isAnswered &&= !(answer instanceof FencepostError);
      parcel.forEach(({ create, index }, at) => {
        fates[index] = fateOf(answer, create.txId, at);
      });
    }
    return fates as Fate[];
  }

  private queue(lane: Lane, unit: Omit<Unit, "resolve">): Promise<Answer> {
    return new Promise((resolve) => {
      const unsent = this.unsent.get(laneKey(lane));
      if (unsent !== undefined) unsent.push({ ...unit, resolve });
      else void this.send(lane, [{ ...unit, resolve }]);
    });
  }

  /** One row at a time, so that they stand there in the order of the calls; those that come meanwhile may share the next. */
  private async send(lane: Lane, unsent: Unit[]): Promise<void> {
    this.unsent.set(laneKey(lane), unsent);
    await Promise.resolve();
    while (unsent.length > 0) await this.write(lane, unsent.splice(0, sharing(unsent)));
    this.unsent.delete(laneKey(lane));
  }

  /** Resolves once the row stands there, or it is known that it will not; its creates are told when the owner has answered. */
  private write(lane: Lane, units: readonly Unit[]): Promise<void> {
    const creates = units.flatMap((unit) => unit.creates);
    const body = { creates: creates.map(({ owner, ...rest }) => (owner === null ? rest : { ...rest, owner })) };
    return new Promise((resolve) => {
      const request = { action: CREATES_LEFT, body, owner: null, repeatable: true };
      const asking = this.ports.throughDatabase.ask(lane, request, resolve);
      const failed = (cause: unknown) => outcomeUnknown(UNHEARD, { cause });
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

/** Null: it has no form that another process could read. */
function bytesOf(create: ForwardedCreate): number | null {
  try {
    return Buffer.byteLength(jsonText(create));
  } catch {
    return null;
  }
}

/** Null: a row can hold it. */
function refusalOf(bytes: number | null): Fate | null {
  if (bytes === null) return invalid("", "must be JSON: another process acts for this signer, and has to be told");
  return bytes > MOST_BYTES ? tooLarge() : null;
}

interface Sized {
  readonly bytes: number;
}

function sum(all: readonly Sized[]): number {
  return all.reduce((bytes, each) => bytes + each.bytes, 0);
}

/** As many as a row holds, and one at least. `each`: how many creates one of them is. */
function most<T extends Sized>(all: readonly T[], each: number | ((one: T) => number)): number {
  let [bytes, count] = [0, 0];
  const end = all.findIndex((one, at) => {
    bytes += one.bytes;
    count += typeof each === "number" ? each : each(one);
    return at > 0 && (bytes > MOST_BYTES || count > MOST_AT_ONCE);
  });
  return end === -1 ? all.length : end;
}

/** One that waits for the chain keeps nobody else waiting. */
function sharing(unsent: readonly Unit[]): number {
  const alone = unsent.findIndex(({ mayShare }) => !mayShare);
  if (alone === 0) return 1;
  return most(alone === -1 ? unsent : unsent.slice(0, alone), ({ creates }) => creates.length);
}

function resultsOf({ answer }: LaneAnswer): readonly unknown[] {
  const { results } = Object(answer) as { readonly results?: unknown };
  return Array.isArray(results) ? results : [];
}

function part(answer: LaneAnswer, from: number, length: number): LaneAnswer {
  return { answer: { results: resultsOf(answer).slice(from, from + length) } };
}

function fateOf(answer: Answer, txId: string, at: number): Fate {
  if (answer instanceof FencepostError) {
    return answer.extras.outcome === "unknown" ? outcomeUnknown(UNHEARD, { txId, cause: answer }) : answer;
  }
  const result = resultsOf(answer)[at];
  if (typeof result !== "object" || result === null) return outcomeUnknown(UNHEARD, { txId });
  const fields = result as Readonly<Record<string, unknown>>;
  const fate = typeof fields.code === "string" ? errorFrom(fields) : readForwardedAnswer(fields);
  return fate === null || typeof fate === "string" ? outcomeUnknown(UNHEARD, { txId }) : fate;
}

function tooLarge(): FencepostError {
  const detail = `another process acts for this signer, which is told of at most ${MOST_BYTES / 1024} KiB; nothing was accepted`;
  return new FencepostError("PAYLOAD_TOO_LARGE", detail);
}
