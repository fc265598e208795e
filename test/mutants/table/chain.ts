import { mutantsIn } from "../mutant.ts";

export const CHAIN = [
  ...mutantsIn(
    "src/domain/chain/doubt.ts",
    ["test/domain/chain/doubt.test.ts"],
    [
      ["one sight does not stop a lane", "const SIGHTS_TO_STOP = 2;", "const SIGHTS_TO_STOP = 1;"],
      ["two sights stop a lane", "const SIGHTS_TO_STOP = 2;", "const SIGHTS_TO_STOP = 3;"],
      ["one clean look does not start a stopped lane", "const LOOKS_TO_GO_ON = 2;", "const LOOKS_TO_GO_ON = 1;"],
      [
        "clean looks are counted in a row",
        "return { seen, clean: 0, stopped:",
        "return { seen, clean: doubt.clean, stopped:",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/finality.ts",
    ["test/domain/chain/finality.test.ts"],
    [
      [
        "a block is final at its depth and no sooner",
        "view.head - blockNumber >= settings.confirmations",
        "view.head - blockNumber + 1 >= settings.confirmations",
      ],
      [
        "nothing is final before the chain tags a block",
        "view.tagged !== null && blockNumber <= view.tagged",
        "blockNumber <= (view.tagged ?? view.head)",
      ],
      [
        "a settled transaction is watched twice its depth",
        "Math.max(2 * confirmations, 64)",
        "Math.max(confirmations, 64)",
      ],
      [
        "a settled transaction is watched for at least 64 blocks",
        "Math.max(2 * confirmations, 64)",
        "2 * confirmations",
      ],
      [
        "watching ends at the finalized block",
        "Math.max(view.head - watchDepth(confirmations), view.finalized ?? -1)",
        "view.head - watchDepth(confirmations)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/confirmations.ts",
    ["test/domain/chain/confirmations.test.ts"],
    [
      [
        "blocks of an orphaned fork are replaced from the fork on",
        "block.number >= fork.number",
        "block.number > fork.number",
      ],
      ["a stored block of another hash is a fork", "if (fork !== undefined) {", "if (false) {"],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/counts.ts",
    ["test/domain/chain/counts.test.ts"],
    [
      ["half of the endpoints do not prove a count", "Math.floor(length / 2) + 1", "Math.ceil(length / 2)"],
      ["a count is reached if more than half report it or more", "sort((a, b) => b - a);", "sort((a, b) => a - b);"],
      [
        "an endpoint that lags does not limit the count",
        '(answer.kind === "says" ? answer.count : [])',
        '(answer.kind === "silent" ? [] : answer.count)',
      ],
      ["a silent endpoint is not unanimous with the others", "counts.size === 1 ? count : null", "count"],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/witness.ts",
    ["test/domain/chain/witness.test.ts"],
    [
      ["an owner is dead after two looks, not one", "gone.sinceMs + LOOKS_APART_MS", "gone.sinceMs"],
      [
        "a lock that is held again starts anew",
        'if (lock !== "gone") return { wasHeld: before.wasHeld || lock === "held", gone: null };',
        "",
      ],
      [
        "an owner that renewed between looks lives",
        "before.gone?.counter === counter ? before",
        "before.gone !== null ? before",
      ],
      ["nobody judges without an own session", "if (own === null) return false;", "if (own === null) return true;"],
      ["a fresh session does not judge", "wasHeld && ageMs >= OWN_SESSION_MS", "wasHeld"],
      [
        "a lock that was never seen held proves nothing",
        "(wasHeld && ageMs >= OWN_SESSION_MS)",
        "(ageMs >= OWN_SESSION_MS)",
      ],
      ["locks are not judged while a server has just started", "own.serverUpMs + ageMs > SERVER_UP_MS", "true"],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/unconfirmed-refusal.ts",
    ["test/domain/chain/unconfirmed-refusal.test.ts"],
    [
      ["one endpoint that accepts keeps the transaction", 'if (words.includes("accepts")) return "agreement";', ""],
      [
        "a refusal is not confirmed while an endpoint is silent",
        'if (words.length === 0 || words.includes("silent")) return "silent";',
        'if (words.length === 0) return "silent";',
      ],
      ["a refusal is not confirmed by nobody", "words.length === 0 || ", ""],
      ["a refusal is not confirmed by an endpoint that lags", 'if (words.includes("behind")) return "behind";', ""],
      [
        "a single endpoint confirms a refusal at a later block alone",
        "block > seen.firstBlock",
        "block >= seen.firstBlock",
      ],
      ["looks at a refusal get rarer", "block + Math.min(looks, MOST_BLOCKS_APART)", "block + 1"],
      ["looks at a refusal are at most 8 blocks apart", "Math.min(looks, MOST_BLOCKS_APART)", "looks"],
      [
        "a refusal keeps its first block",
        "seen ?? { firstBlock: block, since: look.since }",
        "{ firstBlock: block, since: seen?.since ?? look.since }",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/block-window.ts",
    ["test/domain/chain/block-window.test.ts"],
    [
      ["blocks of a window form one chain", "block.parentHash === parent.hash", "true"],
      [
        "a block joins only its own parent",
        "if (!this.contains({ number: first.number - 1, hash: first.parentHash })) return null;",
        "",
      ],
      ["a window keeps its size", ".slice(-capacity)", ""],
      ["a block older than the window may still stand", "block.number < this.oldest.number || ", ""],
      [
        "blocks that a reorg removes are reported newest first",
        "(block) => block.number >= first.number).reverse()",
        "(block) => block.number >= first.number)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/stable-stream.ts",
    ["test/domain/chain/stable-stream.test.ts"],
    [
      [
        "a removed block is not emitted",
        "this.waiting = this.waiting.filter((block) => !removed.has(block.hash));",
        "",
      ],
      ["a block is emitted once", "if (this.through === null || block.number > this.through) this", "this"],
      ["a block is emitted at its depth", "head - block.number >= this.depth", "head - block.number >= this.depth - 1"],
      ["a reorg below emitted blocks is reported", "lowestRemoved <= this.through", "lowestRemoved < this.through"],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/block-buffer.ts",
    ["test/domain/chain/block-buffer.test.ts"],
    [
      ["a full buffer reports the gap", "this.gap = true;\n    }", "}"],
      ["a drained gap is reported once", "this.gap = false;", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/chain/rpc-methods.ts",
    ["test/domain/chain/rpc-methods.test.ts"],
    [
      ["a method that signs is recognized", '["send", "sign", "submit", "propose"', '["send", "submit", "propose"'],
      ["a method that sends again is recognized", ` || word === \`re\${acting}\``, ""],
    ],
  ),
];
