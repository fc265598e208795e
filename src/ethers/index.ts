/** `fencepost/ethers`: a Signer for ethers v6 whose transactions Fencepost sends. */
export { FencepostError, type Retry } from "../client/error-classes.ts";
export { type TransactionName, waitForFinal } from "../wallets/attempt-hashes.ts";
export { withRequestId } from "../wallets/request-scope.ts";
export { FencepostSendError } from "../wallets/send-error.ts";
export type { FencepostSource, Intent, MessageIntent, TypedDataInput, WaitOptions } from "../wallets/source.ts";
export { FencepostSigner, type FencepostSignerOptions } from "./fencepost-signer.ts";
export type { SentResponse } from "./sent-response.ts";
