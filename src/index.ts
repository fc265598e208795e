export type { Created, CreateRequest, Include, SignerView, TransactionView } from "./application/api.ts";
export type { CreatedTransaction } from "./contract/create.ts";
export { ERROR_CATALOGUE, type ErrorCode, FencepostError } from "./domain/errors.ts";
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
  type FollowedCompletion,
  type FollowOptions,
  type NonceUse,
  neverSent,
  type Order,
  type SendOptions,
  type UsesNonce,
  type WaitOptions,
} from "./main/library.ts";
export type { Block } from "./ports/chain.ts";
export type { CompletionRecord } from "./ports/query-store.ts";
export type { StuckContext, StuckDecision, StuckResolutionHook } from "./ports/stuck-hook.ts";
export type { TelemetryEvent } from "./ports/telemetry.ts";
