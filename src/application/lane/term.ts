/**
 * Guards all actions of a lane. A term is the time during which this node owns the lane. Everything that a lane waits
 * for, writes or sends goes through its term, so that no code has to check after each wait whether the lane is still
 * ours: after the end of the term the next action throws `TermOver`, and the loop that began the work ends.
 *
 * Four things end the right to continue. The term itself: the lane was lost to another node, released, or is about to
 * be reloaded. Our own deadline (lease.ts, `mayAct`), which stops writes and sends. A lost session lock, from which
 * other nodes may conclude that this process is dead (`maySend`); it stops sends. And a kill, which also stops sends.
 * Reads need only the term.
 *
 * The outcome of a write is not hidden: it reaches the caller that waits for it, even if the term ended meanwhile.
 * `TermOver` from a write means that nothing was written.
 */
import type { Address, Fence } from "../../domain/lane.ts";
import type { MayLeave } from "../../ports/chain.ts";
import {
  type LaneWrite,
  type OutcomeOf,
  OutcomeUnknown,
  StoreUnavailable,
  type Unfenced,
  type WriteOutcome,
} from "../../ports/lane-store.ts";
import type { Telemetry } from "../../ports/telemetry.ts";

export interface TermPorts {
  readonly writer: { write(write: LaneWrite): Promise<WriteOutcome> };
  readonly lease: { mayAct(): boolean; maySend(): boolean };
  /** Port of the kills: true if a kill is, or may be, in force for a signer. */
  readonly kills: { holds(signer: Address): boolean };
  readonly telemetry: Telemetry;
  /**
   * Drops this copy of the lane in memory, and reloads it from the database: now, or as soon as the database answers.
   */
  readonly reload: (reading: { readonly term: Term }, reason: string) => void;
}

/**
 * How this node's ownership of the lane (the term) ended. "lost": another node may have the lane. "putOff": the lane
 * was released or is being reloaded, and its work is done after that.
 */
export type Ending = "lost" | "putOff";

/** Thrown after this node's ownership of the lane (the term) has ended: this copy of the lane may do nothing more. */
export class TermOver extends Error {
  /**
   * How the lane's term ended. "lapsed": the term itself has not ended, but this node's own lease deadline has passed.
   */
  readonly how: Ending | "lapsed";

  constructor(how: TermOver["how"] = "putOff") {
    super("the lane's term is over");
    this.name = "TermOver";
    this.how = how;
  }
}

export class Term {
  readonly fence;
  private readonly ports;
  private ending: Ending | null = null;

  constructor(fence: Fence, ports: TermPorts) {
    this.fence = fence;
    this.ports = ports;
  }

  /** True if the lane was lost, released, or is about to be reloaded. */
  get hasEnded(): boolean {
    return this.ending !== null;
  }

  /** True if a write is allowed now: this node still owns the lane, and its lease deadline has not passed. */
  get mayAct(): boolean {
    return this.ending === null && this.ports.lease.mayAct();
  }

  get maySend(): boolean {
    return this.ending === null && this.ports.lease.maySend() && !this.isKilled;
  }

  /** True if a kill is, or may be, in force for the signer. */
  get isKilled(): boolean {
    return this.ports.kills.holds(this.fence.lane.signer);
  }

  end(how: Ending): void {
    if (this.ending !== "lost") this.ending = how;
  }

  /** Drops the lane's memory and reloads it, because memory and database may differ. */
  readAgain(reason: string): void {
    if (this.ending === null) this.ports.reload({ term: this }, reason);
  }

  /** Runs the work and returns its result. If the term has already ended, returns null without running it. */
  begin<T>(work: () => T): T | null {
    return this.ending === null ? work() : null;
  }

  /**
   * Like `begin`, but also returns null if our own deadline has passed. For work whose result would have to be written.
   */
  work<T>(work: () => T): T | null {
    return this.mayAct ? work() : null;
  }

  /**
   * Waits for a read. If the term has ended by the time the read completes, throws `TermOver`, even if the read itself
   * failed. `write`: name of the write that needed this read. If the read succeeded but the lane was lost meanwhile,
   * that write is counted as fenced.
   */
  during<T>(work: Promise<T>, write?: string): Promise<T> {
    return work.then(write === undefined ? this.pass : (value) => this.pass(value, write), this.fail);
  }

  /**
   * Writes to the database, but only while this node owns the lane (its term). Returns the outcome of the write, even
   * if the term ended meanwhile. If the outcome is unknown (`OutcomeUnknown`), memory may differ from the database, so
   * the lane is reloaded.
   */
  write<K extends LaneWrite["kind"]>(write: { readonly kind: K } & Unfenced<K>): Promise<OutcomeOf<K>> {
    if (!this.mayAct) return Promise.reject(this.tooLate(write.kind));
    // `fence` comes first in the object: in this order V8 copies the write in a third of the time.
    const fenced = { fence: this.fence, ...write } as unknown as LaneWrite;
    return this.ports.writer.write(fenced).then(this.written, this.unwritten) as Promise<OutcomeOf<K>>;
  }

  /** Signs payloads, but only while this node owns the lane. */
  sign<T>(sign: () => Promise<T>): Promise<T> {
    return this.mayAct ? this.during(sign(), "sign") : Promise.reject(this.over());
  }

  /**
   * Sends bytes, but only while the term, our deadline, the session lock and the kills allow it. If the term ends after
   * bytes were sent, their response is dropped here: the next owner, or this node after a reload, looks the transaction
   * up or sends it again. `send` receives a check that it must call right before bytes are handed to a socket, because
   * the right to send may end in between.
   */
  send<T>(send: (mayLeave: MayLeave) => Promise<T>): Promise<T> {
    return this.maySend
      ? this.during(
          send(() => this.maySend),
          "broadcast",
        )
      : Promise.reject(this.over());
  }

  private readonly pass = <T>(value: T, write?: string): T => {
    if (this.ending !== null) throw write === undefined ? this.over() : this.tooLate(write);
    return value;
  };

  private readonly fail = (error: unknown): never => {
    throw this.ending === null ? error : this.over();
  };

  /**
   * Ends this node's ownership of the lane if the database refused a write as fenced. The writer has already reported
   * and counted that write.
   */
  private readonly written = (outcome: WriteOutcome): WriteOutcome => {
    if (outcome.status !== "fenced") return outcome;
    this.end("lost");
    throw this.over();
  };

  /**
   * Handles a failed write. If nothing was written and the lane was lost or our deadline has passed, another node may
   * do the work instead, so `TermOver` is thrown; the writer has already counted the write where it counts as fenced
   * (lanes.ts, `giveUp`). If the outcome is unknown, the lane is reloaded.
   */
  private readonly unwritten = (error: unknown): never => {
    if (error instanceof OutcomeUnknown) this.readAgain("the database did not say what became of a write");
    throw error instanceof StoreUnavailable && this.isLate ? this.over() : error;
  };

  private get isLate() {
    return this.ending === "lost" || !this.ports.lease.mayAct();
  }

  /**
   * Error for a write after the end of the term. The write is counted as fenced if the term was lost or the deadline
   * passed, but not after a release or reload, because the work is then done later.
   */
  private tooLate(write: string) {
    if (this.ending !== "putOff") noteFenced(this.ports.telemetry, this.fence, write, "deadline");
    return this.over();
  }

  private over() {
    return new TermOver(this.ending ?? "lapsed");
  }
}

/**
 * Counts writes that came after the end of their term. The database refuses most of them, which makes them harmless.
 * Others never reach the database, because this node already knows that the term is over; they are counted, too.
 */
export function noteFenced(
  telemetry: Telemetry,
  { lane, token }: Fence,
  write: string,
  stoppedBy: "database" | "deadline",
): void {
  telemetry.emit({ type: "lease.fenced", lane, token, write, stoppedBy });
}

/**
 * Returns the result of the work. If the work stopped because its term ended, returns the value of `otherwise` instead.
 */
export function unlessOver<T, E>(work: Promise<T>, otherwise: (over: TermOver) => E | Promise<E>): Promise<T | E> {
  return work.catch((error: unknown) => {
    if (error instanceof TermOver) return otherwise(error);
    throw error;
  });
}

/**
 * For work that no other work depends on: does not treat the end of the lane's term as a failure. Returns false if the
 * term ended before the work was done.
 */
export function quietly(work: Promise<unknown>): Promise<boolean> {
  return unlessOver(
    work.then(() => true),
    () => false,
  );
}
