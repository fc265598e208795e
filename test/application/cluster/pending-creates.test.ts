import { describe, expect, it } from "vitest";
import { PendingCreates } from "../../../src/application/cluster/pending-creates.ts";
import type { Enqueuing } from "../../../src/application/cluster/pending-requests.ts";
import { type FencepostError, outcomeUnknown, unavailable } from "../../../src/domain/errors.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import type { ForwardedCreate, LaneAnswer, LaneRequest } from "../../../src/ports/peers.ts";
import { deferred } from "../../support/deferred.ts";
import { aLane, anIntent } from "../../support/lane-samples.ts";

const LANE = aLane();
const KIB = 1024;
type Answer = LaneAnswer | FencepostError;
type Words = { readonly creates: readonly ForwardedCreate[] };

const uuid = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
const aCreate = (index: number, characters = 1): ForwardedCreate => ({
  ...{ txId: uuid(index), owner: index % 2 === 0 ? "shop" : null },
  request: { chainId: LANE.chainId, signer: LANE.signer, nonce: index, data: "x".repeat(characters) },
});
const some = (count: number, characters = 1) => Array.from({ length: count }, (_, index) => aCreate(index, characters));
const madeOf = ({ txId, request }: ForwardedCreate) => ({
  ...{ outcome: "created", txId, lane: LANE, requestId: null, nonce: request.nonce, state: "ALLOCATED" },
});

interface Row {
  readonly creates: readonly ForwardedCreate[];
  readonly accepts: readonly Intent[] | undefined;
  answer(answer?: Answer): void;
  stands(): void;
}

/**
 * Makes a fake request table: its rows in the order in which they were enqueued, each with a function that answers it.
 */
function bench(perLane = 1_000) {
  const rows: Row[] = [];
  const ask = (_: unknown, { body }: LaneRequest, { onWritten, accepts }: Enqueuing = {}): Promise<Answer> => {
    const { creates } = JSON.parse(JSON.stringify(body)) as Words;
    const { promise, resolve } = deferred<Answer>();
    const answer = (said: Answer = { answer: { results: creates.map(madeOf) } }) => resolve(said);
    rows.push({ creates, accepts, answer, stands: () => onWritten?.() });
    return promise;
  };
  const pending = new PendingCreates({ requests: { ask }, perLane });
  /** Enqueues creates that name nonce 0, unless `more` says otherwise. */
  const enqueue = (
    creates: readonly ForwardedCreate[],
    mayShare: boolean,
    more: Partial<Intent> = { exactNonce: 0 },
  ) => {
    const all = creates.map((create) => ({ create, intent: { ...anIntent(LANE), txId: create.txId, ...more } }));
    return pending.enqueue(LANE, all, mayShare);
  };
  return { rows, enqueue };
}

const turns = async () => {
  for (let count = 0; count < 20; count++) await Promise.resolve();
};
const nonces = ({ creates }: { readonly creates: readonly ForwardedCreate[] }) =>
  creates.map((each) => each.request.nonce);

describe("creates enqueued for a lane's owner", () => {
  it("are stored with transaction id, API key name and request", async () => {
    const { rows, enqueue } = bench();
    const results = enqueue(some(2), true);
    await turns();
    expect(rows[0]?.creates).toEqual([
      { txId: uuid(0), owner: "shop", request: aCreate(0).request },
      { txId: uuid(1), request: aCreate(1).request },
    ]);
    rows[0]?.answer();
    expect(await results).toMatchObject([{ nonce: 0 }, { nonce: 1 }]);
  });

  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-creates.ts
  it("share a database row if they arrive while another row is being written", async () => {
    const { rows, enqueue } = bench();
    const all = some(5).map((each) => enqueue([each], true));
    await turns();
    expect(rows.map(nonces)).toEqual([[0, 1, 2, 3, 4]]);
    const later = [5, 6].map((index) => enqueue([aCreate(index)], true));
    await turns();
    expect(rows, "in the order of the calls: one row at a time").toHaveLength(1);
    rows[0]?.stands();
    await turns();
    expect(rows.map(nonces)).toEqual([
      [0, 1, 2, 3, 4],
      [5, 6],
    ]);
    rows[1]?.answer();
    rows[0]?.answer();
    const answers = (await Promise.all([...all, ...later])).flat();
    expect(answers.map((result) => (result as { nonce: number }).nonce)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts
  it("do not share a row with creates that need the chain", async () => {
    const { rows, enqueue } = bench();
    for (const index of [0, 1, 2, 3]) void enqueue([aCreate(index)], index !== 1);
    for (let row = 0; row < 3; row++) {
      await turns();
      rows[row]?.stands();
    }
    expect(rows.map(nonces)).toEqual([[0], [1], [2, 3]]);
  });

  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-creates.ts
  it("are enqueued row by row if one call exceeds a row's capacity", async () => {
    const { rows, enqueue } = bench();
    const results = enqueue(some(450), true);
    for (const [at, size] of [200, 200, 50].entries()) {
      await turns();
      rows[at]?.stands();
      await turns();
      expect(rows, "not before").toHaveLength(at + 1);
      expect(rows[at]?.creates).toHaveLength(size);
      rows[at]?.answer();
    }
    expect((await results).map((result) => (result as { nonce: number }).nonce)).toEqual(
      some(450).map((_, index) => index),
    );
  });

  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-creates.ts
  it("are not enqueued if the previous row of the call got no result", async () => {
    const { rows, enqueue } = bench();
    const results = enqueue(some(250), true);
    await turns();
    rows[0]?.answer(outcomeUnknown("no answer"));
    const answers = await results;
    expect(rows).toHaveLength(1);
    expect(answers[0]).toMatchObject({ extras: { outcome: "unknown", txId: uuid(0) } });
    expect(answers[249]).toMatchObject({ code: "UNAVAILABLE" });
    expect((answers[249] as FencepostError).extras.outcome).toBeUndefined();
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("are split into database rows of at most one MiB", async () => {
    const { rows, enqueue } = bench();
    const creates = [aCreate(0, 600 * KIB), aCreate(1, 1100 * KIB), aCreate(2, 600 * KIB)];
    const results = enqueue(creates, true);
    for (let row = 0; row < 2; row++) {
      await turns();
      rows[row]?.answer();
    }
    expect(await results).toMatchObject([{ nonce: 0 }, { code: "PAYLOAD_TOO_LARGE" }, { nonce: 2 }]);
    expect(rows.map(nonces)).toEqual([[0], [2]]);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("are refused with QUEUE_FULL beyond the queue's limit", async () => {
    const { rows, enqueue } = bench(3);
    const results = enqueue(some(5), true);
    await turns();
    rows[0]?.answer(unavailable("not begun"));
    expect((await results).map((result) => (result as FencepostError).code)).toEqual([
      ...["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "QUEUE_FULL", "QUEUE_FULL"],
    ]);
    void enqueue(some(3), true);
    await turns();
    expect(rows[1]?.creates).toHaveLength(3);
  });

  it("are refused locally if they cannot be serialized", async () => {
    const { rows, enqueue } = bench();
    const circle: Record<string, unknown> = {};
    circle.itself = circle;
    const [result] = await enqueue([{ txId: uuid(1), owner: null, request: circle }], true);
    expect(result).toMatchObject({ code: "INVALID_REQUEST" });
    expect(rows).toEqual([]);
  });

  it.each([
    ["too few", { results: [] }],
    ["nothing", null],
    ["no state", { results: [{ ...madeOf(aCreate(0)), state: "SOMETHING" }] }],
    ["a nonce that is none", { results: [{ ...madeOf(aCreate(0)), nonce: -1 }] }],
    ["a code of a newer version", { results: [{ code: "TOO_NEW", detail: "no" }] }],
    // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/ports/peers.ts
  ])("have an unknown outcome if the owner's response has %s", async (_, answer) => {
    const { rows, enqueue } = bench();
    const results = enqueue(some(1), true);
    await turns();
    rows[0]?.answer({ answer });
    expect(await results).toMatchObject([{ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: uuid(0) } }]);
  });

  it("may be accepted without a response from the owner", async () => {
    const { rows, enqueue } = bench();
    void enqueue(some(2), true, {});
    await turns();
    expect(rows[0]?.accepts?.map(({ txId }) => txId)).toEqual([uuid(0), uuid(1)]);
    rows[0]?.stands();
    for (const more of [{}, { exactNonce: 7 }, { pool: "payouts" }, {}]) void enqueue(some(1), true, more);
    for (let row = 1; row < 4; row++) {
      await turns();
      rows[row]?.stands();
    }
    expect(rows.slice(1).map(({ creates, accepts }) => [creates.length, accepts?.length])).toEqual([
      [1, 1],
      [2, 0],
      [1, 1],
    ]);
  });
});
