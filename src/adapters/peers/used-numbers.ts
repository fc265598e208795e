/** Requests of one sender that may overtake each other: many seconds' worth, in 64 KiB of memory per sender. */
const OVERTAKEN_AT_MOST = 8_192;

/**
 * Request numbers that one sender has used. Memory is limited: a number that was overtaken by too many later ones is
 * refused.
 */
export class UsedNumbers {
  private readonly slots = new Float64Array(OVERTAKEN_AT_MOST);

  /** False if the number was used before, or is too old to know. */
  use(number: number): boolean {
    const slot = number % OVERTAKEN_AT_MOST;
    if ((this.slots[slot] ?? 0) >= number) return false;
    this.slots[slot] = number;
    return true;
  }
}
