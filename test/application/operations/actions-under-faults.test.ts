import { afterEach, describe, expect, it } from "vitest";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function startKnown(settings: WorldOptions["settings"] = {}): Promise<WorldNode> {
  world = new World({ settings });
  const entry = await world.startNode();
  await world.settle(entry.node.api.create(transfer()));
  await world.allSettled(1);
  return entry;
}

function actionRequest(action: "suspend" | "resume") {
  return { action, signer: SIGNER, request: { reason: "test" }, actor: "operator:ops" } as const;
}

describe("concurrent actions on one lane", () => {
  it("leave the lane in the state that the last action sets", async () => {
    const entry = await startKnown();
    const { api } = entry.node;
    await world.settle(api.actOnLane(actionRequest("suspend")));
    await world.settle(Promise.all([api.actOnLane(actionRequest("resume")), api.actOnLane(actionRequest("suspend"))]));
    expect(await api.signer(SIGNER)).toMatchObject([{ suspendedBy: "OPERATOR" }]);
    const sent = world.chain.witness.length;
    await world.settle(api.create(transfer()));
    await world.clock.advance(10_000);
    expect(world.chain.witness).toHaveLength(sent);
  });

  it("leave the lane unchanged if the database did not commit them", async () => {
    const entry = await startKnown();
    const { api } = entry.node;
    entry.store.failNextCommit("unavailable");
    entry.store.failNextCommit("unavailable");
    const both = [api.actOnLane(actionRequest("suspend")), api.actOnLane(actionRequest("suspend"))];
    const failed = await world.settle(Promise.allSettled(both));
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    entry.store.forgetFaults();
    await world.settle(api.create(transfer()));
    await world.allSettled(2, 30_000);
  });
});

describe("a lane action whose commit got no response", () => {
  // protects [Operators] src/application/lane/between-owners.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it.each(["suspend", "resume", "realign"] as const)("has an unknown outcome (%s)", async (action) => {
    const entry = await startKnown();
    entry.store.failNextCommit("unknown-committed");
    const asked = entry.node.api.actOnLane({ ...actionRequest("suspend"), action });
    await expect(world.settle(asked)).rejects.toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
  });
});

describe("an action on a transaction", () => {
  // protects [Operators] src/application/operations/transaction-actions.ts
  it("is reported as done if the commit succeeded but got no response", async () => {
    const entry = await startKnown();
    const operated = new OperatedWorld(world);
    world.holdBlocks();
    const txId = await operated.sent(entry);
    const read = entry.store.transaction.bind(entry.store);
    const commit = entry.store.commit.bind(entry.store);
    entry.store.commit = (writes) => {
      if (!writes.some((write) => write.kind === "transition" && write.items[0]?.event === "decide"))
        return commit(writes);
      entry.store.commit = commit;
      entry.store.failNextCommit("unknown-committed");
      entry.store.transaction = async (id) => {
        while (operated.row(id).state !== "CONFIRMED") await world.clock.sleep(100);
        return read(id);
      };
      world.releaseBlocks();
      return commit(writes);
    };
    expect(await operated.act(entry, "resubmit", { txId })).toMatchObject({ state: "CONFIRMED" });
    expect(operated.decisions(txId)).toHaveLength(1);
  });
});

describe("a nonce gap that an operator fills", () => {
  it("is filled once even if the first commit of the operator's action fails", async () => {
    const entry = await startKnown({ expiredReservations: "hole" });
    const operated = new OperatedWorld(world);
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: 1 }));
    const head = await operated.create(entry);
    await world.until(() => operated.row(head).state === "STUCK");
    const commit = entry.store.commit.bind(entry.store);
    entry.store.commit = (writes) => {
      const decides = writes.some((write) => write.kind === "transition" && write.items[0]?.event === "decide");
      if (decides) {
        entry.store.commit = commit;
        entry.store.failNextCommit("unavailable");
      }
      return commit(writes);
    };
    await operated.act(entry, "resolve", { txId: head, request: { action: "PLACEHOLDER" } });
    await operated.settled(head);
    expect(operated.outcome(head)).toBe("CONFIRMED");
    expect(operated.kinds(head)).toEqual(["initial"]);
    expect((await entry.node.api.reservation(reservation.reservationId)).txId).not.toBeNull();
  });

  it("is filled once by two concurrent actions", async () => {
    const entry = await startKnown({ expiredReservations: "hole" });
    const operated = new OperatedWorld(world);
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: 1 }));
    const head = await operated.create(entry);
    await world.until(() => operated.row(head).state === "STUCK");
    const fill = () => operated.act(entry, "resolve", { txId: head, request: { action: "PLACEHOLDER" } });
    const both = await Promise.allSettled([fill(), fill()]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(both[1]).toMatchObject({ reason: { code: "CONFLICT" } });
    await operated.settled(head);
    expect(operated.outcome(head)).toBe("CONFIRMED");
  });
});

describe("an action that signs an attempt and then marks the transaction STUCK", () => {
  it.each(["unavailable", "unknown-lost", "unknown-committed"] as const)(
    // protects [Operators] src/application/detours/another-attempt.ts
    "is completed even if the second commit is %s",
    async (fault) => {
      const entry = await startKnown({ expiredReservations: "hole" });
      const operated = new OperatedWorld(world);
      world.holdBlocks();
      const txId = await operated.sent(entry);
      const commit = entry.store.commit.bind(entry.store);
      entry.store.commit = (writes) => {
        const events = writes.flatMap((write) => (write.kind === "transition" ? write.items : []));
        if (events.some(({ event }) => event === "stick")) {
          entry.store.commit = commit;
          entry.store.failNextCommit(fault);
        }
        return commit(writes);
      };
      const request = JSON.parse(`{"action":"REPLACE","then":"stuck"}`);
      const view = await operated.act(entry, "resolve", { txId, request });
      expect(view.state).toBe("STUCK");
      expect(operated.kinds(txId)).toEqual(["initial", "reprice"]);
      expect(operated.decisions(txId)).toEqual(["reprice by operator:ops: REPLACE", "stick by operator:ops: REPLACE"]);
      expect(world.database.state.completions.filter((row) => row.txId === txId)).toMatchObject([{ state: "STUCK" }]);
      world.releaseBlocks();
      await operated.settled(txId);
      expect(operated.outcome(txId)).toBe("CONFIRMED");
    },
  );
});
