/** The checker of campaigns and simulations: facts that are right, and each way in which they can be wrong. */
import { describe, expect, it } from "vitest";
import type { Address, Hash } from "../../../../src/domain/lane.ts";
import {
  type Facts,
  type ReceiptFact,
  type TransactionFact,
  violationsOf,
} from "../../../../src/main/dev/chaos/check.ts";

const SIGNER = `0x${"a1".repeat(20)}` as Address;
const hashOf = (n: number) => `0x${String(n).padStart(64, "0")}` as Hash;
const BLOCK = hashOf(900);

/** A transfer with this nonce that is mined and final. */
function transfer(nonce: number, changed: Partial<TransactionFact> = {}): TransactionFact {
  const receipt: ReceiptFact = { txHash: hashOf(nonce), blockHash: BLOCK, status: "success" };
  return {
    ...{ txId: `tx-${nonce}`, signer: SIGNER, requestId: `request-${nonce}`, nonce },
    ...{ state: "CONFIRMED", subState: null, validUntil: null, expiredAt: null, receipt },
    attempts: [{ hash: hashOf(nonce), kind: "initial", foreign: false }],
    history: [
      { event: "accept", fromState: null, state: "CREATED", token: null },
      { event: "confirm", fromState: "CREATED", state: "CONFIRMED", token: 3 },
    ],
    ...changed,
  };
}

/** Facts of three transfers with nonces 4, 5 and 6. */
function facts(changed: Partial<Facts> = {}, transactions = [transfer(4), transfer(5), transfer(6)]): Facts {
  const receipts = new Map(
    transactions.flatMap(({ receipt }) => (receipt === null ? [] : [[receipt.txHash, receipt]])),
  );
  return {
    transactions,
    completions: transactions.map(({ txId, state }, index) => ({
      ...{ seq: index + 1, txId, settled: true },
      state: state === "FAILED_FINAL" ? state : "CONFIRMED",
    })),
    sent: transactions.flatMap(({ attempts }) => attempts.map(({ hash }) => hash)),
    elsewhere: () => [],
    mined: (hash) => receipts.get(hash) ?? null,
    ...changed,
  };
}

/** Facts in which the transfer with nonce 5 is different. */
const withFifth = (changed: Partial<TransactionFact>) => facts({}, [transfer(4), transfer(5, changed), transfer(6)]);

const refused = transfer(6, {
  ...{ requestId: "request-4", nonce: null, state: "FAILED_FINAL", subState: "REQUEST_ID_REUSED" },
  ...{ receipt: null, attempts: [] },
});
const reverted: ReceiptFact = { txHash: hashOf(5), blockHash: BLOCK, status: "reverted" };
const original = { hash: hashOf(5), kind: "initial", foreign: false } as const;
const at = (seq: number, state: "CONFIRMED" | "REORGED" | "STUCK", settled = state === "CONFIRMED") => ({
  ...{ seq, txId: "tx-4", state, settled },
});

describe("violationsOf", () => {
  it("finds nothing where everything is right", () => {
    expect(violationsOf(facts())).toEqual([]);
  });

  it.each<readonly [what: string, facts: Facts, finds: RegExp]>([
    [
      "a nonce that is used twice",
      facts({}, [transfer(4), transfer(5), { ...transfer(5), txId: "tx-9", requestId: "request-9" }]),
      /^I3: nonce 5 of 0xa1.* stands where 6 belongs/,
    ],
    ["a nonce that nobody has", facts({}, [transfer(4), transfer(6)]), /^I3: nonce 6 of 0xa1.* stands where 5 belongs/],
    ["bytes that are in no row", facts({ sent: [hashOf(77)] }), /^I6: 0x0+77 was sent and is not in the database/],
    ["bytes without a signature", facts({ sent: [null] }), /^I6: null was sent/],
    [
      "one request id with two transactions",
      withFifth({ requestId: "request-4" }),
      /^I5: request .* has 2 transactions/,
    ],
    [
      "a transaction that is not mined",
      facts({ mined: (hash) => (hash === hashOf(5) ? null : { txHash: hash, blockHash: BLOCK, status: "success" }) }),
      /^I3: tx-5 is mined once, not 0 times/,
    ],
    [
      "a transaction that is mined twice",
      facts({ mined: (hash) => ({ txHash: hash, blockHash: BLOCK, status: "success" }) }, [
        transfer(4),
        transfer(5, { attempts: [original, { ...original, hash: hashOf(55) }] }),
      ]),
      /^I3: tx-5 is mined once, not 2 times/,
    ],
    ["a transaction that is not final", withFifth({ state: "TRACKING" }), /^I4: tx-5 is final, not TRACKING/],
    [
      "a receipt of another block",
      facts({
        mined: (hash) => ({ txHash: hash, blockHash: hash === hashOf(5) ? hashOf(901) : BLOCK, status: "success" }),
      }),
      /^I7: tx-5 has the receipt/,
    ],
    [
      "CONFIRMED although it was reverted",
      facts(
        { mined: (hash) => ({ txHash: hash, blockHash: BLOCK, status: hash === hashOf(5) ? "reverted" : "success" }) },
        [transfer(4), transfer(5, { receipt: reverted })],
      ),
      /^I4: tx-5 is what its receipt says/,
    ],
    [
      "a replacement that is called the original",
      withFifth({ attempts: [{ ...original, kind: "replace" }] }),
      /^I4: tx-5 says whose payload was mined/,
    ],
    [
      "an original that is called a cancellation",
      withFifth({ subState: "CANCELLED" }),
      /^I4: tx-5 says whose payload was mined/,
    ],
    [
      "a cancellation that is called a success",
      withFifth({ attempts: [{ ...original, kind: "cancel" }] }),
      /^I4: tx-5 is what its receipt says/,
    ],
    ["expiry without a deadline", withFifth({ expiredAt: new Date(1) }), /^I4: tx-5 is EXPIRED by its caller's word/],
    [
      "expiry before the deadline",
      withFifth({ validUntil: new Date(2), expiredAt: new Date(1) }),
      /^I4: tx-5 is EXPIRED by its caller's word/,
    ],
    ["a success of a transaction without a nonce", withFifth({ nonce: null }), /^I4: tx-5 has no nonce/],
    [
      "a fencing token that shrinks",
      withFifth({
        history: [
          { event: "a", fromState: null, state: "CREATED", token: 4 },
          { event: "b", fromState: "CREATED", state: "CONFIRMED", token: 3 },
        ],
      }),
      /^I2: tokens only grow/,
    ],
    [
      "a history with a gap",
      withFifth({
        history: [
          { event: "a", fromState: null, state: "CREATED", token: 3 },
          { event: "b", fromState: "TRACKING", state: "CONFIRMED", token: 3 },
        ],
      }),
      /^I2: the history of tx-5 has no gap/,
    ],
    [
      "a history that ends elsewhere",
      withFifth({ history: [{ event: "a", fromState: null, state: "CREATED", token: 3 }] }),
      /^I2: the history of tx-5 ends where it is/,
    ],
    [
      "a feed with a gap",
      facts({ completions: facts().completions.map((each) => ({ ...each, seq: each.seq * 2 })) }),
      /^I8: the feed goes from 0 to 2/,
    ],
    [
      "an outcome that is missing",
      facts({ completions: facts().completions.slice(0, 2) }),
      /^I8: the feed ends with what tx-6 is/,
    ],
    [
      "an outcome that is given twice",
      facts({ completions: [at(1, "CONFIRMED"), at(2, "CONFIRMED")] }, [transfer(4)]),
      /^I8: word 1 about tx-4, CONFIRMED after CONFIRMED, may follow/,
    ],
    [
      "an outcome that is withdrawn before it was given",
      facts({ completions: [at(1, "REORGED"), at(2, "CONFIRMED")] }, [transfer(4)]),
      /^I8: word 0 about tx-4, REORGED after null, may follow/,
    ],
    [
      "an outcome that is final and not marked so",
      facts({ completions: [at(1, "CONFIRMED", false)] }, [transfer(4)]),
      /^I8: word 0 about tx-4, .* is settled or not/,
    ],
  ])("finds %s", (_, wrong, finds) => {
    expect(violationsOf(wrong)).toContainEqual(expect.stringMatching(finds));
  });

  it.each<readonly [what: string, facts: Facts]>([
    ["a nonce that another program used", facts({ elsewhere: () => [5] }, [transfer(4), transfer(6)])],
    [
      "an outcome after a reorg",
      facts({ completions: [at(1, "CONFIRMED"), at(2, "REORGED"), at(3, "CONFIRMED")] }, [transfer(4)]),
    ],
    ["a new epoch of the feed", facts({ completions: [at(1, "STUCK"), at(1_000_001, "CONFIRMED")] }, [transfer(4)])],
    [
      "a transaction whose request id another one has, and which never left",
      facts({}, [transfer(4), transfer(5), refused]),
    ],
  ])("accepts %s", (_, right) => {
    expect(violationsOf(right)).toEqual([]);
  });
});
