import { describe, expect, it } from "vitest";
import { Activity } from "../../../src/application/lane/activity.ts";
import { type Ending, quietly, Term, TermOver, type TermPorts } from "../../../src/application/lane/term.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { type LaneWrite, OutcomeUnknown, StoreUnavailable, type WriteOutcome } from "../../../src/ports/lane-store.ts";
import { deferred } from "../../support/deferred.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

function bench() {
  const telemetry = recordTelemetry();
  const writes: LaneWrite[] = [];
  const control = { mayAct: true, maySend: true, killed: null as Address | null };
  const committed = deferred<WriteOutcome>();
  const write = (write: LaneWrite): Promise<WriteOutcome> => {
    writes.push(write);
    return committed.promise;
  };
  const fence = { lane: { chainId: CHAIN_ID, signer: SIGNER }, instanceId: "instance", token: 7 };
  const lease = { mayAct: () => control.mayAct, maySend: () => control.maySend };
  const reloads: string[] = [];
  const reload: TermPorts["reload"] = ({ term }, reason) => {
    reloads.push(reason);
    term.end("putOff");
  };
  const kills = { holds: (signer: Address) => control.killed === signer };
  const term = new Term(fence, { writer: { write }, lease, kills, telemetry, reload });
  const late = () => telemetry.of("lease.fenced").map((event) => event.write);
  return { term, fence, writes, control, committed, late, reloads };
}

type Bench = ReturnType<typeof bench>;

const ENDS: readonly [string, (bench: Bench) => void, late: number][] = [
  ["the lane was lost", ({ term }) => term.end("lost"), 1],
  ["the lane is to be reloaded", ({ term }) => term.end("putOff"), 0],
  ["the lease deadline has passed", ({ control }) => void Object.assign(control, { mayAct: false, maySend: false }), 1],
];

describe("a read by a lane's owner", () => {
  it("returns its result even past the node's own lease deadline", async () => {
    const { term, control } = bench();
    control.mayAct = false;
    expect(await term.during(Promise.resolve(5))).toBe(5);
    await expect(term.during(Promise.reject(new TypeError("away")))).rejects.toThrow(TypeError);
  });

  it.each<Ending>(["lost", "putOff"])("throws TermOver if the ownership ended meanwhile (%s)", async (how) => {
    const { term, late } = bench();
    const read = deferred<number>();
    const failing = deferred<number>();
    const waiting = [term.during(read.promise), term.during(failing.promise)];
    term.end(how);
    read.resolve(5);
    failing.resolve(Promise.reject(new TypeError("away")));
    for (const each of waiting) await expect(each).rejects.toThrow(TermOver);
    expect(late(), "a read is no late write").toEqual([]);
  });

  it("before a write is counted as fenced if the lane was lost", async () => {
    const { term, late } = bench();
    term.end("putOff");
    await expect(term.during(Promise.resolve(5), "finality")).rejects.toThrow(TermOver);
    expect(late()).toEqual([]);
    term.end("lost");
    await expect(term.during(Promise.resolve(5), "finality")).rejects.toThrow(TermOver);
    expect(late()).toEqual(["finality"]);
    term.end("putOff");
    await expect(term.during(Promise.resolve(5), "sign")).rejects.toThrow(TermOver);
    expect(late(), "lost is lost").toEqual(["finality", "sign"]);
  });
});

describe("a write by a lane's owner", () => {
  it("has the owner's fencing token", async () => {
    const { term, fence, writes, committed } = bench();
    const outcome = { status: "expired", holes: [] } as const;
    committed.resolve(outcome);
    expect(await term.write({ kind: "expire" })).toBe(outcome);
    expect(writes).toEqual([{ kind: "expire", fence }]);
  });

  // protects [The fence] src/application/lane/term.ts
  it.each(ENDS)("is not made if %s", async (_, end, count) => {
    const made = bench();
    made.committed.resolve({ status: "expired", holes: [] });
    end(made);
    await expect(made.term.write({ kind: "expire" })).rejects.toThrow(TermOver);
    expect(made.writes).toEqual([]);
    expect(made.late()).toHaveLength(count);
  });

  // protects [The fence] src/application/lane/term.ts, src/application/stages/1-create/create.ts
  it.each(ENDS)("returns its actual result even if %s meanwhile", async (_, end) => {
    for (const error of [null, new OutcomeUnknown("the connection broke")]) {
      const made = bench();
      const waiting = made.term.write({ kind: "suspend", suspended: true, decision: null as never });
      end(made);
      if (error === null) made.committed.resolve({ status: "done" });
      else made.committed.resolve(Promise.reject(error));
      if (error === null) expect(await waiting).toEqual({ status: "done" });
      else await expect(waiting).rejects.toBe(error);
    }
  });

  // protects [The fence] src/application/lane/term.ts
  it("reloads the lane if the outcome of the write is unknown", async () => {
    const unknown = bench();
    unknown.committed.resolve(Promise.reject(new OutcomeUnknown("the connection broke")));
    for (let writes = 0; writes < 2; writes++) {
      await expect(unknown.term.write({ kind: "expire" })).rejects.toThrow(writes === 0 ? OutcomeUnknown : TermOver);
    }
    expect(unknown.reloads).toEqual(["the database did not say what became of a write"]);
    const away = bench();
    away.committed.resolve(Promise.reject(new StoreUnavailable("away")));
    await expect(away.term.write({ kind: "expire" })).rejects.toThrow(StoreUnavailable);
    expect(away.reloads).toEqual([]);
  });

  it("ends the ownership if the database fences the write", async () => {
    const { term, committed } = bench();
    committed.resolve({ status: "fenced" });
    await expect(term.write({ kind: "expire" })).rejects.toThrow(TermOver);
    expect(term.hasEnded).toBe(true);
  });

  it.each<[string, (bench: Bench) => void, boolean]>([
    ["is too late if the lane was lost", ({ term }) => term.end("lost"), true],
    ["is too late after the lease deadline", ({ control }) => void Object.assign(control, { mayAct: false }), true],
    ["is a database failure if the lane is to be reloaded", ({ term }) => term.end("putOff"), false],
    ["is a database failure while the term lasts", () => undefined, false],
  ])("fails with the correct cause: it %s", async (_, end, isLate) => {
    const made = bench();
    const waiting = made.term.write({ kind: "expire" });
    end(made);
    made.committed.resolve(Promise.reject(new StoreUnavailable("away")));
    await expect(waiting).rejects.toThrow(isLate ? TermOver : StoreUnavailable);
  });
});

describe("a signature or broadcast by a lane's owner", () => {
  // protects [The fence] src/application/lane/term.ts
  it.each(ENDS)("is not begun if %s", async (_, end) => {
    const made = bench();
    end(made);
    let begun = 0;
    const work = async () => begun++;
    await expect(made.term.sign(work)).rejects.toThrow(TermOver);
    await expect(made.term.send(work)).rejects.toThrow(TermOver);
    expect(begun).toBe(0);
    expect(made.late(), "nothing was ready to be written").toEqual([]);
  });

  it("is not begun without a session lock (broadcasts only)", async () => {
    const { term, control, committed } = bench();
    control.maySend = false;
    let begun = 0;
    await expect(term.send(async () => begun++)).rejects.toThrow(TermOver);
    expect(begun).toBe(0);
    expect(await term.sign(async () => "signed")).toBe("signed");
    committed.resolve({ status: "done" });
    expect(await term.write({ kind: "closeHoles", nonces: [1] })).toEqual({ status: "done" });
  });

  // protects [The kill switch] src/application/lane/term.ts, src/application/lane/owned-lane.ts
  it("waits during a kill of the signer", async () => {
    const { term, control } = bench();
    const asked: boolean[] = [];
    await term.send(async (mayStill) => {
      asked.push(mayStill());
      control.killed = SIGNER;
      asked.push(mayStill());
    });
    expect(asked).toEqual([true, false]);
    expect([term.isKilled, term.maySend, term.mayAct]).toEqual([true, false, true]);
    let begun = 0;
    await expect(term.send(async () => begun++)).rejects.toThrow(TermOver);
    expect(begun).toBe(0);
    control.killed = "0xanother";
    await term.send(async () => begun++);
    expect(begun).toBe(1);
  });

  it("is counted as fenced if it ends after the lane was lost", async () => {
    const { term, late } = bench();
    const answer = deferred<string>();
    const waiting = [term.sign(() => answer.promise), term.send(() => answer.promise)];
    term.end("lost");
    answer.resolve("accepted");
    for (const each of waiting) await expect(each).rejects.toThrow(TermOver);
    expect(late()).toEqual(["sign", "broadcast"]);
  });
});

describe("the end of a node's ownership of a lane", () => {
  it("also stops the recording of write results", () => {
    const { term, control } = bench();
    const begun = () => [term.begin(() => "noted"), term.work(() => "worked")];
    expect(begun()).toEqual(["noted", "worked"]);
    control.mayAct = false;
    expect(begun()).toEqual(["noted", null]);
    control.mayAct = true;
    term.end("putOff");
    expect(begun()).toEqual([null, null]);
  });

  // protects [The fence] src/application/lane/activity.ts, src/application/lane/term.ts
  it("stops a background job without an error", async () => {
    const { term } = bench();
    const errors: unknown[] = [];
    let runs = 0;
    const activity = new Activity(
      async () => {
        runs++;
        await term.during(Promise.resolve());
      },
      (error) => errors.push(error),
    );
    term.end("lost");
    for (const run of [1, 2]) {
      activity.kick();
      await activity.settled();
      expect([runs, errors]).toEqual([run, []]);
    }
  });

  // protects [The fence] src/application/lane/activity.ts, src/application/lane/term.ts
  it("is returned as false, not as an error", async () => {
    expect(await quietly(Promise.resolve(5))).toBe(true);
    expect(await quietly(Promise.reject(new TermOver()))).toBe(false);
    await expect(quietly(Promise.reject(new TypeError("a mistake of ours")))).rejects.toThrow(TypeError);
  });
});
