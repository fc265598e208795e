import { mutantsIn } from "../mutant.ts";

export const OPERATIONS = [
  ...mutantsIn(
    "src/application/operations/webhooks.ts",
    ["test/application/authority/limited-webhooks.test.ts"],
    [
      [
        "a limited key lists its own subscribers alone",
        "return all.filter(({ filter }) => isInside(filter, limits)).map(view);",
        "return all.map(view);",
      ],
      [
        "a limited key finds its own subscribers alone",
        "if (found === undefined || !isInside(found.filter, limits)) throw noSuch();",
        "if (found === undefined) throw noSuch();",
      ],
      [
        "a limited key changes no filter beyond its limits",
        "(isFiltered && { filter: permitted(parseFilter(codec, fields), limits) })",
        "(isFiltered && { filter: parseFilter(codec, fields) })",
      ],
      [
        "a limited key subscribes to nothing beyond its limits",
        "const filter = permitted(parseFilter(codec, fields), principal);",
        "const filter = parseFilter(codec, fields);",
      ],
      [
        "a limited key subscribes to its own signers alone",
        "for (const signer of filter.signers ?? []) refuseOutside(limits, { signer });",
        "",
      ],
      [
        "a limited key subscribes to its own chains alone",
        "for (const chainId of filter.chains ?? []) refuseOutside(limits, { chainId });",
        "",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/operations.ts",
    ["test/application/authority/key-limits.test.ts"],
    [["an operation outside the key's limits is refused", "refuseOutside(limits, asked.lane);", ""]],
  ),
  ...mutantsIn(
    "src/application/operations/policies.ts",
    ["test/application/authority/policy-reads.test.ts"],
    [
      [
        "a dry run of a create is held to the key's limits",
        "{ owner, ...(caller && { limits: caller }) }",
        "{ owner }",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/notices.ts",
    ["test/application/watches/notices.test.ts"],
    [
      [
        "a limited key acknowledges notices about its own lanes alone",
        "if (limits !== undefined && isLimited(limits)) {",
        "if (false) {",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/reservations.ts",
    ["test/application/operations/signed-repeats.test.ts"],
    [
      [
        "a request id shows no reservation of another key",
        "if (isAnothers(found.owner, owner)) throw anothersRequestId(requestId);",
        "",
        ["test/application/authority/key-limits.test.ts"],
      ],
      [
        "a nonce shows no signed transaction of another key",
        "if (found === null || isAnothers(found.owner, asking)) return null;",
        "if (found === null) return null;",
      ],
      [
        "other bytes at the nonce are no repeat",
        "return found.attempts.some((attempt) => attempt.txHash === txHash) ? existingAs(found) : null;",
        "return existingAs(found);",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/transaction-actions.ts",
    ["test/application/operations/actions-handed-over.test.ts"],
    [
      [
        "an action that an earlier owner carried out is not repeated",
        'if (await lane.term.during(isCarriedOut(ports, asked))) return "done";\n  const approval',
        "const approval",
      ],
      [
        "the public endpoints get a private transaction only if asked for",
        "const disclosed = disclose && isPrivate(tx.attempts)",
        "const disclosed = isPrivate(tx.attempts)",
        ["test/application/endpoints/private-sends.test.ts"],
      ],
      [
        "an approval after a rejection is refused",
        'if (made?.event === action) return "done";',
        'return "done";',
        ["test/application/authority/approval.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/operations/lane-actions.ts",
    ["test/application/operations/realign.test.ts"],
    [
      [
        "a suspension stops sends before it is durable",
        'if (suspended) lane.count("suspending", 1);',
        "",
        ["test/application/operations/suspension.test.ts"],
      ],
      [
        "a realignment stays above pending transactions",
        "return Math.max(mined, (await counts.pending(lane.signer, { atMostMs: 0 })).count);",
        "return mined;",
      ],
      [
        "a realignment stays above the chain's count",
        "const floor = Math.max(task.nonce ?? 0, await lane.term.during(chainFloor(ports, lane)));",
        "const floor = task.nonce ?? (await lane.term.during(chainFloor(ports, lane)));",
      ],
    ],
  ),
];
