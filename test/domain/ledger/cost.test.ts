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

/** Microseconds of processor time for a create, and for the signing of one that waits in the middle. */
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

it("a write costs by what it is about: ten thousand open transactions make it no slower than a path is longer", () => {
  const [few, many] = [withOpen(10), withOpen(10_000)];
  costOf(few, 2_000);
  costOf(many, 2_000);
  const ratios = Array.from({ length: 5 }, () => costOf(many, 2_000) / costOf(few, 2_000)).sort((a, b) => a - b);
  // A tree of 10,000 is three times as deep as one of 10; a copy would cost a thousand times as much.
  expect(ratios[2]).toBeLessThan(4);
});
