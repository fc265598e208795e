import type { TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import {
  ApprovalOrder,
  HoldOrder,
  LANE_ACTIONS,
  type LaneAction,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ReplaceOrder,
  ResolveOrder,
  ResubmitOrder,
  TRANSACTION_ACTIONS,
  type TransactionAction,
} from "./actions.ts";
import * as examples from "./examples.ts";
import type { WrittenRoute } from "./routes.ts";
import { SignerLanes } from "./signers.ts";
import { Transaction } from "./transactions.ts";

interface Described extends Pick<WrittenRoute, "summary" | "description" | "errors"> {
  readonly order: TSchema;
}

const COMMON_ERRORS: readonly ErrorCode[] = ["NOT_LEADER", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER"];

export const orderHeaders = {
  "Idempotency-Key":
    "1 to 255 printable ASCII characters, of the caller's own. An order that was carried out under it is not carried out again: its repeat answers with what stands. With another body it is 409 REQUEST_ID_REUSED. Orders that were refused leave no key behind.",
};

const TRANSACTIONS: Readonly<Record<TransactionAction, Described>> = {
  resubmit: {
    summary: "Send the stored bytes again, now",
    description:
      "A STUCK transaction is tracked like any other again. With `disclose`, public endpoints are given it too, and it cannot be made private again.",
    order: ResubmitOrder,
  },
  reprice: {
    summary: "Sign the same payload at a higher price",
    description: "At least a tenth more than stands, on both fee fields; every payload stays tracked.",
    order: PricedOrder,
    errors: ["SUBMISSION_REJECTED"],
  },
  cancel: {
    summary: "Use the nonce up with nothing",
    description:
      "A transfer of nothing to oneself at the same nonce. Where one stands already and is not mined, nothing more is signed, unless dearer fees are given. Whichever payload is mined decides: FAILED_FINAL/CANCELLED, or CONFIRMED where the original was faster. Not signed yet: it is never sent. Waiting for approval, or approved and without a nonce yet: FAILED_FINAL/CANCELLED at once, without a nonce.",
    order: PricedOrder,
    errors: ["SUBMISSION_REJECTED"],
  },
  replace: {
    summary: "Put another payload at the nonce",
    description:
      "CONFIRMED/REPLACED where it is the one that is mined. The caller's payload stays visible; not signed yet, it is never sent.",
    order: ReplaceOrder,
    errors: ["SUBMISSION_REJECTED"],
  },
  resolve: {
    summary: "Ask the hook now, or apply an action",
    description: "The same actions as StuckResolutionHook; a decision that was carried out before is not repeated.",
    order: ResolveOrder,
    errors: ["SUBMISSION_REJECTED", "QUEUE_FULL"],
  },
  approve: {
    summary: "Let a transaction that waits for approval have its nonce",
    description:
      "Of CREATED/AWAITING_APPROVAL, by a key with `approve` that did not make it. Policies are judged again when it gets its nonce: approval lifts the bound that asked for it, and no other rule.",
    order: ApprovalOrder,
  },
  reject: {
    summary: "Refuse a transaction that waits for approval",
    description: "By the same keys: FAILED_FINAL/REJECTED, without a nonce.",
    order: ApprovalOrder,
  },
  suspend: {
    summary: "Hold this one transaction back",
    description:
      "Nothing of it is signed, sent again, repriced or cancelled by its `validUntil` until it is resumed; what is ordered about it meanwhile is carried out once. Without a nonce it gets none; with one, everything behind it in its lane waits (`GET /tx/{txId}/explain` says so). What a node has already may still be mined, and decides as ever. Twice is the same as once.",
    order: HoldOrder,
  },
  resume: {
    summary: "Let a transaction that was held back go on",
    description: "What was due meanwhile is done now, its end by `validUntil` included. Twice is the same as once.",
    order: HoldOrder,
  },
};

const LANES: Readonly<Record<LaneAction, Described>> = {
  suspend: {
    summary: "Send nothing more from this signer",
    description: "Creates are accepted and wait. Answers once the sends that were out have ended; outlives the node.",
    order: LaneOrder,
  },
  resume: { summary: "Send again", description: "What waited goes out in nonce order.", order: LaneOrder },
  realign: {
    summary: "Lower a cursor that was pushed too far",
    description:
      "After an endpoint lied about the signer's count. Never below what the chain counts, mined or pending, nor below a nonce that may have left: the answer shows how far it went.",
    order: RealignOrder,
    errors: ["CONFLICT"],
  },
};

const decided = {
  description: "Decided and durable; the transaction as it stands.",
  schema: Transaction,
  example: examples.cancelling,
  headers: { Location: "Path of the transaction." },
};

const lanesNow = { description: "The lane.", schema: SignerLanes, example: examples.signerLanes };

export const transactionActions = Object.fromEntries(
  TRANSACTION_ACTIONS.map((action): [string, WrittenRoute] => {
    const route = routeOf(TRANSACTIONS[action], ["NOT_FOUND", "CONFLICT"], { [action]: examples.orders[action] });
    return [`${action}Transaction`, { ...route, at: `post /api/v1/tx/{txId}/${action}`, responses: { 202: decided } }];
  }),
);

export const laneActions = Object.fromEntries(
  LANE_ACTIONS.map((action): [string, WrittenRoute] => {
    const route = routeOf(LANES[action], ["UNKNOWN_CHAIN"], { [action]: examples.orders.lane });
    return [
      `${action}Signer`,
      { ...route, at: `post /api/v1/signers/{signer}/${action}`, responses: { 200: lanesNow } },
    ];
  }),
);

function routeOf({ order, errors = [], ...described }: Described, common: readonly ErrorCode[], said: object) {
  const body = { schema: order, examples: { ...said } };
  return { ...described, headers: orderHeaders, body, errors: [...COMMON_ERRORS, ...common, ...errors] };
}
