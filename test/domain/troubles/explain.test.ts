import { describe, expect, it } from "vitest";
import { type CeilingSettings, type Ceilings, ceilingsOf } from "../../../src/domain/fees/ceilings.ts";
import type { Hash } from "../../../src/domain/lane.ts";
import type { Attempt, Receipt } from "../../../src/domain/transaction/transaction.ts";
import { explain } from "../../../src/domain/troubles/explain.ts";
import type { ExplainedHole, Situation } from "../../../src/domain/troubles/situation.ts";
import { CAUSE_CODES, type CauseCode, HELP_CODES } from "../../../src/domain/troubles/table.ts";

const NOW = new Date("2026-01-01T12:00:00Z");
const HASH = `0x${"ab".repeat(32)}` as Hash;
const GWEI = 1_000_000_000n;
const SIGNER = `0x${"A1".repeat(20)}`;
const KILL = { killId: "k", signer: null, actor: "operator:a", reason: "stolen" } as const;

type Changes = { readonly [Part in "transaction" | "lane" | "chain"]?: Partial<Situation[Part]> };

/** A transaction that a node has accepted, with no problem. */
function situation({ transaction, lane, chain }: Changes = {}): Situation {
  return {
    now: NOW,
    transaction: {
      txId: "a",
      nonce: 7,
      state: "TRACKING",
      subState: "BROADCAST",
      value: 1n,
      gas: 21_000n,
      attempts: [attempt()],
      receipt: null,
      lastError: null,
      submitAttempts: 1,
      createdAt: NOW,
      lastSubmittedAt: NOW,

      reason: null,
      since: NOW,
      awaiting: null,
      forbidden: null,
      forbiddenCancel: null,
      withdrawn: false,
      validUntil: null,
      expiredAt: null,
      held: null,
      asked: null,
      refusal: null,
      ...transaction,
    },
    lane: {
      signer: SIGNER,
      killed: null,
      suspended: false,
      suspendedFor: null,
      owner: { nodeId: "n", expiresAt: later(5) },
      signerAway: null,
      unowned: null,
      head: null,
      hole: null,
      behind: 0,
      ...lane,
    },
    chain: {
      chainId: 1,
      known: true,
      reachable: true,
      unreachableSince: null,
      minedCount: 7,
      head: 100,
      balance: 10n ** 18n,
      baseFee: GWEI,
      dearSinceBlock: null,
      pooled: true,
      finality: "confirmations",
      confirmations: 20,
      inFlightWindow: 64,
      stuckAfterResubmits: 30,
      ceilings: ceilings(),
      stalledSince: null,
      doubted: null,
      disputed: null,
      privateEndpoints: [],
      ...chain,
    },
  };
}

function attempt(changes: Partial<Attempt> = {}): Attempt {
  const fees = { type: "eip1559", maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI } as const;
  return { ordinal: 1, kind: "initial", txHash: HASH, gas: 21_000n, fees, ...changes };
}

function receipt(): Receipt {
  const place = { blockNumber: 90, blockHash: HASH, transactionIndex: 0 };
  return { txHash: HASH, ...place, status: "success", gasUsed: 1n, effectiveGasPrice: null, contractAddress: null };
}

function hole(changes: Partial<ExplainedHole> = {}): ExplainedHole {
  const filling = { by: "action", txId: "above" } as const;
  return { nonce: 4, detail: null, reserved: false, filling, forbidden: null, ...changes };
}

function later(seconds: number): Date {
  return new Date(NOW.getTime() + seconds * 1_000);
}

function ceilings(settings: Partial<CeilingSettings> = {}): Ceilings {
  return ceilingsOf(1, { maxFeeWei: null, maxGasCostWei: null, maxCostWei: null, ...settings });
}

const mined = { subState: "MINED", receipt: receipt() } as const;
const expensive = { attempts: [attempt({ fees: { type: "legacy", gasPrice: GWEI } })] };

const CASES: readonly [CauseCode, Changes, RegExp][] = [
  [
    "CONFIRMED",
    { transaction: { state: "CONFIRMED", subState: null, receipt: receipt() } },
    /mined in block 90 and final/,
  ],
  ["REPLACED", { transaction: { state: "CONFIRMED", subState: "REPLACED", receipt: receipt() } }, /replacement/],
  ["REVERTED", { transaction: { state: "FAILED_FINAL", subState: "REVERTED", receipt: receipt() } }, /reverted/],
  [
    "CANCELLED",
    { transaction: { state: "FAILED_FINAL", subState: "CANCELLED", receipt: receipt() } },
    /without effect/,
  ],
  [
    "NONCE_CONSUMED_EXTERNALLY",
    {
      transaction: {
        state: "FAILED_FINAL",
        subState: "NONCE_CONSUMED_EXTERNALLY",
        attempts: [attempt({ kind: "external", foreign: true })],
      },
    },
    /nonce 7 was used/,
  ],
  ["REJECTED", { transaction: { state: "FAILED_FINAL", subState: "REJECTED", reason: "it reverts" } }, /it reverts/],
  ["REQUEST_ID_REUSED", { transaction: { state: "FAILED_FINAL", subState: "REQUEST_ID_REUSED" } }, /another payload/],
  [
    "EXPIRED",
    { transaction: { state: "FAILED_FINAL", subState: "EXPIRED", nonce: null, reason: "nobody approved it" } },
    /nobody approved it/,
  ],
  [
    "AWAITING_APPROVAL",
    {
      transaction: {
        ...{ state: "CREATED", subState: "AWAITING_APPROVAL", nonce: null, attempts: [] },
        awaiting: { rule: "key.requireApproval", owner: "payments", expiresAt: new Date(NOW.getTime() + 60_000) },
      },
      lane: { suspended: true },
    },
    /the scope approve other than payments, which made it.*key.requireApproval/,
  ],
  [
    "POLICY_LIMIT_REACHED",
    {
      transaction: { forbidden: { rule: "signer.maxCost.perDay", detail: "5 wei would be above maxCost.perDay" } },
      chain: { baseFee: null },
    },
    /not be offered for more: 5 wei would be above maxCost.perDay/,
  ],
  [
    "REFUSAL_UNCONFIRMED",
    {
      transaction: {
        ...{ state: "CREATED", subState: null, nonce: null, attempts: [] },
        refusal: { reason: "the call would revert", firstBlock: 12, waitsFor: "behind", since: NOW },
      },
    },
    /refuses it since block 12 \(the call would revert\).*another endpoint, which is behind/,
  ],
  ["WAITING_FOR_ALLOCATION", { transaction: { state: "CREATED", subState: null, nonce: null, attempts: [] } }, /nonce/],
  [
    "WAITING_FOR_WINDOW",
    { transaction: { state: "ALLOCATED", subState: null, nonce: 75, attempts: [] } },
    /5 places behind/,
  ],
  ["WAITING_FOR_SIGNATURE", { transaction: { state: "ALLOCATED", subState: null, attempts: [] } }, /signed next/],
  ["WAITING_FOR_SEND", { transaction: { subState: "PENDING" } }, /no node has taken it/],
  ["WAITING_FOR_BLOCK", {}, /node n acts for it, its lease ends in 5 s/],
  ["WAITING_FOR_CONFIRMATIONS", { transaction: mined }, /10 of 20 blocks/],
  ["WAITING_FOR_FINALITY_TAG", { transaction: mined, chain: { finality: "safe" } }, /safe tag/],
  [
    "WAITING_BEHIND",
    { lane: { head: { txId: "b", nonce: 5, state: "STUCK", held: false } } },
    /behind nonce 5, which is STUCK, 2 places ahead/,
  ],
  [
    "HELD",
    { transaction: { held: { since: NOW, actor: "operator:a", reason: "looks odd" } } },
    /held back \(operator:a: looks odd\): nothing of it is sent.*may still be mined/,
  ],
  ["EXPIRING", { transaction: { validUntil: later(-60), expiredAt: NOW } }, /expired 1 min ago.*being cancelled/],
  ["HOLE_BELOW", { lane: { hole: hole({ detail: "it was released" }) } }, /wants nonce 4.*it was released/],
  ["RESERVED_BELOW", { lane: { hole: hole({ reserved: true }) } }, /nonce 4 .*reserved/],
  ["KILLED", { lane: { killed: KILL } }, /everything is stopped on all nodes \(operator:a: stolen\)/],
  ["LANE_SUSPENDED", { lane: { suspended: true } }, /suspended/],
  [
    "LANE_UNOWNED",
    { lane: { owner: null, unowned: { since: later(-90), reason: "no live node holds its key" } } },
    /no node acts for its signer: no live node holds its key/,
  ],
  ["OWNER_SILENT", { lane: { owner: { nodeId: "n", expiresAt: later(-90) } } }, /ended 1 min ago/],
  ["CHAIN_UNKNOWN", { chain: { known: false, reachable: false } }, /not configured/],
  ["CHAIN_UNREACHABLE", { chain: { reachable: false, unreachableSince: later(-7_200) } }, /has answered for 2 h/],
  ["CHAIN_STALLED", { chain: { stalledSince: later(-90) } }, /stands still: no block has come after 100 for 1 min/],
  ["CHAIN_DOUBTED", { chain: { doubted: "its genesis is another" } }, /genesis/],
  [
    "RPC_DISAGREES",
    {
      transaction: mined,
      chain: { disputed: { code: "RPC_DISAGREES", answers: ["a says success", "b says reverted"], since: NOW } },
    },
    /block 90 .*a says success; b says reverted/,
  ],
  [
    "RPC_BEHIND",
    { transaction: mined, chain: { disputed: { code: "RPC_BEHIND", answers: ["a gives no answer"], since: NOW } } },
    /for a minute what block 90 holds.*a gives no answer/,
  ],
  ["FEE_BELOW_BASE_FEE", { chain: { baseFee: 30n * GWEI, dearSinceBlock: 88 } }, /20 gwei.*30 gwei since block 88/],
  [
    "FEE_CEILING_REACHED",
    { transaction: expensive, chain: { ceilings: ceilings({ maxFeeWei: GWEI }) } },
    /above 1 gwei/,
  ],
  ["UNDERPRICED", { transaction: { lastError: "underpriced: tip too low" } }, /tip too low/],
  [
    "INSUFFICIENT_FUNDS",
    { transaction: { subState: "PENDING" }, chain: { balance: 0n } },
    /short by 0.000420000000000001 ETH/,
  ],
  ["NODE_REFUSED", { transaction: { lastError: "rejected: gas: too much" } }, /gas: too much/],
  ["NODE_WANTS_LOWER_NONCE", { transaction: { lastError: "nonceTooHigh" } }, /ahead of the chain/],
  ["NODE_DID_NOT_ANSWER", { transaction: { lastError: "unknown: 502" } }, /502/],
  ["NOT_IN_POOL", { chain: { pooled: false } }, /does not hold it/],
  ["NONCE_CONSUMED", { chain: { minedCount: 8 } }, /past nonce 7/],
  [
    "NONCE_USED_BY_OTHERS",
    { transaction: { ...mined, attempts: [attempt(), attempt({ ordinal: 2, kind: "external", foreign: true })] } },
    new RegExp(HASH),
  ],
  ["SUBMIT_RESULT_UNKNOWN", { transaction: { subState: "UNKNOWN_SUBMIT_RESULT", attempts: [] } }, /sender and nonce/],
  [
    "SIGNER_AWAY",
    {
      transaction: { state: "ALLOCATED", subState: null, attempts: [] },
      lane: { signerAway: { since: later(-90), reason: "connection refused", lies: false } },
    },
    /has not signed for 1 min: connection refused/,
  ],
  [
    "SIGNER_LIES",
    {
      transaction: { state: "ALLOCATED", subState: null, attempts: [] },
      lane: { signerAway: { since: later(-90), reason: "another receiver", lies: true } },
    },
    /its signer answers with something else than it was asked to sign: another receiver/,
  ],
  [
    "RESENT_OFTEN",
    { transaction: { state: "STUCK", subState: null, submitAttempts: 31 } },
    /sent again 30 times since a node took it/,
  ],
  ["REORGED", { transaction: { withdrawn: true } }, /left the chain/],
  ["STUCK", { transaction: { state: "STUCK", subState: null, reason: "no block in 30 min" } }, /no block in 30 min/],
];

describe("the explanation of a transaction's status", () => {
  it("has a test here for every cause code", () => {
    expect([...CASES.map(([code]) => code), "EXPIRES", "SENT_PRIVATELY"].sort()).toEqual([...CAUSE_CODES].sort());
  });

  it("gives no reason why a lane has no owner while it may be between two owners", () => {
    const [cause] = explain(situation({ lane: { owner: null } })).causes;
    expect(cause).toEqual({ code: "LANE_UNOWNED", text: "no node acts for its signer at this moment" });
  });

  it.each(CASES)("names the cause %s", (code, changes, words) => {
    const { causes, summary, help } = explain(situation(changes));
    expect(causes[0]?.code).toBe(code);
    expect(summary).toMatch(words);
    expect(help.every((each) => HELP_CODES.includes(each.code) && each.text.length > 0)).toBe(true);
  });

  it.each<[string, Partial<Situation["transaction"]>]>([
    ["that waits", {}],
    ["whose block left the chain", { withdrawn: true }],
  ])("says that only the caller can send a transaction again %s, if only its hash is known", (_, changes) => {
    const asked = { at: NOW, by: "operator:a", action: "unhold" };
    const hashAlone = { attempts: [attempt({ kind: "external" })], submitAttempts: 0, lastSubmittedAt: null };
    const { summary } = explain(situation({ transaction: { subState: "PENDING", asked, ...hashAlone, ...changes } }));
    expect(summary).toMatch(/only its caller can send it again.*\(unhold\), waits for a block\./);
  });

  it("names the private endpoints that received the transaction", () => {
    const transaction = { attempts: [attempt({ private: true })] };
    const chain = { privateEndpoints: ["http://private.example"] };
    const calm = explain(situation({ transaction, chain }));
    expect(calm.causes.at(-1)).toMatchObject({
      code: "SENT_PRIVATELY",
      text: expect.stringMatching(/private.example/),
    });
    expect(calm.help.map(({ code }) => code)).toEqual(["WAIT"]);
    const wrong = explain(situation({ transaction, chain: { ...chain, pooled: false } }));
    expect(wrong.actions.at(-1)).toMatchObject({ action: "resubmit", code: "DISCLOSE", body: { disclose: true } });
    const alone = explain(situation({ transaction, chain: { privateEndpoints: [] } }));
    expect(alone.help.map(({ code }) => code)).toContain("DISCLOSE");
    const disclosed = explain(situation({ chain }));
    expect(disclosed.causes.map(({ code }) => code)).not.toContain("SENT_PRIVATELY");
  });

  // protects [Explained, and said aloud] src/domain/troubles/explain.ts
  it("offers remedies only for the first cause", () => {
    const both = situation({
      lane: { suspended: true, head: { txId: "b", nonce: 6, state: "TRACKING", held: false } },
      transaction: { lastError: "underpriced" },
    });
    const { causes, summary, blockedBy, help } = explain(both);
    expect(causes.map(({ code }) => code)).toEqual(["LANE_SUSPENDED", "WAITING_BEHIND", "UNDERPRICED"]);
    expect(summary).toBe(
      `Nonce 7: its lane is suspended: nothing of it is sent. What helps: resume the lane of ${SIGNER}.`,
    );
    expect(help.map(({ code }) => code)).toEqual(["RESUME_LANE"]);
    expect(blockedBy).toEqual({ txId: "b", nonce: 6 });
  });

  it("lists the expiry below a suspension or a hold", () => {
    const { causes, help } = explain(situation({ transaction: { validUntil: later(90) } }));
    expect(causes.map(({ code }) => code)).toEqual(["WAITING_FOR_BLOCK", "EXPIRES"]);
    expect(causes[1]?.text).toBe(
      "it expires at 2026-01-01T12:01:30.000Z, in 1 min: not mined by then, it is cancelled",
    );
    expect(help.map(({ code }) => code)).toEqual(["WAIT"]);
    const held = { since: NOW, actor: "operator:a", reason: "odd" };
    const over = explain(situation({ transaction: { validUntil: later(-1), held }, lane: { suspended: true } }));
    expect(over.causes.map(({ code }) => code)).toEqual(["LANE_SUSPENDED", "HELD", "EXPIRING"]);
    expect(over.causes[2]?.text).toMatch(/cancelled once it is resumed/);
    const unsent = explain(situation({ transaction: { validUntil: later(-1) }, lane: { suspended: true } }));
    expect(unsent.causes[1]?.text).toMatch(/cancelled as soon as something may be sent for it/);
    const behind = { head: { txId: "b", nonce: 6, state: "TRACKING", held: true } } as const;
    const waits = explain(situation({ lane: behind }));
    expect(waits).toMatchObject({ blockedBy: { txId: "b", nonce: 6 }, causes: [{ code: "WAITING_BEHIND" }] });
    expect(waits.summary).toMatch(/nonce 6, which is TRACKING and held back by an operator/);
    const created = { state: "CREATED", subState: null, nonce: null, attempts: [], held } as const;
    expect(explain(situation({ transaction: created })).summary).toMatch(
      /it gets no nonce until it is resumed\. What helps: let it go on\.$/,
    );
  });

  it("offers to wait if nothing is wrong", () => {
    expect(explain(situation()).help.map(({ code }) => code)).toEqual(["WAIT"]);
    const over = situation({ transaction: { state: "CONFIRMED", subState: null } });
    expect(explain(over).help).toEqual([]);
  });

  it("of a mined transaction names no problem of the lane", () => {
    const { causes } = explain(situation({ transaction: mined, lane: { suspended: true, hole: hole() } }));
    expect(causes.map(({ code }) => code)).toEqual(["WAITING_FOR_CONFIRMATIONS"]);
  });

  const stuck = { state: "STUCK", subState: null, reason: "no block in 30 min" } as const;
  const dear = { baseFee: 30n * GWEI };
  const tight = ceilings({ maxFeeWei: 21n * GWEI });
  const away = { since: NOW, reason: "connection refused", lies: false };
  const rule = { rule: "signer.maxCost", detail: "no room" };
  const funds = (wei: bigint): Changes => ({
    transaction: { subState: "PENDING", value: 10n ** 18n },
    chain: { balance: wei },
  });
  const nodeSigned = { attempts: [attempt({ nodeSigned: true })] };
  const cancelling = { attempts: [attempt(), attempt({ ordinal: 2, kind: "cancel" })] };
  const hashAlone = { attempts: [attempt({ kind: "external" })] };
  it.each<[string, Changes, readonly string[]]>([
    ["a stuck head that a node holds is not sent again", { transaction: stuck }, ["REPRICE", "CHECK_RPC", "CANCEL"]],
    [
      "a stuck head that a node may have lost is sent again",
      { transaction: stuck, chain: { pooled: null } },
      ["RESUBMIT", "REPRICE", "CHECK_RPC", "CANCEL"],
    ],
    [
      "a stuck head at its ceiling with a sufficient offer",
      { transaction: stuck, chain: { ceilings: tight } },
      ["CHECK_RPC"],
    ],
    ["a hole is filled, and nothing else", { transaction: stuck, lane: { hole: hole() } }, ["FILL_HOLE"]],
    [
      "a hole that Fencepost fills by itself is waited for",
      { lane: { hole: hole({ filling: { by: "itself" } }) } },
      ["WAIT"],
    ],
    [
      "a hole of a key on the chain node",
      { lane: { hole: hole({ filling: { by: "chainNode" } }) } },
      ["USE_NONCE_ELSEWHERE"],
    ],
    ["a hole that a policy keeps open", { lane: { hole: hole({ forbidden: rule }) } }, ["RAISE_LIMIT"]],
    ["a hole while no node signs", { lane: { hole: hole(), signerAway: away } }, ["CHECK_SIGNER"]],
    ["too low a price while no node signs", { chain: dear, lane: { signerAway: away } }, ["CHECK_SIGNER"]],
    [
      "a needed price above the ceiling",
      { chain: { ...dear, ceilings: ceilings({ maxFeeWei: 21n * GWEI }) } },
      ["RAISE_CEILING"],
    ],
    [
      "a needed price that a policy forbids",
      { chain: dear, transaction: { forbidden: rule } },
      ["RAISE_LIMIT", "CANCEL"],
    ],
    [
      "a price and a cancel that a policy forbids",
      { chain: dear, transaction: { forbidden: rule, forbiddenCancel: rule } },
      ["RAISE_LIMIT"],
    ],
    ["funds that pay for a cancel", funds(21_000n * 23n * GWEI), ["FUND_SIGNER", "CANCEL"]],
    ["funds that do not pay for a cancel", funds(1n), ["FUND_SIGNER"]],
    ["a cancel is repriced, not cancelled", { transaction: cancelling, chain: dear }, ["REPRICE"]],
    [
      "a transaction known only by its hash is cancelled",
      { transaction: { ...stuck, ...hashAlone }, chain: { pooled: null } },
      ["CANCEL"],
    ],
    ["a transaction of a key on the chain node", { transaction: nodeSigned, chain: dear }, ["USE_NONCE_ELSEWHERE"]],
    ["a nonce that the chain has passed", { transaction: stuck, chain: { minedCount: 8 } }, ["WAIT"]],
    ["a suspended lane is resumed first", { transaction: stuck, lane: { suspended: true } }, ["RESUME_LANE"]],
    ["every stop of a lane must be ended", { lane: { killed: KILL, suspended: true } }, ["END_KILL", "RESUME_LANE"]],
    ["a mined transaction does not depend on its lane", { transaction: mined, lane: { suspended: true } }, ["WAIT"]],
    // protects [Explained, and said aloud] src/domain/troubles/explain.ts
  ])("offers no action that would be refused or would not help: %s", (_, changes, helps) => {
    const { help, actions } = explain(situation(changes));
    expect(help.map(({ code }) => code)).toEqual(helps);
    for (const { code } of actions) expect(helps).toContain(code);
  });

  it("states in one sentence what is wrong and what helps", () => {
    const explained = explain(
      situation({ transaction: stuck, chain: { ...dear, dearSinceBlock: 88 }, lane: { behind: 3 } }),
    );
    expect(explained.summary).toBe(
      "Nonce 7 is stuck: offers at most 20 gwei for gas that costs 30 gwei since block 88; 3 nonces wait behind it. What helps: offer more for it.",
    );
    expect(explained.actions[0]).toEqual({
      action: "reprice",
      code: "REPRICE",
      label: "Offer more for it",
      method: "POST",
      path: "/api/v1/tx/a/reprice",
      body: { reason: "explain: FEE_BELOW_BASE_FEE" },
      scope: "operate",
    });
    const { summary } = explain(situation());
    expect(summary).toMatch(/^Nonce 7: a node has it; .*\. Nothing needs to be done: it goes on by itself\.$/);
  });

  it("lists each remedy once, even if several causes suggest it", () => {
    const { help } = explain(
      situation({ transaction: { lastError: "underpriced" }, chain: { baseFee: 30n * GWEI, pooled: false } }),
    );
    expect(new Set(help.map(({ code }) => code)).size).toBe(help.length);
  });
});
