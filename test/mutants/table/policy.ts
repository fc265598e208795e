import { mutantsIn } from "../mutant.ts";

export const POLICY = [
  ...mutantsIn(
    "src/domain/policy/charges.ts",
    ["test/domain/policy/charges.test.ts", "test/domain/policy/usage.property.test.ts"],
    [
      ["the unused part of a charge is subtracted from the latest hours first", ".reverse()", ""],
      ["the value that is paid is that of the mined attempt, not of a later one", "&& charge.ordinal <= ordinal", ""],
      [
        "a correction never subtracts more from an hour than was counted in it",
        "return -left < counted ? left : -counted;",
        "return left;",
      ],
      ["an uncertain cost stays counted at the worst case", "if (unsure !== true) return paid;", "return paid;"],
      [
        "a transaction that reverted moved no value",
        "const value = succeeded ? (own?.moves ?? 0n) : 0n;",
        "const value = own?.moves ?? 0n;",
      ],
      [
        "a cost above the counted amount is counted too",
        "return isNothing(left) ? entries : [...entries, { ...last, ...left, settles: true }];",
        "return entries;",
      ],
      [
        "a withdrawn outcome counts the worst case again",
        "return [{ ...last, ...minus(NOTHING, amounts), hourMs, settles: true }];",
        "return [];",
      ],
      [
        "a further payload is counted only for what it adds",
        "return minus(most(before, worst), before);",
        "return worst;",
      ],
    ],
  ),
];
