import {
  ApprovalOrder,
  HoldOrder,
  PricedOrder,
  ReplaceOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../schemas/actions.ts";
import { Completion, CompletionStreamQuery, CompletionsPage, CompletionsQuery } from "../schemas/completions.ts";
import {
  BatchResults,
  CallPayload,
  CreateBatch,
  CreatedTransaction,
  CreateTransaction,
  DeployPayload,
} from "../schemas/create.ts";
import { exampleOf } from "../schemas/example-of.ts";
import { STORY } from "../schemas/scalars.ts";
import {
  ByRequestQuery,
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
  TransactionQuery,
} from "../schemas/transaction-schema.ts";
import {
  ACTION_HEADERS,
  type ActionCall,
  APPROVE,
  declared,
  OPERATE,
  ok,
  READ,
  SUBMIT,
  TRANSACTION_BYTES,
  TRANSACTION_PLACE,
} from "./call.ts";

const oneTransaction = { description: "The transaction.", schema: Transaction };
const created = { schema: CreatedTransaction, location: TRANSACTION_PLACE };

export const transactions = declared({
  createTransaction: {
    at: "post /api/v1/tx",
    scope: SUBMIT,
    summary: "Send a transaction",
    description:
      "Answers once the intent is durable and owns its nonce. Repeat it with the same requestId as often as you like: there will be one transaction. Up to 256 KiB.",
    headers: { "Idempotency-Key": "Alias of requestId; where both are given they must be equal." },
    body: CreateTransaction,
    examples: {
      transfer: exampleOf(CreateTransaction),
      call: {
        signer: STORY.signer,
        requestId: "order-43",
        payload: exampleOf(CallPayload),
        metadata: { customer: "c-17" },
      },
      deploy: { signer: STORY.signer, chainId: 31337, payload: exampleOf(DeployPayload) },
    },
    answers: {
      202: { description: "Accepted: durable, and on its way to finality.", ...created },
      200: { description: "The same request had been accepted before; this is its transaction.", ...created },
    },
    errors: [
      "NOT_LEADER",
      "CONFLICT",
      "REQUEST_ID_REUSED",
      "UNKNOWN_SIGNER",
      "UNKNOWN_CHAIN",
      "SUBMISSION_REJECTED",
      "QUEUE_FULL",
    ],
  },
  createTransactions: {
    at: "post /api/v1/tx/batch",
    scope: SUBMIT,
    summary: "Send up to 1,000 transactions",
    description:
      "Every item has an answer of its own; a bad one does not fail the others. Up to 256 KiB an item, 8 MiB in all.",
    body: CreateBatch,
    answers: ok("One result per item, in order.", BatchResults),
  },
  getTransaction: {
    at: "get /api/v1/tx/{txId}",
    scope: READ,
    face: "get",
    does: "transaction",
    takes: ["txId", "include"],
    summary: "Read a transaction",
    query: TransactionQuery,
    answers: { 200: oneTransaction },
    errors: ["NOT_FOUND"],
  },
  explainTransaction: {
    at: "get /api/v1/tx/{txId}/explain",
    scope: READ,
    face: "explain",
    summary: "Why it is not final yet, and what would help",
    answers: ok("In plain words.", Explanation),
    errors: ["NOT_FOUND"],
  },
  getTransactionByRequest: {
    at: "get /api/v1/tx/by-request",
    scope: READ,
    face: "getByRequest",
    does: "transactionByRequest",
    takes: ["query", "include"],
    summary: "Read a transaction by the caller's own id",
    query: ByRequestQuery,
    needs: ["signer", "pool"],
    answers: { 200: oneTransaction },
    errors: ["NOT_FOUND", "UNKNOWN_CHAIN"],
  },
  listTransactions: {
    at: "get /api/v1/tx",
    scope: READ,
    face: "list",
    does: "transactions",
    summary: "List transactions",
    description: "Pages by an opaque cursor: hand `next` back as `after` until it is null.",
    query: TransactionListQuery,
    answers: ok("One page.", TransactionPage),
  },
});

export const completions = declared({
  listCompletions: {
    at: "get /api/v1/tx/completions",
    scope: READ,
    face: "completionsPage",
    does: "completions",
    summary: "Follow final outcomes in order",
    description:
      "Ask with `after` = the last `next`; with `wait` the answer is held until there is something. Never misses one, never reorders.",
    query: CompletionsQuery,
    answers: ok("One page.", CompletionsPage),
    errors: ["EPOCH_CHANGED", "FEED_TRUNCATED"],
  },
  streamCompletions: {
    at: "get /api/v1/tx/completions/stream",
    scope: READ,
    summary: "Receive final outcomes as they happen",
    description:
      "Server-sent events. `begin`, then a `completion` for each item of the feed after the position, for ever. `epoch`: the feed began a new epoch, and continues at the event's id. `end` is the last event; its data is the problem that ended the stream. Continue with the last `id` as `Last-Event-ID`. A reader that takes nothing for ten seconds is disconnected.",
    query: CompletionStreamQuery,
    headers: {
      "Last-Event-ID":
        "Position to continue at, as `epoch:seq`: the last `id` received. Overrides `after` and `epoch`.",
    },
    answers: {
      200: {
        description: "Endless. Every `id` is a position; a lone `id` keeps the connection alive.",
        contentType: "text/event-stream",
        exampleText: [
          'id: 1:0\nevent: begin\ndata: {"epoch":1,"after":0}\n\n',
          `id: 1:1\nevent: completion\ndata: ${JSON.stringify(exampleOf(Completion, { seq: 1 }))}\n\n`,
        ].join(""),
      },
    },
    errors: ["EPOCH_CHANGED", "FEED_TRUNCATED", "QUOTA_EXCEEDED"],
  },
});

/** Declares an operator's action on one transaction. */
function action<const A extends string, const F extends string>(name: A, face: F, { errors = [], ...own }: ActionCall) {
  return {
    at: `post /api/v1/tx/{txId}/${name}` as `post /api/v1/tx/{txId}/${A}`,
    scope: OPERATE,
    by: "owner",
    face,
    does: "act",
    action: name,
    bodyBytes: TRANSACTION_BYTES,
    headers: ACTION_HEADERS,
    answers: {
      202: {
        description: "Decided and durable; the transaction as it stands.",
        schema: Transaction,
        example: { state: "TRACKING", subState: "PENDING", receipt: null, confirmedAt: null },
        location: TRANSACTION_PLACE,
      },
    },
    errors: ["NOT_LEADER", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "NOT_FOUND", "CONFLICT", ...errors],
    ...own,
  } as const;
}

export const transactionActions = declared({
  resubmitTransaction: action("resubmit", "resubmit", {
    summary: "Send the stored bytes again, now",
    description:
      "A STUCK transaction is tracked like any other again. With `disclose`, public endpoints are given it too, and it cannot be made private again.",
    body: ResubmitOrder,
    examples: { resubmit: { reason: "the node was restarted" } },
  }),
  repriceTransaction: action("reprice", "reprice", {
    summary: "Sign the same payload at a higher price",
    description: "At least a tenth more than stands, on both fee fields; every payload stays tracked.",
    body: PricedOrder,
    examples: { reprice: { reason: "needed today", maxFeePerGas: "6000000000", maxPriorityFeePerGas: "2000000000" } },
    errors: ["SUBMISSION_REJECTED"],
  }),
  cancelTransaction: action("cancel", "cancel", {
    scope: { scope: "operate", own: "submit" },
    summary: "Use the nonce up with nothing",
    description:
      "A transfer of nothing to oneself at the same nonce. Where one stands already and is not mined, nothing more is signed, unless dearer fees are given. Whichever payload is mined decides: FAILED_FINAL/CANCELLED, or CONFIRMED where the original was faster. Not signed yet: it is never sent. Waiting for approval, or approved and without a nonce yet: FAILED_FINAL/CANCELLED at once, without a nonce.",
    body: PricedOrder,
    errors: ["SUBMISSION_REJECTED"],
  }),
  replaceTransaction: action("replace", "replace", {
    summary: "Put another payload at the nonce",
    description:
      "CONFIRMED/REPLACED where it is the one that is mined. The caller's payload stays visible; not signed yet, it is never sent.",
    body: ReplaceOrder,
    errors: ["SUBMISSION_REJECTED"],
  }),
  resolveTransaction: action("resolve", "resolve", {
    summary: "Ask the hook now, or apply an action",
    description: "The same actions as StuckResolutionHook; a decision that was carried out before is not repeated.",
    body: ResolveOrder,
    examples: { resolve: { reason: "wrong recipient, ticket 4711", action: "CANCEL" } },
    errors: ["SUBMISSION_REJECTED", "QUEUE_FULL"],
  }),
  approveTransaction: action("approve", "approve", {
    scope: APPROVE,
    summary: "Let a transaction that waits for approval have its nonce",
    description:
      "Of CREATED/AWAITING_APPROVAL, by a key with `approve` that did not make it. Policies are judged again when it gets its nonce: approval lifts the bound that asked for it, and no other rule.",
    body: ApprovalOrder,
    examples: { approve: { reason: "the invoice was checked" } },
  }),
  rejectTransaction: action("reject", "reject", {
    scope: APPROVE,
    summary: "Refuse a transaction that waits for approval",
    description: "By the same keys: FAILED_FINAL/REJECTED, without a nonce.",
    body: ApprovalOrder,
    examples: { reject: { reason: "no such invoice" } },
  }),
  suspendTransaction: action("suspend", "suspendTransaction", {
    summary: "Hold this one transaction back",
    description:
      "Nothing of it is signed, sent again, repriced or cancelled by its `validUntil` until it is resumed; actions on it meanwhile are performed once. Without a nonce it gets none; with one, everything behind it in its lane waits (`GET /tx/{txId}/explain` says so). What a node has already may still be mined, and decides as ever. Twice is the same as once.",
    body: HoldOrder,
  }),
  resumeTransaction: action("resume", "resumeTransaction", {
    summary: "Let a transaction that was held back go on",
    description: "What was due meanwhile is done now, its end by `validUntil` included. Twice is the same as once.",
    body: HoldOrder,
    examples: { resume: { reason: "the invoice was checked" } },
  }),
});
