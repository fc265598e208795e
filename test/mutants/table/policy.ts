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
        ["test/domain/policy/usage.property.test.ts"],
      ],
      [
        "a further payload is counted only for what it adds",
        "return minus(most(before, worst), before);",
        "return worst;",
        ["test/domain/policy/usage.property.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/policy/policy.ts",
    ["test/domain/policy/policy.test.ts"],
    [
      [
        "a policy for all holds where there is none of its own",
        "policies.get(name) ?? policies.get(ANY) ?? null",
        "policies.get(name) ?? null",
      ],
      [
        "a policy of its own replaces that for all",
        "policies.get(name) ?? policies.get(ANY) ?? null",
        "policies.get(ANY) ?? policies.get(name) ?? null",
      ],
      [
        "a placeholder is not limited by its key",
        'asked.about === "placeholder" && judge.scope === "key"',
        "false",
        [
          "test/domain/policy/policy.test.ts",
          "test/domain/policy/approval.test.ts",
          "test/domain/ledger/judged-writes.test.ts",
        ],
      ],
      [
        "a cancel is judged by its cost alone",
        '(asked.about === "payload" ? payloadRule(judge, asked, at) : null)',
        "payloadRule(judge, asked, at)",
      ],
      [
        "a transaction stays on the chains of its policy",
        `if (chains?.has(chainId) === false) return not("chains", \`chain \${chainId}\`);
  if (to?.`,
        "if (to?.",
      ],
      ["a transaction goes to the receivers of its policy", "if (to?.has(receiver) === false)", "if (false)"],
      ["a transaction calls the functions of its policy", "if (selectors?.has(selector) === false)", "if (false)"],
      [
        "a transaction is made in the hours of its policy",
        "if (hours !== null && !isOpen(hours, at)) return",
        "if (false) return",
      ],
      ["a deployment is limited like a receiver", "payload.to ?? DEPLOY", 'payload.to ?? ""'],
      [
        "an argument outside its bounds is forbidden",
        "bounds === undefined ? null : outOfBounds(bounds, payload.data)",
        "null",
      ],
      ["a selector is compared without case", "data.slice(0, 10).toLowerCase()", "data.slice(0, 10)"],
      [
        "approval is asked for payloads alone",
        'if (about !== "payload") return null;',
        "",
        ["test/domain/policy/approval.test.ts"],
      ],
      [
        "the shorter waiting time for approval holds",
        "Math.min(...asking.map",
        "Math.max(...asking.map",
        [
          "test/domain/policy/policy.test.ts",
          "test/domain/policy/approval.test.ts",
          "test/domain/ledger/judged-writes.test.ts",
        ],
      ],
      [
        "a value at the bound needs no approval",
        "value > aboveValue",
        "value >= aboveValue",
        ["test/domain/policy/approval.test.ts"],
      ],
      [
        "a cost above the bound needs approval",
        "aboveCost !== null && cost > aboveCost",
        "aboveCost !== null && value > aboveCost",
        ["test/domain/policy/approval.test.ts"],
      ],
      ["hours may pass midnight", "minute >= from || minute < to", "minute >= from && minute < to"],
      ["hours end at their last minute", "minute >= from && minute < to :", "minute >= from && minute <= to :"],
      ["an amount at the limit is allowed", "most === null || sum <= most", "most === null || sum < most"],
      [
        "a limit per transaction holds for the worst case",
        '["perTransaction", perTransaction, worst[amount]]',
        '["perTransaction", perTransaction, more[amount]]',
        [
          "test/domain/policy/policy.test.ts",
          "test/domain/policy/approval.test.ts",
          "test/domain/ledger/judged-writes.test.ts",
        ],
      ],
      ["a limit per hour counts what was used", "used.hour[amount] + more[amount]", "more[amount]"],
      ["a limit per day counts what was used", "used.day[amount] + more[amount]", "more[amount]"],
      ["a step that spends nothing more is not limited", "if (more[amount] === 0n) continue;", ""],
      [
        "an argument has no bits beyond its type",
        "if (value >> BigInt(bits) !== 0n) return false;",
        "",
        [
          "test/domain/policy/policy.test.ts",
          "test/domain/policy/approval.test.ts",
          "test/domain/ledger/judged-writes.test.ts",
        ],
      ],
      ["an argument has a lower bound", "value >= (min ?? 0n)", "true"],
      ["an argument has an upper bound", "(max === null || value <= max)", "true"],
      [
        "a signer that judges itself knows no time",
        "hours: null, maxValue",
        "maxValue",
        ["test/domain/keys/signing.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/policy/use.ts",
    ["test/domain/policy/policy.test.ts"],
    [
      [
        "an hour that is over counts no more",
        "hour: none, day:",
        "hour: use.hour, day:",
        ["test/domain/policy/usage.property.test.ts"],
      ],
      ["a day that is over counts no more", "dayOf(hourMs) === dayOf(use.hourMs) ? use.day : none", "use.day"],
      ["a window never goes back in time", "Math.max(use.hourMs, hourOf(at.getTime()))", "hourOf(at.getTime())"],
      [
        "a charge of an earlier hour is not counted in this one",
        "now.hourMs === hourMs ? plus(now.hour, amounts) : now.hour",
        "plus(now.hour, amounts)",
        ["test/domain/policy/use.test.ts"],
      ],
      [
        "a charge of an earlier day is not counted in this one",
        "dayOf(now.hourMs) === dayOf(hourMs) ? plus(now.day, amounts) : now.day",
        "plus(now.day, amounts)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/policy/message-rules.ts",
    ["test/domain/policy/message-rules.test.ts"],
    [
      [
        "a message that is never signed is refused by any rule",
        'if (never !== null && "rule" in never) return',
        "if (false) return",
      ],
      ["typed data has the type of its rule", "if (type !== rule.type) return", "if (false) return"],
      ["typed data has the domain of its rule", "if (other !== null) return", "if (false) return"],
      [
        "a domain has no field beyond its rule's",
        "[...domainFields(wanted), ...domainFields(asked)]",
        "[...domainFields(wanted)]",
      ],
      [
        "typed data is signed for its signer's chain",
        "chainId !== undefined && chainId !== String(context.chainId)",
        "false",
      ],
      [
        "each element of an array is within its bound",
        ".find((value) => !isWithin(bound, value, context.at))",
        ".slice(0, 1).find((value) => !isWithin(bound, value, context.at))",
      ],
      [
        "amounts of an array are added up",
        "reduce((sum, value) => sum + BigInt(value), 0n)",
        "reduce((_, value) => BigInt(value), 0n)",
      ],
      ["an amount per signature is limited", "perSignature === null || amount <= perSignature", "true"],
      ["a value is one of those allowed", "if (allowed?.has(value) === false) return false;", ""],
      ["a value has a least", "if (min !== null && BigInt(value) < min) return false;", ""],
      ["a value has a most", "if (max !== null && BigInt(value) > max) return false;", ""],
      [
        "a time is at most so far ahead",
        "BigInt(value) <= BigInt(Math.floor(at.getTime() / 1_000) + withinSeconds)",
        "true",
      ],
      ["a sign-in is signed under a rule of its own", "if (looksLikeSignIn(read.text)) return", "if (false) return"],
      [
        "a personal message has the prefix of its rule",
        "if (!read.text.startsWith(rule.prefix)) return",
        "if (false) return",
      ],
      ["a personal message has a longest length", "if (length > rule.maxLength) return", "if (false) return"],
      [
        "a sign-in stays within its rule",
        "if (beyond !== null) return miss(rule, 1, `signIn.",
        "if (false) return miss(rule, 1, `signIn.",
      ],
      ["a sign-in is for its signer's chain", "if (rule.signIn.chainId !== chainId) return", "if (false) return"],
      ["amounts of an hour are limited", '["amount.perHour", amounts.perHour', '["amount.perHour", null'],
      ["amounts of a day are limited", '["amount.perDay", amounts.perDay', '["amount.perDay", null'],
      ["signatures of an hour are limited", "signatures.perHour, after", "null, after"],
      ["signatures of a day are limited", "signatures.perDay, after", "null, after"],
      ["a signature at the amount needs no approval", "amount <= bound.aboveAmount", "amount < bound.aboveAmount"],
    ],
  ),
  ...mutantsIn(
    "src/domain/policy/in-force.ts",
    ["test/application/authority/policy-document.test.ts"],
    [
      [
        "a document that cannot be read is enforced as unreadable",
        '"policies" in parsed ? parsed.policies : unreadablePolicies(document, parsed.mistakes)',
        '"policies" in parsed ? parsed.policies : null',
      ],
      [
        "a new version takes effect",
        "if (policy.stamp === this.known.stamp) return this.known;",
        'if (this.known.stamp !== "") return this.known;',
        ["test/application/authority/policy-document.test.ts", "test/application/authority/policies.test.ts"],
      ],
    ],
  ),
];
