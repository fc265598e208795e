import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import type { TransitionItem } from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  holdLane,
  step,
} from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
let store: Awaited<ReturnType<PostgresSubject["connect"]>>;
let fence: Fence;
beforeEach(async () => {
  subject = await createPostgresSubject();
  store = await subject.connect();
  fence = await holdLane(store);
});
afterEach(async () => {
  await store.close();
  await subject.close();
});

const attempt = anAttempt();
const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;

/**
 * Allocates a transaction. The returned `walk` applies further state changes to it, each in a separate commit; they are
 * named by their number in the transaction's history.
 */
async function begin(): Promise<{ txId: string; walk: (...steps: readonly number[]) => Promise<void> }> {
  const { txId, ...intent } = anIntent(fence.lane);
  await allocate(store, fence, [{ txId, ...intent }]);
  const items: Readonly<Record<number, TransitionItem>> = {
    2: step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } }),
    3: step(txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } }),
    4: step(txId, AT.broadcast, "mine", { receipt: aReceipt(attempt.txHash) }),
    5: step(txId, AT.mined, "confirm", { completion }),
  };
  const walk = async (...steps: readonly number[]) => {
    for (const number of steps)
      expect(await apply(store, fence, [items[number] as TransitionItem])).toEqual(["applied"]);
  };
  return { txId, walk };
}

async function rowsOf(txId: string): Promise<readonly string[]> {
  const { rows } = await subject.client.query<{ event: string }>(
    "SELECT event FROM fencepost.step WHERE tx_id = $1 ORDER BY ordinal",
    [txId],
  );
  return rows.map(({ event }) => event);
}

const historyOf = async (txId: string) =>
  (await store.history(txId)).map(({ ordinal, event, nodeId, token, count }) => ({
    ordinal,
    event,
    nodeId,
    token,
    count,
  }));

const ORDINARY = ["allocate", "sign", "broadcast", "mine", "confirm"];

describe("the stored history of a transaction", () => {
  // protects [Reads] src/adapters/postgres/commit/ordinary-life.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("needs no history rows if all state changes are in the usual order", async () => {
    const { txId, walk } = await begin();
    await walk(2, 3, 4, 5);
    const history = await store.history(txId);
    expect(history.map(({ event }) => event)).toEqual(ORDINARY);
    expect(await rowsOf(txId)).toEqual([]);
    for (const each of history) expect(each).toMatchObject({ token: fence.token, count: 1, reason: null });
    expect(new Set(history.map(({ nodeId }) => nodeId))).toEqual(new Set([history[0]?.nodeId]));
    const times = history.map(({ firstAt }) => firstAt.getTime());
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(history.map(({ state, subState }) => `${state}/${subState ?? "-"}`)).toEqual([
      "ALLOCATED/-",
      "TRACKING/PENDING",
      "TRACKING/BROADCAST",
      "TRACKING/MINED",
      "CONFIRMED/-",
    ]);
  });

  // protects [Reads] src/adapters/postgres/commit/ordinary-life.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("continues in history rows after another node takes over the lane", async () => {
    const { txId, walk } = await begin();
    await walk(2, 3);
    await store.releaseLane(fence);
    const successor = anInstance();
    await store.registerInstance(successor);
    const acquisition = await store.acquireLane(fence.lane, successor.instanceId);
    if (acquisition.result === "notLeader") throw new Error("the lane has an owner");
    fence = acquisition.fence;
    await walk(4, 5);
    const history = await historyOf(txId);
    expect(history.map(({ event }) => event)).toEqual(ORDINARY);
    expect(history.slice(3)).toEqual([
      { ordinal: 4, event: "mine", nodeId: successor.nodeId, token: fence.token, count: 1 },
      { ordinal: 5, event: "confirm", nodeId: successor.nodeId, token: fence.token, count: 1 },
    ]);
    expect(await rowsOf(txId)).toEqual(["mine", "confirm"]);
  });

  // protects [Reads] src/adapters/postgres/commit/ordinary-life.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("uses history rows from the first unusual state change", async () => {
    const { txId, walk } = await begin();
    await walk(2);
    await apply(store, fence, [
      step(txId, AT.pending, "broadcast", { accepted: { ordinal: 1 }, reason: "known before" }),
    ]);
    await apply(store, fence, [step(txId, AT.broadcast, "resubmit", { claim: { ordinal: 1 } })]);
    await walk(4, 5);
    expect(await historyOf(txId)).toMatchObject(
      ["allocate", "sign", "broadcast", "resubmit", "mine", "confirm"].map((event, index) => ({
        event,
        ordinal: index + 1,
      })),
    );
    expect(await rowsOf(txId)).toEqual(["broadcast", "resubmit", "mine", "confirm"]);
    expect((await store.history(txId))[2]).toMatchObject({ event: "broadcast", reason: "known before" });
  });

  // protects [Reads] src/adapters/postgres/migrations/0037_release_0_1_0.sql, src/adapters/postgres/statements/history.ts
  it("stores a repeated state change as one history row with a count", async () => {
    const { txId, walk } = await begin();
    await walk(2, 3);
    const [, , before] = await store.history(txId);
    const again = step(txId, AT.broadcast, "broadcast", { accepted: { ordinal: 1 } });
    await apply(store, fence, [again]);
    await walk(4);
    expect(await rowsOf(txId)).toEqual(["broadcast"]);
    const history = await store.history(txId);
    expect(history.map(({ event }) => event)).toEqual(ORDINARY.slice(0, 4));
    expect(history[2]).toMatchObject({ ordinal: 3, count: 2, firstAt: before?.firstAt });
  });

  it("uses history rows if the transaction came through the intake table", async () => {
    const intent = anIntent(fence.lane);
    await subject.intake(intent);
    const { rows } = await subject.client.query<{ intake_id: string }>("SELECT intake_id FROM fencepost.intake");
    const items = [{ intent, intakeId: Number(rows[0]?.intake_id) }];
    await store.commit([{ kind: "allocate", fence, floor: 0, items }]);
    await apply(store, fence, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
    expect((await historyOf(intent.txId)).map(({ event }) => event)).toEqual(["accept", "allocate", "sign"]);
    expect(await rowsOf(intent.txId)).toEqual(["accept", "allocate", "sign"]);
  });
});

/** The statements of the previous release, exactly as that release sends them. */
const APPEND = `
  INSERT INTO fencepost.history (
    tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count, first_at, last_at
  )
  SELECT tx_id, ordinal, 1, event, from_state, state, sub_state, 'old', 7, NULL, NULL, NULL, 1, now(), now()
  FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS s(tx_id, ordinal, event, from_state, state, sub_state)`;
const REPEAT = `
  WITH repeated AS (
    UPDATE fencepost.history AS h
    SET count = h.count + s.count, node_id = s.node_id, token = s.token, reason = s.reason, last_at = now()
    FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::bigint[], $6::text[])
      AS s(tx_id, ordinal, count, node_id, token, reason)
    WHERE h.tx_id = ANY ($1::uuid[]) AND h.tx_id = s.tx_id AND h.ordinal = s.ordinal
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM repeated), $7, 'repeated steps')`;

describe("a node of the previous release", () => {
  // protects [Reads] src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("appends to a history that a newer node began", async () => {
    const { txId, walk } = await begin();
    await walk(2);
    const values = [[txId], [3], ["broadcast"], ["TRACKING"], ["TRACKING"], ["BROADCAST"]];
    await subject.client.query(APPEND, values);
    const { rows } = await subject.client.query(
      "SELECT ordinal, event, node_id FROM fencepost.every_step WHERE tx_id = $1 ORDER BY ordinal",
      [txId],
    );
    expect(rows).toMatchObject([{ event: "allocate" }, { event: "sign" }, { event: "broadcast", node_id: "old" }]);
    await expect(subject.client.query(APPEND, values), "a place that is taken").rejects.toThrow(/history_pkey/);
  });

  // protects [Reads] src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("increases the count of a repeated state change that a newer node stored", async () => {
    const { txId, walk } = await begin();
    await walk(2, 3);
    for (let repeat = 0; repeat < 2; repeat++) {
      await subject.client.query(REPEAT, [[txId], [3], [1], ["old"], [7], [null], 1]);
    }
    expect((await historyOf(txId))[2]).toEqual({ ordinal: 3, event: "broadcast", nodeId: "old", token: 7, count: 3 });
    expect((await historyOf(txId)).map(({ event }) => event)).toEqual(ORDINARY.slice(0, 3));
  });
});
