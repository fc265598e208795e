import type { ClusterReading } from "../../adapters/system/metrics.ts";
import type { Clock } from "../../ports/clock.ts";
import type { QueryStore } from "../../ports/query-store.ts";

/** Minimum interval between two queries of the database for metrics, for any number of scrapers and gauges. */
const ASK_EVERY_MS = 5_000;

/** Cached metrics of all nodes' lanes. A failed query is repeated at the next scrape. */
export function clusterReading(store: Pick<QueryStore, "census">, clock: Pick<Clock, "monotonicMs">) {
  let kept: Promise<ClusterReading> | null = null;
  let untilMs = 0;
  return (): Promise<ClusterReading> => {
    if (kept !== null && clock.monotonicMs() < untilMs) return kept;
    const asked = read(store);
    kept = asked;
    untilMs = clock.monotonicMs() + ASK_EVERY_MS;
    asked.catch(() => {
      if (kept === asked) kept = null;
    });
    return asked;
  };
}

async function read(store: Pick<QueryStore, "census">): Promise<ClusterReading> {
  const { states, oldestPendingAgeMs, unownedLanes, suspendedLanes } = await store.census();
  const { CREATED, ALLOCATED, TRACKING } = states;
  const oldestPendingAgeSeconds = (oldestPendingAgeMs ?? 0) / 1_000;
  return {
    states,
    pendingDepth: CREATED + ALLOCATED + TRACKING,
    oldestPendingAgeSeconds,
    unownedLanes,
    suspendedLanes,
  };
}
