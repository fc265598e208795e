/** Whole numbers from the first to the last; empty if the last is below the first. */
export function range(first: number, last: number): readonly number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}
