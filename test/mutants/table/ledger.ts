import { mutantsIn } from "../mutant.ts";

export const LEDGER = [
  ...mutantsIn(
    "src/domain/ledger/allocate.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      ["a spent request id gets no second nonce", 'if (isSpent(existing)) return { result: "spent" };', ""],
      [
        "a held lane gives no nonce",
        'if (isHeld(draft.ledger)) return { result: "held" };\n  if (givesNoNonce',
        "if (givesNoNonce",
      ],
      [
        "a lane with unreadable policies gives no nonce",
        'if (givesNoNonce(draft.ledger)) return { result: "held", unreadable: true };',
        "",
      ],
      ["an intent on hold gets no nonce", 'if (intake?.held === true) return { result: "held" };', ""],
      [
        "an intent past its validUntil gets no nonce",
        'if (isOver(intent.validUntil, draft.at)) return { result: "expired" };',
        "",
      ],
      ["validUntil ends at its very millisecond", "validUntil <= at;", "validUntil < at;"],
      [
        "an intent that waits for approval gets no nonce",
        "if (intake !== null && approval?.approved === false) return awaiting(approval.rule, intake.acceptedAt);",
        "",
      ],
      ["an approved intent does not wait for approval again", "{ approved: approval !== null }", "{ approved: false }"],
      [
        "an intent that names its nonce cannot wait for approval",
        "exactNonce === undefined ? judged : unapproved(judged);",
        "judged;",
      ],
      [
        "a forbidden intent gets no nonce",
        'if ("forbidden" in verdict) return { result: "forbidden", ...verdict.forbidden };\n  if ("awaited"',
        'if ("forbidden" in verdict) return { result: "created", nonce: 0, createdAt: draft.at };\n  if ("awaited"',
      ],
      ["an allocation is charged to its limits", "for (const charge of verdict.charges) draft.record(charge);", ""],
      [
        "an intent that got its nonce after waiting keeps the time of its acceptance",
        'return { result: "created", nonce, createdAt: intake?.acceptedAt ?? draft.at,',
        'return { result: "created", nonce, createdAt: draft.at,',
      ],
      [
        "a request id that another lane of the pool owns gets no second nonce",
        "(ledger.requests.get(requestId) ?? ownerInPool(ledger, intent))",
        "ledger.requests.get(requestId)",
      ],
      [
        "an intent that may have been allocated before is searched by its id too",
        "(intakeId === undefined && mayExist !== true)",
        "intakeId === undefined",
      ],
      [
        "an intake row of another transaction is refused",
        "if (row?.txId !== txId) throw",
        "if (row === null) throw",
        ["test/domain/ledger/judged-writes.test.ts"],
      ],
      [
        "a nonce is never below the lane's next nonce",
        "Math.max(cursor ?? 0, floor ?? 0)",
        "floor ?? cursor ?? 0",
        ["test/domain/ledger/judged-writes.test.ts"],
      ],
      ["a nonce is never below the chain's proven count", "Math.max(cursor ?? 0, floor ?? 0)", "cursor ?? floor ?? 0"],
      ["a gap below the proven count is not used", ".filter((nonce) => nonce >= (floor ?? 0))", ""],
      ["the lowest gap is used first", ".sort((a, b) => a - b)", ".sort((a, b) => b - a)"],
      [
        "the gap of an expired reservation is not given to another transaction",
        "return hole !== null && isFree(hole);",
        "return hole !== null;",
      ],
      [
        "a nonce that is no longer a gap is not used as one",
        "return hole !== null && isFree(hole);",
        "return hole === null || isFree(hole);",
      ],
      ["an exact nonce is only ever the next one", "return nonce === next ?", "return nonce >= next ?"],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/bind.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      [
        "an action carried out under its key does not fill the gap again",
        'if (draft.isCarriedOut(write.decision?.actionKey)) return { status: "bound", result: "conflict", ...at };',
        "",
      ],
      [
        "a request id that is taken is not given to a bound transaction",
        "const requestId = owner === null ? intent.requestId : null;",
        "const requestId = intent.requestId;",
        ["test/doubles/memory-store.test.ts"],
      ],
      [
        "a forbidden transaction takes no reserved nonce",
        'if ("forbidden" in verdict) return { status: "bound", result: "forbidden", ...at, forbidden: verdict.forbidden };',
        'if ("forbidden" in verdict) return { status: "bound", result: "settled", ...at };',
      ],
      [
        "a held lane binds nothing",
        'givesNoNonce(draft.ledger) ? "held" : takeNonce(draft, write)',
        "takeNonce(draft, write)",
      ],
      [
        "a reservation is used for its own nonce alone",
        'if (found?.nonce !== nonce) return "conflict";',
        'if (found === null) return "conflict";',
      ],
      [
        "an expired reservation that is used closes its gap",
        'if (found.state === "EXPIRED") draft.record({ kind: "holeClosed", nonce });',
        "",
      ],
      [
        "bytes that a caller signed use the next nonce alone",
        'return nonce === nextNonce(draft.ledger, floor) ? "settled" : "conflict";',
        'return "settled";',
      ],
      ["bytes that a caller signed use no reservation of another key", " || reservation.owner !== intent.owner", ""],
      ["a placeholder fills a gap alone", 'if (ledger.holes.get(nonce) === null) return "conflict";', ""],
      [
        "placeholders for expired reservations have a limit per hour",
        "repairsInHour(draft) >= mostPerHour",
        "repairsInHour(draft) > mostPerHour",
      ],
      [
        "a placeholder for an expired reservation is counted",
        'if (mostPerHour !== undefined) draft.record({ kind: "repaired", txId, at });',
        "",
      ],
      ["a placeholder's gap is closed", 'draft.record({ kind: "holeClosed", nonce });\n  const left', "const left"],
      ["a bound transaction is charged to its limits", "for (const charge of charges) draft.record(charge);", ""],
      [
        "a placeholder is judged as one, beyond its key's limits",
        'kind === "initial" ? "payload" : kind === "placeholder" ? kind : "cost"',
        'kind === "initial" ? "payload" : "cost"',
      ],
      [
        "a payload that is known is judged by all its rules",
        'kind === "initial" ? "payload" : kind',
        'kind === "initial" ? "cost" : kind',
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/apply.ts",
    ["test/domain/ledger/judged-writes.test.ts"],
    [
      ["a write for another lane is refused", "if (!isOwn) throw", "if (false) throw"],
      [
        "the end of watching comes after the writes of its batch",
        "endsWatch(a) - endsWatch(b)",
        "endsWatch(b) - endsWatch(a)",
        [
          "test/domain/ledger/judged-writes.test.ts",
          "test/doubles/memory-store.test.ts",
          "test/domain/ledger/naive-lane.property.test.ts",
          "test/adapters/postgres/end-of-watch.test.ts",
        ],
      ],
      [
        "nonces that the chain passed unknown to the lane are recorded as used by others",
        "draft.noteUse({ nonce: before, through: floor - 1 });",
        "return;",
        [
          "test/domain/ledger/judged-writes.test.ts",
          "test/doubles/memory-store.test.ts",
          "test/domain/ledger/naive-lane.property.test.ts",
        ],
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/guard.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
      "test/domain/policy/usage.property.test.ts",
    ],
    [
      [
        "a step that spends is forbidden while policies are unreadable",
        "if (item.spends !== undefined && ledger.guard?.policies.unreadable.length) return { forbidden: UNREADABLE };",
        "",
      ],
      ["a nonce that is given up returns its charge", 'event === "giveUp" || event', "event"],
      ["a transaction that expires unsigned returns its charge", '|| event === "expire"', ""],
      ["an outcome that a reorg withdraws is charged again", "isSettled(from) ? unsettledCharges(charges) : []", "[]"],
      ["an outcome is charged what was paid", "paid === undefined ? [] : settledCharges(charges, paid)", "[]"],
      [
        "a transaction is charged to the hour of its latest window",
        "Math.max(latest, chargedHour(use, at))",
        "hourOf(at.getTime())",
        ["test/domain/ledger/judged-writes.test.ts"],
      ],
      [
        "a placeholder is charged beyond its key's limits",
        "? { ...charged, pastKeyLimits: true } : charged",
        "? charged : charged",
      ],
      [
        "a signature at the price that was checked is not charged twice",
        "charges.findLast(({ settles }) => !settles)?.moves === value",
        "false",
      ],
      ["the limits of the signer are judged", "...(ofSigner === null\n", "...(true\n"],
      ["the limits of the API key are judged", "...(ofKey === null ? []", "...(true ? []"],
      ["use is counted for the key that caused it", "keyUse: isOfKey ?", "keyUse: false ?"],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/move.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      ["a transaction that is no longer live takes no step", "tx === null || !tx.live || ", "tx === null || "],
      [
        "a step of an action that was carried out is not repeated",
        'if (draft.isCarriedOut(item.decision?.actionKey)) return "conflict";',
        "",
      ],
      [
        "a forbidden step is not taken",
        'if ("forbidden" in verdict) return "forbidden";',
        'if ("forbidden" in verdict) return "applied";',
      ],
      [
        "a nonce that is taken over is no longer a gap",
        'if (way.fills !== null) draft.record({ kind: "holeClosed", nonce: way.fills });',
        "",
      ],
      [
        "a nonce that is left becomes a gap",
        'if (way.leaves !== null) draft.record({ kind: "holeLeft", hole: { ...way.leaves, since: draft.at } });',
        "",
      ],
      ["a step that spends more is charged", "for (const charge of verdict.charges) draft.record(charge);", ""],
      ["an action's key is kept with its step", "draft.keepActionKey(item.decision?.actionKey);", ""],
      ["an outcome appears in the feed", "complete(draft, tx, item, way.nonce);\n  return", "return"],
      [
        "a held lane claims no send",
        '(claim !== undefined || event === "expire") && isHeld(ledger)',
        'event === "expire" && isHeld(ledger)',
      ],
      [
        "a held lane lets nothing expire",
        '(claim !== undefined || event === "expire") && isHeld(ledger)',
        "claim !== undefined && isHeld(ledger)",
        ["test/domain/ledger/naive-lane.property.test.ts"],
      ],
      [
        "a transaction on hold does not expire",
        "tx.heldSince !== null || !isOver(tx.validUntil, at)",
        "!isOver(tx.validUntil, at)",
      ],
      [
        "nothing expires before its validUntil",
        "tx.heldSince !== null || !isOver(tx.validUntil, at)",
        "tx.heldSince !== null",
      ],
      [
        "a transaction does not expire below a nonce that was named",
        'if (event === "expire" && !mayGiveUp(ledger, tx)) return false;',
        "",
      ],
      [
        "a transaction on hold is not sent",
        "claim === undefined || tx.heldSince === null || decision !== undefined || sendRequested === true",
        "true",
      ],
      ["a foreign attempt is recorded as use of the key elsewhere", "noteForeign(draft, item, way.nonce);\n", "\n"],
      ["a step is taken from the state that was expected", "if (tx.state !== item.from) return false;", ""],
      [
        "a step that keeps the state keeps its sub-state",
        'if (rule.to === "same" && tx.subState !== item.subState) return false;',
        "",
      ],
      [
        "a step is taken from its own sub-states alone",
        "return leavesFrom(rule, tx);",
        "return true;",
        ["test/doubles/memory-store.test.ts"],
      ],
      [
        "a step leads to its own state alone",
        "if (leads && rule.from.includes(from)) return;",
        "if (rule.from.includes(from)) return;",
        ["test/domain/ledger/judged-writes.test.ts"],
      ],
      ["an attempt has the next attempt number", "attempt !== undefined && attempt.ordinal !== count", "false"],
      [
        "a transaction without attempts is not tracked",
        'item.to === "TRACKING" && count === 0',
        "false",
        ["test/domain/ledger/judged-writes.test.ts"],
      ],
      [
        "a claim names an attempt that exists",
        "(ordinal < 1 || ordinal > count)",
        "(ordinal < 1)",
        ["test/doubles/memory-store.test.ts"],
      ],
      ["a hash is recorded once per attempt of an RPC node", "if (!hasAnother) return count;", "return count;"],
      [
        "a transaction leaves its nonce only if it may move",
        'if (!mayMove(tx, loaded(ledger.epochFloor, "the floor of the epoch")))',
        "if (false)",
      ],
      [
        "a transaction only moves down",
        "item.nonce < nonce ? ledger.holes.get(item.nonce) : null",
        "ledger.holes.get(item.nonce)",
      ],
      [
        "a transaction does not move into the gap of a reservation",
        "if (hole === null || !isFree(hole)) return null;",
        "if (hole === null) return null;",
      ],
      ["a decided step is never merged with a repeat", "item.decision === undefined &&", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/may-move.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
    ],
    [
      ["a nonce is not given up below one that may not move", "fixed.highestFrom(above) === null && ", ""],
      ["a nonce is not given up below a reservation", " && reserved.highestFrom(above) === null", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/ledger/reserve.ts",
    [
      "test/domain/ledger/judged-writes.test.ts",
      "test/doubles/memory-store.test.ts",
      "test/domain/ledger/naive-lane.property.test.ts",
      "test/domain/ledger/reserved-nonces.test.ts",
    ],
    [
      [
        "a key's reservations have a limit",
        "keptFromOthers(draft, write.owner) >= write.most",
        "keptFromOthers(draft, write.owner) > write.most",
      ],
      ["reservations of other keys do not count", "reservations.get(id)?.owner === owner", "true"],
      [
        "an expired reservation is not released",
        'reservationAt(reservation, draft.past).state === "RESERVED"',
        'reservation.state === "RESERVED"',
      ],
      ["a reservation expires at its very millisecond", "leftMs <= 0 ||", "leftMs < 0 ||"],
      [
        "an expired reservation is usable while nothing else has its nonce",
        " && ledger.holes.get(reservation.nonce)?.reservationId === reservationId",
        "",
      ],
    ],
  ),
];
