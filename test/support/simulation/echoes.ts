import type { LedgerWrite } from "../../../src/domain/ledger/index.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";

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
/** Most writes, and most values of a field, that are remembered. */
const MOST = 60;
/** By how much the time of an echo may differ from now, in ms. */
const OTHER_TIMES_MS = [0, 0, 0, -3_600_000, -6_000, 6_000, 3_600_000] as const;

/**
 * Writes that no owner of a lane should make: earlier ones once more, late, or with one value of another write. The
 * ledger must not depend on what its owners believe.
 */
export class Echoes {
  private readonly dice: Dice;
  private readonly writes: LedgerWrite[] = [];
  private readonly values = new Map<string, unknown[]>();

  constructor(dice: Dice) {
    this.dice = dice;
  }

  /** Remembers a write. */
  remember(write: LedgerWrite): void {
    this.keep(this.writes, write);
    this.collect(write.kind, write);
  }

  /** A write to the lane of this one, and its time. */
  of({ fence }: LedgerWrite, now: Date): { readonly write: LedgerWrite; readonly at: Date } {
    const { dice } = this;
    const write = dice.pick(this.writes);
    const own = this.writes.filter((each) => each.fence.lane.signer === fence.lane.signer && each.kind === write.kind);
    const chosen = this.single(dice.pick(own.length > 0 && dice.chance(0.8) ? own : [write]));
    const places = dice.chance(0.25) ? [] : this.placesIn(chosen);
    const place = places.length === 0 ? null : dice.pick(places);
    const echo = place === null ? chosen : this.exchanged(chosen, place);
    return { write: { ...(echo as LedgerWrite), fence }, at: new Date(now.getTime() + dice.pick(OTHER_TIMES_MS)) };
  }

  /** Only one of the write's items, so that one that is refused hides no other. */
  private single(write: LedgerWrite): LedgerWrite {
    if (write.kind === "settleIntake") return { ...write, results: [this.dice.pick(write.results)] };
    if (!("items" in write)) return write;
    return { ...write, items: [this.dice.pick<unknown>(write.items)] } as LedgerWrite;
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

/** Fields of plain objects and lists. */
function fieldsOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null || value instanceof Date) return [];
  return Object.entries(value).filter(([name]) => name !== "fence");
}

function pathTo(path: string, value: unknown, name: string): string {
  return Array.isArray(value) ? path : `${path}.${name}`;
}
