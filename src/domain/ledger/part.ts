import { type Key, OrderedMap } from "./ordered-map.ts";

/**
 * Thrown if one item of a batch is invalid, so that the database cannot apply the batch. Bisecting the batch finds that
 * item.
 */
export class BatchRefused extends Error {
  override readonly name = "BatchRefused";
}

/**
 * Thrown if a ledger is read at a key that was not loaded. It does not mean "missing": the row may exist in the
 * database.
 */
export class NotLoaded extends Error {
  override readonly name = "NotLoaded";

  constructor(what: string) {
    super(`this part of the lane was not loaded with ${what}, so it cannot tell whether there is one`);
  }
}

/** Returns a loaded value; throws if it was not loaded. */
export function loaded<T>(fact: T | undefined, what: string): T {
  if (fact === undefined) throw new NotLoaded(what);
  return fact;
}

/**
 * Which keys a part covers beside the rows that were loaded one by one: all, none, all from a key on, or all up to a
 * key.
 */
export type Cover<K extends Key> =
  | { readonly kind: "all" }
  | { readonly kind: "named" }
  | { readonly kind: "from"; readonly key: K }
  | { readonly kind: "through"; readonly key: K };

/**
 * Some of a lane's rows of one kind, by key, including keys known to have no row. A part records which keys it covers:
 * reading a key that it does not cover throws.
 */
export class Part<K extends Key, V> {
  /** Name of one row for error messages, such as "request id". */
  readonly what: string;
  readonly cover: Cover<K>;
  /** Rows by key. A null value means: no such row exists, although `cover` does not include the key. */
  private readonly rows: OrderedMap<K, V | null>;

  private constructor(what: string, cover: Cover<K>, rows: OrderedMap<K, V | null>) {
    this.what = what;
    this.cover = cover;
    this.rows = rows;
  }

  /** `rows`: all existing rows whose keys are within `cover`, and any other rows that are known. */
  static of<K extends Key, V>(what: string, cover: Cover<K>, rows: Iterable<readonly [K, V | null]> = []): Part<K, V> {
    return new Part(what, cover, OrderedMap.of(rows));
  }

  /** The row at this key, or null if there is none. Throws if the key is not covered. */
  get(key: K): V | null {
    return loaded(this.atHand(key), `${this.what} ${key}`);
  }

  /** The row at this key, null if there is none, or undefined if this part does not cover the key. */
  atHand(key: K): V | null | undefined {
    const row = this.rows.get(key);
    if (row !== undefined) return row;
    return this.covers(key) ? null : undefined;
  }

  /** A copy of this part with these rows loaded too. Null means that the row is known to be missing. */
  with(rows: readonly (readonly [K, V | null])[]): Part<K, V> {
    return rows.length === 0 ? this : this.holding(this.rows.with(rows));
  }

  /**
   * A copy of this part that covers this range of keys instead, with all rows of the range. The rows loaded before stay
   * known.
   */
  covering(cover: Cover<K>, rows: Iterable<readonly [K, V]>): Part<K, V> {
    return this.holding(this.rows.with(rows), cover);
  }

  set(key: K, row: V): Part<K, V> {
    return this.holding(this.rows.set(key, row));
  }

  /** Adds a row. Throws if a row is known to exist at the key. */
  add(key: K, row: V): Part<K, V> {
    if ((this.rows.get(key) ?? null) !== null) throw new BatchRefused(`${this.what} ${key} exists already`);
    return this.set(key, row);
  }

  /** A copy of this part in which this row is known to be missing. */
  delete(key: K): Part<K, V> {
    return this.holding(this.covers(key) ? this.rows.delete(key) : this.rows.set(key, null));
  }

  /**
   * Stores a row that will not change any more, if the part covers all keys. Otherwise drops the row, and the part no
   * longer covers its key.
   */
  retire(key: K, row: V): Part<K, V> {
    return this.holding(this.cover.kind === "all" ? this.rows.set(key, row) : this.rows.delete(key));
  }

  /**
   * A copy of this part that covers only the keys of its own rows. Used after a change that may affect rows that are
   * not loaded.
   */
  unsure(): Part<K, V> {
    return this.holding(this.rows, { kind: "named" });
  }

  /** The highest key of all rows, if it is at or above this key; otherwise null. */
  highestFrom(key: K): K | null {
    if (this.cover.kind === "through" || !this.covers(key)) throw new NotLoaded(`every ${this.what} from ${key} on`);
    return [...this.known(key)].at(-1)?.[0] ?? null;
  }

  /** Rows with keys up to this one, in ascending order. */
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

  /** Number of rows of this kind; throws unless all of them are loaded. */
  get size(): number {
    if (this.cover.kind !== "all") throw new NotLoaded(`every ${this.what}`);
    return this.rows.size;
  }

  /** Every loaded row in ascending order. Rows that are not loaded may exist beside them. */
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
