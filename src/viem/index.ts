/** `fencepost/viem`: viem wallet clients whose transactions Fencepost sends. It imports only types of viem. */
export { FencepostError, type Retry } from "../client/error-classes.ts";
export { type TransactionName, waitForFinal } from "../wallets/attempt-hashes.ts";
export { withRequestId } from "../wallets/request-scope.ts";
export { FencepostSendError } from "../wallets/send-error.ts";
export type { FencepostSource, Intent, MessageIntent, TypedDataInput, WaitOptions } from "../wallets/source.ts";
export { type FencepostAccount, type FencepostAccountOptions, toFencepostAccount } from "./fencepost-account.ts";
export { type FencepostTransportOptions, fencepost } from "./fencepost-transport.ts";
