import {
  type ActionKey,
  type AllocateWrite,
  type BindWrite,
  isSpent,
  type LaneDecision,
  type Ledger,
  type LedgerWrite,
  type SettleIntakeWrite,
  type TransitionItem,
} from "../../../src/domain/ledger/index.ts";
import type { Intent, SignedAttempt } from "../../../src/domain/transaction/transaction.ts";
import { isSettled, type Status, TRANSITIONS, transition } from "../../../src/domain/transaction/transitions.ts";

interface Judged {
  readonly nowMs: number;
  readonly judged: string | undefined;
}

type IntakeResult = SettleIntakeWrite["results"][number];
type Named = Pick<Intent, "txId" | "requestId" | "fingerprint">;
interface NaiveTransaction extends Named, Status {
  nonce: number | null;
  live: boolean;
  attempts: number;
  /** The attempts, each with its hash as soon as it is known. */
  signed?: readonly Pick<SignedAttempt, "txHash" | "rawTransaction" | "nodeSigned">[];
  block: number | null;
  held?: boolean;
  validUntil?: Date | undefined;
  pinned?: boolean;
}

interface NaiveIntent extends Named {
  readonly unanswered: boolean;
  readonly held?: boolean;
  readonly validUntil?: Date | undefined;
  readonly approval?: { readonly approved: boolean; readonly expiresAt: Date } | null;
}

interface NaiveReservation {
  readonly nonce: number;
  readonly requestId: string | null;
  readonly owner: string | null;
  state: string;
  readonly endsMs: number;
  readonly ttlMs: number;
}

/**
 * A naive model of a lane, written directly from its rules: lists that are scanned and changed in place, and outcomes
 * as strings. It shares only types and the table of transitions with the ledger. It throws on a write that is a
 * mistake.
 */
export class NaiveLane {
  cursor: number | null = null;
  suspendedBy: string | null = null;
  reconciled = true;
  mayHaveLost = false;
  /** True while the policies in force are ones that nobody can read. */
  unreadable = false;
  /** Nonces below it may have been used by what the database has lost. */
  epochFloor = 0;
  /**
   * What holds each assigned nonce: `tx:…`, `reserved:…`, or `hole:` with the reason why the nonce is unused. A nonce
   * below the lane's next nonce without an entry was skipped.
   */
  places = new Map<number, string>();
  transactions = new Map<string, NaiveTransaction>();
  reservations = new Map<string, NaiveReservation>();
  /**
   * Times of automatic repairs. Each repair put a placeholder at the nonce of an expired reservation, without a
   * person's decision.
   */
  repairs: number[] = [];
  waiting = new Map<number, NaiveIntent>();
  owners = new Map<string, string>();
  /** Transactions that have the request ids of pools, in any lane, by pool and request id. */
  pooled = new Map<string, Pick<NaiveTransaction, "txId" | "fingerprint">>();

  /** For each item of the next write, what the policies say about it, which this lane does not know: absent, nothing. */
  judged: readonly (string | undefined)[] = [];
  /** Keys of actions that were carried out. */
  private keys = new Set<string>();

  /** The same lane once more, for a write that is only tried. */
  copy(): NaiveLane {
    return Object.assign(new NaiveLane(), this, {
      places: new Map(this.places),
      transactions: copied(this.transactions),
      reservations: copied(this.reservations),
      repairs: [...this.repairs],
      waiting: new Map(this.waiting),
      owners: new Map(this.owners),
      pooled: new Map(this.pooled),
      keys: new Set(this.keys),
    });
  }

  apply(write: LedgerWrite, nowMs: number): string {
    switch (write.kind) {
      case "allocate":
        return write.items
          .map((item, index) => this.allocate(write, item, { nowMs, judged: this.judged[index] }))
          .join();
      case "transition":
        return write.items.map((item, index) => this.move(item, { nowMs, judged: this.judged[index] })).join();
      case "reconcile":
        if (!this.reconciled && this.mayHaveLost && this.cursor === null && write.floor > 0)
          this.suspendedBy = "HISTORY";
        this.reconciled = true;
        return `${this.raise(write.floor)}, ${this.suspendedBy}`;
      case "align":
        return this.raise(write.floor);
      case "realign":
        return this.isFirst(write.decision) ? this.realign(write.floor) : `at ${this.cursor ?? write.floor}`;
      case "suspend":
        if (this.isFirst(write.decision)) this.suspendedBy = write.suspended ? (this.suspendedBy ?? "OPERATOR") : null;
        return "done";
      case "unwatch":
        for (const tx of this.transactions.values())
          if (isSettled(tx.state) && tx.block !== null && tx.block <= write.throughBlock) tx.live = false;
        return "done";
      case "settleIntake":
        for (const result of write.results) this.settleIntake(result, nowMs);
        return "done";
      case "reserve": {
        const { reservationId, requestId, ttlMs, owner: key, most } = write;
        for (const [id, { requestId: name }] of this.reservations)
          if (name !== null && name === requestId) return `existing ${id} ${this.seen(id, nowMs)}`;
        const owner = this.owners.get(requestId ?? "");
        if (owner !== undefined) return `taken by ${owner}`;
        const kept = [...this.reservations.values()].filter((each) => each.owner === key && this.isKept(each));
        if (kept.length >= most) return "tooMany";
        const nonce = this.givesNoNonce() ? null : this.give(write, `reserved:${reservationId}`);
        if (nonce === null) return "noCursor";
        if (this.reservations.has(reservationId)) throw new Error("it exists");
        this.reservations.set(reservationId, {
          nonce,
          requestId,
          owner: key,
          state: "RESERVED",
          endsMs: nowMs + ttlMs,
          ttlMs,
        });
        return `reserved ${nonce}`;
      }
      case "release":
        return this.settle(write.reservationId, "RELEASED", { nowMs, place: "hole:released" });
      case "expire": {
        // If far more than its time is left, the clock was set back.
        const past = [...this.reservations].filter(([, { state, endsMs, ttlMs }]) => {
          return state === "RESERVED" && (endsMs <= nowMs || endsMs - nowMs > 2 * ttlMs);
        });
        for (const [id] of past) this.settle(id, "EXPIRED", { nowMs: 0, place: "hole:expired" });
        return `holes ${past.map(([, { nonce }]) => nonce).sort((a, b) => a - b)}`;
      }
      case "bind":
        return this.bind(write, nowMs);
      case "closeHoles":
        for (const nonce of write.nonces) if (this.isHole(nonce)) this.places.delete(nonce);
        return "done";
      case "findSkipped": {
        const given = Array.from({ length: Math.min(write.below, this.cursor ?? 0) }, (_, nonce) => nonce);
        const skipped = given.filter((nonce) => nonce >= write.from && !this.places.has(nonce));
        for (const nonce of skipped) this.places.set(nonce, "hole:givenUp");
        return `holes ${skipped}`;
      }
      case "signMessage":
      case "settleMessage":
        throw new Error("messages have a model of their own");
    }
  }

  /** False for an action whose key was used before. */
  private isFirst(decision: Pick<LaneDecision, "actionKey"> | null | undefined): boolean {
    if (decision?.actionKey === undefined) return true;
    if (this.hasKeyOf(decision)) return false;
    this.keys.add(nameOf(decision.actionKey));
    return true;
  }

  private hasKeyOf(decision: Pick<LaneDecision, "actionKey"> | null | undefined): boolean {
    return decision?.actionKey !== undefined && this.keys.has(nameOf(decision.actionKey));
  }

  private isHeld(): boolean {
    return !this.reconciled || this.suspendedBy === "HISTORY";
  }

  private givesNoNonce(): boolean {
    return this.isHeld() || this.unreadable;
  }

  private isHole(nonce: number): boolean {
    return this.places.get(nonce)?.startsWith("hole:") === true;
  }

  private isFree(nonce: number): boolean {
    return this.isHole(nonce) && this.places.get(nonce) !== "hole:expired";
  }

  private settleIntake(result: IntakeResult, nowMs: number): void {
    const row = this.waiting.get(result.intakeId);
    if (row === undefined) return;
    if (result.result === "decided") {
      this.decide(row, result, nowMs);
      return;
    }
    this.waiting.delete(result.intakeId);
    if (result.result === "alias") return;
    const isDeclined = row.unanswered && result.problem !== undefined;
    const isOurs = row.unanswered || result.ifUnanswered !== true;
    if (!isDeclined && isOurs) this.insert(row, null, result.event === "refuse");
  }

  /** The first decision about a waiting intent counts. Late, every decision lets it expire, unless it is on hold. */
  private decide(
    row: NaiveIntent,
    { event, intakeId, decision }: Extract<IntakeResult, { result: "decided" }>,
    nowMs: number,
  ): void {
    if (this.hasKeyOf(decision)) return;
    if (event === "hold" || event === "unhold") return void this.isFirst(decision);
    const { approval = null, held = false } = row;
    const isUnapproved = approval?.approved === false;
    const isLate = !held && (isOver(row.validUntil, nowMs) || (isUnapproved && isOver(approval.expiresAt, nowMs)));
    if (!isLate && (event === "expire" || !(event === "callOff" ? approval !== null || held : isUnapproved))) return;
    if (!isLate) this.isFirst(decision);
    const approved = this.transactions.get(row.txId);
    if (!isLate && event === "approve" && approved !== undefined) Object.assign(approved, { subState: null });
    if (!isLate && event === "approve") return;
    this.waiting.delete(intakeId);
    const twin = this.transactions.get(this.owners.get(row.requestId ?? "") ?? "");
    const isAlias = twin !== undefined && twin.fingerprint === row.fingerprint && twin.txId !== row.txId;
    const isDeclined = row.unanswered && isOver(row.validUntil, nowMs);
    if (isAlias || isDeclined) return;
    const subState = isLate ? "EXPIRED" : event === "callOff" ? "CANCELLED" : "REJECTED";
    this.insert(row, null, twin === undefined, { state: "FAILED_FINAL", subState });
  }

  private insert(named: Named, nonce: number | null, isOwner: boolean, as?: Status): NaiveTransaction {
    const { txId, requestId, fingerprint } = named;
    if ((this.transactions.get(txId)?.state ?? "CREATED") !== "CREATED") throw new Error("it exists");
    const failed = { state: "FAILED_FINAL", subState: isOwner ? "REJECTED" : "REQUEST_ID_REUSED" } as const;
    const status = as ?? (nonce === null ? failed : ({ state: "ALLOCATED", subState: null } as const));
    const tx = { txId, requestId, fingerprint, nonce, ...status, live: nonce !== null, attempts: 0, block: null };
    this.transactions.set(txId, tx);
    if (requestId !== null && isOwner && !this.owners.has(requestId)) this.owners.set(requestId, txId);
    return tx;
  }

  private give({ floor, fill = [] }: Pick<AllocateWrite, "floor" | "fill">, to: string): number | null {
    if (this.cursor === null && floor === null) return null;
    const free = fill.filter((nonce) => nonce >= (floor ?? 0) && this.isFree(nonce));
    const nonce = free.length > 0 ? Math.min(...free) : Math.max(this.cursor ?? 0, floor ?? 0);
    if (free.length === 0) this.cursor = nonce + 1;
    this.places.set(nonce, to);
    return nonce;
  }

  private allocate(
    write: AllocateWrite,
    { intent, intakeId, mayExist }: AllocateWrite["items"][number],
    { nowMs, judged }: Judged,
  ): string {
    const { txId, requestId, fingerprint, validUntil } = intent;
    const isNamed = intakeId !== undefined || mayExist === true;
    const pool = requestId === null || intent.pool === undefined ? "" : `${intent.pool} ${requestId}`;
    const ofPool = this.pooled.get(pool);
    const owner = this.owners.get(requestId ?? "");
    const twin = this.transactions.get(owner ?? "") ?? ofPool ?? this.transactions.get(isNamed ? txId : "");
    const isItself = twin?.txId === txId && intakeId !== undefined && this.transactions.get(txId)?.state === "CREATED";
    if (twin !== undefined && !isItself) return `${twin.fingerprint === fingerprint ? "again" : "reused"} ${twin.txId}`;
    if (this.givesNoNonce()) return this.isHeld() ? "held" : "unreadable";
    if (intakeId !== undefined && this.waiting.get(intakeId)?.txId !== txId) throw new Error("it does not wait");
    if (intakeId !== undefined && this.waiting.get(intakeId)?.held === true) return "held";
    if (isOver(validUntil, nowMs)) return "expired";
    if (intakeId !== undefined && this.waiting.get(intakeId)?.approval?.approved === false) return "awaiting";
    if (intakeId === undefined && this.transactions.has(txId)) throw new Error("it exists");
    if (judged === "awaiting" && intent.exactNonce !== undefined) return "forbidden";
    if (judged === "awaiting") this.insert(intent, null, true, { state: "CREATED", subState: "AWAITING_APPROVAL" });
    if (judged !== undefined) return judged;
    const isPinned = intent.exactNonce !== undefined;
    const next = Math.max(this.cursor ?? 0, write.floor ?? 0);
    const isNew = this.cursor === null && write.floor === null;
    if (isPinned && !isNew && intent.exactNonce !== next) return "otherNonce";
    const nonce = this.give(isPinned ? { floor: write.floor } : write, `tx:${txId}`);
    if (nonce === null) return "noCursor";
    this.waiting.delete(intakeId ?? -1);
    Object.assign(this.insert(intent, nonce, true), { validUntil, pinned: isPinned });
    if (pool !== "") this.pooled.set(pool, { txId, fingerprint });
    return `created ${nonce}`;
  }

  private move(item: TransitionItem, judged: Judged): string {
    if (judged.judged !== undefined) return judged.judged;
    if (!this.moves(item, judged.nowMs)) return "conflict";
    return this.unreadable && item.spends !== undefined ? "forbidden" : "applied";
  }

  private moves(item: TransitionItem, nowMs: number): boolean {
    const { txId, event, from, attempt, claim, accepted, receipt } = item;
    const tx = this.transactions.get(txId);
    const rule: { to: unknown; fromSubStates?: readonly (string | null)[] } = TRANSITIONS[event];
    if (!tx?.live || tx.state !== from || (rule.to === "same" && tx.subState !== item.subState)) return false;
    if (tx.subState !== null && rule.fromSubStates?.includes(tx.subState) === false) return false;
    if ((claim !== undefined || event === "expire") && this.isHeld()) return false;
    if ((event === "expire" || item.expires) && (tx.held || !isOver(tx.validUntil, nowMs))) return false;
    if (event === "expire" && tx.attempts === 0 && this.isBelowWhatStays(tx.nonce as number)) return false;
    if (claim !== undefined && tx.held && !item.decision && !item.sendRequested) return false;
    if (this.hasKeyOf(item.decision)) return false;
    const to = transition({ state: tx.state, subState: tx.subState }, event);
    if (to.state !== item.to || to.subState !== item.subState) throw new Error("the table has no such road");
    const attempts = tx.attempts + (attempt === undefined ? 0 : 1);
    if ((attempt?.ordinal ?? attempts) !== attempts) throw new Error("out of turn");
    if (Math.max(claim?.ordinal ?? 0, accepted?.ordinal ?? 0) > attempts) throw new Error("no such attempt");
    if (item.to === "TRACKING" && attempts === 0) throw new Error("never signed");
    const signed = [...(tx.signed ?? []), ...(attempt === undefined ? [] : [attempt])];
    if (item.identified !== undefined) identify(signed, item.identified);
    if (!this.moveNonce(tx, item, item.nonce ?? null)) return false;
    tx.signed = signed;
    this.isFirst(item.decision);
    if (receipt !== undefined) tx.block = receipt?.blockNumber ?? null;
    Object.assign(tx, to, { attempts });
    if (event === "hold" || event === "unhold") tx.held = event === "hold";
    // A final transaction cannot be on hold: if a reorg made it pending again, nobody could release it.
    if (item.to === "CONFIRMED" || item.to === "FAILED_FINAL") tx.held = false;
    return true;
  }

  /**
   * True if something above this nonce cannot move down: a signed transaction, a transaction whose nonce the caller
   * named, or an open reservation.
   */
  private isBelowWhatStays(nonce: number): boolean {
    const transactions = [...this.transactions.values()].filter(
      (tx) => tx.live && (tx.state !== "ALLOCATED" || tx.attempts > 0 || tx.pinned),
    );
    const reserved = [...this.reservations.values()].filter(({ state }) => state === "RESERVED");
    return [...transactions, ...reserved].some((each) => each.nonce !== null && each.nonce > nonce);
  }

  private moveNonce(tx: NaiveTransaction, { txId, event }: TransitionItem, nonce: number | null): boolean {
    const left = tx.nonce as number;
    if (event !== "giveUp" && event !== "expire" && nonce === null) return true;
    if (tx.attempts > 0) throw new Error("it was signed");
    if (nonce !== null && (tx.pinned || left < this.epochFloor)) throw new Error("it may not move");
    if (nonce !== null && (nonce >= left || !this.isFree(nonce))) return false;
    this.places.delete(left);
    this.places.set(left, nonce === null ? "hole:givenUp" : "hole:shiftedDown");
    tx.nonce = nonce;
    tx.live = tx.nonce !== null;
    if (nonce !== null) this.places.set(nonce, `tx:${txId}`);
    return true;
  }

  private raise(floor: number): string {
    this.cursor = Math.max(this.cursor ?? 0, floor);
    return `at ${this.cursor}`;
  }

  private realign(floor: number): string {
    if (this.cursor === null) return `at ${floor}`;
    const left = [...this.reservations.values()].filter(({ state }) => state !== "RELEASED");
    const held = [...this.transactions.values(), ...left].map(({ nonce }) => (nonce ?? -1) + 1);
    this.cursor = Math.min(this.cursor, Math.max(floor, ...held));
    for (const nonce of [...this.places.keys()]) if (nonce >= this.cursor) this.places.delete(nonce);
    return `at ${this.cursor}`;
  }

  private seen(id: string, nowMs: number): string {
    const { state = "unknown", endsMs = 0 } = this.reservations.get(id) ?? {};
    return state === "RESERVED" && endsMs <= nowMs ? "EXPIRED" : state;
  }

  /**
   * True if the nonce still belongs to the caller who reserved it: the reservation is open, or it expired and nothing
   * else has used the nonce.
   */
  private isKept({ nonce, state }: NaiveReservation): boolean {
    return state === "RESERVED" || (state === "EXPIRED" && this.places.get(nonce) === "hole:expired");
  }

  private settle(id: string, state: string, { nowMs, place }: { nowMs: number; place: string }): string {
    const found = this.reservations.get(id);
    const isFresh = this.seen(id, nowMs) === "RESERVED";
    if (found === undefined || !(place === "" ? this.isKept(found) : isFresh)) return "conflict";
    found.state = state;
    this.places.set(found.nonce, place);
    return "settled";
  }

  private bind({ reservation, nonce, intent, attempt, decision, chosen }: BindWrite, nowMs: number): string {
    const requestId = this.owners.has(intent.requestId ?? "") ? null : intent.requestId;
    if (this.hasKeyOf(decision)) return `conflict ${requestId}`;
    if (this.judged[0] !== undefined) return `${this.judged[0]} ${requestId}`;
    if (this.givesNoNonce()) return `held ${requestId}`;
    if (chosen !== undefined && !this.mayChoose(nonce, intent, chosen.floor)) return `conflict ${requestId}`;
    if (chosen !== undefined) return this.insertBound({ ...intent, requestId }, { nonce, attempt, decision });
    const { reservationId = "", becomes = "EXPIRED" } = reservation ?? {};
    const isOther = becomes !== "EXPIRED" && this.reservations.get(reservationId)?.nonce !== nonce;
    if (isOther || (becomes === "EXPIRED" && !this.isHole(nonce))) return `conflict ${requestId}`;
    if (reservation?.becomes === "EXPIRED" && reservation.mostPerHour !== undefined) {
      const hour = Math.floor(nowMs / 3_600_000);
      const many = this.repairs.filter((ms) => Math.floor(ms / 3_600_000) === hour).length;
      if (many >= reservation.mostPerHour) return `limited ${requestId}`;
      this.repairs.push(nowMs);
    }
    const result = becomes === "EXPIRED" ? "settled" : this.settle(reservationId, becomes, { nowMs, place: "" });
    if (result !== "settled") return `${result} ${requestId}`;
    return this.insertBound({ ...intent, requestId }, { nonce, attempt, decision });
  }

  /** True if this caller may sign for the nonce: it has reserved it, or nobody has and it is the next one. */
  private mayChoose(nonce: number, { owner }: Pick<Intent, "owner">, floor: number | null): boolean {
    const reserved = [...this.reservations.values()].find((each) => each.nonce === nonce && each.state === "RESERVED");
    if (reserved === undefined) {
      if (this.cursor === null && floor === null) return false;
      const isNext = nonce === Math.max(this.cursor ?? 0, floor ?? 0);
      if (isNext) this.cursor = nonce + 1;
      return isNext;
    }
    if (reserved.owner === owner) reserved.state = "SUBMITTED";
    return reserved.owner === owner;
  }

  private insertBound(
    named: Named,
    {
      nonce,
      attempt,
      decision,
    }: Pick<BindWrite, "nonce" | "attempt"> & { readonly decision: BindWrite["decision"] | undefined },
  ): string {
    this.isFirst(decision);
    const tx = this.insert(named, nonce, true);
    this.places.set(nonce, `tx:${tx.txId}`);
    Object.assign(tx, { state: "TRACKING", subState: "PENDING", attempts: 1, signed: [attempt] });
    return `settled ${named.requestId}`;
  }
}

/** Records the hash of a payload that a chain's node signed. Each has one. */
function identify(
  signed: Pick<SignedAttempt, "txHash" | "rawTransaction" | "nodeSigned">[],
  { ordinal, txHash }: NonNullable<TransitionItem["identified"]>,
): void {
  const named = signed[ordinal - 1];
  if (named?.nodeSigned !== true || (named.txHash !== null && named.txHash !== txHash)) throw new Error("another hash");
  signed[ordinal - 1] = { ...named, txHash };
}

/** The same key names another action where it is about another subject. */
const nameOf = ({ subject, key }: ActionKey) => JSON.stringify([subject, key]);

const copied = <T extends object>(rows: ReadonlyMap<string, T>) =>
  new Map([...rows].map(([key, row]) => [key, { ...row }]));

function isOver(validUntil: Date | undefined, nowMs: number): boolean {
  return validUntil !== undefined && validUntil.getTime() <= nowMs;
}

/** Outcome of a write to the naive lane, in the words of `wordsOf`. */
export function outcomeOf(naive: NaiveLane, write: LedgerWrite, at: Date): string {
  try {
    return naive.apply(write, at.getTime());
  } catch {
    return "mistake";
  }
}

/** What a ledger and a naive lane with the same writes have in common. */
export function standing(ledger: Ledger) {
  const places: (readonly [number, string])[] = [
    ...[...ledger.nonces.known()].map(([nonce, txId]) => [nonce, `tx:${txId}`] as const),
    ...[...ledger.reserved.known()].map(([nonce, id]) => [nonce, `reserved:${id}`] as const),
    ...[...ledger.holes.known()].map(([nonce, { why }]) => [nonce, `hole:${why}`] as const),
  ];
  return {
    ...{ cursor: ledger.cursor, suspendedBy: ledger.suspendedBy, reconciled: ledger.reconciled },
    places: places.sort(([a], [b]) => a - b),
    transactions: [...ledger.transactions.known()].map(
      ([txId, { state, subState, nonce, live, attemptCount, details }]) => [
        txId,
        { state, subState, nonce, live, attempts: attemptCount, block: details?.receipt?.blockNumber ?? null },
      ],
    ),
    reservations: [...ledger.reservations.known()].map(([id, { nonce, state }]) => [id, nonce, state]),
    owners: [...ledger.requests.known()].map(([requestId, owner]) => [
      requestId,
      isSpent(owner) ? "spent" : owner.txId,
    ]),
  };
}

export function standingOf(naive: NaiveLane): ReturnType<typeof standing> {
  const byKey = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...{ cursor: naive.cursor, suspendedBy: naive.suspendedBy as Ledger["suspendedBy"], reconciled: naive.reconciled },
    places: [...naive.places].sort(([a], [b]) => a - b),
    transactions: byKey(naive.transactions).map(([txId, { state, subState, nonce, live, attempts, block }]) => [
      txId,
      { state, subState, nonce, live, attempts, block },
    ]),
    reservations: byKey(naive.reservations).map(([id, { nonce, state }]) => [id, nonce, state]),
    owners: byKey(naive.owners),
  };
}
