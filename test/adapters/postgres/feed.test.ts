import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { Store } from "../../contracts/store-subject.ts";
import { AT, apply, confirm, holdLane, type Mined, mine, step } from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const WRITERS = 6;
const EACH = 25;

describe("the completion feed with concurrent writers", () => {
  let subject: PostgresSubject;
  let reader: Store;
  const writers: { store: Store; fence: Fence; mined: Mined[] }[] = [];

  beforeAll(async () => {
    subject = await createPostgresSubject();
    reader = await subject.connect();
    for (let index = 0; index < WRITERS; index++) {
      const store = await subject.connect();
      const fence = await holdLane(store);
      const mined: Mined[] = [];
      for (let n = 0; n < EACH; n++) mined.push(await mine(store, fence));
      writers.push({ store, fence, mined });
    }
  });
  afterAll(async () => {
    await Promise.all(writers.map(({ store }) => store.close()));
    await reader.close();
    await subject.close();
  });

  /** Confirms a transaction. A busy error means that nothing was committed, so the commit is retried. */
  async function confirmPatiently(
    { store, fence }: (typeof writers)[number],
    { intent, attempt }: Mined,
  ): Promise<void> {
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    for (;;) {
      try {
        expect(await apply(store, fence, [step(intent.txId, AT.mined, "confirm", { completion })])).toEqual([
          "applied",
        ]);
        return;
      } catch (error) {
        if (!(error instanceof StoreUnavailable && error.busy)) throw error;
      }
    }
  }

  /** Reads the feed while writers append to it, and remembers only the last sequence number, as a consumer does. */
  async function follow(total: number): Promise<readonly { seq: number; txId: string }[]> {
    const seen: { seq: number; txId: string }[] = [];
    while (seen.length < total) {
      const { items } = await reader.feed(seen.at(-1)?.seq ?? 0, 7);
      for (const { seq, txId } of items) seen.push({ seq, txId });
    }
    return seen;
  }

  it("has no gaps", async () => {
    const total = WRITERS * EACH;
    const work = writers.map(async (writer) => {
      for (const mined of writer.mined) await confirmPatiently(writer, mined);
    });
    const [seen] = await Promise.all([follow(total), ...work]);
    expect(seen.map(({ seq }) => seq)).toEqual(Array.from({ length: total }, (_, index) => index + 1));
    const expected = writers.flatMap(({ mined }) => mined.map(({ intent }) => intent.txId));
    expect(new Set(seen.map(({ txId }) => txId))).toEqual(new Set(expected));
    for (const { mined } of writers) {
      const order = mined.map(({ intent }) => intent.txId);
      expect(seen.filter(({ txId }) => order.includes(txId)).map(({ txId }) => txId)).toEqual(order);
    }
    expect(await reader.feed(0, 1)).toMatchObject({ lastSeq: total, epoch: 1 });
  });
});

describe("a page of the completion feed", () => {
  // protects [The feed] src/application/queries/reads.ts, src/adapters/postgres/stores/queries.ts
  it("is read in one snapshot", async () => {
    const subject = await createPostgresSubject();
    const { client } = subject;
    const reader = await subject.connect();
    await confirm(reader, await holdLane(reader));
    const before = await reader.feed(0, 10);
    await client.query("BEGIN");
    await client.query("LOCK TABLE fencepost.feed IN ACCESS EXCLUSIVE MODE");
    const reading = reader.feed(0, 10);
    await subject.whenWaiting(1);
    await client.query(
      "UPDATE fencepost.feed SET epoch = epoch + 1, epoch_starts_after = last_seq, last_seq = last_seq + 1",
    );
    await client.query(
      `INSERT INTO fencepost.completion
       SELECT (jsonb_populate_record(c, '{ "seq": 2, "epoch": 2 }')).* FROM fencepost.completion AS c`,
    );
    await client.query("COMMIT");
    expect(await reading).toEqual(before);
    expect(await reader.feed(1, 10)).toMatchObject({ epoch: 2, items: [{ seq: 2, epoch: 2 }] });
    await reader.close();
    await subject.close();
  });
});
