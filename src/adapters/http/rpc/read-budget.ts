/**
 * Memory budget of reads that wait for a slow chain, larger than all that real clients ask at once. When it is used
 * up, only keys above an equal share are refused.
 */
import { KeyCounts } from "../admission/key-counts.ts";

const MOST_BYTES = 96 * 1024 * 1024;
/** Memory of a read beside its text: the request, its connection and its promises. */
const EACH_READ_BYTES = 8 * 1024;
/** Hard limit as a multiple: many keys below their shares could exceed the budget. */
const OVERFULL = 2;

interface Reads {
  readonly reads: number;
  readonly bytes: number;
}

/** Reserves memory; null: refused. Call the returned function once, when the reads are answered. */
export function readBudget() {
  const counts = new KeyCounts();
  return (key: string | null, { reads, bytes }: Reads) => {
    const more = reads * EACH_READ_BYTES + bytes;
    const own = counts.of(key) + more;
    const full = counts.total + more;
    if (full > MOST_BYTES * OVERFULL || (full > MOST_BYTES && own > MOST_BYTES / counts.keysWith(key))) return null;
    counts.add(key, more);
    return () => counts.add(key, -more);
  };
}
