import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Kill } from "../../../src/domain/cluster/kills.ts";
import { anInstance, uniqueAddress } from "../../support/lane-samples.ts";
import type { LeaseStoreContext } from "./serving.ts";

/** Contract for kills: each is stored once and ends only by an explicit action, never because its row is missing. */
export function killsContract(context: LeaseStoreContext): void {
  const aKill = (overrides: Partial<Kill> = {}): Kill => ({
    killId: randomUUID(),
    signer: uniqueAddress(),
    actor: "operator:a",
    reason: "because",
    ...overrides,
  });
  const find = async ({ killId }: Kill, killIds: readonly string[] = []) =>
    (await context.store.kills(killIds)).find((row) => row.killId === killId);
  const changes = async () => (await context.store.instances())[0]?.killChanges ?? Number.NaN;

  it("a kill is stored with all its fields, for one signer or for all", async () => {
    const kills = [aKill(), aKill({ signer: null, reason: 'naïve 🦄 "quoted"' })];
    await context.store.keepKills(kills);
    for (const kill of kills) expect(await find(kill)).toEqual({ ...kill, at: expect.any(Date), ended: false });
    const other = await context.subject.connect();
    expect((await other.kills([])).map(({ killId }) => killId)).toEqual(
      expect.arrayContaining(kills.map(({ killId }) => killId)),
    );
    await other.close();
    await context.store.endKills({ signer: null, actor: "b", reason: "over" }, []);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts, src/adapters/postgres/statements/kill.ts
  it("a kill is stored once, however often the kill is received", async () => {
    const kill = aKill();
    await context.store.keepKills([kill]);
    await context.store.keepKills([{ ...kill, reason: "another one" }]);
    expect(await find(kill)).toMatchObject({ reason: "because" });
    await context.store.endKills({ signer: kill.signer, actor: "b", reason: "over" }, []);
    await context.store.keepKills([kill]);
    expect(await find(kill)).toBeUndefined();
    expect(await find(kill, [kill.killId])).toMatchObject({ ended: true });
  });

  it("a request to end the kills of one signer ends all of them, even a kill that was never stored", async () => {
    const signer = uniqueAddress();
    const [one, two, unkept] = [aKill({ signer }), aKill({ signer }), aKill({ signer })];
    const others = [aKill(), aKill({ signer: null })];
    await context.store.keepKills([one, two, ...others]);
    await context.store.endKills({ signer, actor: "b", reason: "over" }, [unkept]);
    for (const kill of [one, two, unkept]) expect(await find(kill, [kill.killId])).toMatchObject({ ended: true });
    for (const kill of others) expect(await find(kill)).toMatchObject({ ended: false });
    await context.store.endKills({ signer: null, actor: "b", reason: "over" }, []);
    expect(await find(others[1] as Kill)).toBeUndefined();
    expect(await find(others[0] as Kill)).toMatchObject({ ended: false });
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts, src/adapters/postgres/statements/node-instance.ts
  it("every read of the instances shows whether a kill was added or ended", async () => {
    await context.store.registerInstance(anInstance());
    const before = await changes();
    const kill = aKill();
    await context.store.keepKills([kill]);
    const given = await changes();
    expect(given).not.toBe(before);
    await context.store.keepKills([kill]);
    expect(await changes(), "nothing new").toBe(given);
    await context.store.endKills({ signer: kill.signer, actor: "b", reason: "over" }, []);
    expect([before, given]).not.toContain(await changes());
  });

  it("an unknown kill is not reported as ended", async () => {
    expect((await context.store.kills([randomUUID()])).every(({ ended }) => !ended)).toBe(true);
  });
}
