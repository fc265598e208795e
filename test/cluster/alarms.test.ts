/**
 * Tests of this suite's own checkers: each must report its violation when that violation happens, and must report
 * nothing before.
 */
import { keccak256 } from "viem";
import { describe, expect, onTestFinished } from "vitest";
import { openPostgresStore } from "../../src/adapters/postgres/store.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { Fence } from "../../src/domain/lane.ts";
import { ChainWire } from "../support/cluster/chain-wire.ts";
import { layTripwires, terms, violations } from "../support/cluster/tripwires.ts";
import { type Database, it } from "../support/integration.ts";
import { AT, allocate, anAttempt, anInstance, anIntent, apply, holdLane, step } from "../support/lane-samples.ts";
import { rpcCall } from "../support/rpc-call.ts";

interface Scene {
  /** Fencing token of the lane's second owner. The first owner had died before. */
  readonly fence: Fence;
  /** A transaction to which the first owner gave a nonce and for which it stored the right to send. */
  readonly txId: string;
  readonly raw: string;
  readonly nodeId: string;
}

/**
 * Sets up a lane with one transaction of its first owner, which has lost the lane, and a second owner, which has done
 * nothing yet.
 */
async function twoTerms(database: Database): Promise<Scene> {
  await layTripwires(database);
  const store = await openPostgresStore({ databaseUrl: database.url, clock: systemClock, leaseDurationMs: 60_000 });
  onTestFinished(() => store.close());
  const first = await holdLane(store);
  const intent = anIntent(first.lane);
  await allocate(store, first, [intent]);
  const rawTransaction = "0x02c101";
  const attempt = anAttempt(1, { rawTransaction, txHash: keccak256(rawTransaction) });
  await apply(store, first, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
  await store.declareDead(first.instanceId, 1, "stood-still");
  const heir = anInstance();
  await store.registerInstance(heir);
  const taken = await store.acquireLane(first.lane, heir.instanceId);
  if (taken.result !== "takenOver") throw new Error("not taken over");
  const [owner] = await terms(database);
  return { fence: taken.fence, txId: intent.txId, raw: rawTransaction, nodeId: owner?.node_id ?? "" };
}

describe("the database checks of the cluster tests", () => {
  it("report nothing for a takeover", async ({ database }) => {
    const { fence } = await twoTerms(database);
    expect(await violations(database)).toEqual([]);
    expect((await terms(database)).map(({ token }) => token)).toEqual([1, fence.token]);
  });

  it.for<readonly [string, RegExp]>([
    ["UPDATE fencepost.lane SET token = 1", /^token of 0x\w+ went from 2 to 1$/],
    ["UPDATE fencepost.lane SET token = 9", /^token of 0x\w+ went from 2 to 9$/],
    [
      "UPDATE fencepost.lane SET owner_instance = (SELECT instance_id FROM fencepost.node_instance WHERE dead)",
      /changed hands under token 2$/,
    ],
    ["UPDATE fencepost.lane SET next_nonce = 0", /^cursor of 0x\w+ went back to 0$/],
    ["UPDATE fencepost.history SET count = count + 1 WHERE event = 'sign'", /^sign of .* under token 1, behind 2$/],
    ["UPDATE fencepost.transaction SET mined_at = now()", /^step on .* under token 1, behind 2$/],
    [
      "UPDATE fencepost.transaction SET submit_attempts = submit_attempts + 1",
      /claimed under token 1 while 2 was the lane's$/,
    ],
  ])("report a violation for: %s", async ([statement, alarm], { database }) => {
    await twoTerms(database);
    await database.query(statement);
    const [said, ...more] = await violations(database);
    expect(said).toMatch(alarm);
    expect(more).toEqual([]);
  });
});

describe("the RPC proxy of the cluster tests", () => {
  it("reports a send as a violation if the right to send is not stored", async ({ database, simulated }) => {
    const { raw, nodeId } = await twoTerms(database);
    const wireOf = async (name: string) => {
      const wire = await ChainWire.start({ upstreamUrl: simulated.url, nodeId: name, database });
      onTestFinished(() => wire.close());
      return wire;
    };
    const send = (wire: ChainWire, bytes: string) =>
      rpcCall(wire.url, "eth_sendRawTransaction", [bytes]).catch(() => undefined);
    const [own, foreign] = [await wireOf(nodeId), await wireOf("somebody-else")];
    await send(own, raw);
    expect(own.violations).toEqual([]);
    await send(foreign, raw);
    expect(foreign.violations).toEqual([expect.stringContaining(`was claimed by [${nodeId}]`)]);
    await send(own, "0x02c0");
    expect(own.violations).toEqual([expect.stringContaining("is not stored")]);
  });
});
