import type { Fence } from "../../../src/domain/lane.ts";
import type { LedgerWrite } from "../../../src/domain/ledger/index.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { DatabaseState } from "../../doubles/memory-store/state.ts";

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
/** Most writes of a kind, and most values of a field, that are remembered. */
const MOST = 40;
/** Share of the echoes that are about an intent without a nonce, if one waits. */
const OF_INTAKE = 0.3;
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

  constructor(dice: Dice) {
    this.dice = dice;
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
    const writes = dice.pick([...this.writes.values()]);
    const own = writes.filter((each) => each.fence.lane.signer === fence.lane.signer);
    const chosen = dice.pick(own.length > 0 && dice.chance(0.8) ? own : writes);
    const places = dice.chance(0.25) ? [] : this.placesIn(chosen);
    const place = places.length === 0 ? null : dice.pick(places);
    const echo = place === null ? chosen : this.exchanged(chosen, place);
    return { write: { ...(echo as LedgerWrite), fence }, at: this.timeNear(now) };
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
        const known = this.values.get(to) ?? [];
        this.values.set(to, known);
        this.keep(known, each);
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

  private exchanged(write: LedgerWrite, place: readonly string[]): unknown {
    const change = (value: unknown, [name = "", ...rest]: readonly string[], path: string): unknown => {
      const to = pathTo(path, value, name);
      const known = this.values.get(to) ?? [];
      const before = (value as Record<string, unknown>)[name];
      const after = rest.length > 0 ? change(before, rest, to) : known.length === 0 ? before : this.dice.pick(known);
      if (Array.isArray(value)) return value.map((each, index) => (String(index) === name ? after : each));
      return { ...(value as object), [name]: after };
    };
    return change(write, place, write.kind);
  }
}

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
