import { expect, it } from "vitest";
import { RequestIds } from "../../../../src/application/stages/1-create/answer-existing.ts";
import type { Lane } from "../../../../src/domain/lane.ts";
import type { AskedRequests, ExistingTransaction } from "../../../../src/ports/lane-store.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { deferred } from "../../../support/deferred.ts";
import { SIGNER, SIGNERS } from "../../../support/world.ts";

const LANE: Lane = { chainId: 1, signer: SIGNER };
const OTHER: Lane = { chainId: 1, signer: SIGNERS[1] ?? SIGNER };

function row(lane: Lane, requestId: string): ExistingTransaction {
  return { txId: `tx ${requestId}`, lane, requestId, owner: null, nonce: 0, state: "ALLOCATED", fingerprint: "0x" };
}

interface Query {
  readonly asked: readonly AskedRequests[];
  readonly ids: readonly string[];
  /** Ends the query: with an error, or with one row for each of these request ids of the first lane. */
  end(found: readonly string[] | Error): Promise<void>;
}

function scripted() {
  const clock = createManualClock();
  const queries: Query[] = [];
  const findByRequestIds = async (asked: readonly AskedRequests[]): Promise<readonly ExistingTransaction[]> => {
    const gate = deferred<readonly string[] | Error>();
    const end = async (found: readonly string[] | Error): Promise<void> => {
      gate.resolve(found);
      await settled();
    };
    queries.push({ asked, ids: asked.flatMap(({ requestIds }) => requestIds), end });
    const found = await gate.promise;
    if (found instanceof Error) throw found;
    return found.map((id) => row(asked[0]?.lane ?? LANE, id));
  };
  return { requestIds: new RequestIds({ findByRequestIds }, clock), queries, clock };
}

/** Resolves when every pending promise callback has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

it("request id lookup runs no query for an empty list of ids", async () => {
  const { requestIds, queries } = scripted();
  expect((await requestIds.find(LANE, [])).size).toBe(0);
  expect(queries).toEqual([]);
});

// protects [Many lanes] src/application/stages/1-create/answer-existing.ts, src/adapters/postgres/stores/loads.ts
it("request id lookup serves a thousand lanes at once with one query, each with its own result", async () => {
  const { requestIds, queries } = scripted();
  const lanes = Array.from({ length: 1_000 }, (_, n): Lane => ({ chainId: n, signer: SIGNER }));
  const asked = lanes.map((lane) => requestIds.find(lane, ["same"]));
  await settled();
  expect(queries.length).toBe(1);
  expect(queries[0]?.asked.length).toBe(1_000);
  await queries[0]?.end(["same"]);
  const found = await Promise.all(asked);
  expect(found.map((map) => map.size)).toEqual([1, ...Array.from({ length: 999 }, () => 0)]);
});

// protects [Many lanes] src/application/stages/1-create/answer-existing.ts, src/adapters/postgres/stores/loads.ts
it("request id lookup runs one query every ten milliseconds while creates arrive every millisecond", async () => {
  const { requestIds, queries, clock } = scripted();
  let before = 0;
  for (let n = 0; n < 1_500; n++) {
    // The batching of queries recognises a steady rate only after a few tenths of a second, so start counting queries
    // now.
    if (n === 500) before = queries.length;
    void requestIds.find({ chainId: n, signer: SIGNER }, ["a"]);
    await clock.advance(1);
    for (const query of queries) await query.end([]);
  }
  expect(queries.flatMap(({ ids }) => ids).length).toBeGreaterThan(1_480);
  expect(queries.length - before).toBeLessThanOrEqual(105);
});

it("request id lookup does not delay a create that arrives after a pause", async () => {
  const { requestIds, queries, clock } = scripted();
  for (let n = 0; n < 20; n++) {
    const found = requestIds.find(LANE, ["a"]);
    await settled();
    expect(queries.length).toBe(n + 1);
    await queries[n]?.end([]);
    await found;
    await clock.advance(10);
  }
});

it("request id lookup never adds a create to a query already sent, whose result may be older than the create", async () => {
  const { requestIds, queries } = scripted();
  void requestIds.find(LANE, ["a"]);
  await settled();
  const late = requestIds.find(LANE, ["a"]);
  await settled();
  await queries[0]?.end([]);
  await queries[1]?.end(["a"]);
  expect((await late).has("a")).toBe(true);
});

// protects [Many lanes] src/application/stages/1-create/answer-existing.ts
it("request id lookup of one lane does not wait for the hanging query of another lane", async () => {
  const { requestIds, queries } = scripted();
  void requestIds.find(LANE, ["a"]);
  await settled();
  const other = requestIds.find(OTHER, ["b"]);
  await settled();
  await queries[1]?.end(["b"]);
  expect((await other).has("b")).toBe(true);
});

// protects [Many lanes] src/application/stages/1-create/answer-existing.ts
it("request id lookup resumes the creates of one lane in order of arrival, whichever query returns first", async () => {
  const { requestIds, queries } = scripted();
  const order: string[] = [];
  const ask = (id: string) => requestIds.find(LANE, [id]).then(() => order.push(id));
  const first = ask("a");
  await settled();
  const second = ask("b");
  await settled();
  await queries[1]?.end([]);
  expect(requestIds.isAsking(LANE)).toBe(true);
  expect(order).toEqual([]);
  await queries[0]?.end([]);
  await Promise.all([first, second]);
  expect(order).toEqual(["a", "b"]);
  expect(requestIds.isAsking(LANE)).toBe(false);
});

it("request id lookup fails only the creates that shared the failed query", async () => {
  const { requestIds, queries } = scripted();
  const one = requestIds.find(LANE, ["a"]).catch((error: Error) => error.message);
  const two = requestIds.find(OTHER, ["b"]).catch((error: Error) => error.message);
  await settled();
  const after = requestIds.find(LANE, ["c"]);
  await queries[0]?.end(new Error("away"));
  expect([await one, await two]).toEqual(["away", "away"]);
  await queries[1]?.end(["c"]);
  expect((await after).has("c")).toBe(true);
  expect(queries.map(({ ids }) => ids)).toEqual([["a", "b"], ["c"]]);
});

it("request id lookup starts a new query for each call after the previous ones have finished", async () => {
  const { requestIds, queries } = scripted();
  for (let round = 0; round < 3; round++) {
    const found = requestIds.find(LANE, ["a", "a", "b"]);
    await settled();
    expect(queries[round]?.ids).toEqual(["a", "b"]);
    await queries[round]?.end(["b"]);
    expect([...(await found).keys()]).toEqual(["b"]);
  }
});

it("request id lookup puts at most a thousand ids into one query", async () => {
  const { requestIds, queries } = scripted();
  for (let n = 0; n < 1_500; n++) void requestIds.find({ chainId: n, signer: SIGNER }, ["same"]);
  await settled();
  expect(queries.map(({ asked }) => asked.length)).toEqual([1_000, 500]);
});
