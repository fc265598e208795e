import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DurableRuntime } from "../../../../src/adapters/postgres/session/durably.ts";
import { sightsFrom } from "../../../../src/adapters/postgres/stores/sights.ts";
import { bucketStart, HOUR_S } from "../../../../src/domain/figures/figures.ts";
import type { FigureFilter, Spender } from "../../../../src/ports/figure-store.ts";
import { countBuffers } from "../../../support/count-buffers.ts";
import { fillFigures } from "../../../support/large-figures.ts";
import { BUSY_CHAIN, signerAt } from "../../../support/large-tables.ts";
import { createPostgresSubject, type PostgresSubject } from "../postgres-subject.ts";

/** Nothing is written here. */
const UNUSED = {} as DurableRuntime;
const LANES = 1_500;
const DAYS = 7;
const SPENDERS = 20;
/** Pages of one day of all lanes in the table of spend: at least fifteen rows fit in a page. */
const DAY_PAGES = LANES / 15;
/** Pages for the exact amounts of one signer: at most one for each hour, and the way through the index. */
const EXACT = 5;

/** Cost of the figures over time on large tables, planned as a store plans them. */
describe("figures of a week of many lanes", () => {
  let subject: PostgresSubject;
  let hour: Date;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    await fillFigures(subject.client, LANES, DAYS);
    hour = bucketStart(await subject.now(), HOUR_S);
  }, 60_000);
  afterAll(() => subject.close());

  const ago = (hours: number) => new Date(hour.getTime() - hours * 3_600_000);
  async function spend(hours: number, of: Partial<FigureFilter> = {}) {
    const filter = { from: ago(hours - 1), to: ago(-1), signers: null, chains: null, ...of };
    let found: readonly Spender[] = [];
    const buffers = await countBuffers(subject.client, async (connections) => {
      found = await sightsFrom(connections, UNUSED, UNUSED).spenders(filter, SPENDERS);
    });
    return { found: found.map(({ signer, fees }) => [signer, BigInt(fees)]), buffers };
  }
  const paid = (n: number, hours: number) => [signerAt(n), BigInt(hours) * (10n ** 15n + BigInt(n) * 10n ** 6n)];
  const pagesOf = async (table: string) => {
    const { rows } = await subject.client.query(`SELECT pg_relation_size('fencepost.${table}') / 8192 AS pages`);
    return Number(rows[0].pages);
  };

  // protects [Figures] src/adapters/postgres/statements/figure.ts
  it.each([1, 24, DAYS * 24])(
    "find the signers that paid most in %i hours without the hours of all lanes",
    async (hours) => {
      const { found, buffers } = await spend(hours);
      expect(found).toEqual(Array.from({ length: SPENDERS }, (_, index) => paid(LANES - 1 - index, hours)));
      const days = Math.ceil(hours / 24) + 1;
      const limit = days * DAY_PAGES * 1.5 + SPENDERS * (hours + EXACT);
      expect(buffers).toBeLessThan(limit);
      if (hours > 1) expect(limit).toBeLessThan((await pagesOf("figures")) * (hours / (DAYS * 24)));
    },
  );

  // protects [Figures] src/adapters/postgres/statements/figure.ts
  it("read the spend of one signer without that of any other", async () => {
    const one = await spend(24, { signers: [signerAt(7)], chains: [BUSY_CHAIN] });
    expect(one.found).toEqual([paid(7, 24)]);
    expect(one.buffers).toBeLessThan(24 + 3 * EXACT);
    const none = await spend(24, { signers: [] });
    expect(none).toEqual({ found: [], buffers: expect.any(Number) });
    expect(none.buffers).toBeLessThan(EXACT);
  });
});
