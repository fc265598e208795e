/**
 * The one door of a lane. Everything that a lane waits for, writes or sends goes through its term, so that no code has
 * to ask after each wait whether the lane is still ours: past the end of the term the next step throws `TermOver`, and
 * the loop that began the work ends.
 *
 * Four things end the right to go on. The term itself: the lane was lost to another node, released, or is about to be
 * reloaded. Our own deadline (lease.ts, `mayAct`), which stops writes and sends. A session lock whose loss others may
 * take for the end of this process (`maySend`), which stops sends. And a kill, which does the same. Reads need the term
 * only.
 *
 * An outcome is not hidden: the result of a write reaches the caller that waits for it, also if the term ended
 * meanwhile. `TermOver` from a write means that nothing was written.
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
  /** Orders to stop: whether one is in force for a signer, or may be. */
  readonly kills: { holds(signer: Address): boolean };
  readonly telemetry: Telemetry;
  /** Drops this reading of the lane, and reads it from the database: now, or as soon as that answers. */
  readonly reload: (reading: { readonly term: Term }, reason: string) => void;
}

/** "lost": another node may have the lane. "putOff": let go, or read again; its work is done by the next reading. */
export type Ending = "lost" | "putOff";

/** Nothing more may be done for the lane by this reading of it. */
export class TermOver extends Error {
  /** "lapsed": the term itself has not ended, but our own deadline has come. */
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

  /** Lost, let go, or about to be read again. */
  get hasEnded(): boolean {
    return this.ending !== null;
  }

  /** True if a write is allowed now: the term is not over, and our own deadline has not come. */
  get mayAct(): boolean {
    return this.ending === null && this.ports.lease.mayAct();
  }

  get maySend(): boolean {
    return this.ending === null && this.ports.lease.maySend() && !this.isKilled;
  }

  /** A kill is in force, or may be. */
  get isKilled(): boolean {
    return this.ports.kills.holds(this.fence.lane.signer);
  }

  end(how: Ending): void {
    if (this.ending !== "lost") this.ending = how;
  }

  /** Memory and database may differ: the one is dropped, and the other read. */
  readAgain(reason: string): void {
    if (this.ending === null) this.ports.reload({ term: this }, reason);
  }

  /** Null past the end: nothing begins then. */
  begin<T>(work: () => T): T | null {
    return this.ending === null ? work() : null;
  }

  /** Null past our own deadline, too. For work that is useless if it cannot be written. */
  work<T>(work: () => T): T | null {
    return this.mayAct ? work() : null;
  }

  /**
   * Waits for a read, and throws if the term has ended by then, also in place of the read's own error. `write` names
   * the write that the read prepared: it is counted if it came too late.
   */
  during<T>(work: Promise<T>, write?: string): Promise<T> {
    return work.then(write === undefined ? this.pass : (value) => this.pass(value, write), this.fail);
  }

  /**
   * Past the end nothing is written. Else what became of the write, whatever became of the term meanwhile. Where the
   * database did not say (`OutcomeUnknown`), memory may differ from it: the lane is read again.
   */
  write<K extends LaneWrite["kind"]>(write: { readonly kind: K } & Unfenced<K>): Promise<OutcomeOf<K>> {
    if (!this.mayAct) return Promise.reject(this.tooLate(write.kind));
    // `fence` comes first: in this order V8 copies the write in a third of the time.
    const fenced = { fence: this.fence, ...write } as unknown as LaneWrite;
    return this.ports.writer.write(fenced).then(this.written, this.unwritten) as Promise<OutcomeOf<K>>;
  }

  /** Past the end nothing is signed. */
  sign<T>(sign: () => Promise<T>): Promise<T> {
    return this.mayAct ? this.during(sign(), "sign") : Promise.reject(this.over());
  }

  /**
   * Past the end nothing is sent. What a node said to bytes that left before is noted by the next reading of the lane.
   * `send` is given the term's part of the question that is asked when bytes are handed to a socket: much may happen before.
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

  /** The writer has notified the lanes, and counted it. */
  private readonly written = (outcome: WriteOutcome): WriteOutcome => {
    if (outcome.status !== "fenced") return outcome;
    this.end("lost");
    throw this.over();
  };

  /** Not made, and by now too late: counted by the writer, and like what the database refuses it may be done elsewhere. */
  private readonly unwritten = (error: unknown): never => {
    if (error instanceof OutcomeUnknown) this.readAgain("the database did not say what became of a write");
    throw error instanceof StoreUnavailable && this.isLate ? this.over() : error;
  };

  private get isLate() {
    return this.ending === "lost" || !this.ports.lease.mayAct();
  }

  /** A term that was put off has its work done later. One that was lost, or is past the deadline, has come too late. */
  private tooLate(write: string) {
    if (this.ending !== "putOff") noteFenced(this.ports.telemetry, this.fence, write, "deadline");
    return this.over();
  }

  private over() {
    return new TermOver(this.ending ?? "lapsed");
  }
}

/**
 * Late writes, counted. Most are refused by the database, which is what makes them harmless. Some it never sees, because
 * this node knows by then that the term is over. How late one is must make no difference to who counts them.
 */
export function noteFenced(
  telemetry: Telemetry,
  { lane, token }: Fence,
  write: string,
  stoppedBy: "database" | "deadline",
): void {
  telemetry.emit({ type: "lease.fenced", lane, token, write, stoppedBy });
}

/** The result of the work, or the given value if the term ended it. */
export function unlessOver<T, E>(work: Promise<T>, otherwise: (over: TermOver) => E | Promise<E>): Promise<T | E> {
  return work.catch((error: unknown) => {
    if (error instanceof TermOver) return otherwise(error);
    throw error;
  });
}

/** For work that others do not depend on: the end of its term is no failure of theirs. False: the term ended it. */
export function quietly(work: Promise<unknown>): Promise<boolean> {
  return unlessOver(
    work.then(() => true),
    () => false,
  );
}
