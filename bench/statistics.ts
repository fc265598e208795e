export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Nearest rank; NaN where nothing was measured, so that a bar on it is missed and not met. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
