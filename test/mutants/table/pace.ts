import { mutantsIn } from "../mutant.ts";

export const PACE = [
  ...mutantsIn(
    "src/domain/pace/lane-pace.ts",
    ["test/domain/pace/lane-pace.test.ts", "test/domain/pace/search.test.ts"],
    [
      [
        "a chain is distrusted until doubt is gone",
        "doubt === NO_DOUBT ? null : (evidence ?? pace.distrust)",
        "evidence",
      ],
      ["a transaction at the head is first seen at its age", "nowMs - (isFirst ? seen.ageMs : 0)", "nowMs"],
      [
        "one future refusal closes the window once",
        'if (window.kind === "closed" && nowMs < window.untilMs) return pace;',
        "",
      ],
      ["each closure of the window lasts longer", "window.closures + 1 : 1", "1 : 1"],
      ["a closed window lets one nonce out", "return nowMs < window.untilMs ? 1 : 2;", "return 2;"],
      [
        "a window that was closed long enough tries a second nonce",
        "return nowMs < window.untilMs ? 1 : 2;",
        "return 1;",
      ],
      [
        "a signer that is away is asked later each time",
        "const failures = before.failures + 1;",
        "const { failures } = before;",
        ["test/domain/pace/lane-pace.test.ts"],
      ],
      ["an absence keeps its first time", "before.lies === lies ? before.since : now", "now"],
      ["a gap that the chain passed keeps its first block", "before.get(nonce) ?? head", "head"],
      ["a found transaction ends its search", "return found ? undefined :", "return"],
      [
        "a search lasts for the whole time to live",
        "search.lastMs - search.sinceMs >= ttlMs",
        "search.lastMs - search.sinceMs >= 0",
      ],
      ["a nonce that blocks keeps its first time", "pace.blocking?.nonce === nonce ? pace :", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/transaction-pace.ts",
    [
      "test/domain/pace/transaction-pace.test.ts",
      "test/domain/pace/search.test.ts",
      "test/domain/pace/backoff.test.ts",
    ],
    [
      [
        "a transaction of an earlier owner is looked for before it is sent",
        "send: isMined ? NEVER : AT_ONCE, look: LOOK_OWED",
        "send: isMined ? NEVER : AT_ONCE, look: LOOK_DUE",
      ],
      [
        "a mined transaction is not sent after a takeover",
        "send: isMined ? NEVER : AT_ONCE, look",
        "send: AT_ONCE, look",
      ],
      ["a claim is used for one send", "({ ...pace, claimed: false, sendRequested: false })", "pace"],
      [
        "an answer ends the claim",
        "return { ...pace, claimed: false, answer, send,",
        "return { ...pace, answer, send,",
      ],
      [
        "a nonce reported as used is looked for before the next send",
        'answer === "nonceConsumed" ? LOOK_OWED : pace.look',
        "pace.look",
      ],
      ["rejections are counted in a row", 'answer === "rejected" ? pace.rejections + 1 : 0', "pace.rejections + 1"],
      [
        "each failure waits longer",
        "const failures = pace.failures + 1;\n  const send",
        "const { failures } = pace;\n  const send",
      ],
      ["the time of the first acceptance is kept", "takenAt: pace.takenAt ?? at", "takenAt: at"],
      [
        "the bytes of another attempt are not sent in its place",
        "{ ...pace, sendOrdinal, rawTransaction: null, takenAt: null }",
        "{ ...pace, sendOrdinal, takenAt: null }",
      ],
      [
        "a future nonce is sent as soon as its predecessor is mined",
        'pace.answer === "nonceTooHigh" ? { ...pace, send: AT_ONCE } : pace',
        "pace",
      ],
      [
        "a transaction whose receipt is withdrawn needs a new claim",
        "rawTransaction: null, claimed: false, answer: null, takenAt: null",
        "rawTransaction: null, answer: null, takenAt: null",
        ["test/domain/pace/transaction-pace.test.ts"],
      ],
      [
        "a transaction that nobody knows is not sent",
        "return { ...pace, send: NEVER, claimed: false, sendRequested: false, search",
        "return { ...pace, claimed: false, sendRequested: false, search",
      ],
      ["a transaction is sent once at a time", "!pace.inHand && ", ""],
      ["a send waits for the look that is owed", 'pace.look.kind !== "owed" && isDue', "isDue"],
      ["a transaction is passed over after blocks and time", "now.block - takenAt.block >= least.blocks && ", ""],
      [
        "a look that failed has the last turn",
        "if (a.lookFailedMs === null) return -1;",
        "if (a.lookFailedMs === null) return 1;",
      ],
      ["an owed look has the first turn", "owed: 0, due: 1, looked: 2", "owed: 2, due: 1, looked: 0"],
      ["a mined signature is not sent", "const send = isMined ? NEVER : AT_ONCE;", "const send = AT_ONCE;"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/when.ts",
    [
      "test/domain/pace/backoff.test.ts",
      "test/domain/pace/transaction-pace.test.ts",
      "test/domain/pace/lane-pace.test.ts",
    ],
    [
      [
        "a pause has a longest duration",
        "Math.min(rule.mostMs, rule.firstMs * 2 ** Math.min(failures - 1, 30))",
        "rule.firstMs * 2 ** Math.min(failures - 1, 30)",
      ],
      ["the first pause is the shortest", "Math.min(failures - 1, 30)", "Math.min(failures, 30)"],
      ["pauses are spread at random", "full / 2 + (full / 2) * random", "full"],
      ["what is due at a time is due then", "when.ms <= nowMs", "when.ms < nowMs"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/block-pace.ts",
    ["test/domain/pace/block-pace.test.ts"],
    [
      [
        "a chain stalls ten usual blocks after its last",
        "STALLED_TIMES * usualMs, STALLED_LEAST_MS)",
        "0, STALLED_LEAST_MS)",
      ],
      [
        "a fast chain stalls no sooner than after 30 seconds",
        "Math.max(STALLED_TIMES * usualMs, STALLED_LEAST_MS)",
        "STALLED_TIMES * usualMs",
      ],
      ["a chain of irregular blocks has no usual pace", "late <= REGULAR * median ? median : null", "median"],
      [
        "a few blocks tell no pace",
        "if (spansMs.length < ENOUGH) return null;",
        "if (spansMs.length === 0) return null;",
      ],
      ["a reorg is no progress", "const isProgress = blocks > 0;", "const isProgress = blocks !== 0;"],
      [
        "an irregular chain stalls only if a transaction waits for it",
        "Math.min(ageMs, awaitedMs ?? 0)",
        "Math.max(ageMs, awaitedMs ?? 0)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/count-events.ts",
    ["test/domain/pace/lane-pace.test.ts"],
    [
      [
        "a count asked before a failure proves no comparison",
        "after === failures ? fresh : { proven: Math.max(before, proven) }",
        "fresh",
      ],
      [
        "a failed batch asks for a new comparison",
        "{ comparedAtMs: null, failures: pace.counts.failures + 1 }",
        "{ failures: pace.counts.failures + 1 }",
      ],
      ["a claimed count keeps its first block", "pace.counts.claim?.count === count ? pace :", ""],
      ["an unproved count keeps its first time", "since: unproved?.since ?? now", "since: now"],
      [
        "an unproved count ends with its claim",
        "const isOver = cursor !== null && reported <= cursor;",
        "const isOver = false;",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/departures.ts",
    ["test/domain/pace/departures.test.ts"],
    [
      ["a pause earns no more than the reserve", "nowMs + this.aheadMs) +", "Number.MAX_VALUE) +"],
      ["a pause earns no past departures", "Math.max(this.earnedMs, nowMs)", "this.earnedMs"],
      ["a single departure costs its share alone", "const intervalMs = share * ", "const intervalMs = "],
      ["a thin flow departs faster", "(this.flow?.share(nowMs) ?? 1) * ", ""],
      ["what flowed long ago counts less", "this.amount * 0.5 ** ((nowMs - this.atMs) / HALF_LIFE_MS)", "this.amount"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/growth.ts",
    ["test/domain/pace/growth.test.ts"],
    [
      ["growth is judged over all stretches", "this.lows.length < STRETCHES", "this.lows.length < 2"],
      [
        "growth is judged by the lowest size of a stretch",
        "Math.min(this.low ?? size, size)",
        "Math.max(this.low ?? size, size)",
      ],
      ["growth rises in every stretch", "this.lows.every(", "this.lows.some("],
      ["growth has stopped when a stretch is not higher", "last <= before", "last < before"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/lane-time.ts",
    ["test/domain/pace/lane-pace.test.ts"],
    [
      [
        "the database is asked for the time before a long wait ends",
        "Math.min(Math.max(0, leftMs), ASK_ABOUT_TIME_MS)",
        "Math.max(0, leftMs)",
      ],
      [
        "the earliest expiry is awaited",
        'expiry.kind === "at" && expiry.ms <= atMs',
        'expiry.kind === "at" && expiry.ms >= atMs',
      ],
      ["a cancel that was put off stays put off", "before.get(txId) ?? AT_ONCE", "AT_ONCE"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/rate.ts",
    ["test/domain/pace/rate.test.ts"],
    [
      ["a key takes no more than its rate", "Math.min(wanted, whole)", "wanted"],
      ["a rate fills up with time", "Math.max(0, (fullAtMs ?? nowMs) - nowMs)", "0"],
      ["what is taken is gone", "nowMs + emptyForMs + (given * A_SECOND_MS) / perSecond", "nowMs + emptyForMs"],
    ],
  ),
  ...mutantsIn(
    "src/domain/pace/recent-count.ts",
    ["test/domain/pace/recent-count.test.ts"],
    [
      ["what is older than the window does not count", "this.sum -= this.counts[each % SLICES] ?? 0;", ""],
      ["a slice is empty when it is used again", "this.counts[each % SLICES] = 0;", ""],
    ],
  ),
];
