import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Address, laneKey } from "../../src/domain/lane.ts";
import { NOWHERE } from "../../src/domain/troubles/rows.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  BY_ANYBODY,
  commitOne,
  confirm,
  holdLane,
  step,
} from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

const ALL = { signers: null, chains: null };
const decision = { action: "suspend", actor: "operator:ada", reason: "audit" } as const;
const held = { actor: "operator:ada", audit: null };

/** The contract of every SightStore, which serves the overview pages. */
export function sightStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`SightStore contract: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
    });
    afterAll(async () => {
      await store.close();
      await subject.close();
    });

    const troublesOf = async (signer: Address) => {
      const { lanes, held, awaiting } = await store.troubles(100);
      const isIt = ({ lane }: { readonly lane: { readonly signer: Address } }) => lane.signer === signer;
      return { lanes: lanes.filter(isIt), held: held.filter(isIt), awaiting: awaiting.filter(isIt) };
    };
    const signed = async (fence: Awaited<ReturnType<typeof holdLane>>) => {
      const intent = anIntent(fence.lane);
      const attempt = anAttempt();
      await allocate(store, fence, [intent]);
      await apply(store, fence, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
      return { intent, attempt };
    };

    it("reports no trouble for a healthy lane", async () => {
      const fence = await holdLane(store);
      await signed(fence);
      expect(await troublesOf(fence.lane.signer)).toEqual({ lanes: [], held: [], awaiting: [] });
    });

    it("reports a stuck lane with its lowest open transaction", async () => {
      const fence = await holdLane(store);
      const { intent } = await signed(fence);
      await signed(fence);
      await apply(store, fence, [step(intent.txId, AT.pending, "stick", {})]);
      const { lanes } = await troublesOf(fence.lane.signer);
      expect(lanes).toMatchObject([
        {
          lane: fence.lane,
          suspendedBy: null,
          open: 2,
          head: { txId: intent.txId, nonce: 0, state: "STUCK" },
          hole: null,
        },
      ]);
    });

    it("reports a suspended lane with the operator and the reason, until the lane is resumed", async () => {
      const fence = await holdLane(store);
      await commitOne(store, { kind: "suspend", fence, suspended: true, decision });
      const { lanes } = await troublesOf(fence.lane.signer);
      expect(lanes).toMatchObject([{ suspendedBy: "OPERATOR", decision: { actor: "operator:ada", reason: "audit" } }]);
      await commitOne(store, { kind: "suspend", fence, suspended: false });
      expect((await troublesOf(fence.lane.signer)).lanes).toEqual([]);
    });

    it("reports the lowest hole in the nonces of a lane", async () => {
      const fence = await holdLane(store);
      const reservationId = randomUUID();
      await commitOne(store, {
        ...{ kind: "reserve", fence, floor: 4, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
      });
      const { intent } = await signed(fence);
      await commitOne(store, { kind: "release", fence, reservationId });
      const { lanes } = await troublesOf(fence.lane.signer);
      expect(lanes).toMatchObject([{ head: { txId: intent.txId, nonce: 5 }, hole: { nonce: 4 } }]);
    });

    it("reports a held transaction, with the number of open transactions on its lane", async () => {
      const fence = await holdLane(store);
      const { intent } = await signed(fence);
      await signed(fence);
      await apply(store, fence, [step(intent.txId, AT.pending, "hold", { decision: held })]);
      const { held: found } = await troublesOf(fence.lane.signer);
      expect(found).toMatchObject([{ txId: intent.txId, nonce: 0, open: 2, since: expect.any(Date) }]);
    });

    it("returns at most the requested number of lanes with problems", async () => {
      for (let n = 0; n < 3; n++) {
        await commitOne(store, { kind: "suspend", fence: await holdLane(store), suspended: true });
      }
      const everything = await store.troubles(100);
      const { lanes, more } = await store.troubles(1);
      expect(everything.more).toBe(0);
      expect(lanes.length).toBeLessThanOrEqual(2);
      expect(more).toBeGreaterThanOrEqual(2);
    });

    describe("lanes without an owner", () => {
      const unownedOf = async (signer: Address) =>
        (await store.unownedLanes(1_000)).filter(({ lane }) => lane.signer === signer);

      it("are listed with their last owner, if that ended with open transactions", async () => {
        const fence = await holdLane(store);
        const { intent } = await signed(fence);
        await allocate(store, fence, [anIntent(fence.lane)]);
        expect(await unownedOf(fence.lane.signer)).toEqual([]);
        await subject.expire(fence.instanceId);
        const owner = (await store.instances()).find(({ instanceId }) => instanceId === fence.instanceId);
        await store.declareDead(fence.instanceId, owner?.counter ?? 0, "expired");
        const createdAt = (await store.transaction(intent.txId))?.createdAt;
        expect(await unownedOf(fence.lane.signer)).toEqual([
          { lane: fence.lane, open: 2, oldestAt: createdAt, nodeId: owner?.nodeId, heldAt: owner?.heartbeatAt },
        ]);
        expect(await store.lanesAfter(null, 1_000, { needsAttention: true })).toContainEqual(
          expect.objectContaining({ lane: fence.lane }),
        );
      });

      it("are listed if they were released, with the last heartbeat of a node that holds the key", async () => {
        const fence = await holdLane(store);
        const holder = anInstance({ signers: [fence.lane.signer] });
        await signed(fence);
        await store.releaseLane(fence);
        expect(await unownedOf(fence.lane.signer)).toMatchObject([{ open: 1, nodeId: null, heldAt: null }]);
        await store.registerInstance(holder);
        const seen = (await store.instances()).find(({ instanceId }) => instanceId === holder.instanceId);
        expect(await unownedOf(fence.lane.signer)).toMatchObject([{ nodeId: null, heldAt: seen?.heartbeatAt }]);
      });

      it("are listed if only an intent waits, also if the lane was never used", async () => {
        const lane = aLane();
        const intent = anIntent(lane);
        await subject.intake(intent);
        const createdAt = (await store.transaction(intent.txId))?.createdAt;
        expect(await unownedOf(lane.signer)).toEqual([
          { lane, open: 1, oldestAt: createdAt, nodeId: null, heldAt: null },
        ]);
      });

      it("are not listed if nothing waits there", async () => {
        const fence = await holdLane(store);
        await confirm(store, fence);
        await store.releaseLane(fence);
        expect(await unownedOf(fence.lane.signer)).toEqual([]);
      });

      it("are not listed beyond the requested number", async () => {
        await subject.intake(anIntent(aLane()), anIntent(aLane()));
        expect(await store.unownedLanes(1)).toHaveLength(1);
      });
    });

    it("counts transactions by state, for all lanes and for selected signers and chains", async () => {
      const [mine, others] = [await holdLane(store, aLane(77)), await holdLane(store, aLane(78))];
      await confirm(store, mine);
      await signed(mine);
      await signed(others);
      const of = async (limits: Parameters<Store["totals"]>[0]) => {
        const { lanes, states } = await store.totals(limits);
        return { lanes, ...states };
      };
      const own = { lanes: 1, CREATED: 0, ALLOCATED: 0, TRACKING: 1, STUCK: 0, CONFIRMED: 1, FAILED_FINAL: 0 };
      expect(await of({ signers: new Set([mine.lane.signer]), chains: null })).toEqual(own);
      expect(await of({ signers: null, chains: new Set([77]) })).toEqual(own);
      expect(await of({ signers: new Set([mine.lane.signer]), chains: new Set([78]) })).toMatchObject({ lanes: 0 });
      expect((await of(ALL)).TRACKING).toBeGreaterThanOrEqual(2);
    });

    it("reports the transactions created and completed per minute", async () => {
      const fence = await holdLane(store);
      const before = await store.pulse();
      for (let n = 0; n < 5; n++) await confirm(store, fence);
      const after = await store.pulse();
      expect(after.createdPerMinute - before.createdPerMinute).toBeCloseTo(1);
      expect(after.completedPerMinute - before.completedPerMinute).toBeCloseTo(1);
      expect(after.secondsToFinality.length - before.secondsToFinality.length).toBe(5);
      for (const seconds of after.secondsToFinality) expect(seconds).toBeGreaterThanOrEqual(0);
    });

    it("returns the oldest open transaction of each chain", async () => {
      expect(await store.oldestOpen([991, 992])).toEqual(["none", "none"]);
      const [one, other] = [await holdLane(store, aLane(991)), await holdLane(store, aLane(991))];
      await confirm(store, one);
      const { intent } = await signed(other);
      await signed(one);
      const { txId, lane } = intent;
      const oldest = { lane, txId, nonce: 0, createdAt: expect.any(Date) };
      expect(await store.oldestOpen([992, 991])).toEqual(["none", oldest]);
    });

    it("finds transactions by id, by hash, by request id, or by signer and nonce", async () => {
      const fence = await holdLane(store);
      const { signer } = fence.lane;
      const requestId = `order-${randomUUID()}`;
      const { intent, attempt } = await confirm(store, fence, {}, anIntent(fence.lane, { requestId }));
      const { txId } = intent;
      const from = (text: string) => ({ from: text, to: `${text}\u{10FFFF}` });
      const found = async (terms: Omit<Parameters<Store["search"]>[0], "limit">) =>
        (await store.search({ ...terms, limit: 5 })).transactions.map((each) => each.txId);
      expect(await found({ txIds: { from: txId, to: txId } })).toEqual([txId]);
      expect(await found({ txHash: attempt.txHash })).toEqual([txId]);
      expect(await found({ requestIds: from(requestId.slice(0, 20)) })).toEqual([txId]);
      expect(await found({ requestIds: from(requestId.slice(1)) })).toEqual([]);
      expect(await found({ nonce: { nonce: 0, signers: from(signer) } })).toEqual([txId]);
      expect(await found({ nonce: { nonce: 1, signers: from(signer) } })).toEqual([]);
      expect(await found({})).toEqual([]);
      const { lanes } = await store.search({ signers: from(signer.slice(0, 20)), limit: 5 });
      expect(lanes.map(laneKey)).toEqual([laneKey(fence.lane)]);
    });

    it("finds reservations, and requests that wait in the intake table", async () => {
      const fence = await holdLane(store);
      const reservationId = randomUUID();
      await commitOne(store, {
        ...{ kind: "reserve", fence, floor: 0, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
      });
      const waiting = anIntent(fence.lane, { requestId: `waits-${randomUUID()}` });
      await subject.intake(waiting);
      const between = { from: reservationId, to: reservationId };
      expect(await store.search({ reservationIds: between, limit: 5 })).toMatchObject({
        reservations: [{ reservationId, nonce: 0, state: "RESERVED", lane: fence.lane }],
      });
      const { requestId } = waiting;
      expect(
        await store.search({ requestIds: { from: requestId ?? "", to: `${requestId}z` }, limit: 5 }),
      ).toMatchObject({
        transactions: [{ txId: waiting.txId, state: "CREATED", nonce: null }],
      });
    });

    it("lists the transactions, reservations and holes in a nonce range of a lane", async () => {
      const fence = await holdLane(store);
      expect(await store.nonces(aLane(), 0, 9)).toMatchObject({ cursor: null, firstOpen: null, transactions: [] });
      await confirm(store, fence);
      const { intent } = await signed(fence);
      const reservationId = randomUUID();
      await commitOne(store, {
        ...{ kind: "reserve", fence, floor: 0, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
      });
      expect(await store.nonces(fence.lane, 1, 9)).toMatchObject({
        ...{ cursor: 3, firstOpen: 1, holes: [] },
        transactions: [{ nonce: 1, txId: intent.txId, state: "TRACKING", held: false }],
        reservations: [{ nonce: 2, reservationId, state: "RESERVED" }],
      });
      expect(await store.nonces(fence.lane, 0, -1)).toMatchObject({ cursor: 3, transactions: [], reservations: [] });
    });

    // protects [Everything at once] src/adapters/postgres/stores/takeovers.ts, src/adapters/postgres/stores/register-instance.ts
    it("records each takeover of a lane with the old and the new owner", async () => {
      const [first, second] = [anInstance(), anInstance()];
      await store.registerInstance(first);
      await store.registerInstance(second);
      const [lane, given] = [aLane(), aLane()];
      await store.claimLanes([lane, given], first.instanceId, 2);
      const before = await store.past(100);
      expect(before.takeovers.filter((each) => each.to === first.nodeId)).toEqual([]);
      await subject.expire(first.instanceId);
      const [seen] = (await store.instances()).filter(({ instanceId }) => instanceId === first.instanceId);
      await store.declareDead(first.instanceId, seen?.counter ?? 0, "expired");
      await store.acquireLane(lane, second.instanceId);
      const { takeovers, nodes } = await store.past(100);
      expect(takeovers[0]).toMatchObject({
        lane,
        from: first.nodeId,
        to: second.nodeId,
        token: 2,
        why: expect.stringContaining("heartbeat"),
      });
      const stateOf = (id: string) => nodes.find(({ instanceId }) => instanceId === id)?.state;
      expect([stateOf(first.instanceId), stateOf(second.instanceId)]).toEqual(["gone", "alive"]);
    });

    it("records the previous owner of a lane that was released before a takeover", async () => {
      const [first, second, third] = [anInstance(), anInstance(), anInstance()];
      for (const instance of [first, second, third]) await store.registerInstance(instance);
      const lane = aLane();
      for (const { instanceId } of [first, second, third]) {
        const taken = await store.acquireLane(lane, instanceId);
        if ("fence" in taken) await store.releaseLane(taken.fence);
      }
      const { takeovers } = await store.past(100);
      const own = takeovers.filter((each) => laneKey(each.lane) === laneKey(lane));
      expect(own.map(({ from, to, token }) => [from, to, token])).toEqual([
        [second.nodeId, third.nodeId, 3],
        [null, second.nodeId, 2],
      ]);
    });

    // protects [Everything at once] src/application/queries/node-reports.ts, src/adapters/postgres/statements/cluster-past.ts
    it("returns the last report of each live instance", async () => {
      const [one, other] = [anInstance(), anInstance()];
      await store.registerInstance(one);
      await store.registerInstance(other);
      const finding = {
        ...NOWHERE,
        id: "chain:5",
        severity: "CRITICAL",
        code: "CHAIN_UNREACHABLE",
        sentence: "s",
      } as const;
      const since = new Date("2026-11-02T09:30:00.000Z");
      await store.report({ instanceId: one.instanceId, findings: [finding] });
      await store.report({ instanceId: one.instanceId, findings: [{ ...finding, since }] });
      await store.report({ instanceId: other.instanceId, findings: [finding] });
      await subject.expire(other.instanceId);
      const own = (await store.reports()).filter(({ instanceId }) =>
        [one, other].some((each) => each.instanceId === instanceId),
      );
      expect(own).toEqual([{ instanceId: one.instanceId, findings: [{ ...finding, since }] }]);
    });

    it("keeps the report of an instance that has just expired", async () => {
      const [gone, living] = [anInstance(), anInstance()];
      const since = new Date("2026-11-02T09:30:00.000Z");
      const row = {
        ...NOWHERE,
        id: "tx:t",
        severity: "ERROR",
        code: "STUCK",
        sentence: "s",
        since,
        asOf: since,
        leftMs: since.getTime(),
      } as const;
      for (const each of [gone, living]) {
        await store.registerInstance(each);
        await store.report({ instanceId: each.instanceId, findings: [row] });
      }
      await subject.expire(gone.instanceId);
      await store.registerInstance(anInstance());
      const own = (await store.endedReports()).filter(({ instanceId }) =>
        [gone, living].some((each) => each.instanceId === instanceId),
      );
      expect(own).toEqual([{ instanceId: gone.instanceId, findings: [row] }]);
    });
  });
}
