import { Pool } from "undici";

/** Nodes that are spoken to at once; a cluster is a few, but each restart on another port is an origin of its own. */
const MOST_ORIGINS = 64;
const CONNECTIONS_PER_ORIGIN = 32;
const CONNECT_TIMEOUT_MS = 1_000;
const IDLE_MS = 30_000;

/** One keep-alive pool per origin. Idle connections end by themselves; of idle pools, the longest unused goes first. */
export class Pools {
  private readonly entries = new Map<string, { readonly pool: Pool; underWay: number }>();
  private readonly maxResponseBytes: number;

  constructor(maxResponseBytes: number) {
    this.maxResponseBytes = maxResponseBytes;
  }

  get size(): number {
    return this.entries.size;
  }

  async use<T>(origin: string, work: (pool: Pool) => Promise<T>): Promise<T> {
    const entry = this.entries.get(origin) ?? { pool: this.open(origin), underWay: 0 };
    // A map keeps the order of insertion: what was used last stands last.
    this.entries.delete(origin);
    this.entries.set(origin, entry);
    entry.underWay++;
    try {
      this.evict();
      return await work(entry.pool);
    } finally {
      entry.underWay--;
    }
  }

  async close(): Promise<void> {
    const pools = [...this.entries.values()].map(({ pool }) => pool);
    this.entries.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  private open(origin: string): Pool {
    return new Pool(origin, {
      connections: CONNECTIONS_PER_ORIGIN,
      pipelining: 1,
      maxResponseSize: this.maxResponseBytes,
      keepAliveMaxTimeout: IDLE_MS,
      // The Clock port owns time from there on: one deadline covers waiting and reading.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: CONNECT_TIMEOUT_MS },
    });
  }

  private evict(): void {
    for (const [origin, { pool, underWay }] of this.entries) {
      if (this.entries.size <= MOST_ORIGINS) return;
      if (underWay > 0) continue;
      this.entries.delete(origin);
      void pool.close();
    }
  }
}
