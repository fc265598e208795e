import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "./connection.ts";

/** Sends the next request of a load on this connection; says how many transactions it carried. */
export type Send = (connection: Connection) => Promise<number>;

export interface Load {
  readonly connections: readonly Connection[];
  readonly send: Send;
}

/** As fast as the answers come, on every connection at once. What is answered during the warm-up does not count. */
export async function ratePerSecond(
  { connections, send }: Load,
  time: { readonly warmUpMs: number; readonly turnMs: number },
): Promise<number> {
  const beginMs = performance.now() + time.warmUpMs;
  const endMs = beginMs + time.turnMs;
  let counted = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (performance.now() < endMs) {
        const done = await send(connection);
        const nowMs = performance.now();
        if (nowMs >= beginMs && nowMs < endMs) counted += done;
      }
    }),
  );
  return (1_000 * counted) / time.turnMs;
}

/**
 * At a fixed rate, whatever the answers do: a request that finds every connection busy waits, and its wait counts, since
 * a caller would have waited too. Latencies are from the moment a request was due.
 */
export async function latenciesAt(
  load: Load,
  perSecond: number,
  time: { readonly warmUpMs: number; readonly turnMs: number },
): Promise<readonly number[]> {
  const startMs = performance.now();
  const idle = [...load.connections];
  const due: number[] = [];
  const latencies: number[] = [];
  const underWay = new Set<Promise<void>>();
  const dispatch = (): void => {
    while (due.length > 0 && idle.length > 0) {
      const dueMs = due.shift() as number;
      const connection = idle.pop() as Connection;
      const exchange = load.send(connection).then(() => {
        if (dueMs - startMs >= time.warmUpMs) latencies.push(performance.now() - dueMs);
        idle.push(connection);
        underWay.delete(exchange);
        dispatch();
      });
      underWay.add(exchange);
    }
  };
  for (let sent = 0; ; ) {
    const elapsedMs = performance.now() - startMs;
    if (elapsedMs >= time.warmUpMs + time.turnMs) break;
    for (; (1_000 * sent) / perSecond <= elapsedMs; sent++) due.push(startMs + (1_000 * sent) / perSecond);
    dispatch();
    await pause(1);
  }
  while (due.length > 0 || underWay.size > 0) await Promise.all(underWay);
  return latencies;
}
