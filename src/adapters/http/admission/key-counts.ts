/**
 * Sums per API key and in total. The key null stands for the callers of a node without API keys. A key whose sum is
 * zero takes no memory.
 */
export class KeyCounts {
  private readonly ofKeys = new Map<string | null, number>();
  total = 0;

  of(key: string | null): number {
    return this.ofKeys.get(key) ?? 0;
  }

  add(key: string | null, by: number): void {
    this.total += by;
    const now = this.of(key) + by;
    if (now === 0) this.ofKeys.delete(key);
    else this.ofKeys.set(key, now);
  }

  /** Number of keys whose sum is not zero; the given key is always counted. */
  keysWith(key: string | null): number {
    return this.ofKeys.size + (this.ofKeys.has(key) ? 0 : 1);
  }
}
