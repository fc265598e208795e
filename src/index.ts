export type { CallOptions } from "./client/deadline.ts";
export type { FencepostFace, Include, KillWish, ReadOptions, RequestName } from "./client/face.ts";
export type { FeedPlace, FeedStore, FollowedCompletion, FollowQuery, WaitOptions } from "./client/follow.ts";
export * from "./client/public-errors.ts";
export { SentTransaction } from "./client/sent-transaction.ts";
export { type NonceUse, neverSent, type UsesNonce } from "./client/with-nonce.ts";
export type {
  ApprovalOrder,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ResolveOrder,
  ResubmitOrder,
} from "./contract/actions.ts";
export type { ClusterNode, KillOrder, KillSwitchState, LaneLease } from "./contract/calls/cluster.ts";
export type { AddKey, Keys, NewKey, RevokedKey } from "./contract/calls/keys.ts";
export type { NonceReservation, ReserveNonce } from "./contract/calls/nonces.ts";
export type {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "./contract/calls/policies.ts";
export type { Completion, CompletionsPage, CompletionsQuery } from "./contract/completions.ts";
export type { CreatedTransaction } from "./contract/create.ts";
export type { Problem } from "./contract/problem.ts";
export type { SignerLane, SignersPage, SignersQuery } from "./contract/signers.ts";
export type { Explanation, Transaction, TransactionListQuery, TransactionPage } from "./contract/transaction.ts";
export type {
  TransactionIntent as CreateTransaction,
  TypedReplaceOrder as ReplaceOrder,
} from "./contract/typed-payload.ts";
export { ERROR_CATALOGUE, type ErrorCode } from "./domain/errors.ts";
export type { FeeMarket, Fees } from "./domain/fees.ts";
export { linearRepricing, marketRepricing, type RepricingStrategy, type RepricingView } from "./domain/repricing.ts";
export type { State, SubState } from "./domain/transitions.ts";
export { defineConfig, type FencepostConfig } from "./main/config/define.ts";
export {
  type BlocksOptions,
  type CallerTransaction,
  createFencepost,
  type Fencepost,
  type FencepostOptions,
  type SendOptions,
} from "./main/library.ts";
export type { Block } from "./ports/chain.ts";
export type { StuckContext, StuckDecision, StuckResolutionHook } from "./ports/stuck-hook.ts";
export type { TelemetryEvent } from "./ports/telemetry.ts";
