import { describe, expect, it } from "vitest";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import { quietly } from "../../../src/application/lane/term.ts";
import { broadcast } from "../../../src/application/stages/4-broadcast/broadcast.ts";
import type { SubmitAnswer } from "../../../src/domain/chain/answers.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { LOOK_OWED, lookedAt, mined, withdrawn } from "../../../src/domain/pace/transaction-pace.ts";
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
  /** One entry per list of payloads in `sent`: true if that list was sent to every endpoint. */
  readonly everywhere: boolean[];
  /** The chain node's answer to every submission from now on. */
  says: SubmitAnswer;
  /** Called while a submission is in flight. */
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

describe("broadcasting signed transactions", () => {
  it("sends the transactions in nonce order in one call", async () => {
    const bench = wired(due(3, "0x03"), due(1, "0x01"), due(2, "0x02"));
    await run(bench);
    expect(bench.sent).toEqual([["0x01", "0x02", "0x03"]]);
    expect(eventsOf(bench.writes)).toEqual(["broadcast tx 1", "broadcast tx 2", "broadcast tx 3"]);
    expect(bench.writes).toMatchObject([{ items: [{ accepted: { ordinal: 1 }, lastError: null }, {}, {}] }]);
    expect(bench.passed).toEqual(["broadcast.sent", "broadcast.committed"]);
    expect(only(bench).pace).toMatchObject({ claimed: false, rawTransaction: null, send: at(60_000), failures: 0 });
  });

  // protects [Sent again, priced again, stuck] src/application/stages/4-broadcast/broadcast.ts, src/adapters/evm/chain.ts
  it("sends an accepted but unmined transaction to every endpoint", async () => {
    const bench = wired(due(1, "0x01"));
    await run(bench);
    bench.lane.track(due(2, "0x02"));
    const again = { claimed: true, send: AT_ONCE, answer: null };
    paced(only(bench), { ...again, rawTransaction: "0x01" });
    await run(bench);
    // The next bytes to send are new: no chain node has accepted them yet.
    paced(only(bench), { ...again, rawTransaction: "0x03", sendOrdinal: 2 });
    await run(bench);
    expect(bench.sent).toEqual([["0x01"], ["0x01", "0x02"], ["0x03"]]);
    expect(bench.everywhere).toEqual([false, true, false]);
  });

  it("sends private transactions apart from the others, and only to private endpoints", async () => {
    const hidden = due(1, "0x01");
    stored(hidden, { attempts: hidden.attempts.map((attempt) => ({ ...attempt, private: true as const })) });
    const bench = wired(hidden, due(2, "0x02"));
    const calls: unknown[] = [];
    const submit = async (sends: readonly Send[], { privately }: { readonly privately: boolean }) => {
      calls.push([privately, sends.map(({ raw }) => raw)]);
      return sends.map(() => ({ answer: "accepted", detail: null }));
    };
    Object.assign(bench.chain, { submit });
    await run(bench);
    expect(calls).toEqual([
      [false, ["0x02"]],
      [true, ["0x01"]],
    ]);
  });

  it("keeps other work from changing a transaction until its answer has arrived", async () => {
    const bench = wired(due(1));
    const inHand: boolean[] = [];
    bench.duringSend = () => void inHand.push(only(bench).pace.inHand);
    await run(bench);
    expect([...inHand, only(bench).pace.inHand]).toEqual([true, false]);
  });

  it("sends to every endpoint if broadcastToAll is set", async () => {
    const bench = wired(due(1, "0x01"));
    Object.assign(bench.context, { settings: { ...bench.context.settings, broadcastToAll: true } });
    await run(bench);
    expect(bench.everywhere).toEqual([true]);
  });

  it("splits a large batch into calls of a hundred", async () => {
    const bench = wired(...Array.from({ length: 230 }, (_, nonce) => due(nonce)));
    await run(bench);
    expect(bench.sent.map(({ length }) => length)).toEqual([100, 100, 30]);
  });

  it("reports each endpoint response", async () => {
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

  it("stores the acceptance once if the endpoint already has the transaction", async () => {
    const bench = wired(due(1));
    bench.says = "alreadyKnown";
    await run(bench);
    paced(only(bench), { send: AT_ONCE, claimed: true, rawTransaction: "0x", answer: null });
    await run(bench);
    expect(bench.sent.length).toBe(2);
    expect(eventsOf(bench.writes)).toEqual(["broadcast tx 1"]);
  });

  it("schedules no resubmission if resubmitIntervalMs is null", async () => {
    const bench = createStageBench({}, { settings: { resubmitIntervalMs: null } });
    bench.lane.track(due(1));
    Object.assign(bench.chain, { submit: async () => [{ answer: "accepted", detail: null }] });
    await broadcast(bench.ports, bench.context, bench.lane);
    expect(bench.lane.unmined.get(1)?.pace.send).toEqual(NEVER);
  });
});

describe("no transaction is broadcast", () => {
  it.each<[string, (bench: Wired) => void]>([
    ["on a lane that stopped", ({ lane }) => lane.stop()],
    ["on a lane that is suspended", ({ lane }) => lane.fold([{ kind: "suspension", suspendedBy: "OPERATOR" }])],
    [
      "on a lane that is not reconciled",
      ({ lane }) => void Object.assign(lane, { ledger: { ...lane.ledger, reconciled: false } }),
    ],
    ["after the lease deadline", ({ control }) => void Object.assign(control, { mayAct: false })],
    [
      "or claimed after the lease deadline",
      (bench) => void Object.assign(bench.control, { mayAct: paced(only(bench), { claimed: false }).pace.claimed }),
    ],
    ["before its scheduled time", (bench) => void paced(only(bench), { send: at(1) })],
    ["before its receipt is looked up, if that is due", (bench) => void paced(only(bench), { look: LOOK_OWED })],
    ["twice, if it is already being sent", (bench) => void paced(only(bench), { inHand: true })],
  ])("%s", async (_, prepare) => {
    const bench = wired(due(1));
    prepare(bench);
    await run(bench);
    expect(bench.sent).toEqual([]);
    expect(bench.writes).toEqual([]);
  });

  it.each<[string, (bench: Wired) => void]>([
    ["the lane stopped", ({ lane }) => lane.stop()],
    ["the lease deadline passed", ({ control }) => void Object.assign(control, { mayAct: false })],
  ])("if %s while the right to send was being committed", async (_, lose) => {
    const bench = wired(paced(due(1), { claimed: false }));
    bench.control.meanwhile = () => lose(bench);
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["resubmit tx 1"]);
    expect(bench.sent).toEqual([]);
  });

  it("if its claim (the stored right to send) was not committed", async () => {
    for (const answer of [() => ({ status: "fenced" }) as const, () => new Error("away")]) {
      const bench = wired(paced(due(1), { claimed: false }));
      bench.control.answer = answer;
      await run(bench);
      expect(bench.sent).toEqual([]);
    }
  });

  it("if it was mined while the right to send was being committed", async () => {
    const [first, second] = [paced(due(1, "0x01"), { claimed: false }), due(2, "0x02")];
    const bench = wired(first, second);
    bench.control.meanwhile = () => mineIn(bench.lane, second, receiptOf(2, { number: 9, hash: "0x09" }));
    await run(bench);
    expect(bench.sent).toEqual([["0x01"]]);
  });
});

describe("resubmitting a transaction", () => {
  // protects [Sent again, priced again, stuck] src/application/stages/4-broadcast/broadcast.ts
  it("commits the right to send before the send", async () => {
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

  it("claims it again if a receipt came and went while the right to send was being committed", async () => {
    const bench = wired(paced(due(1), { claimed: false, rawTransaction: null }));
    bench.rows.raw = () => "0x11";
    let claims = 0;
    bench.control.meanwhile = () => {
      if (++claims === 1) paced(only(bench), withdrawn(mined(only(bench).pace), 1, 0));
    };
    await run(bench);
    expect(bench.sent).toEqual([["0x11"]]);
    expect(eventsOf(bench.writes)).toEqual(["resubmit tx 1", "resubmit tx 1", "broadcast tx 1"]);
  });

  it("needs a newly committed right to send each time", async () => {
    const bench = wired(due(1));
    bench.says = "unknown";
    await run(bench);
    expect(only(bench).pace.claimed).toBe(false);
    paced(only(bench), { send: AT_ONCE });
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["submitFailed tx 1", "resubmit tx 1"]);
  });

  it("commits no right to send if the lane stopped meanwhile", async () => {
    const bench = wired(paced(due(1), { claimed: false, rawTransaction: null }));
    bench.rows.raw = () => {
      bench.lane.stop();
      return "0x";
    };
    await run(bench);
    expect([bench.writes, bench.sent]).toEqual([[], []]);
  });
});

describe("an endpoint's response to a broadcast", () => {
  it.each<[SubmitAnswer, number, number]>([
    ["unknown", 125, 250],
    ["nonceTooHigh", 125, 250],
    ["nonceConsumed", 500, 1_000],
    ["underpriced", 1_000, 2_000],
    ["insufficientFunds", 1_000, 2_000],
    ["rejected", 2_500, 5_000],
  ])("(%s) causes a retry after %i to %i ms", async (answer, least, most) => {
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

  it("causes retries with growing pauses if it repeats", async () => {
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

  it("clears the transaction's lastError if it accepts the transaction", async () => {
    const bench = wired(due(1));
    bench.says = "insufficientFunds";
    await run(bench);
    bench.says = "accepted";
    paced(only(bench), { send: AT_ONCE, claimed: true, rawTransaction: "0x" });
    await run(bench);
    expect(bench.writes[1]).toMatchObject({ items: [{ event: "broadcast", lastError: null }] });
    expect(only(bench)).toMatchObject({ lastError: null, pace: { failures: 0 } });
  });

  it("is not stored if the lane stopped meanwhile", async () => {
    const bench = wired(due(1));
    bench.duringSend = () => bench.lane.stop();
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.telemetry.of("submit.answered")).toEqual([]);
    expect(bench.telemetry.of("lease.fenced"), "it was only put off").toEqual([]);
  });

  it("counts as a fenced write if the lane was lost meanwhile", async () => {
    const bench = wired(due(1));
    bench.duringSend = () => {
      bench.lane.stop("lost");
    };
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.telemetry.of("lease.fenced")).toMatchObject([{ write: "broadcast", stoppedBy: "deadline" }]);
  });

  it("is reported and changes nothing if the transaction was mined meanwhile", async () => {
    const bench = wired(due(1));
    bench.says = "nonceConsumed";
    bench.duringSend = () => mineIn(bench.lane, only(bench), receiptOf(1, { number: 9, hash: "0x09" }));
    await run(bench);
    expect(bench.telemetry.of("submit.answered").length).toBe(1);
    expect(bench.writes).toEqual([]);
    expect(only(bench).pace).toMatchObject({ send: NEVER, failures: 0 });
  });

  it("causes a reload of the lane if it cannot be stored", async () => {
    const bench = wired(due(1));
    bench.control.answer = () => new Error("away");
    await run(bench);
    expect(bench.reloads).toEqual(["a write failed: away"]);
    expect(bench.passed).toEqual(["broadcast.sent"]);
  });
});
