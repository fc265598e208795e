import { mutantsIn } from "../mutant.ts";

export const NONCES = [
  ...mutantsIn(
    "src/domain/nonces/holes.ts",
    ["test/domain/nonces/holes.test.ts"],
    [
      [
        "nothing moves past a transaction that may not move",
        "if (holder?.movable === false) slots = [];",
        "if (holder?.movable === false) {}",
      ],
      ["the lowest gap is filled first", "const to = slots.shift();", "const to = slots.pop();"],
      [
        "a nonce that was left is filled by the next transaction",
        "slots.push(nonce);\n}",
        "}",
        ["test/domain/nonces/holes.test.ts", "test/domain/ledger/naive-lane.property.test.ts"],
      ],
      ["gaps are filled in the order of nonces", "steps.sort((a, b) => a.nonce - b.nonce)", "steps"],
    ],
  ),
  ...mutantsIn(
    "src/domain/nonces/pool.ts",
    ["test/domain/nonces/pool.test.ts"],
    [
      ["a sticky key chooses the highest score", "b.score - a.score ||", "a.score - b.score ||"],
      ["the shorter queue is chosen", "a.ahead - b.ahead ||", ""],
      ["a member in trouble is chosen last", "PASSAGES.indexOf(a.passage) - PASSAGES.indexOf(b.passage) ||", ""],
      [
        "members are chosen in turn",
        "a.headAgeMs - b.headAgeMs ||\n    a.lastChosen - b.lastChosen",
        "a.headAgeMs - b.headAgeMs",
      ],
      [
        "a request id belongs to its pool",
        "pool === undefined || requestId === null ? null",
        "requestId === null || true ? null",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/nonces/nonce-spans.ts",
    ["test/domain/nonces/nonce-spans.test.ts"],
    [
      ["only an open reservation is shown as reserved", 'if (state === "RESERVED") single', "single"],
      ["a nonce below deleted transactions is final", 'nonce < departedBelow ? "final" : "foreign"', '"foreign"'],
      ["a transaction on hold is shown as held", 'if (held) return { ...own, kind: "held" };', ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/transaction/attempts.ts",
    ["test/domain/transaction/attempts.test.ts"],
    [
      [
        "a superseded payload is not sent",
        "sendable.slice(Math.max(0, sendable.findLastIndex(supersedes)))",
        "sendable",
      ],
      ["a hash alone is not sent", 'kind !== "external" && foreign !== true', "foreign !== true"],
      [
        "the attempt that was mined is sent again after a reorg",
        "sendable.find(({ txHash }) => txHash !== null && txHash === withdrawn) ?? ",
        "",
      ],
      ["a repriced cancel stays a cancel", 'attempts.findLast(supersedes)?.kind ?? "reprice"', '"reprice"'],
      ["a private transaction stays private", "newest === undefined ? first : newest.private === true", "first"],
    ],
  ),
  ...mutantsIn(
    "src/domain/transaction/transitions.ts",
    ["test/domain/transaction/transitions.test.ts"],
    [
      [
        "only what is final may be reorganised away",
        'reorg: { from: ["CONFIRMED", "FAILED_FINAL"]',
        'reorg: { from: ["CONFIRMED", "FAILED_FINAL", "TRACKING"]',
      ],
      [
        "only an unsigned transaction gives its nonce up",
        'giveUp: { from: ["ALLOCATED"]',
        'giveUp: { from: ["ALLOCATED", "TRACKING"]',
      ],
      [
        "a mined transaction is not repriced",
        "reprice: { from: open, fromSubStates: unmined,",
        "reprice: { from: open,",
      ],
      [
        "a stuck transaction is not final for good",
        'completion: { state: "STUCK", settled: false }',
        'completion: { state: "STUCK", settled: true }',
      ],
      ["a transition leaves its own states alone", "!rule.from.includes(fromState) || ", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/transaction/fingerprint.ts",
    ["test/domain/transaction/fingerprint.test.ts"],
    [
      ["a fingerprint covers the value", "    payload.value.toString(),\n", ""],
      ["a fingerprint covers the data", "    payload.data,\n", ""],
      ["a fingerprint covers validUntil", "...(validUntil === undefined ? [] : [validUntil.toISOString()]),", ""],
      ["a fingerprint of JSON is independent of order", ".sort(([a], [b]) => (a < b ? -1 : 1))", ""],
    ],
  ),
];
