import { mutantsIn } from "../mutant.ts";

export const DETOURS = [
  ...mutantsIn(
    "src/application/detours/another-attempt.ts",
    ["test/application/operations/actions.test.ts"],
    [
      [
        "a payload that another attempt has outdated is not signed",
        "if (tx.pace.inHand || tx.attempts.length !== payload.over)",
        "if (tx.pace.inHand)",
      ],
      [
        "a private transaction's further payloads are private",
        "const attempt = routed(signedAt, isPrivate(tx.attempts, payload.privately));",
        "const attempt = signedAt;",
        ["test/application/endpoints/private-sends.test.ts"],
      ],
      [
        "a further payload is claimed in the commit that stores it",
        "{ attempt, claim: { ordinal: attempt.ordinal }, spends,",
        "{ attempt, spends,",
        ["test/application/detours/reprice.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/detours/intake.ts",
    ["test/application/endpoints/unconfirmed-refusals.test.ts"],
    [
      [
        "no single endpoint ends an accepted request",
        '(await confirmRefusal(work, row, error.message)) ? refusal(intakeId, error) : "unconfirmed"',
        "refusal(intakeId, error)",
      ],
    ],
  ),
];
