import type { TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import {
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
import type { Route } from "./routes.ts";
import { Address, TxId } from "./scalars.ts";
import { SignerLanes } from "./signers.ts";
import { Transaction } from "./transactions.ts";

interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
}

const COMMON_ERRORS: readonly ErrorCode[] = ["INVALID_REQUEST", "NOT_LEADER", "PAYLOAD_TOO_LARGE", "UNKNOWN_SIGNER"];
const ERRORS: readonly ErrorCode[] = [...COMMON_ERRORS, "NOT_FOUND", "CONFLICT"];

const ORDERS: Readonly<
  Record<TransactionAction, Described & { readonly order: TSchema; readonly errors: readonly ErrorCode[] }>
> = {
  resubmit: {
    operationId: "resubmitTransaction",
    summary: "Send the stored bytes again, now",
    description: "A STUCK transaction is tracked like any other again.",
    order: ResubmitOrder,
    errors: ERRORS,
  },
  reprice: {
    operationId: "repriceTransaction",
    summary: "Sign the same payload at a higher price",
    description: "At least a tenth more than stands, on both fee fields; every payload stays tracked.",
    order: PricedOrder,
    errors: ERRORS,
  },
  cancel: {
    operationId: "cancelTransaction",
    summary: "Use the nonce up with nothing",
    description:
      "A transfer of nothing to oneself at the same nonce. Whichever payload is mined decides: FAILED_FINAL/CANCELLED, or CONFIRMED where the original was faster. Not signed yet: it is never sent.",
    order: PricedOrder,
    errors: ERRORS,
  },
  replace: {
    operationId: "replaceTransaction",
    summary: "Put another payload at the nonce",
    description:
      "CONFIRMED/REPLACED where it is the one that is mined. The caller's payload stays visible; not signed yet, it is never sent.",
    order: ReplaceOrder,
    errors: [...ERRORS, "SUBMISSION_REJECTED"],
  },
  resolve: {
    operationId: "resolveTransaction",
    summary: "Ask the hook now, or apply an action",
    description: "The same actions as StuckResolutionHook; a decision that was carried out before is not repeated.",
    order: ResolveOrder,
    errors: [...ERRORS, "SUBMISSION_REJECTED", "QUEUE_FULL"],
  },
};

const LANES: Readonly<
  Record<LaneAction, Described & { readonly order?: TSchema; readonly errors?: readonly ErrorCode[] }>
> = {
  suspend: {
    operationId: "suspendSigner",
    summary: "Send nothing more from this signer",
    description: "Creates are accepted and wait. Answers once the sends that were out have ended; outlives the node.",
  },
  resume: { operationId: "resumeSigner", summary: "Send again", description: "What waited goes out in nonce order." },
  realign: {
    operationId: "realignSigner",
    summary: "Lower a cursor that was pushed too far",
    description:
      "After an endpoint lied about the signer's count. Never below what the chain counts, mined or pending, nor below a nonce that may have left: the answer shows how far it went.",
    order: RealignOrder,
    errors: ["CONFLICT"],
  },
};

export const actionRoutes: readonly Route[] = [
  ...TRANSACTION_ACTIONS.map((action): Route => {
    const { order, ...described } = ORDERS[action];
    return {
      ...described,
      method: "post",
      path: `/api/v1/tx/{txId}/${action}`,
      tag: "Transactions",
      params: { txId: TxId },
      body: { schema: order, examples: { [action]: examples.orders[action] } },
      responses: {
        202: {
          description: "Decided and durable; the transaction as it stands.",
          schema: Transaction,
          example: examples.cancelling,
          headers: { Location: "Path of the transaction." },
        },
      },
    };
  }),
  ...LANE_ACTIONS.map((action): Route => {
    const { order = LaneOrder, errors = [], ...described } = LANES[action];
    return {
      ...described,
      method: "post",
      path: `/api/v1/signers/{signer}/${action}`,
      tag: "Signers",
      params: { signer: Address },
      body: { schema: order, examples: { [action]: examples.orders.lane } },
      responses: { 200: { description: "The lane.", schema: SignerLanes, example: examples.signerLanes } },
      errors: [...COMMON_ERRORS, "UNKNOWN_CHAIN", ...errors],
    };
  }),
];
