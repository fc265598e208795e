import type { Lane } from "./lane.ts";

/** What people are woken for. Stable codes; docs/operations/alerts.md has a runbook for each, and a test compares the two. */
export const ALERT_CODES = [
  "CANNOT_RESIGN",
  "CHAIN_DISTRUSTED",
  "CHAIN_DOWN",
  "CHAIN_TRUSTED_AGAIN",
  "COMMITS_MAY_BE_LOST",
  "DATABASE_HISTORY_CHANGED",
  "DEEP_REORG",
  "EXTERNAL_KEY_USE",
  "EXTERNAL_USE_REQUEUED",
  "FEE_CEILING_REACHED",
  "FENCED_SURGE",
  "FINALITY_TAG_MISSING",
  "FOREIGN_PENDING",
  "FOREIGN_REPLACEMENT",
  "GAS_ORACLE_AWAY",
  "GRAY_ZONE_ENTERED",
  "GRAY_ZONE_LEFT",
  "GRAY_ZONE_TIMED_OUT",
  "HEAD_OF_LINE_OLD",
  "HOLE_FILLED",
  "HOLE_USED_ELSEWHERE",
  "INSUFFICIENT_FUNDS",
  "KEY_FILE_OPEN",
  "KILLED",
  "LANE_AWAITS_OPERATOR",
  "LOW_BALANCE",
  "MAX_ATTEMPTS_REACHED",
  "NONCE_CONSUMED_UNSEEN",
  "NONCE_DRIFT",
  "NONCE_GIVEN_UP",
  "NOTIFICATIONS_NEED_DIRECT_URL",
  "PASS_FAILED",
  "PENDING_DEEP",
  "PENDING_OLD",
  "POLICIES_CHANGED",
  "POLICY_LIMIT_REACHED",
  "RECEIPT_BACKLOG_GROWING",
  "RECONCILIATION_FAILED",
  "REPRICING_FAILED",
  "RESENT_OFTEN",
  "RESERVATION_EXPIRED",
  "RESERVED_PILE_UP",
  "RESUBMIT_SURGE",
  "RPC_BEHIND",
  "RPC_DISAGREES",
  "RPC_ENDPOINT_DOWN",
  "RPC_WRONG_CHAIN",
  "SCHEMA_TOO_NEW",
  "SIGNER_AWAY",
  "SIGNER_BACK",
  "SIGNER_LIES",
  "SLOW_SIGNING",
  "STABLE_BLOCKS_REPLACED",
  "STUCK_HOOK_DECISION",
  "STUCK_HOOK_FAILED",
  "TX_REFUSED",
  "TX_STUCK",
] as const;
export type AlertCode = (typeof ALERT_CODES)[number];

/** What an alert is about: a lane, a transaction of it, a chain, an endpoint of that; none of them where it is about the node. */
export interface AlertSubject {
  readonly code: AlertCode;
  readonly lane?: Lane;
  readonly txId?: string;
  readonly chainId?: number;
  /** Its place in the configuration, from 0. */
  readonly endpoint?: number;
}

/** The same code about the same thing is the same alert: its words may have numbers in them that change each time. */
export function alertKey({ code, lane, txId, chainId = lane?.chainId, endpoint }: AlertSubject): string {
  return `${code} ${chainId ?? ""}:${lane?.signer ?? ""} ${txId ?? ""} ${endpoint ?? ""}`;
}
