import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Lane } from "../../../src/domain/lane.ts";
import { apply, type Ledger } from "../../../src/domain/ledger/index.ts";
import type { Paid } from "../../../src/domain/policy/charges.ts";
import { within } from "../../../src/domain/policy/use.ts";
import { transition } from "../../../src/domain/transaction/transitions.ts";
import type { TransitionItem } from "../../../src/ports/lane-store.ts";
import { AT, anAttempt, anIntent } from "../../support/lane-samples.ts";
import { forSigner } from "../../support/policies.ts";
import { newLedger, unusedGuard } from "../../support/whole-ledger.ts";

const LANE: Lane = { chainId: 1, signer: `0x${"a".repeat(40)}` };
const FENCE = { lane: LANE, instanceId: "i", token: 1 };
const HOUR_MS = 3_600_000;
const BEGAN_MS = Date.UTC(2026, 10, 17);
const LIMITS = { perTransaction: 60n, perHour: 100n, perDay: 220n };

const amount = fc.bigInt({ min: 0n, max: 80n });
const which = fc.nat(7);
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("create" as const), cost: amount }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(8 * HOUR_MS) }),
    fc.record({ kind: fc.constant("reprice" as const), of: which, cost: amount }),
    fc.record({ kind: fc.constant("settle" as const), of: which, paid: amount }),
    fc.record({ kind: fc.constant("reorg" as const), of: which }),
  ),
  { maxLength: 40 },
);

interface NaiveTransaction {
  readonly txId: string;
  /**
   * `charged` has the worst-case charges by hour. `counts` equals it until settlement; then it has the amounts actually
   * used.
   */
  charged: Map<number, bigint>;
  counts: Map<number, bigint>;
  settled: boolean;
}

const sumOf = (hours: ReadonlyMap<number, bigint>) => [...hours.values()].reduce((a, b) => a + b, 0n);

/** A naive model of usage that adds everything up each time and keeps no windows. */
class NaiveUse {
  readonly transactions: NaiveTransaction[] = [];

  used(fromMs: number, toMs: number): bigint {
    let sum = 0n;
    for (const { counts } of this.transactions) {
      for (const [ms, cost] of counts) if (ms >= fromMs && ms < toMs) sum += cost;
    }
    return sum;
  }

  allows(nowMs: number, worst: bigint, more: bigint): boolean {
    const hourMs = nowMs - (nowMs % HOUR_MS);
    const dayMs = nowMs - (nowMs % (24 * HOUR_MS));
    if (more === 0n) return true;
    if (worst > LIMITS.perTransaction || this.used(hourMs, hourMs + HOUR_MS) + more > LIMITS.perHour) return false;
    return this.used(dayMs, dayMs + 24 * HOUR_MS) + more <= LIMITS.perDay;
  }

  charge(tx: NaiveTransaction, nowMs: number, more: bigint): void {
    const hourMs = nowMs - (nowMs % HOUR_MS);
    for (const hours of [tx.charged, tx.counts]) hours.set(hourMs, (hours.get(hourMs) ?? 0n) + more);
  }

  /**
   * Replaces the worst-case charges by the cost paid. A refund reduces the latest hours first; a cost above the charges
   * is added to the latest hour.
   */
  settle(tx: NaiveTransaction, paid: bigint): void {
    let left = sumOf(tx.charged) - paid;
    tx.counts = new Map(tx.charged);
    const hours = [...tx.counts.keys()].sort((a, b) => b - a);
    if (left < 0n && hours[0] !== undefined) tx.counts.set(hours[0], (tx.counts.get(hours[0]) ?? 0n) - left);
    for (const ms of hours) {
      if (left <= 0n) break;
      const taken = left < (tx.counts.get(ms) ?? 0n) ? left : (tx.counts.get(ms) ?? 0n);
      tx.counts.set(ms, (tx.counts.get(ms) ?? 0n) - taken);
      left -= taken;
    }
  }
}

function item(txId: string, from: { state: "TRACKING" | "CONFIRMED" }, more: Partial<TransitionItem>): TransitionItem {
  const event = more.event ?? "reprice";
  const status = from.state === "CONFIRMED" ? AT.confirmed : event === "confirm" ? AT.mined : AT.pending;
  const to = transition(status, event);
  return { txId, event, from: status.state, to: to.state, subState: to.subState, ...more };
}

describe("the used amount of a policy limit", () => {
  // protects [Attacks] src/domain/ledger/move.ts, src/domain/ledger/guard.ts, src/domain/policy/charges.ts
  it("equals the sum of all charges of the hour or day", () => {
    const limits = Object.fromEntries(Object.entries(LIMITS).map(([name, most]) => [name, `${most}`]));
    const policies = forSigner(LANE.signer, { maxCost: limits });
    fc.assert(
      fc.property(steps, (story) => {
        let ledger: Ledger = { ...newLedger(LANE), guard: unusedGuard(policies) };
        let nowMs = BEGAN_MS;
        const naive = new NaiveUse();
        const write = (kind: "allocate" | "transition", items: readonly object[]) => {
          const head = kind === "allocate" ? { kind, floor: 0 } : { kind };
          const done = apply(ledger, { ...head, fence: FENCE, items } as never, new Date(nowMs));
          ledger = done.ledger;
          return (done.outcome as unknown as { items: readonly ({ result: string } | string)[] }).items[0];
        };
        const move = (txId: string, from: { state: "TRACKING" | "CONFIRMED" }, more: Partial<TransitionItem>) =>
          write("transition", [item(txId, from, more)]);
        for (const step of story) {
          const tx = "of" in step ? naive.transactions[step.of] : undefined;
          if (step.kind === "wait") nowMs += step.ms;
          if (step.kind === "create") {
            const intent = anIntent(LANE, { payload: { value: 0n }, gasCost: step.cost });
            const allowed = naive.allows(nowMs, step.cost, step.cost);
            expect(write("allocate", [{ intent }])).toMatchObject({ result: allowed ? "created" : "forbidden" });
            if (!allowed) continue;
            const fresh = { txId: intent.txId, charged: new Map(), counts: new Map(), settled: false };
            naive.transactions.push(fresh);
            naive.charge(fresh, nowMs, step.cost);
            const attempt = anAttempt(1, { fees: { type: "legacy", gasPrice: 0n } });
            write("transition", [
              { ...item(intent.txId, { state: "TRACKING" }, { attempt }), event: "sign", from: "ALLOCATED" },
            ]);
          }
          if (tx === undefined) continue;
          if (step.kind === "reprice" && !tx.settled) {
            const before = sumOf(tx.charged);
            const more = step.cost > before ? step.cost - before : 0n;
            const allowed = naive.allows(nowMs, step.cost, more);
            const spends = { to: null, data: "0x", value: 0n, gasCost: step.cost, about: "cost" } as const;
            const ordinal = (ledger.transactions.get(tx.txId)?.attemptCount ?? 0) + 1;
            const result = move(tx.txId, { state: "TRACKING" }, { attempt: anAttempt(ordinal), spends });
            expect(result).toBe(allowed ? "applied" : "forbidden");
            if (allowed && more > 0n) naive.charge(tx, nowMs, more);
          }
          if (step.kind === "settle" && !tx.settled) {
            const paid: Paid = { ordinal: 1, gasCost: step.paid, succeeded: true };
            move(tx.txId, { state: "TRACKING" }, { event: "mine", subState: "MINED" });
            move(tx.txId, { state: "TRACKING" }, { event: "confirm", paid });
            tx.settled = true;
            naive.settle(tx, step.paid);
          }
          if (step.kind === "reorg" && tx.settled) {
            move(tx.txId, { state: "CONFIRMED" }, { event: "reorg" });
            tx.settled = false;
            tx.counts = new Map(tx.charged);
          }
          const use = within(ledger.guard?.use ?? never(), new Date(nowMs));
          const dayMs = nowMs - (nowMs % (24 * HOUR_MS));
          expect(use.hour.cost).toBe(naive.used(use.hourMs, use.hourMs + HOUR_MS));
          expect(use.day.cost).toBe(naive.used(dayMs, dayMs + 24 * HOUR_MS));
        }
      }),
      { numRuns: 300 },
    );
  });
});

function never(): never {
  throw new Error("the use was not loaded");
}
