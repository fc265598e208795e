/** Records changes so that they can be undone: the double's ROLLBACK. */
export class UndoLog {
  private readonly undo: (() => void)[] = [];

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const had = map.has(key);
    const before = map.get(key);
    map.set(key, value);
    this.undo.push(() => {
      if (had) map.set(key, before as V);
      else map.delete(key);
    });
  }

  delete<K, V>(map: Map<K, V>, key: K): void {
    if (!map.has(key)) return;
    const before = map.get(key) as V;
    map.delete(key);
    this.undo.push(() => map.set(key, before));
  }

  assign<T extends object>(row: T, changes: Partial<T>): void {
    const before = { ...row };
    Object.assign(row, changes);
    this.undo.push(() => Object.assign(row, before));
  }

  push<T>(list: T[], item: T): void {
    list.push(item);
    this.undo.push(() => list.pop());
  }

  rollback(): void {
    for (const step of this.undo.reverse()) step();
    this.undo.length = 0;
  }
}
