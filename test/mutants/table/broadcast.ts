import { mutantsIn } from "../mutant.ts";

export const BROADCAST = [
  ...mutantsIn(
    "src/application/stages/4-broadcast/broadcast.ts",
    ["test/application/stages/broadcast.test.ts"],
    [
      ["a held lane sends nothing", "lane.unmined.size === 0 || lane.held ? []", "lane.unmined.size === 0 ? []"],
      ["a transaction that is being sent is not signed anew", "for (const tx of due) happened(tx, takenInHand);", ""],
      [
        "an earlier owner's attempt is claimed before it is sent again",
        "if (!local.every(({ pace }) => pace.claimed)) await claimAgain(work, local);",
        "",
      ],
      [
        "a claim is committed before the bytes leave",
        "await commitPlanned(ports, lane, planned);\n  // A receipt",
        "commitPlanned(ports, lane, planned).catch(() => undefined);\n  // A receipt",
      ],
      [
        "a kill or a lapsed lease stops bytes at the socket",
        "return () => term() && !lane.held",
        "return () => !lane.held",
        ["test/application/stops/stops-at-the-wire.test.ts"],
      ],
      [
        "a suspension stops bytes at the socket",
        "return () => term() && !lane.held && ",
        "return () => term() && ",
        ["test/application/stops/stops-at-the-wire.test.ts"],
      ],
      [
        "a hold stops bytes at the socket",
        "&& !isHeldBack(tx) && isWanted();",
        "&& isWanted();",
        ["test/application/stops/stops-at-the-wire.test.ts"],
      ],
      [
        "bytes that are no longer wanted stop at the socket",
        "&& !isHeldBack(tx) && isWanted();",
        "&& !isHeldBack(tx);",
        ["test/application/stops/stops-at-the-wire.test.ts"],
      ],
      [
        "private transactions share no request with others",
        "await sendAll(work, hidden.length === 0 ? local : local.filter(({ attempts }) => !isPrivate(attempts)));",
        "await sendAll(work, local);",
      ],
      [
        "private transactions go only to private endpoints",
        "const privately = sendable.every(({ attempts }) => isPrivate(attempts));",
        "const privately = false;",
        ["test/application/endpoints/private-sends.test.ts"],
      ],
      [
        "bytes that never left got no answer",
        "if (!isStarted(result)) return [];",
        "",
        ["test/application/stops/stops-at-the-wire.test.ts"],
      ],
      [
        "a private transaction becomes public only after its time",
        "return ports.clock.now().getTime() - firstSentAt.getTime() >= publicAfterMs;",
        "return true;",
        ["test/application/endpoints/private-sends.test.ts"],
      ],
      [
        "a payload that an earlier owner may have sent is looked for first",
        "if (mayHaveBeenSent(tx)) {",
        "if (false) {",
        ["test/application/stages/gray-zone.test.ts"],
      ],
      [
        "a transaction whose hash is unknown holds back those behind it",
        "if (isBehind(lane, tx)) {",
        "if (false) {",
        ["test/application/stages/gray-zone.test.ts"],
      ],
      [
        "a send through a signing node is claimed first",
        "await claimAgain(work, [tx]);",
        "",
        ["test/application/stages/gray-zone.test.ts"],
      ],
      [
        "a send without an answer may have been signed",
        '|| answer === "nonceConsumed" || answer === "unknown")) {',
        '|| answer === "nonceConsumed")) {',
        ["test/application/stages/gray-zone.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/4-broadcast/note-answer.ts",
    ["test/application/stages/gray-zone.test.ts"],
    [
      [
        "an answer about a mined transaction is not written",
        'export function planAnswer({ tx, result }: Answered, identified?: TransitionItem["identified"]): readonly Planned[] {\n  if (tx.receipt !== null) return [];',
        'export function planAnswer({ tx, result }: Answered, identified?: TransitionItem["identified"]): readonly Planned[] {',
        ["test/application/stages/broadcast.test.ts"],
      ],
      [
        "one rejection refuses no transaction for good",
        'result.answer === "rejected" && isRefusedForGood(tx)',
        'result.answer === "rejected"',
        ["test/application/fees/stuck.test.ts"],
      ],
      [
        "the search for an unknown hash lasts from the loss of the answer, over all owners",
        "const ageMs = tx.lostSightAt === null ? 0 : Math.max(0, clock.now().getTime() - tx.lostSightAt.getTime());",
        "const ageMs = 0;",
      ],
      [
        "a used nonce is not sent anew",
        'return sent.kind === "mined" ? sent : "unseen";',
        'return sent.kind === "mined" ? sent : "absent";',
      ],
      [
        "a transaction of unknown hash is looked for in the pool",
        "const [hash = null] = (await chain.pooled(signer, [nonce])) ?? [];",
        "const [hash = null] = [] as Hash[];",
      ],
      [
        "another program's transaction is not adopted",
        'if (found !== "absent" && saysTheSame(payload, found.transaction)) {',
        'if (found !== "absent") {',
      ],
      [
        "a transaction of unknown hash is sent anew only after the whole timeout",
        "} else if (nowMs - search.sinceMs >= grayZoneTimeoutMs) await sendAnew(work, tx);",
        "} else await sendAnew(work, tx);",
      ],
    ],
  ),
];
