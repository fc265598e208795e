/**
 * Puts an entry at the end of a map of limited size. If the map is full, the first entry, which was put least recently,
 * is dropped.
 */
export function keepNewest<K, V>(kept: Map<K, V>, key: K, value: V, most: number): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}
