/** What may keep the next transaction of a lane from being signed, what decides first. */
export const WINDOW_LIMITS = ["SUSPENDED", "CHAIN_UNSURE", "SIGNER_AWAY", "HELD", "NO_FUTURE_NONCES", "FULL"] as const;
export type WindowLimit = (typeof WINDOW_LIMITS)[number];
