/** Types that the SDK and the library both export. */
export type {
  ApprovalOrder,
  HoldOrder,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../contract/actions.ts";
export type { Attention, AttentionItem, AttentionQuery } from "../contract/attention.ts";
export type { ClusterNode, KillOrder, KillSwitchState, LaneLease } from "../contract/calls/cluster.ts";
export type { AddKey, Keys, NewKey, RevokedKey } from "../contract/calls/keys.ts";
export type { NonceReservation, ReserveNonce } from "../contract/calls/nonces.ts";
export type {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "../contract/calls/policies.ts";
export type { ClusterHistory, ClusterHistoryQuery } from "../contract/cluster-history.ts";
export type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
export type { BatchResults, CreatedTransaction } from "../contract/create.ts";
export type { NonceRuler, NonceRulerQuery } from "../contract/nonce-ruler.ts";
export type { AcknowledgeOrder, Notice } from "../contract/notice.ts";
export type { Overview, OverviewQuery } from "../contract/overview.ts";
export type { Problem } from "../contract/problem.ts";
export type { SearchQuery, SearchResults } from "../contract/search.ts";
export type { SignerLane, SignersPage, SignersQuery } from "../contract/signers.ts";
export type {
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../contract/transaction-schema.ts";
export type {
  TransactionIntent as CreateTransaction,
  TypedReplaceOrder as ReplaceOrder,
} from "../contract/typed-payload.ts";
export type { CallOptions, OrderOptions } from "./deadline.ts";
export type { FencepostFace, Include, KillWish, NoticesWish, ReadOptions, RequestName } from "./face.ts";
export type { FeedPlace, FeedStore, FollowedCompletion, FollowQuery, WaitOptions } from "./follow.ts";
