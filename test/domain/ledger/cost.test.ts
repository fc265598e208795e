import { expect, it } from "vitest";
import { apply, type Ledger } from "../../../src/domain/ledger/index.ts";
import { AT, anAttempt, anIntent, step } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(0);

function withOpen(count: number): Ledger {
  const items = Array.from({ length: count }, () => ({ intent: anIntent(LANE) }));
  return apply(newLedger(LANE), { kind: "allocate", fence: FENCE, floor: 0, items }, NOW).ledger;
}

/** CPU time in microseconds of one create plus the signing of a transaction in the middle of the queue. */
function costOf(ledger: Ledger, times: number): number {
  const [, txId] = [...ledger.live.known()][Math.floor([...ledger.live.known()].length / 2)] as [number, string];
  const items = [step(txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } })];
  const intents = Array.from({ length: times }, () => anIntent(LANE, { requestId: "wanted" }));
  const began = process.cpuUsage();
  for (const intent of intents) {
    apply(ledger, { kind: "allocate", fence: FENCE, floor: 0, items: [{ intent }] }, NOW);
    apply(ledger, { kind: "transition", fence: FENCE, items }, NOW);
  }
  const { user, system } = process.cpuUsage(began);
  return (user + system) / times;
}

it("the CPU cost of a ledger write grows at most with the tree depth, even with ten thousand open transactions", () => {
  const [few, many] = [withOpen(10), withOpen(10_000)];
  costOf(few, 2_000);
  costOf(many, 2_000);
  const ratios = Array.from({ length: 5 }, () => costOf(many, 2_000) / costOf(few, 2_000)).sort((a, b) => a - b);
  // A tree of 10,000 entries is about three times as deep as a tree of 10. If the ledger copied a list instead, the
  // cost would be a thousand times as high.
  expect(ratios[2]).toBeLessThan(4);
});
