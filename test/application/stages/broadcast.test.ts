import { describe, expect, it } from "vitest";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import { quietly } from "../../../src/application/lane/term.ts";
import { broadcast } from "../../../src/application/stages/4-broadcast/broadcast.ts";
import type { SubmitAnswer } from "../../../src/domain/chain/answers.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { LOOK_OWED, lookedAt } from "../../../src/domain/pace/transaction-pace.ts";
import { AT_ONCE, at, NEVER } from "../../../src/domain/pace/when.ts";
import type { Send } from "../../../src/ports/chain.ts";
import {
  createStageBench,
  due,
  eventsOf,
  mineIn,
  paced,
  receiptOf,
  type StageBench,
  stored,
} from "../../support/stage-bench.ts";

interface Wired extends StageBench {
  readonly sent: Hex[][];
  /** One for each list in `sent`: true if it was sent to every endpoint. */
  readonly everywhere: boolean[];
  /** The node's answer to every request from now on. */
  says: SubmitAnswer;
  /** Called while a submission is on its way. */
  duringSend: () => void;
}

function wired(...transactions: readonly Tracked[]): Wired {
  const bench = createStageBench();
  for (const tx of transactions) bench.lane.track(tx);
  const made: Wired = { ...bench, sent: [], everywhere: [], says: "accepted", duringSend: () => undefined };
  const submit = async (sends: readonly Send[], { everywhere = false } = {}) => {
    made.sent.push(sends.map(({ raw }) => raw));
    made.everywhere.push(everywhere);
    made.duringSend();
    return sends.map(() => ({ answer: made.says, detail: made.says === "accepted" ? null : "in its own words" }));
  };
  Object.assign(bench.chain, { submit });
  return made;
}

async function run(bench: Wired): Promise<void> {
  await quietly(broadcast(bench.ports, bench.context, bench.lane) ?? Promise.resolve());
  await bench.clock.advance(0);
}

function only({ lane }: Wired): Tracked {
  return [...lane.unmined.values(), ...lane.mined.values()][0] as Tracked;
}

function dueMs({ pace: { send } }: Tracked): number {
  return send.kind === "at" ? send.ms : 0;
}

describe("sending", () => {
  it("goes in nonce order, in one call, and notes what the node took", async () => {
    const bench = wired(due(3, "0x03"), due(1, "0x01"), due(2, "0x02"));
    await run(bench);
    expect(bench.sent).toEqual([["0x01", "0x02", "0x03"]]);
    expect(eventsOf(bench.writes)).toEqual(["broadcast tx 1", "broadcast tx 2", "broadcast tx 3"]);
    expect(bench.writes).toMatchObject([{ items: [{ accepted: { ordinal: 1 }, lastError: null }, {}, {}] }]);
    expect(bench.passed).toEqual(["broadcast.sent", "broadcast.committed"]);
    expect(only(bench).pace).toMatchObject({ claimed: false, rawTransaction: null, send: at(60_000), failures: 0 });
  });

  // protects [Sent again, priced again, stuck] src/application/stages/4-broadcast/broadcast.ts, src/adapters/evm/chain.ts
  it("what a node took and no block holds goes to every endpoint: that one may have dropped it, and would again", async () => {
    const bench = wired(due(1, "0x01"));
    await run(bench);
    bench.lane.track(due(2, "0x02"));
    const again = { claimed: true, send: AT_ONCE, answer: null };
    paced(only(bench), { ...again, rawTransaction: "0x01" });
    await run(bench);
    // Bytes that no node has taken yet.
    paced(only(bench), { ...again, rawTransaction: "0x03", sendOrdinal: 2 });
    await run(bench);
    expect(bench.sent).toEqual([["0x01"], ["0x01", "0x02"], ["0x03"]]);
    expect(bench.everywhere).toEqual([false, true, false]);
  });

  it("goes to every endpoint from the first time on where that is set", async () => {
    const bench = wired(due(1, "0x01"));
    Object.assign(bench.context, { settings: { ...bench.context.settings, broadcastToAll: true } });
    await run(bench);
    expect(bench.everywhere).toEqual([true]);
  });

  it("of many goes in pieces of a hundred", async () => {
    const bench = wired(...Array.from({ length: 230 }, (_, nonce) => due(nonce)));
    await run(bench);
    expect(bench.sent.map(({ length }) => length)).toEqual([100, 100, 30]);
  });

  it("reports the answer, and how long the first one took", async () => {
    const bench = wired(due(1));
    await bench.clock.advance(1_500);
    await run(bench);
    expect(bench.telemetry.of("submit.answered")).toMatchObject([
      { txId: "tx 1", nonce: 1, answer: "accepted", first: true, sinceCreatedMs: 1_500 },
    ]);
    stored(only(bench), { submitAttempts: 2 });
    paced(only(bench), { send: AT_ONCE, claimed: true, rawTransaction: "0x", answer: null });
    await run(bench);
    expect(bench.telemetry.of("submit.answered")[1]).toMatchObject({ first: false, sinceCreatedMs: null });
  });

  it("what a node has already is not written twice", async () => {
    const bench = wired(due(1));
    bench.says = "alreadyKnown";
    await run(bench);
    paced(only(bench), { send: AT_ONCE, claimed: true, rawTransaction: "0x", answer: null });
    await run(bench);
    expect(bench.sent.length).toBe(2);
    expect(eventsOf(bench.writes)).toEqual(["broadcast tx 1"]);
  });

  it("never again by age where that is off", async () => {
    const bench = createStageBench({}, { settings: { resubmitIntervalMs: null } });
    bench.lane.track(due(1));
    Object.assign(bench.chain, { submit: async () => [{ answer: "accepted", detail: null }] });
    await broadcast(bench.ports, bench.context, bench.lane);
    expect(bench.lane.unmined.get(1)?.pace.send).toEqual(NEVER);
  });
});

describe("nothing is sent", () => {
  it.each<[string, (bench: Wired) => void]>([
    ["on a lane that stopped", ({ lane }) => lane.stop()],
    ["on a lane that is suspended", ({ lane }) => lane.fold([{ kind: "suspension", suspendedBy: "OPERATOR" }])],
    [
      "on a lane that is not reconciled",
      ({ lane }) => void Object.assign(lane, { ledger: { ...lane.ledger, reconciled: false } }),
    ],
    ["past our own deadline", ({ control }) => void Object.assign(control, { mayAct: false })],
    [
      "past our own deadline, nor claimed to be",
      (bench) => void Object.assign(bench.control, { mayAct: paced(only(bench), { claimed: false }).pace.claimed }),
    ],
    ["before its time", (bench) => void paced(only(bench), { send: at(1) })],
    ["that owes a look for its receipt", (bench) => void paced(only(bench), { look: LOOK_OWED })],
    ["that is being sent already", (bench) => void paced(only(bench), { inHand: true })],
  ])("%s", async (_, prepare) => {
    const bench = wired(due(1));
    prepare(bench);
    await run(bench);
    expect(bench.sent).toEqual([]);
    expect(bench.writes).toEqual([]);
  });

  it.each<[string, (bench: Wired) => void]>([
    ["the lane stopped", ({ lane }) => lane.stop()],
    ["our deadline came", ({ control }) => void Object.assign(control, { mayAct: false })],
  ])("where %s while it was being claimed", async (_, lose) => {
    const bench = wired(paced(due(1), { claimed: false }));
    bench.control.meanwhile = () => lose(bench);
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["resubmit tx 1"]);
    expect(bench.sent).toEqual([]);
  });

  it("where the claim did not go through", async () => {
    for (const answer of [() => ({ status: "fenced" }) as const, () => new Error("away")]) {
      const bench = wired(paced(due(1), { claimed: false }));
      bench.control.answer = answer;
      await run(bench);
      expect(bench.sent).toEqual([]);
    }
  });

  it("of what was mined while the rest was being claimed", async () => {
    const [first, second] = [paced(due(1, "0x01"), { claimed: false }), due(2, "0x02")];
    const bench = wired(first, second);
    bench.control.meanwhile = () => mineIn(bench.lane, second, receiptOf(2, { number: 9, hash: "0x09" }));
    await run(bench);
    expect(bench.sent).toEqual([["0x01"]]);
  });
});

describe("sending again", () => {
  // protects [Sent again, priced again, stuck] src/application/stages/4-broadcast/broadcast.ts
  it("claims first, with the bytes that the database holds", async () => {
    const bench = wired(paced(due(1), { claimed: false, rawTransaction: null }));
    bench.rows.raw = ({ txId, ordinal }) => `0x${txId.slice(3)}${ordinal}` as Hex;
    const sentAtClaim: number[] = [];
    bench.control.meanwhile = () => void sentAtClaim.push(bench.sent.length);
    await run(bench);
    expect(bench.sent).toEqual([["0x11"]]);
    expect(sentAtClaim[0]).toBe(0);
    expect(bench.writes[0]).toMatchObject({ items: [{ event: "resubmit", claim: { ordinal: 1 } }] });
    expect(only(bench).submitAttempts).toBe(2);
    expect(bench.passed).toContain("resubmit.claimed");
  });

  it("every time anew: a claim is used up by one send, whatever the answer was", async () => {
    const bench = wired(due(1));
    bench.says = "unknown";
    await run(bench);
    expect(only(bench).pace.claimed).toBe(false);
    paced(only(bench), { send: AT_ONCE });
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["submitFailed tx 1", "resubmit tx 1"]);
  });

  it("is not claimed for a lane that stopped while its bytes were fetched", async () => {
    const bench = wired(paced(due(1), { claimed: false, rawTransaction: null }));
    bench.rows.raw = () => {
      bench.lane.stop();
      return "0x";
    };
    await run(bench);
    expect([bench.writes, bench.sent]).toEqual([[], []]);
  });
});

describe("an answer", () => {
  it.each<[SubmitAnswer, number, number]>([
    ["unknown", 125, 250],
    ["nonceTooHigh", 125, 250],
    ["nonceConsumed", 500, 1_000],
    ["underpriced", 1_000, 2_000],
    ["insufficientFunds", 1_000, 2_000],
    ["rejected", 2_500, 5_000],
  ])("of %s is asked again after %i to %i ms, says why, and decides nothing", async (answer, least, most) => {
    const bench = wired(due(1));
    bench.says = answer;
    await run(bench);
    const tx = only(bench);
    expect(dueMs(tx)).toBeGreaterThanOrEqual(least);
    expect(dueMs(tx)).toBeLessThanOrEqual(most);
    expect(bench.writes).toMatchObject([
      {
        items: [
          { event: "submitFailed", to: "TRACKING", subState: "PENDING", lastError: `${answer}: in its own words` },
        ],
      },
    ]);
    expect(tx.pace.look).toEqual(answer === "nonceConsumed" ? LOOK_OWED : lookedAt(0));
    expect(tx.pace.failures).toBe(1);
  });

  it("that repeats itself waits longer and longer, and is written once", async () => {
    const bench = wired(due(1));
    bench.says = "unknown";
    const waits: number[] = [];
    for (let round = 0; round < 12; round++) {
      paced(only(bench), { send: AT_ONCE, claimed: true });
      await run(bench);
      waits.push(dueMs(only(bench)) - bench.clock.monotonicMs());
    }
    expect(waits.at(-1)).toBeGreaterThan(15_000);
    expect(waits.at(-1)).toBeLessThanOrEqual(30_000);
    expect(eventsOf(bench.writes)).toEqual(["submitFailed tx 1"]);
  });

  it("of a node that takes it after all clears the complaint", async () => {
    const bench = wired(due(1));
    bench.says = "insufficientFunds";
    await run(bench);
    bench.says = "accepted";
    paced(only(bench), { send: AT_ONCE, claimed: true, rawTransaction: "0x" });
    await run(bench);
    expect(bench.writes[1]).toMatchObject({ items: [{ event: "broadcast", lastError: null }] });
    expect(only(bench)).toMatchObject({ lastError: null, pace: { failures: 0 } });
  });

  it("for a lane that stopped meanwhile is not noted", async () => {
    const bench = wired(due(1));
    bench.duringSend = () => bench.lane.stop();
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.telemetry.of("submit.answered")).toEqual([]);
    expect(bench.telemetry.of("lease.fenced"), "it was only put off").toEqual([]);
  });

  it("for a lane that was lost meanwhile is too late, and counted as that", async () => {
    const bench = wired(due(1));
    bench.duringSend = () => {
      bench.lane.stop("lost");
    };
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.telemetry.of("lease.fenced")).toMatchObject([{ write: "broadcast", stoppedBy: "deadline" }]);
  });

  it("about what was mined meanwhile is reported, and changes nothing", async () => {
    const bench = wired(due(1));
    bench.says = "nonceConsumed";
    bench.duringSend = () => mineIn(bench.lane, only(bench), receiptOf(1, { number: 9, hash: "0x09" }));
    await run(bench);
    expect(bench.telemetry.of("submit.answered").length).toBe(1);
    expect(bench.writes).toEqual([]);
    expect(only(bench).pace).toMatchObject({ send: NEVER, failures: 0 });
  });

  it("that cannot be written has the lane read again, and the sending is over", async () => {
    const bench = wired(due(1));
    bench.control.answer = () => new Error("away");
    await run(bench);
    expect(bench.reloads).toEqual(["a write failed: away"]);
    expect(bench.passed).toEqual(["broadcast.sent"]);
  });
});
