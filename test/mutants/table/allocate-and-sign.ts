import { mutantsIn } from "../mutant.ts";

export const ALLOCATE_AND_SIGN = [
  ...mutantsIn(
    "src/application/stages/2-allocate/allocate.ts",
    ["test/application/stages/2-allocate/nonce-floor.test.ts"],
    [
      [
        "a lane whose chain is in doubt accepts nothing",
        "if (lane.pace.doubt !== NO_DOUBT) throw unavailable(",
        "if (false) throw unavailable(",
        ["test/application/detours/reconcile.test.ts"],
      ],
      ["an old count is read again", "&& clock.monotonicMs() - comparedAtMs < settings.nonceStateTimeoutMs;", ";"],
      [
        "a lane with a nonce accepts creates while the chain is silent",
        "if (lane.cursor !== null) return aboveCursor(lane);\n    throw",
        "throw",
      ],
      [
        "a new lane gives no nonce while the chain is silent",
        'throw unavailable("the chain does not answer, and this signer\'s nonce is not known yet", error);',
        "return 0;",
      ],
      [
        "a count above the lane's next nonce is confirmed",
        "const proven = await prove(work, count);",
        "const proven = count;",
      ],
      ["the first count of a lane is confirmed", "return highest === 0 ? 0 : prove(work, highest);", "return highest;"],
      [
        "a first count of zero needs most endpoints",
        "if (highest === 0 && countNotExceeded(answers) !== 0) {",
        "if (false) {",
      ],
      [
        "a count is confirmed a poll interval later",
        "await context.counts.nextPoll();\n  for (let claim",
        "for (let claim",
      ],
      [
        "an endpoint that is behind confirms no count",
        "await everywhere(work, met?.atBlock ?? 0)",
        "await everywhere(work, 0)",
      ],
      [
        "more pending nonces are skipped than one endpoint counts only if most count them",
        "const again = Math.min(first.count, counted);",
        "const again = first.count;",
      ],
      [
        "our own pending transactions are not skipped",
        "(hash) => hash === null || hashes.has(hash)) ?? 0",
        "(hash) => hash === null) ?? 0",
      ],
      [
        "a pool that is not listed shows no foreign transactions",
        "(hash) => hash === null || hashes.has(hash)) ?? 0",
        "(hash) => hash === null || hashes.has(hash)) ?? -1",
      ],
      [
        "the count is read again after a failed batch",
        "happened(lane, batchFailed);\n",
        "",
        ["test/application/stages/2-allocate/allocate.test.ts"],
      ],
      [
        "an allocation without an answer may have consumed nonces",
        "if (error instanceof OutcomeUnknown || error instanceof TermOver) throw error;",
        "if (error instanceof TermOver) throw error;",
        ["test/application/stages/2-allocate/allocate.test.ts"],
      ],
      [
        "a limited transaction keeps the cost that its policies counted",
        "records.push(isCounted ? { ...record, mostCost: payload.value + gasCost } : record);",
        "records.push(record);",
        ["test/application/authority/policies.test.ts"],
      ],
      [
        "the deadline of a new transaction is scheduled",
        "for (const record of records) noteTime(lane, record, ports.clock);",
        "",
        ["test/application/nonces/valid-until.test.ts"],
      ],
      [
        "a transaction that names its nonce is not moved",
        "const pinned = exactNonce === undefined ? bare : { ...bare, pinned: true as const };",
        "const pinned = bare;",
        ["test/application/stages/2-allocate/allocate.test.ts"],
      ],
      [
        "rows that were committed before the lane was lost are not signed here",
        "lane.term.begin(() => {\n      queueUp",
        "(() => {\n      queueUp",
        ["test/application/stages/2-allocate/allocate.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/3-sign/sign.ts",
    ["test/application/stages/sign.test.ts"],
    [
      ["a held lane signs nothing", "while (!lane.held && !lane.amending", "while (!lane.amending"],
      [
        "nothing is signed while a queued payload is being changed",
        "while (!lane.held && !lane.amending",
        "while (!lane.held",
        ["test/application/operations/actions.test.ts"],
      ],
      [
        "transactions whose deadline may be over are not signed first",
        "if (isExpiryLookOwed(lane.pace)) return lane.activities?.expiring.kick();",
        "",
        ["test/application/nonces/valid-until.test.ts"],
      ],
      [
        "transactions move down into free nonces before they are signed",
        "if (!lane.nonces.isWhole) await shiftDown(ports, lane);",
        "",
        ["test/application/nonces/reservations.test.ts"],
      ],
      [
        "a value that the ceiling no longer allows is given up",
        "if (why !== null) {\n    await giveUp",
        "if (false) {\n    await giveUp",
        ["test/application/fees/ceilings.test.ts"],
      ],
      [
        "bytes for a transaction that changed meanwhile are dropped",
        "const batch = lane.backlog.stillWaiting(wanted.slice(0, made.length));",
        "const batch = wanted.slice(0, made.length);",
        ["test/application/nonces/valid-until.test.ts"],
      ],
      [
        "nothing is sent before its bytes are committed",
        'await commitPlanned(ports, lane, planned);\n  await ports.failpoint("sign.committed");',
        'commitPlanned(ports, lane, planned).catch(() => undefined);\n  await ports.failpoint("sign.committed");',
      ],
      [
        "a nonce that was signed for with another payload is not given up",
        "if (error.undeclared) await declareAgain(ports, lane, batch);\n    else await giveUp",
        "await giveUp",
        ["test/application/signing/signed-again.test.ts"],
      ],
      [
        "only the database shows that earlier bytes were never committed",
        "const isHeld = batch.every(({ txId, nonce }, at) => waiting[at]?.txId === txId && waiting[at]?.nonce === nonce);",
        "const isHeld = true;",
      ],
      [
        "the first price is at most what the policies counted",
        "const fees = mostCost === undefined ? wanted : under(wanted, (mostCost - value) / gas);",
        "const fees = wanted;",
        ["test/application/authority/policies.test.ts"],
      ],
      [
        "the first attempt is claimed in the commit that stores it",
        '"sign", { attempt, claim: { ordinal: attempt.ordinal } })',
        '"sign", { attempt })',
      ],
      [
        "the first attempt is private if the chain has private endpoints",
        "const attempt = routed(first, privately);",
        "const attempt = first;",
        ["test/application/endpoints/private-sends.test.ts"],
      ],
      [
        "a refused payload does not count as an absent signer",
        "if (error instanceof TermOver || error instanceof SigningRefused) throw error;",
        "if (error instanceof TermOver) throw error;",
        ["test/application/signing/signed-again.test.ts"],
      ],
      [
        "nothing is signed after the end of the term",
        "await lane.term.sign(() => ports.signer.sign(lane.lane.signer, unsigned, lane.fence.token));",
        "await ports.signer.sign(lane.lane.signer, unsigned, lane.fence.token);",
        ["test/application/lane/ends-at-any-step.test.ts"],
      ],
    ],
  ),
];
