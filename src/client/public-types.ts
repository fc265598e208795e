/** Types that the SDK and the library both export. */

export type { Abis, PutAbis } from "../contract/calls/abis.ts";
export type { Caller, ClusterNode, KillOrder, KillSwitchState, LaneLease } from "../contract/calls/cluster.ts";
export type { AddKey, Keys, NewKey, RevokedKey } from "../contract/calls/keys.ts";
export type { NonceReservation, ReserveNonce } from "../contract/calls/nonces.ts";
export type {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "../contract/calls/policies.ts";
export type {
  AddWebhook,
  ChangeWebhook,
  NewWebhook,
  RemovedWebhook,
  ReplayWebhook,
  RotateWebhook,
  TestedWebhook,
  Webhook,
  WebhookReason,
} from "../contract/calls/webhooks.ts";
export type {
  ApprovalOrder,
  HoldOrder,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../contract/schemas/actions.ts";
export type { Attention, AttentionItem, AttentionQuery } from "../contract/schemas/attention.ts";
export type { ClusterHistory, ClusterHistoryQuery } from "../contract/schemas/cluster-history.ts";
export type { Completion, CompletionsPage, CompletionsQuery } from "../contract/schemas/completions.ts";
export type { BatchResults, CreatedTransaction } from "../contract/schemas/create.ts";
export type { Costs, CostsQuery, History, HistoryQuery } from "../contract/schemas/figures.ts";
export type {
  RequestedSignature,
  RequestSignature,
  SignatureReason,
  SignaturesPage,
  SignaturesQuery,
  SignedMessage,
} from "../contract/schemas/message-signing.ts";
export type { NonceRuler, NonceRulerQuery } from "../contract/schemas/nonce-ruler.ts";
export type { AcknowledgeOrder, Notice } from "../contract/schemas/notice.ts";
export type { Overview, OverviewQuery } from "../contract/schemas/overview.ts";
export type { Problem } from "../contract/schemas/problem.ts";
export type { SearchQuery, SearchResults } from "../contract/schemas/search.ts";
export type { SignerLane, SignerNames, SignersPage, SignersQuery } from "../contract/schemas/signers.ts";
export type {
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../contract/schemas/transaction-schema.ts";
export type {
  TransactionIntent as CreateTransaction,
  TypedReplaceOrder as ReplaceOrder,
} from "../contract/schemas/typed-payload.ts";
export type { CallOptions, OrderOptions } from "./deadline.ts";
export type {
  FencepostFace,
  FreshOptions,
  Include,
  KillWish,
  NoticesWish,
  PolicyUsageQuery,
  ReadOptions,
  RequestName,
  RevokeOptions,
} from "./face.ts";
export type { FeedPlace, FeedStore, FollowedCompletion, FollowQuery, WaitOptions } from "./follow.ts";
export type { Address, Hash, Hex } from "./hex.ts";
export type { OutcomesQuery } from "./outcomes.ts";
