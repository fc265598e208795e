/** Reasons why the lane's next transaction is not signed yet; the first that applies decides. */
export const WINDOW_LIMITS = ["SUSPENDED", "CHAIN_UNSURE", "SIGNER_AWAY", "HELD", "NO_FUTURE_NONCES", "FULL"] as const;
export type WindowLimit = (typeof WINDOW_LIMITS)[number];
