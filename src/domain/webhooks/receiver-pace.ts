/**
 * How many requests a receiver gets at a time, and when. A receiver that works gets more with each delivery. One that
 * fails gets one at a time; if several lanes fail in a row, the receiver as a whole is down, and is tried seldom.
 */
import type { LaneKey } from "../lane.ts";
import { AT_ONCE, at, isDue, type When } from "../pace/when.ts";

export interface ReceiverPace {
  /** Most requests on their way at a time. */
  readonly limit: number;
  /** Lanes that failed since the last delivery; at most `DOWN_LANES`. */
  readonly failedLanes: readonly LaneKey[];
  /** Failures in a row since the receiver is down. */
  readonly failures: number;
  readonly retry: When;
}

export const FRESH: ReceiverPace = { limit: 1, failedLanes: [], failures: 0, retry: AT_ONCE };
/** Most requests of one subscriber on their way at a time. */
export const MOST_AT_ONCE = 64;
/** Number of lanes that fail in a row until the receiver counts as down. A single one may have a bad outcome. */
const DOWN_LANES = 3;

export function isDown({ failedLanes }: ReceiverPace): boolean {
  return failedLanes.length >= DOWN_LANES;
}

export function afterDelivery({ limit }: ReceiverPace): ReceiverPace {
  return { ...FRESH, limit: Math.min(MOST_AT_ONCE, limit + 1) };
}

interface Failure {
  readonly nowMs: number;
  /** Lane of the outcome; null: the event is not about a lane. */
  readonly lane: LaneKey | null;
  /** True if the receiver asks for fewer requests, whichever outcome they have. */
  readonly throttled: boolean;
  readonly pauseMs: (failures: number) => number;
}

export function afterFailure(pace: ReceiverPace, { nowMs, lane, throttled, pauseMs }: Failure): ReceiverPace {
  const known = lane === null || pace.failedLanes.includes(lane) ? pace.failedLanes : [...pace.failedLanes, lane];
  const failedLanes = known.slice(-DOWN_LANES);
  const isWhole = throttled || lane === null || isDown({ ...pace, failedLanes });
  if (!isWhole) return { ...pace, limit: 1, failedLanes };
  // Several requests that were on their way together count as one failure.
  if (!isDue(pace.retry, nowMs)) return { ...pace, limit: 1, failedLanes };
  const failures = pace.failures + 1;
  return { limit: 1, failedLanes, failures, retry: at(nowMs + pauseMs(failures)) };
}

export function mayTry(pace: ReceiverPace, underWay: number, nowMs: number): boolean {
  return underWay < pace.limit && isDue(pace.retry, nowMs);
}
