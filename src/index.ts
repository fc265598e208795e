export { asAddress, asHex, asWei } from "./client/hex.ts";
export * from "./client/public-errors.ts";
export type * from "./client/public-types.ts";
export { SentTransaction } from "./client/sent-transaction.ts";
export { type NonceUse, neverSent, type UsesNonce } from "./client/with-nonce.ts";
export { ERROR_CATALOGUE, type ErrorCode } from "./domain/errors.ts";
export {
  linearRepricing,
  marketRepricing,
  type RepricingStrategy,
  type RepricingView,
} from "./domain/fees/repricing.ts";
export type { FeeMarket, Fees } from "./domain/transaction/fees.ts";
export type { State, SubState } from "./domain/transaction/transitions.ts";
export { defineConfig, type FencepostConfig } from "./main/config/define.ts";
export { createFencepost } from "./main/create-fencepost.ts";
export { ClosedError, ConfigurationError } from "./main/library/own-errors.ts";
export type {
  BlocksOptions,
  CallerTransaction,
  Fencepost,
  FencepostOptions,
  SendOptions,
} from "./main/library.ts";
export type { Block } from "./ports/chain.ts";
export type { StuckContext, StuckDecision, StuckResolutionHook } from "./ports/stuck-hook.ts";
export type { TelemetryEvent } from "./ports/telemetry.ts";
