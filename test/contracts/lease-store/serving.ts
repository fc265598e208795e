import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { anInstance, uniqueAddress } from "../../support/lane-samples.ts";
import type { Store, StoreSubject } from "../store-subject.ts";

/** State shared by the parts of the suite; filled before the first test. */
export interface LeaseStoreContext {
  subject: StoreSubject;
  store: Store;
}

/**
 * Tests the information that instances publish for each other. It is only advice: no lease and no fencing token depends
 * on it.
 */
export function servingContract(context: LeaseStoreContext): void {
  const find = async (instanceId: string, store: Store = context.store) =>
    (await store.instances()).find((row) => row.instanceId === instanceId);

  it("an instance is stored with the signers and chains that it serves", async () => {
    const signers = Array.from({ length: 300 }, () => uniqueAddress());
    const chains = [1, 31_337, 2 ** 40, Number.MAX_SAFE_INTEGER];
    const { instanceId, ...rest } = anInstance({ signers, chains });
    await context.store.registerInstance({ instanceId, ...rest });
    expect(await context.store.signersOf(instanceId)).toEqual(signers);
    expect(await find(instanceId)).toMatchObject({ chains, draining: false, standsBack: false, keysAway: [] });
  });

  it("an instance that registers under a new id keeps its list of unreachable keys", async () => {
    const [there, away] = [uniqueAddress(), uniqueAddress()];
    const instance = anInstance({ signers: [there, away], keysAway: [away] });
    await context.store.registerInstance(instance);
    expect((await find(instance.instanceId))?.keysAway).toEqual([away]);
  });

  it("an instance can be stored without signers and chains", async () => {
    const instance = anInstance({ signers: [], chains: [] });
    await context.store.registerInstance(instance);
    expect(await context.store.signersOf(instance.instanceId)).toEqual([]);
    expect((await find(instance.instanceId))?.chains).toEqual([]);
  });

  it("an instance can be stored with an empty URL, which means unreachable", async () => {
    const instance = anInstance({ url: "" });
    await context.store.registerInstance(instance);
    expect((await find(instance.instanceId))?.url).toBe("");
  });

  it("an unknown instance has no signers", async () => {
    expect(await context.store.signersOf(randomUUID())).toEqual([]);
  });

  it("an instance's announcement of chains, draining and unreachable keys is visible to all nodes", async () => {
    const signers = [uniqueAddress()];
    const { instanceId, ...rest } = anInstance({ signers, chains: [1, 2] });
    await context.store.registerInstance({ instanceId, ...rest });
    const before = { ...(await find(instanceId)), readAt: expect.any(Date) };
    await context.subject.tick();
    const announced = { chains: [2, 5], draining: true, standsBack: true, keysAway: signers.slice(0, 2) };
    await context.store.announce(instanceId, announced);
    const other = await context.subject.connect();
    expect(await find(instanceId, other)).toEqual({ ...before, ...announced });
    expect(await other.signersOf(instanceId)).toEqual(signers);
    await other.close();
    await context.store.announce(instanceId, { chains: [], draining: false, standsBack: false, keysAway: [] });
    expect(await find(instanceId)).toEqual({ ...before, chains: [], draining: false, standsBack: false });
  });

  it("every read of the instances returns the database's clock", async () => {
    const { instanceId, ...rest } = anInstance();
    await context.store.registerInstance({ instanceId, ...rest });
    const first = await find(instanceId);
    await context.subject.tick();
    const second = await find(instanceId);
    expect(first?.readAt.getTime()).toBeGreaterThanOrEqual(first?.heartbeatAt.getTime() ?? Number.NaN);
    expect(second?.readAt.getTime()).toBeGreaterThan(first?.readAt.getTime() ?? Number.NaN);
  });

  it("an instance's announcement changes only its own row", async () => {
    const [one, two] = [anInstance({ chains: [1] }), anInstance({ chains: [1] })];
    await context.store.registerInstance(one);
    await context.store.registerInstance(two);
    await context.store.announce(one.instanceId, { chains: [9], draining: true, standsBack: false, keysAway: [] });
    expect(await find(two.instanceId)).toMatchObject({ chains: [1], draining: false, standsBack: false });
  });

  it("the state that an instance announced is kept through lease renewals", async () => {
    const instance = anInstance({ chains: [1, 2] });
    await context.store.registerInstance(instance);
    await context.store.announce(instance.instanceId, { chains: [2], draining: true, standsBack: false, keysAway: [] });
    expect(await context.store.renewInstance(instance.instanceId, 60_000)).toBe(true);
    expect(await find(instance.instanceId)).toMatchObject({ chains: [2], draining: true, counter: 2 });
  });

  it("an announcement by a dead instance does not revive it", async () => {
    const instance = anInstance();
    await context.store.registerInstance(instance);
    await context.store.retireInstance(instance.instanceId);
    await context.store.announce(instance.instanceId, {
      chains: [1],
      draining: false,
      standsBack: false,
      keysAway: [],
    });
    expect((await find(instance.instanceId))?.dead).toBe(true);
    expect(await context.store.renewInstance(instance.instanceId, 60_000)).toBe(false);
  });

  it("an announcement by an unknown instance is ignored", async () => {
    const stranger = randomUUID();
    await context.store.announce(stranger, { chains: [1], draining: false, standsBack: false, keysAway: [] });
    expect(await find(stranger)).toBeUndefined();
  });

  it("the public key of an instance and its proof are kept through renewals", async () => {
    const [one, two] = [anInstance({ publicKey: "k1", keyProof: "p1" }), anInstance({ publicKey: "k2" })];
    await context.store.registerInstance(one);
    await context.store.registerInstance(two);
    expect(await context.store.renewInstance(one.instanceId, 60_000)).toBe(true);
    expect(await find(one.instanceId)).toMatchObject({ publicKey: "k1", keyProof: "p1" });
    expect(await find(two.instanceId)).toMatchObject({ publicKey: "k2", keyProof: null });
  });
}
