/** `fencepost/viem`: wallet clients of viem whose transactions Fencepost sends. Of viem it takes types alone. */
export { type TransactionName, waitForFinal } from "../wallets/attempt-hashes.ts";
export { withRequestId } from "../wallets/request-scope.ts";
export { FencepostSendError } from "../wallets/send-error.ts";
export type { FencepostSource, Intent, WaitOptions } from "../wallets/source.ts";
export { type FencepostAccount, type FencepostAccountOptions, toFencepostAccount } from "./fencepost-account.ts";
export { type FencepostTransportOptions, fencepost } from "./fencepost-transport.ts";
