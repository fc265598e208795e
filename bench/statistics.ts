export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Nearest rank; NaN where nothing was measured, so that a bar on it is missed and not met. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

const RESAMPLES = 2_000;

/** 95 % interval of the median, by resampling with a fixed sequence: the same values give the same interval. */
export function interval(values: readonly number[]): { readonly from: number; readonly to: number } {
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const resampled = () => median(values.map(() => values[Math.floor(next() * values.length)] as number));
  const medians = Array.from({ length: RESAMPLES }, resampled);
  return { from: percentile(medians, 2.5), to: percentile(medians, 97.5) };
}
