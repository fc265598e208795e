import { expect, it } from "vitest";
import { RequestIds } from "../../../../src/application/stages/1-create/request-ids.ts";
import type { Lane } from "../../../../src/domain/lane.ts";
import type { ExistingTransaction } from "../../../../src/ports/lane-store.ts";
import { deferred } from "../../../support/deferred.ts";
import { SIGNER, SIGNERS } from "../../../support/world.ts";

const LANE: Lane = { chainId: 1, signer: SIGNER };
const OTHER: Lane = { chainId: 1, signer: SIGNERS[1] ?? SIGNER };

function row(lane: Lane, requestId: string): ExistingTransaction {
  return { txId: `tx ${requestId}`, lane, requestId, nonce: 0, state: "ALLOCATED", fingerprint: "0x" };
}

interface Query {
  readonly lane: Lane;
  readonly ids: readonly string[];
  /** Ends the query: with rows for these ids, or with an error. */
  end(found: readonly string[] | Error): Promise<void>;
}

function scripted(): { readonly requestIds: RequestIds; readonly queries: Query[] } {
  const queries: Query[] = [];
  const findByRequestIds = async (lane: Lane, ids: readonly string[]): Promise<readonly ExistingTransaction[]> => {
    const gate = deferred<readonly string[] | Error>();
    const end = async (found: readonly string[] | Error): Promise<void> => {
      gate.resolve(found);
      await settled();
    };
    queries.push({ lane, ids, end });
    const found = await gate.promise;
    if (found instanceof Error) throw found;
    return found.map((id) => row(lane, id));
  };
  return { requestIds: new RequestIds({ findByRequestIds }), queries };
}

/** Every promise chain has come to rest. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

it("asks nothing where there is nothing to ask", async () => {
  const { requestIds, queries } = scripted();
  expect((await requestIds.find(LANE, [])).size).toBe(0);
  expect(queries).toEqual([]);
});

it("a hundred at once cost two queries, and each hears of its own", async () => {
  const { requestIds, queries } = scripted();
  const first = requestIds.find(LANE, ["0"]);
  await settled();
  const rest = Array.from({ length: 99 }, (_, n) => requestIds.find(LANE, [String(n + 1)]));
  await settled();
  expect(queries.map(({ ids }) => ids)).toEqual([["0"]]);
  await queries[0]?.end([]);
  expect(queries.length).toBe(2);
  expect(queries[1]?.ids.length).toBe(99);
  await queries[1]?.end(["7", "42"]);
  expect((await first).size).toBe(0);
  const found = await Promise.all(rest);
  expect(found.filter((map, n) => map.has(String(n + 1))).length).toBe(2);
  expect(found[41]?.get("42")?.txId).toBe("tx 42");
});

it("never joins a query that has left already: its answer may be older than the question", async () => {
  const { requestIds, queries } = scripted();
  void requestIds.find(LANE, ["a"]);
  await settled();
  const late = requestIds.find(LANE, ["a"]);
  await settled();
  await queries[0]?.end([]);
  await queries[1]?.end(["a"]);
  expect((await late).has("a")).toBe(true);
});

it("lanes do not wait for each other", async () => {
  const { requestIds, queries } = scripted();
  void requestIds.find(LANE, ["a"]);
  void requestIds.find(OTHER, ["a"]);
  await settled();
  expect(queries.map(({ lane }) => lane)).toEqual([LANE, OTHER]);
});

it("a failed query fails those who shared it, and nobody after them", async () => {
  const { requestIds, queries } = scripted();
  const one = requestIds.find(LANE, ["a"]).catch((error: Error) => error.message);
  const two = requestIds.find(LANE, ["b"]).catch((error: Error) => error.message);
  await settled();
  const after = requestIds.find(LANE, ["c"]);
  await queries[0]?.end(new Error("away"));
  expect([await one, await two]).toEqual(["away", "away"]);
  await queries[1]?.end(["c"]);
  expect((await after).has("c")).toBe(true);
  expect(queries.map(({ ids }) => ids)).toEqual([["a", "b"], ["c"]]);
});

it("begins anew once everybody is gone", async () => {
  const { requestIds, queries } = scripted();
  for (let round = 0; round < 3; round++) {
    const found = requestIds.find(LANE, ["a", "a", "b"]);
    await settled();
    expect(queries[round]?.ids).toEqual(["a", "b"]);
    await queries[round]?.end(["b"]);
    expect([...(await found).keys()]).toEqual(["b"]);
  }
});
