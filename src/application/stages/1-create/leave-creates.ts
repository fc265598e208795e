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
import { FencepostError, invalid, outcomeUnknown, queueFull } from "../../../domain/errors.ts";
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

interface Unsent {
  readonly create: ForwardedCreate;
  readonly bytes: number;
  resolve(fate: Fate): void;
}

/** Of one row, which its owner reads as a whole. */
const MOST_BYTES = 1024 * 1024;
const MOST_AT_ONCE = 200;

const UNHEARD =
  "the process that acts for this signer did not say whether it accepted this; ask for the transaction, or repeat with the same request id";

export class LeaveCreates {
  private readonly ports: LeaveCreatesPorts;
  private readonly unsent = new Map<LaneKey, Unsent[]>();
  private readonly underWay = new Map<LaneKey, number>();

  constructor(ports: LeaveCreatesPorts) {
    this.ports = ports;
  }

  /** Of one lane, in order: one fate for each. */
  async leave(lane: Lane, creates: readonly ForwardedCreate[]): Promise<readonly Fate[]> {
    const key = laneKey(lane);
    const room = Math.max(0, this.ports.perLane - (this.underWay.get(key) ?? 0));
    const within = creates.slice(0, room);
    this.count(key, within.length);
    try {
      const fates = await Promise.all(within.map((create) => this.leaveOne(lane, create)));
      return [...fates, ...creates.slice(room).map(queueFull)];
    } finally {
      this.count(key, -within.length);
    }
  }

  private count(key: LaneKey, creates: number): void {
    const left = (this.underWay.get(key) ?? 0) + creates;
    if (left === 0) this.underWay.delete(key);
    else this.underWay.set(key, left);
  }

  private async leaveOne(lane: Lane, create: ForwardedCreate): Promise<Fate> {
    const bytes = bytesOf(create);
    if (bytes === null) return invalid("", "must be JSON: another process acts for this signer, and has to be told");
    if (bytes > MOST_BYTES) return tooLarge();
    return new Promise((resolve) => {
      const each = { create, bytes, resolve };
      const unsent = this.unsent.get(laneKey(lane));
      if (unsent !== undefined) unsent.push(each);
      else void this.send(lane, [each]);
    });
  }

  /** One row at a time, so that they stand there in the order of the calls; creates that come meanwhile share the next. */
  private async send(lane: Lane, unsent: Unsent[]): Promise<void> {
    this.unsent.set(laneKey(lane), unsent);
    await Promise.resolve();
    while (unsent.length > 0) await this.write(lane, unsent.splice(0, parcelIn(unsent)));
    this.unsent.delete(laneKey(lane));
  }

  /** Resolves once the row stands there, or it is known that it will not; its creates are told when the owner has answered. */
  private write(lane: Lane, parcel: readonly Unsent[]): Promise<void> {
    const body = {
      creates: parcel.map(({ create: { owner, ...rest } }) => (owner === null ? rest : { ...rest, owner })),
    };
    return new Promise((resolve) => {
      const request = { action: CREATES_LEFT, body, owner: null, repeatable: true };
      const asking = this.ports.throughDatabase.ask(lane, request, resolve);
      const failed = (cause: unknown) => outcomeUnknown(UNHEARD, { cause });
      void asking.catch(failed).then((fate) => {
        parcel.forEach(({ create, resolve: tell }, at) => void tell(fateOf(fate, create.txId, at)));
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

/** As many as a row holds, and one at least. */
function parcelIn(unsent: readonly Unsent[]): number {
  let bytes = 0;
  const end = unsent.findIndex((each, at) => {
    bytes += each.bytes;
    return at === MOST_AT_ONCE || (at > 0 && bytes > MOST_BYTES);
  });
  return end === -1 ? unsent.length : end;
}

function fateOf(fate: AnswerOf<LaneAnswer>, txId: string, at: number): Fate {
  if (fate instanceof FencepostError) {
    return fate.extras.outcome === "unknown" ? outcomeUnknown(UNHEARD, { txId, cause: fate }) : fate;
  }
  const { results } = Object(fate.answer) as { readonly results?: unknown };
  const result: unknown = Array.isArray(results) ? results[at] : undefined;
  if (typeof result !== "object" || result === null) return outcomeUnknown(UNHEARD, { txId });
  const fields = result as Readonly<Record<string, unknown>>;
  const answer = typeof fields.code === "string" ? errorFrom(fields) : readForwardedAnswer(fields);
  return answer === null || typeof answer === "string" ? outcomeUnknown(UNHEARD, { txId }) : answer;
}

function tooLarge(): FencepostError {
  const detail = `another process acts for this signer, which is told of at most ${MOST_BYTES / 1024} KiB; nothing was accepted`;
  return new FencepostError("PAYLOAD_TOO_LARGE", detail);
}
