/**
 * How much of the node's memory reads may hold while they wait for their answers. There is room for all that real clients
 * ask at once of a chain that is slow; when it is full, only who has more than an equal share of it is refused.
 */
const MOST_BYTES = 96 * 1024 * 1024;
/** Of a read, beside its text: the request, its connection and what waits for the answer. */
const EACH_READ_BYTES = 8 * 1024;
/** Where many keys come in below their shares while others fill the room: as often as this over, nobody comes in. */
const OVERFULL = 2;

interface Reads {
  readonly reads: number;
  readonly bytes: number;
}

export class WaitingRoom {
  private readonly held = new Map<string | null, number>();
  private total = 0;

  /** Null: it is refused. Else to be called once, when they are answered. */
  enter(key: string | null, { reads, bytes }: Reads): (() => void) | null {
    const more = reads * EACH_READ_BYTES + bytes;
    const own = this.heldBy(key) + more;
    const keys = this.held.size + (this.held.has(key) ? 0 : 1);
    const full = this.total + more;
    if (full > MOST_BYTES * OVERFULL || (full > MOST_BYTES && own > MOST_BYTES / keys)) return null;
    this.change(key, more);
    return () => this.change(key, -more);
  }

  private change(key: string | null, by: number): void {
    this.total += by;
    const now = this.heldBy(key) + by;
    if (now === 0) this.held.delete(key);
    else this.held.set(key, now);
  }

  private heldBy(key: string | null): number {
    return this.held.get(key) ?? 0;
  }
}
