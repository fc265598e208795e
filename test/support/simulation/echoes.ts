import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type { Ledger, LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { unreadablePolicies } from "../../../src/domain/policy/parse.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { DatabaseState } from "../../doubles/memory-store/state.ts";
import { Aims, type Known } from "./aims.ts";

/** Fields of writes that an echo may take from another write of the same kind. */
const EXCHANGED: ReadonlySet<string> = new Set([
  ...["txId", "requestId", "fingerprint", "owner", "pool", "intakeId", "mayExist", "validUntil", "exactNonce"],
  ...["nonce", "floor", "fill", "below", "throughBlock", "from", "nonces", "reservationId", "becomes", "reservation"],
  ...[
    "ordinal",
    "attempt",
    "claim",
    "decision",
    "suspended",
    "most",
    "mostPerHour",
    "ttlMs",
    "actionKey",
    "unanswered",
  ],
  ...["event", "to", "subState", "sendRequested", "expires", "kind"],
]);
/** Fields that count nonces: an echo may take one near the lane's next nonce. */
const COUNTING: ReadonlySet<string> = new Set(["nonce", "floor", "below", "from", "exactNonce"]);
/** Fields that an echo may leave out. */
const OPTIONAL: ReadonlySet<string> = new Set(["attempt", "claim", "validUntil", "exactNonce", "mayExist"]);
/** Fields of which an echo may take one from a write of any kind. */
const ANYWHERE: ReadonlySet<string> = new Set(["decision"]);
/** Most writes of a kind, and most values of a field, that are remembered. */
const MOST = 40;
/** Share of the echoes that are about an intent without a nonce, if one waits. */
const OF_INTAKE = 0.3;
/** Share of the echoes that name another lane than the one that is locked for them. */
const OF_ANOTHER_LANE = 0.02;
/** Share of the echoes that are about what the lane holds at this moment. */
const AIMED = 0.4;
/** By how much the time of an echo may differ from now, in ms. */
const OTHER_TIMES_MS = [0, 0, 0, -3_600_000, -6_000, 6_000, 3_600_000] as const;

/**
 * Writes that no owner of a lane should make: earlier ones once more, late, or with one value of another write. The
 * ledger must not depend on what its owners believe.
 */
export class Echoes {
  private readonly dice: Dice;
  /** Writes by kind; steps by their event, because most are of few kinds. */
  private readonly writes = new Map<string, LedgerWrite[]>();
  private readonly values = new Map<string, unknown[]>();
  private readonly aims: Aims;

  constructor(dice: Dice) {
    this.dice = dice;
    this.aims = new Aims(dice);
  }

  /** Remembers a write. */
  remember(write: LedgerWrite): void {
    for (const single of singlesOf(write)) {
      const kind = kindOf(single);
      const known = this.writes.get(kind) ?? [];
      this.writes.set(kind, known);
      this.keep(known, single);
    }
    this.collect(write.kind, write);
  }

  /** A write to the lane of this one, and its time. */
  of({ fence }: LedgerWrite, now: Date, state: DatabaseState): { readonly write: LedgerWrite; readonly at: Date } {
    const { dice } = this;
    const ofIntake = dice.chance(OF_INTAKE) ? this.aboutIntake(fence, state) : null;
    if (ofIntake !== null) return { write: ofIntake, at: this.timeNear(now) };
    const aimed = dice.chance(AIMED) ? this.aims.write(fence, state, this.known()) : null;
    if (aimed !== null) return { write: aimed, at: this.endNear(aimed, state) ?? this.timeNear(now) };
    const writes = dice.pick([...this.writes.values()]);
    const own = writes.filter((each) => each.fence.lane.signer === fence.lane.signer);
    const chosen = dice.pick(own.length > 0 && dice.chance(0.8) ? own : writes);
    const places = dice.chance(0.25) ? [] : this.placesIn(chosen);
    const place = places.length === 0 ? null : dice.pick(places);
    const cursor = state.lane(fence.lane)?.cursor ?? 0;
    const echo = (place === null ? chosen : this.exchanged(chosen, place, cursor)) as LedgerWrite;
    const write = { ...(dice.chance(0.1) ? this.extended(echo, cursor) : echo), fence };
    return { write, at: this.endNear(write, state) ?? this.timeNear(now) };
  }

  private decisions(): Known["decisions"] {
    return (this.values.get("decision") ?? []) as Known["decisions"];
  }

  private known(): Known {
    const written = [...this.writes.values()].flat();
    return {
      steps: written.flatMap((write) => (write.kind === "transition" ? write.items : [])),
      items: written.flatMap((write) => (write.kind === "allocate" ? write.items : [])),
      binds: written.filter((write) => write.kind === "bind"),
      decisions: this.decisions().filter(({ actionKey }) => actionKey !== undefined),
    };
  }

  /** The policies of an echo: now and then ones that nobody can read, if there are any. */
  policies(known: Policies | null): Policies | null {
    return known !== null && this.dice.chance(0.05) ? unreadablePolicies({}, ["a rule that nobody knows"]) : known;
  }

  /** The lane of an echo: now and then one that waits for an operator since the database's history changed. */
  heldNow(ledger: Ledger): Ledger {
    return this.dice.chance(0.05) ? { ...ledger, suspendedBy: "HISTORY" } : ledger;
  }

  /** The lane that a write names instead of the one that is locked for it; null: the same. */
  otherLane({ lane }: Fence, state: DatabaseState): Lane | null {
    const others = [...state.lanes.values()].filter((each) => each.lane.signer !== lane.signer);
    return others.length > 0 && this.dice.chance(OF_ANOTHER_LANE) ? this.dice.pick(others).lane : null;
  }

  /** An allocation with a nonce that its caller names. */
  private extended(write: LedgerWrite, cursor: number): LedgerWrite {
    if (write.kind !== "allocate") return write;
    const exactNonce = cursor + this.dice.int(-1, 1);
    return { ...write, items: write.items.map((item) => ({ ...item, intent: { ...item.intent, exactNonce } })) };
  }

  /** The very millisecond at which a reservation ends, for a write that ends reservations. */
  private endNear({ kind, fence }: LedgerWrite, state: DatabaseState): Date | null {
    if (kind !== "expire" && kind !== "release" && kind !== "bind") return null;
    const open = state
      .reservations()
      .filter(({ lane, state }) => lane.signer === fence.lane.signer && state === "RESERVED");
    return open.length > 0 && this.dice.chance(0.4) ? this.dice.pick(open).expiresAt : null;
  }

  /** A nonce for an intent that still waits, or a decision about it. Null if none waits for this lane. */
  private aboutIntake(fence: Fence, { intake }: DatabaseState): LedgerWrite | null {
    const { dice } = this;
    const waiting = [...intake].filter(
      ([, { intent, aliasOf }]) => intent.lane.signer === fence.lane.signer && aliasOf === null,
    );
    if (waiting.length === 0) return null;
    const [intakeId, { intent }] = dice.pick(waiting);
    if (dice.chance(0.5)) {
      const item = { intent: { ...intent, gas: 21_000n, gasCost: 1n }, intakeId: dice.pick(waiting)[0] };
      return { kind: "allocate", fence, floor: null, items: [item] };
    }
    const event = dice.pick(["approve", "reject", "expire", "callOff"] as const);
    const decided = { intakeId, requestId: intent.requestId, event, reason: "", decision: null };
    return { kind: "settleIntake", fence, results: [{ ...decided, result: "decided" }] };
  }

  private timeNear(now: Date): Date {
    return new Date(now.getTime() + this.dice.pick(OTHER_TIMES_MS));
  }

  private keep<T>(list: T[], value: T): void {
    if (list.length < MOST) list.push(value);
    else list[this.dice.int(0, MOST - 1)] = value;
  }

  private collect(path: string, value: unknown): void {
    for (const [name, each] of fieldsOf(value)) {
      const to = pathTo(path, value, name);
      if (EXCHANGED.has(name)) {
        const place = ANYWHERE.has(name) ? name : to;
        const known = this.values.get(place) ?? [];
        this.values.set(place, known);
        if (!ANYWHERE.has(name) || each !== null) this.keep(known, each);
      }
      this.collect(to, each);
    }
  }

  /** Places of the fields that may be exchanged, each as the names that lead to it. */
  private placesIn(value: unknown): readonly (readonly string[])[] {
    return fieldsOf(value).flatMap(([name, each]) => [
      ...(EXCHANGED.has(name) ? [[name]] : []),
      ...this.placesIn(each).map((rest) => [name, ...rest]),
    ]);
  }

  private exchanged(write: LedgerWrite, place: readonly string[], cursor: number): unknown {
    const change = (value: unknown, [name = "", ...rest]: readonly string[], path: string): unknown => {
      const to = pathTo(path, value, name);
      const before = (value as Record<string, unknown>)[name];
      const mayLack = rest.length === 0 && OPTIONAL.has(name) && write.kind !== "bind";
      if (mayLack && this.dice.chance(0.2)) return without(value as object, name);
      const after = rest.length > 0 ? change(before, rest, to) : this.valueFor(name, to, { before, cursor });
      if (Array.isArray(value)) return value.map((each, index) => (String(index) === name ? after : each));
      return { ...(value as object), [name]: after };
    };
    return change(write, place, write.kind);
  }

  private valueFor(name: string, to: string, { before, cursor }: { before: unknown; cursor: number }): unknown {
    const near = () => Math.max(0, cursor + this.dice.int(-5, 2));
    if (COUNTING.has(name) && this.dice.chance(0.5)) return near();
    if (name === "fill" && this.dice.chance(0.5)) return [near()];
    const known = this.values.get(ANYWHERE.has(name) ? name : to) ?? [];
    return known.length === 0 ? before : this.dice.pick(known);
  }
}

const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([each]) => each !== name));

/** The write, with one of its items each, so that one that is refused hides no other. */
function singlesOf(write: LedgerWrite): readonly LedgerWrite[] {
  if (write.kind === "settleIntake") return write.results.map((result) => ({ ...write, results: [result] }));
  if (!("items" in write)) return [write];
  return (write.items as readonly unknown[]).map((item) => ({ ...write, items: [item] }) as LedgerWrite);
}

function kindOf(write: LedgerWrite): string {
  if (write.kind === "transition") return `transition ${write.items[0]?.event}`;
  return write.kind === "settleIntake" ? `settleIntake ${write.results[0]?.result}` : write.kind;
}

/** Fields of plain objects and lists. */
function fieldsOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null || value instanceof Date) return [];
  return Object.entries(value).filter(([name]) => name !== "fence");
}

function pathTo(path: string, value: unknown, name: string): string {
  return Array.isArray(value) ? path : `${path}.${name}`;
}
