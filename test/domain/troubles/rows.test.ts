import { describe, expect, it } from "vitest";
import { offersFor } from "../../../src/domain/troubles/advice.ts";
import {
  ofAwaiting,
  ofAway,
  ofBalance,
  ofDisputes,
  ofEndpoint,
  ofHeld,
  ofKill,
  ofLane,
  ofNode,
  ofPriceDispute,
  ofTransaction,
  ofUnreachable,
} from "../../../src/domain/troubles/find.ts";
import { NOWHERE, once, ranked, type Trouble } from "../../../src/domain/troubles/rows.ts";
import { HELP_CODES } from "../../../src/domain/troubles/table.ts";
import { behind } from "../../../src/domain/troubles/words.ts";

const SIGNER = `0x${"a".repeat(40)}` as const;
const lane = { chainId: 5, signer: SIGNER };
const NOW = new Date("2026-11-02T10:00:00.000Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);
const txId = "019a4b7e-0000-7000-8000-000000000001";
const head = { txId, nonce: 7, state: "STUCK", since: ago(60) } as const;
const quiet = { lane, suspendedBy: null, decision: null, open: 3, head: null, hole: null } as const;

/** Every kind of trouble at once: the worst one must come first. */
const EVERYTHING: readonly Trouble[] = [
  ofKill({ killId: "k", signer: null, actor: "operator:ada", reason: "key stolen?", at: ago(5) }),
  ofUnreachable(5, ago(90), 40),
  ...ofLane({ ...quiet, lane: { ...lane, chainId: 6 }, suspendedBy: "HISTORY", open: 9 }, NOW),
  ...ofLane({ ...quiet, head, hole: { nonce: 6, detail: "it was released", since: ago(30) } }, NOW),
  ofNode({ nodeId: "node-b", instanceId: "i", lanes: 12, heartbeatAt: ago(20), dead: false }),
  ofAway({ lane, since: ago(10), reason: "the key service does not answer", waiting: 2, lies: false }),
  ...ofLane(
    { ...quiet, suspendedBy: "OPERATOR", decision: { actor: "operator:bob", reason: "audit", at: ago(3) } },
    NOW,
  ),
  ofHeld({ lane, txId: "held", nonce: 9, since: ago(4), open: 3 }),
  ofAwaiting({ lane, txId: "awaiting", nonce: null, since: ago(4), open: 0 }),
  ofBalance(lane, 10n ** 16n, 10n ** 17n),
  ofEndpoint({ chainId: 5, index: 1, url: "https://rpc.example", status: "failing", behind: null }),
];

describe("the list of problems for operators", () => {
  it("is sorted by severity, then by waiting transactions, then by age", () => {
    const seen = ranked([...EVERYTHING].reverse()).map(
      ({ severity, code, waiting }) => `${severity} ${code} ${waiting}`,
    );
    expect(seen).toEqual([
      "CRITICAL CHAIN_UNREACHABLE 40",
      "CRITICAL LANE_AWAITS_OPERATOR 9",
      "CRITICAL KILLED 0",
      "ERROR HOLE_BELOW 3",
      "ERROR STUCK 2",
      "ERROR SIGNER_AWAY 2",
      "ERROR NODE_LOST 0",
      "WARNING LANE_SUSPENDED 3",
      "WARNING HELD 2",
      "WARNING LOW_BALANCE 0",
      "WARNING RPC_ENDPOINT_DOWN 0",
      "WARNING AWAITING_APPROVAL 0",
    ]);
  });

  it("has a unique id per row, which does not change with the details", () => {
    const ids = EVERYTHING.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const later = ofLane({ ...quiet, head: { ...head, since: ago(1) }, open: 99 }, NOW);
    expect(later.map(({ id }) => id)).toEqual([`tx:${txId}`]);
  });

  it("describes each problem in a full sentence", () => {
    for (const { sentence } of EVERYTHING) expect(sentence).toMatch(/^[A-Z].{20,}\.$/s);
  });

  it("merges two reports of one problem into one row", () => {
    const blocked = { lane, txId, nonce: 7, since: ago(1), open: 3 } as const;
    const mild = { ...ofTransaction("INSUFFICIENT_FUNDS", blocked, "t"), severity: "WARNING" } as const;
    const found = once([mild, ...ofLane({ ...quiet, head }, NOW)]);
    expect(found.map(({ severity, code }) => [severity, code])).toEqual([["ERROR", "STUCK"]]);
  });

  it("contains for each action a request that lacks only the reason", () => {
    const actions = EVERYTHING.flatMap((each) => each.actions.map((action) => ({ ...action, code: each.code })));
    expect(actions.map(({ code, method, path, body }) => [code, method, path, body])).toEqual([
      ["KILLED", "DELETE", "/api/v1/kill", {}],
      ["LANE_AWAITS_OPERATOR", "POST", `/api/v1/signers/${SIGNER}/resume`, { chainId: 6 }],
      ["STUCK", "POST", `/api/v1/tx/${txId}/resubmit`, {}],
      ["STUCK", "POST", `/api/v1/tx/${txId}/reprice`, {}],
      ["STUCK", "POST", `/api/v1/tx/${txId}/cancel`, {}],
      ["HOLE_BELOW", "POST", `/api/v1/tx/${txId}/resolve`, { action: "PLACEHOLDER", nonce: 6 }],
      ["NODE_LOST", "GET", "/api/v1/nodes", null],
      ["LANE_SUSPENDED", "POST", `/api/v1/signers/${SIGNER}/resume`, { chainId: 5 }],
      ["HELD", "POST", "/api/v1/tx/held/resume", {}],
      ["HELD", "POST", "/api/v1/tx/held/cancel", {}],
      ["AWAITING_APPROVAL", "POST", "/api/v1/tx/awaiting/approve", {}],
      ["AWAITING_APPROVAL", "POST", "/api/v1/tx/awaiting/reject", {}],
      ["AWAITING_APPROVAL", "POST", "/api/v1/tx/awaiting/cancel", {}],
    ]);
  });

  it("contains request paths with all ids filled in", () => {
    for (const { path } of offersFor({ txId, ...lane, hole: { nonce: 6, txId } }, HELP_CODES))
      expect(path).not.toMatch(/[{}]/);
  });
});

describe("a hole in the nonces of a lane", () => {
  const hole = { nonce: 6, detail: "d", since: ago(30) };

  it.each([
    ["with nothing above it", { ...quiet, hole }],
    ["above all open transactions", { ...quiet, head: { ...head, state: "TRACKING", nonce: 5 }, hole }],
    [
      "that was left a moment ago",
      { ...quiet, head: { ...head, state: "TRACKING" }, hole: { ...hole, since: ago(2) } },
    ],
  ] as const)("%s is not listed as a trouble", (_, of) => {
    expect(ofLane(of, NOW)).toEqual([]);
  });
});

describe("the list of problems with endpoints", () => {
  it("gives a wrong chain a higher severity than a failing endpoint", () => {
    const of = (status: "failing" | "behind" | "foreign") =>
      ofEndpoint({ chainId: 5, index: 0, url: "https://rpc.example", status, behind: 30 });
    expect(of("foreign")).toMatchObject({
      severity: "CRITICAL",
      code: "RPC_WRONG_CHAIN",
      endpoint: "https://rpc.example",
    });
    expect(of("behind").sentence).toContain("(30 blocks)");
  });

  it("has one row even if endpoints disagree about many blocks", () => {
    const disputes = [11, 12, 13].map((number) => ({ code: "RPC_DISAGREES", number, since: ago(number) }) as const);
    expect(ofDisputes(5, disputes)).toMatchObject([
      { code: "RPC_DISAGREES", sentence: expect.stringContaining("3 blocks") },
    ]);
    expect(ofDisputes(5, [])).toEqual([]);
  });

  it("has a row with each endpoint's gas price if the prices differ", () => {
    const answers = ["a asks 7 wei for a unit of gas", "b asks 900 wei for a unit of gas"];
    const trouble = ofPriceDispute(5, { answers, since: ago(3) });
    expect(trouble).toMatchObject({ code: "RPC_DISAGREES", severity: "ERROR", chainId: 5, since: ago(3) });
    expect(trouble.sentence).toContain(answers.join("; "));
  });
});

it("the sentence about transactions that wait because of a trouble states their number", () => {
  expect([0, 1, 2].map(behind)).toEqual(["", " One transaction waits behind it.", " 2 transactions wait behind it."]);
  expect(NOWHERE.actions).toEqual([]);
});
