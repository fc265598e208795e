import { mutantsIn } from "../mutant.ts";

export const WRITER = [
  ...mutantsIn(
    "src/application/writer/batch.ts",
    ["test/application/writer/batch.test.ts"],
    [
      ["joined allocations use the highest floor", "Math.max(...floors)", "Math.min(...floors)"],
      ["each part gets its own results", "outcome.items.slice(from, to)", "outcome.items.slice(0, part.weight)"],
      [
        "allocations of one lane are joined",
        "group?.parts.push(entry);\n",
        "\n",
        [
          "test/application/writer/batch.test.ts",
          "test/application/writer/bisect.test.ts",
          "test/application/writer/committer.test.ts",
        ],
      ],
      [
        "a batch that was lost half-way is unknown",
        "fenced !== undefined && results.some(hasCreated)",
        "false",
        [
          "test/application/writer/batch.test.ts",
          "test/application/writer/bisect.test.ts",
          "test/application/writer/committer.test.ts",
        ],
      ],
      [
        "changes are folded before writes are answered",
        "for (const { changes } of undelivered) for (const each of changes) this.events.onCommitted(each);",
        "",
      ],
      [
        "a fenced write ends its lane",
        'if (outcome.status === "fenced") this.events.onFenced(entry.write.fence, entry.write.kind);',
        "",
        ["test/application/writer/committer.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/writer/committer.ts",
    ["test/application/writer/committer.test.ts"],
    [
      [
        "writes behind a failed one fail too",
        "for (const entry of doomed) entry.reject(",
        "for (const entry of [] as typeof doomed) entry.reject(",
        [
          "test/application/writer/committer.test.ts",
          "test/application/writer/bisect.test.ts",
          "test/application/writer/turn.test.ts",
        ],
      ],
      [
        "a batch that was committed in part is unknown",
        "partlyCommitted ? new OutcomeUnknown(",
        "false ? new OutcomeUnknown(",
        [
          "test/application/writer/committer.test.ts",
          "test/application/writer/bisect.test.ts",
          "test/application/writer/turn.test.ts",
        ],
      ],
      ["a busy server is asked again a limited number of times", "failures > BUSY_RETRIES", "false"],
      [
        "an unknown commit is not repeated",
        "!(error instanceof StoreUnavailable && error.busy) || failures",
        "failures",
        [
          "test/application/writer/committer.test.ts",
          "test/application/writer/bisect.test.ts",
          "test/application/writer/turn.test.ts",
        ],
      ],
      [
        "one bad item does not fail its batch",
        "if (!(error instanceof BatchRefused || error instanceof NotLoaded)) throw error;",
        "throw error;",
        ["test/application/writer/bisect.test.ts"],
      ],
      ["two commits have no shard in common", "for (const shard of shards) this.busyShards.add(shard);", ""],
      ["completions are committed one batch after the other", "if (completing) this.completing = true;", ""],
      ["a lane is idle once nothing of it is under way", "[this.queue, ...this.underWay]", "[this.queue]"],
    ],
  ),
  ...mutantsIn(
    "src/application/writer/turn.ts",
    ["test/application/writer/turn.test.ts"],
    [
      ["writes of a lane stay in order", "held.all.has(shard) || (underWay.completing", "(underWay.completing"],
      ["completions wait for completions under way", " || (underWay.completing && completes)", ""],
      [
        "a batch has a size",
        "room -= costOf(entry);",
        "",
        ["test/application/writer/turn.test.ts", "test/application/writer/committer.test.ts"],
      ],
      ["moves wait for a limited time", "underWay.nowMs - sinceMs < PATIENCE_MS", "true"],
      [
        "a create behind a strict write waits",
        'if (sort !== "create" || held.has(shard) || weight > room) {',
        'if (sort !== "create" || weight > room) {',
        ["test/application/writer/turn.test.ts", "test/application/writer/committer.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/writer/waiting-room.ts",
    ["test/application/writer/waiting-room.test.ts"],
    [
      [
        "an answer waits with the receipts that follow it",
        "if (room === this.receipts) for (const answer of this.answers.leave(entry.key)) room.admit(answer, entry.sinceMs);",
        "",
      ],
      [
        "joined ends of watching reach the highest block",
        "Math.max(earlier.write.throughBlock, later.write.throughBlock)",
        "earlier.write.throughBlock",
      ],
      [
        "an answer with a hash does not wait",
        'event === "broadcast" && identified === undefined',
        'event === "broadcast"',
        ["test/application/writer/waiting-room.test.ts", "test/application/writer/committer.test.ts"],
      ],
      [
        "a receipt of a stuck transaction does not wait",
        'event === "mine" && from === "TRACKING" && attempt',
        'event === "mine" && attempt',
        ["test/application/writer/waiting-room.test.ts", "test/application/writer/committer.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/lane/lanes.ts",
    [
      "test/application/lane/lanes.test.ts",
      "test/application/lane/others-go-on.test.ts",
      "test/application/cluster/hand-over.test.ts",
    ],
    [
      [
        "a lane is used only while the lease lasts",
        "owned !== undefined && this.ports.lease.mayAct()",
        "owned !== undefined",
      ],
      [
        "a hand-over does not wait for sends",
        "await this.ports.writer.idle(lane.lane);",
        "await lane.settled();\n      await this.ports.writer.idle(lane.lane);",
        ["test/application/cluster/hand-over.test.ts", "test/application/lane/lanes.test.ts"],
      ],
      ["a lane is not acquired without a lease", "if (!this.ports.lease.mayAct()) throw new LeaseLapsed();", ""],
    ],
  ),
];
