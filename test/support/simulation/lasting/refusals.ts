import type { SubmitAnswer } from "../../../../src/domain/chain/answers.ts";
import { SIGNERS } from "../../world.ts";
import { type Calm, gapsOf } from "./calm.ts";

/** Within this time a node does what is due: it looks ten times a second, and a commit or two may come before. */
const LATE_MS = 150;
/** When bytes are sent again: the first time at the latest after `soonMs`, and later at least once in `seldomMs`. */
const BACK_OFF = {
  unknown: { soonMs: 250, seldomMs: 30_000 },
  insufficientFunds: { soonMs: 2_000, seldomMs: 60_000 },
  underpriced: { soonMs: 2_000, seldomMs: 60_000 },
} as const;
const LANES = 3;
const EACH = 2;
/** Sends after which the pauses of a transaction are long enough to be compared with those of others. */
const SPREAD_AFTER = 5;

/**
 * An endpoint refuses everything, or answers nothing, for minutes. Each transaction is sent again after pauses that grow
 * up to a limit, and not together with the others; an operator's resubmission is sent at once.
 */
export async function refusals(calm: Calm): Promise<void> {
  const { world, dice } = calm;
  const answer = calm.inTurn(["unknown", "insufficientFunds", "underpriced"] as const);
  const { soonMs, seldomMs } = BACK_OFF[answer];
  let isOver = false;
  const entry = await calm.start(() => (isOver ? null : { answer, detail: "not now" }));
  const made = (
    await Promise.all(SIGNERS.slice(0, LANES).map((signer) => calm.create(entry, EACH, { signer })))
  ).flat();
  world.holdBlocks();
  await world.clock.advance(5 * seldomMs);
  for (const { txId } of made) {
    const gaps = gapsOf(calm.sendsOf(txId).map(({ atMs }) => atMs));
    calm.expect((gaps[0] ?? 0) <= soonMs + LATE_MS, `the first pause of ${txId} is short, not ${gaps[0]} ms`);
    calm.expect(Math.max(...gaps) <= seldomMs + LATE_MS, `no pause of ${txId} is longer than ${seldomMs} ms`);
    const isGrown = gaps.every((gap, index) => gap > (gaps[index - 2] ?? 0) || gap >= seldomMs / 2);
    calm.expect(isGrown, `the pauses of ${txId} grow: ${gaps}`);
  }
  const spread = new Set(made.map(({ txId }) => calm.sendsOf(txId)[SPREAD_AFTER]?.atMs));
  calm.expect(spread.size > 1, "transactions that were refused together are not all sent again together");
  const funds = calm.alerts("INSUFFICIENT_FUNDS").length;
  calm.expect(funds === (answer === "insufficientFunds" ? LANES : 0), `${funds} alerts about funds, one for each lane`);
  const [wanted] = made;
  if (wanted !== undefined && dice.chance(0.5)) {
    const before = calm.sendsOf(wanted.txId).length;
    await world.settle(
      entry.node.api.act({ action: "resubmit", txId: wanted.txId, request: { reason: "now" }, actor: "operator:sim" }),
    );
    await world.clock.advance(LATE_MS);
    calm.expect(calm.sendsOf(wanted.txId).length > before, "an operator's resubmission is sent at once");
  }
  isOver = true;
  world.releaseBlocks();
  await world.allSettled(made.length, 3 * seldomMs);
}

/** Answers of which only two refusals in a row are one for good. */
const MIXED: readonly SubmitAnswer[] = ["unknown", "rejected", "insufficientFunds"];

/** An endpoint changes its mind: only what it rejects twice in a row, and never took, is refused for good. */
export async function changedMinds(calm: Calm): Promise<void> {
  const { world, dice } = calm;
  let isOver = false;
  const entry = await calm.start(() => (isOver ? null : { answer: dice.pick(MIXED), detail: "perhaps" }));
  const made = await calm.create(entry, 3);
  await world.clock.advance(240_000);
  const refused = calm.alerts("TX_REFUSED");
  for (const { txId } of made) {
    const sent = calm.sendsOf(txId);
    const last = sent.findIndex((each, index) => each.answer === "rejected" && sent[index - 1]?.answer === "rejected");
    const atMs = refused.find((alert) => alert.txId === txId)?.atMs ?? null;
    calm.expect(atMs === (sent[last]?.atMs ?? null), `${txId} is refused for good at its second rejection in a row`);
  }
  isOver = true;
  await world.allSettled(made.length, 900_000);
}

const USUAL_FEE = 1_000_000_000n;
/** Above what the first offer allows for, and not above three times as much. */
const RISEN_FEE = 4n * USUAL_FEE;

/**
 * A dearer offer is refused while a node has the cheaper one: the cheaper one is sent again, until it is mined.
 */
export async function dearerRefused(calm: Calm): Promise<void> {
  const { world } = calm;
  const answer = calm.inTurn(["insufficientFunds", "rejected"] as const);
  const entry = await calm.start(({ txId, raw }) => {
    const isDearer = calm.row(txId).attempts.findIndex(({ rawTransaction }) => rawTransaction === raw) > 0;
    return isDearer ? { answer, detail: "too dear" } : null;
  });
  world.holdBlocks();
  const [made] = await calm.create(entry, 1, { payload: calm.unpriced });
  await world.until(() => calm.sends.length > 0);
  world.chain.setBaseFee(RISEN_FEE);
  world.releaseBlocks();
  await world.until(() => calm.sends.some((sent) => sent.answer === answer), 60_000);
  await world.clock.advance(180_000);
  const first = calm.row(made?.txId ?? "").attempts[0]?.rawTransaction;
  const sent = calm.sends;
  const wrong = sent.filter((each, index) => sent[index - 1]?.answer === answer && each.raw !== first);
  const again = sent.filter((each, index) => sent[index - 1]?.answer === answer && each.raw === first);
  calm.expect(again.length > 0, "the offer that a node has is sent again");
  calm.expect(
    wrong.length === 0,
    `the offer that a node has is sent after a dearer one is refused: ${wrong.length} others`,
  );
  world.chain.setBaseFee(USUAL_FEE);
  await world.allSettled(1, 300_000);
}
