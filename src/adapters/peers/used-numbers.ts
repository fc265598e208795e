/** How far requests of one sender may overtake each other. Many seconds of them, and 64 KiB of memory for each sender. */
const OVERTAKEN_AT_MOST = 8_192;

/** Which numbers of one sender were used. Bounded: one that so many later ones have overtaken is refused unseen. */
export class UsedNumbers {
  private readonly slots = new Float64Array(OVERTAKEN_AT_MOST);

  /** False: used before, or so old that this cannot be told. */
  use(number: number): boolean {
    const slot = number % OVERTAKEN_AT_MOST;
    if ((this.slots[slot] ?? 0) >= number) return false;
    this.slots[slot] = number;
    return true;
  }
}
