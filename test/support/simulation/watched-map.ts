/** A map that reports every change at the moment in which it is made, with the value before and after. */
export class WatchedMap<K, V> extends Map<K, V> {
  private readonly onChange: (key: K, before: V | undefined, after: V | undefined) => void;

  constructor(entries: Iterable<readonly [K, V]>, onChange: WatchedMap<K, V>["onChange"]) {
    super();
    for (const [key, value] of entries) super.set(key, value);
    this.onChange = onChange;
  }

  override set(key: K, value: V): this {
    const before = this.get(key);
    super.set(key, value);
    this.onChange(key, before, value);
    return this;
  }

  override delete(key: K): boolean {
    const before = this.get(key);
    const isDeleted = super.delete(key);
    if (isDeleted) this.onChange(key, before, undefined);
    return isDeleted;
  }
}
