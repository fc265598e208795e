import { mutantsIn } from "../mutant.ts";

export const CLUSTER = [
  ...mutantsIn(
    "src/application/cluster/owner-actions.ts",
    ["test/application/cluster/dequeue.test.ts"],
    [
      [
        "a request that was begun before is not told to be undone",
        'result.extras.outcome !== "unknown" && !begunBefore',
        'result.extras.outcome !== "unknown"',
      ],
      [
        "a request whose outcome is unknown is not told to be undone",
        'result.extras.outcome !== "unknown" && !begunBefore',
        "!begunBefore",
      ],
      [
        "a request that must not be repeated is not begun twice",
        "if (begunBefore && !repeatable) return refused(outcomeUnknown(INTERRUPTED));",
        "",
      ],
      [
        "a request in doubt that may be repeated stays",
        'repeatable ? "in doubt" : refused',
        'false ? "in doubt" : refused',
      ],
      [
        "an action of an unknown name is refused",
        "if (act === undefined) return notKnownYet(request.action);",
        "",
        [
          "test/application/cluster/dequeue.test.ts",
          "test/application/cluster/pending-requests.test.ts",
          "test/application/cluster/owner-actions.test.ts",
        ],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/cluster/pending-requests.ts",
    ["test/application/cluster/pending-requests.test.ts", "test/application/cluster/waiting-requests.test.ts"],
    [
      [
        "a request that was begun is not answered as undone",
        "if (!isLate || !(await store.withdrawRequest(leftId, accepts))) continue;",
        "if (!isLate) continue; await store.withdrawRequest(leftId, accepts);",
      ],
      [
        "an unknown commit is told as unknown",
        "if (error instanceof OutcomeUnknown) return outcomeUnknown(UNANSWERED, { cause: error });",
        "",
      ],
      [
        "a busy server is asked once more",
        "error instanceof StoreUnavailable && error.busy ? leave()",
        "false ? leave()",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/cluster/pending-creates.ts",
    ["test/application/cluster/pending-creates.test.ts", "test/application/cluster/waiting-creates.test.ts"],
    [
      [
        "a create that names its nonce is not accepted without one",
        "pool === undefined && exactNonce === undefined",
        "pool === undefined",
      ],
      [
        "a create of a pool is not accepted for one signer",
        "pool === undefined && exactNonce === undefined",
        "exactNonce === undefined",
      ],
      [
        "a row has a longest size",
        "at > 0 && (bytes > MOST_BYTES || count > MOST_AT_ONCE)",
        "at > 0 && count > MOST_AT_ONCE",
        ["test/application/cluster/pending-creates.test.ts"],
      ],
      [
        "a row has a limited number of creates",
        "at > 0 && (bytes > MOST_BYTES || count > MOST_AT_ONCE)",
        "at > 0 && bytes > MOST_BYTES",
        ["test/application/cluster/pending-creates.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/cluster/route.ts",
    ["test/application/cluster/delivery.test.ts", "test/application/cluster/route.test.ts"],
    [
      ["a request that may have arrived is repeated as a repeat", "this.repeated ||= !neverSent;", ""],
      ["an answer in doubt is told as unknown", "if (this.repeated) return this.request.unknown(index);", ""],
      [
        "an answer in doubt that may change is told as unknown",
        "this.repeated && result instanceof FencepostError && MAY_CHANGE.has(result.code)",
        "false",
      ],
      [
        "a refusal for the price in doubt is told as unknown",
        '"UNKNOWN_CHAIN", "SUBMISSION_REJECTED", "FORBIDDEN"',
        '"UNKNOWN_CHAIN", "FORBIDDEN"',
      ],
      [
        "a refusal by a policy in doubt is told as unknown",
        '"UNKNOWN_CHAIN", "SUBMISSION_REJECTED", "FORBIDDEN"',
        '"UNKNOWN_CHAIN", "SUBMISSION_REJECTED"',
      ],
    ],
  ),
];
