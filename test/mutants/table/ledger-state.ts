import { mutantsIn } from "../mutant.ts";

export const LEDGER_STATE = [
  ...mutantsIn(
    "src/domain/ledger/settle-intake.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      ["a repeated hold of an intent is not counted", "if (isNew) draft.record", "draft.record"],
      ["an intent whose time is not over does not expire", 'if (result.event === "expire") return;', ""],
      [
        "only an intent that waits is approved or rejected",
        ": approval?.approved !== false) return;",
        ": false) return;",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/standing.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      ["the next nonce is never lowered by the chain's count", "Math.max(cursor ?? floor, floor)", "floor"],
      [
        "a realignment under a key that was used is not repeated",
        'if (draft.isCarriedOut(decision?.actionKey)) return { status: "aligned", cursor: ledger.cursor ?? floor };',
        "",
      ],
      [
        "a realignment sets no next nonce of a lane that has none",
        'if (ledger.cursor === null) return { status: "aligned", cursor: floor };',
        'if (ledger.cursor === null) draft.record({ kind: "cursor", cursor: floor });\n  if (ledger.cursor === null) return { status: "aligned", cursor: floor };',
        ["test/domain/ledger/naive-lane.property.test.ts"],
      ],
      ["a realignment stays above reserved nonces", ", ledger.reserved.highestFrom(from)]", "]"],
      [
        "a suspension under a key that was used is not repeated",
        'if (draft.isCarriedOut(decision?.actionKey)) return { status: "done" };',
        "",
      ],
      ["a reserved nonce is not found as skipped", " || reserved.get(nonce) !== null ||", " ||"],
      [
        "settled transactions above the block stay watched",
        "watched.through(throughBlock)",
        "watched.through(throughBlock + 1)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/messages.ts",
    [
      "test/doubles/memory-store.test.ts",
      "test/domain/policy/message-rules.test.ts",
      "test/application/signing/messages.test.ts",
    ],
    [
      [
        "a signature that waits for approval is not counted yet",
        "if (approval === null) count(draft, allowed, wholeOf(allowed));",
        "count(draft, allowed, wholeOf(allowed));",
      ],
      [
        "an allowed message that was not signed is judged again",
        'if (known.state !== "ALLOWED") return kept(known);',
        "return kept(known);",
      ],
      [
        "a message is not approved too late",
        'if (isOver(draft, known)) return { result: "conflict"',
        'if (false) return { result: "conflict"',
        ["test/application/signing/messages.test.ts"],
      ],
    ],
  ),
];
