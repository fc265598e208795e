import { type Key, OrderedMap } from "./ordered-map.ts";

/** The database answers with data it could not hold: one item poisons the batch. Bisecting finds it. */
export class BatchRefused extends Error {
  override readonly name = "BatchRefused";
}

/** A ledger was asked about something that it was not loaded with. Never an answer: the row may exist, or may not. */
export class NotLoaded extends Error {
  override readonly name = "NotLoaded";

  constructor(what: string) {
    super(`this part of the lane was not loaded with ${what}, so it cannot tell whether there is one`);
  }
}

/** A loaded fact; throws if it was not loaded. */
export function loaded<T>(fact: T | undefined, what: string): T {
  if (fact === undefined) throw new NotLoaded(what);
  return fact;
}

/** Beside the keys it was given, everything, nothing, or everything from a key on or up to one. */
export type Cover<K extends Key> =
  | { readonly kind: "all" }
  | { readonly kind: "named" }
  | { readonly kind: "from"; readonly key: K }
  | { readonly kind: "through"; readonly key: K };

/**
 * Some of a lane's rows of one sort, by key, and what is known to be missing. It says what it covers: a key that it does
 * not cover is neither there nor missing, and asking for it throws.
 */
export class Part<K extends Key, V> {
  /** Name of one row, for the error: "request id". */
  readonly what: string;
  readonly cover: Cover<K>;
  /** Null: known to be missing, though `cover` does not say so. */
  private readonly rows: OrderedMap<K, V | null>;

  private constructor(what: string, cover: Cover<K>, rows: OrderedMap<K, V | null>) {
    this.what = what;
    this.cover = cover;
    this.rows = rows;
  }

  /** `rows`: all that there is within `cover`, and whatever else is known. */
  static of<K extends Key, V>(what: string, cover: Cover<K>, rows: Iterable<readonly [K, V | null]> = []): Part<K, V> {
    return new Part(what, cover, OrderedMap.of(rows));
  }

  /** The row at this key, or null: there is none. */
  get(key: K): V | null {
    return loaded(this.atHand(key), `${this.what} ${key}`);
  }

  /** The same, and undefined if this part does not know. */
  atHand(key: K): V | null | undefined {
    const row = this.rows.get(key);
    if (row !== undefined) return row;
    return this.covers(key) ? null : undefined;
  }

  /** The same part, loaded with these rows too. A null row is known to be missing. */
  with(rows: readonly (readonly [K, V | null])[]): Part<K, V> {
    return rows.length === 0 ? this : this.holding(this.rows.with(rows));
  }

  /** The same, with all that there is within this cover. */
  covering(cover: Cover<K>, rows: Iterable<readonly [K, V]>): Part<K, V> {
    return this.holding(this.rows.with(rows), cover);
  }

  set(key: K, row: V): Part<K, V> {
    return this.holding(this.rows.set(key, row));
  }

  /** Throws if a row is known to be there: two of them would be one too many. */
  add(key: K, row: V): Part<K, V> {
    if ((this.rows.get(key) ?? null) !== null) throw new BatchRefused(`${this.what} ${key} exists already`);
    return this.set(key, row);
  }

  /** The same part, in which this row is known to be missing. */
  delete(key: K): Part<K, V> {
    return this.holding(this.covers(key) ? this.rows.delete(key) : this.rows.set(key, null));
  }

  /** Keeps a final row if everything is kept; otherwise it is dropped, and this part does not know it any more. */
  retire(key: K, row: V): Part<K, V> {
    return this.holding(this.cover.kind === "all" ? this.rows.set(key, row) : this.rows.delete(key));
  }

  /** Something happened that this part cannot place: beside the rows it has, it covers nothing any more. */
  unsure(): Part<K, V> {
    return this.cover.kind === "named" ? this : this.holding(this.rows, { kind: "named" });
  }

  /** The highest key at or above this one; null if there is none. */
  highestFrom(key: K): K | null {
    if (this.cover.kind === "through" || !this.covers(key)) throw new NotLoaded(`every ${this.what} from ${key} on`);
    return [...this.known(key)].at(-1)?.[0] ?? null;
  }

  /** Rows up to this key, ascending. */
  through(key: K): readonly (readonly [K, V])[] {
    if (this.cover.kind === "from" || !this.covers(key)) throw new NotLoaded(`every ${this.what} up to ${key}`);
    const rows: (readonly [K, V])[] = [];
    for (const [at, row] of this.known()) {
      if (at > key) break;
      rows.push([at, row]);
    }
    return rows;
  }

  /** Every row, ascending, from this key on if one is given. */
  every(from?: K): readonly (readonly [K, V])[] {
    if (this.cover.kind !== "all") throw new NotLoaded(`every ${this.what}`);
    return [...this.known(from)];
  }

  /** How many there are. */
  get size(): number {
    if (this.cover.kind !== "all") throw new NotLoaded(`every ${this.what}`);
    return this.rows.size;
  }

  /** Every row that is at hand, ascending: no word about the others. */
  *known(from?: K): IterableIterator<readonly [K, V]> {
    for (const [key, row] of this.rows.entries(from)) if (row !== null) yield [key, row];
  }

  private holding(rows: OrderedMap<K, V | null>, cover = this.cover): Part<K, V> {
    return new Part(this.what, cover, rows);
  }

  private covers(key: K) {
    const { cover } = this;
    if (cover.kind === "all") return true;
    if (cover.kind === "from") return key >= cover.key;
    return cover.kind === "through" && key <= cover.key;
  }
}
