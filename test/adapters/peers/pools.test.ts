import type { Pool } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { Pools } from "../../../src/adapters/peers/pools.ts";
import { deferred } from "../../support/deferred.ts";

const pools = new Pools(1_000);
afterEach(() => pools.close());

const touch = (n: number) => pools.use(`http://127.0.0.1:${10_000 + n}`, async (pool) => pool);

describe("pools", () => {
  it("are one per origin", async () => {
    expect(await touch(1)).toBe(await touch(1));
    expect(await touch(2)).not.toBe(await touch(1));
  });

  it("are bounded: the longest unused is closed", async () => {
    const first = await touch(0);
    const second = await touch(1);
    for (let n = 2; n < 64; n++) await touch(n);
    await touch(0);
    await touch(64);
    expect(pools.size).toBe(64);
    expect([first.closed, second.closed]).toEqual([false, true]);
    expect(await touch(0)).toBe(first);
    expect(await touch(1)).not.toBe(second);
  });

  it("are not closed under a request", async () => {
    const answer = deferred();
    let busy: Pool | null = null;
    const request = pools.use("http://127.0.0.1:9999", async (pool) => {
      busy = pool;
      await answer.promise;
      return pool.closed;
    });
    for (let n = 0; n < 100; n++) await touch(n);
    answer.resolve();
    expect(await request).toBe(false);
    for (let n = 0; n < 100; n++) await touch(n);
    expect((busy as Pool | null)?.closed).toBe(true);
  });

  it("are all ended at the end", async () => {
    const all = await Promise.all([touch(1), touch(2)]);
    await pools.close();
    expect(all.every((pool) => pool.destroyed)).toBe(true);
    expect(pools.size).toBe(0);
  });
});
