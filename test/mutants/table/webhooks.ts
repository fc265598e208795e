import { mutantsIn } from "../mutant.ts";

export const WEBHOOKS = [
  ...mutantsIn(
    "src/domain/webhooks/delivery-window.ts",
    ["test/domain/webhooks/delivery-window.test.ts"],
    [
      [
        "an outcome is delivered once",
        "outcome.seq <= this.last || this.done.has(outcome.seq)",
        "outcome.seq <= this.last",
      ],
      [
        "a page that overlaps repeats nothing",
        "outcome.seq <= this.last || this.done.has(outcome.seq)",
        "this.done.has(outcome.seq)",
      ],
      ["the position stays below what is open", "lowest === undefined ? this.last : lowest - 1", "this.last"],
      [
        "a lane waits before it tries again",
        "if (queue.isBusy || !isDue(queue.retry, nowMs)) continue;",
        "if (queue.isBusy) continue;",
      ],
      ["lanes without failures go first", "queue.failures < chosen.failures", "queue.failures > chosen.failures"],
      ["each failure waits longer", "const failures = queue.failures + 1;", "const failures = 1;"],
      ["failing keeps its first time", "queue.failingSince ?? now", "now"],
      ["the window has a size", "WINDOW - this.open.size - this.done.size", "WINDOW"],
      ["what is delivered counts as delivered", "this.done.add(outcome.seq);", ""],
      ["the position never goes back", "Math.max(this.last, through)", "through"],
    ],
  ),
  ...mutantsIn(
    "src/domain/webhooks/receiver-pace.ts",
    ["test/domain/webhooks/receiver.test.ts"],
    [
      ["a receiver that fails for several lanes is down", "failedLanes.length >= DOWN_LANES", "false"],
      [
        "a failure reduces what is sent at once",
        "if (!isWhole) return { ...pace, limit: 1, failedLanes };",
        "if (!isWhole) return { ...pace, failedLanes };",
      ],
      ["a receiver that throttles is left alone", "const isWhole = throttled || ", "const isWhole = "],
      ["what is sent at once has a limit", "Math.min(MOST_AT_ONCE, limit + 1)", "limit + 1"],
      [
        "a receiver that is down is not tried before its time",
        "underWay < pace.limit && isDue(pace.retry, nowMs)",
        "underWay < pace.limit",
      ],
      [
        "failures under way count as one",
        "if (!isDue(pace.retry, nowMs)) return { ...pace, limit: 1, failedLanes };",
        "",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/webhooks/receiver-answers.ts",
    ["test/domain/webhooks/receiver.test.ts"],
    [
      [
        "a pause that a receiver asks for is kept",
        "Math.max(Math.min(asked, LONGEST_PAUSE_MS), backoffMs(RETRY, failures, random))",
        "backoffMs(RETRY, failures, random)",
      ],
      ["a receiver asks for no endless pause", "Math.min(asked, LONGEST_PAUSE_MS)", "asked"],
      ["a date in the past asks for no pause", "Math.max(0, atMs - now.getTime())", "atMs - now.getTime()"],
    ],
  ),
  ...mutantsIn(
    "src/domain/webhooks/subscriber.ts",
    ["test/domain/webhooks/subscriber.test.ts"],
    [
      ["a filter of chains holds", "(chains === null || chains.includes(lane.chainId)) &&", ""],
      [
        "a filter of keys gets nothing without an owner",
        "owner !== null && keys.includes(owner)",
        "owner === null || keys.includes(owner)",
      ],
      [
        "a limited key sees no webhook of all signers",
        "limit === null || chosen?.every((each) => limit.has(each)) === true",
        "limit === null || chosen?.every((each) => limit.has(each)) !== false",
      ],
      [
        "a webhook of a limited key is narrowed to its signers",
        "filter.signers ?? (signers && [...signers].sort())",
        "filter.signers",
      ],
      [
        "a webhook of a limited key is narrowed to its chains",
        "filter.chains ?? (chains && [...chains].sort((a, b) => a - b))",
        "filter.chains",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/cluster/retention.ts",
    ["test/domain/cluster/retention.test.ts"],
    [
      [
        "a live transaction is kept",
        "if (live || !isSettled(state)) return false;",
        "if (!isSettled(state)) return false;",
      ],
      ["an open transaction is kept", "if (live || !isSettled(state)) return false;", "if (live) return false;"],
      [
        "a transaction is kept as long as the feed has its outcome",
        "Math.min(now.getTime() - ageMs, oldestInFeed?.getTime() ?? Number.POSITIVE_INFINITY)",
        "now.getTime() - ageMs",
      ],
      ["a transaction is kept a while longer than its outcome", "kept - BEHIND_ITS_COMPLETION_MS", "kept"],
      ["the feed is cut below the first entry that is kept", "kept === -1 ? lowest : lowest.slice(0, kept)", "lowest"],
    ],
  ),
  ...mutantsIn(
    "src/domain/cluster/placement.ts",
    ["test/domain/cluster/placement.test.ts"],
    [
      ["a node that shuts down gets no lane", "!member.draining && member.chains", "member.chains"],
      ["a lane goes to a node with its key", " && member.signers.has(lane.signer)", ""],
      ["a node gets no more than its share", "(load.get(member.instanceId) ?? 0) < share", "true"],
      ["nodes that can be reached go first", "return preferring(isReachable, servants)", "return servants"],
      ["a node that stands back goes last", "Number(a.member.standsBack) - Number(b.member.standsBack) ||", ""],
      [
        "a key that is away is not relied on",
        "return preferring((member) => !findsKeyAway(member, lane), servants);",
        "return servants;",
      ],
      ["lanes with fewer nodes choose first", "a.ranked.length - b.ranked.length", "b.ranked.length - a.ranked.length"],
    ],
  ),
  ...mutantsIn(
    "src/domain/cluster/key-health.ts",
    ["test/domain/cluster/key-health.test.ts"],
    [
      ["a key is away after several failures", "failures >= FAILURES_OF_AN_ABSENCE && nowMs", "nowMs"],
      ["a key is away after a whole lease of failures", " && nowMs - firstFailureMs >= leaseMs", ""],
      ["each absence lasts longer", "2 ** Math.min(marks - 1, MOST_DOUBLINGS)", "1"],
    ],
  ),
  ...mutantsIn(
    "src/domain/cluster/stand-back.ts",
    ["test/domain/cluster/stand-back.test.ts"],
    [
      ["each silence stands back longer", "isRepeat ? before.count + 1 : 1", "1"],
      ["standing back ends", "nowMs - silences.lastMs < leases * leaseDurationMs", "true"],
      [
        "standing back has a longest time",
        "Math.min(2 ** Math.min(silences.count - 1, 30), MOST_LEASES)",
        "2 ** Math.min(silences.count - 1, 30)",
      ],
    ],
  ),
];
