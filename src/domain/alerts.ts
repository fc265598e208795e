import type { Lane } from "./lane.ts";

/**
 * How an alert is over. "state": what it is about shows for as long as it lasts (a lane, a transaction, an endpoint). "said": the
 * same code about the same thing is said to be over; until then it lasts. "relief": it tells itself that another one is over.
 * "moment": it tells of what happened, and nothing of it lasts.
 */
export type AlertEnd = "state" | "said" | "relief" | "moment";

/** What people are woken for. Stable codes; docs/operations/alerts.md has a runbook for each, and a test compares the two. */
export const ALERT_ENDS = {
  CANNOT_RESIGN: "state",
  CHAIN_DISTRUSTED: "state",
  CHAIN_DOWN: "state",
  CHAIN_STALLED: "state",
  CHAIN_TRUSTED_AGAIN: "relief",
  COMMITS_MAY_BE_LOST: "state",
  DATABASE_HISTORY_CHANGED: "moment",
  DEEP_REORG: "moment",
  EXTERNAL_KEY_USE: "state",
  FEE_CEILING_REACHED: "state",
  FENCED_SURGE: "said",
  FINALITY_TAG_MISSING: "said",
  FOREIGN_PENDING: "said",
  FOREIGN_REPLACEMENT: "said",
  GAS_ORACLE_AWAY: "said",
  GRAY_ZONE_ENTERED: "state",
  GRAY_ZONE_LEFT: "relief",
  GRAY_ZONE_TIMED_OUT: "moment",
  HEAD_OF_LINE_OLD: "state",
  HOLE_FILLED: "moment",
  HOLE_USED_ELSEWHERE: "moment",
  INSUFFICIENT_FUNDS: "state",
  KEY_FILE_OPEN: "moment",
  KILLED: "state",
  LANE_AWAITS_OPERATOR: "state",
  LOW_BALANCE: "state",
  MAX_ATTEMPTS_REACHED: "state",
  NODE_VANISHED: "state",
  NONCE_CONSUMED_UNSEEN: "said",
  NONCE_DRIFT: "moment",
  NONCE_GIVEN_UP: "moment",
  NOTIFICATIONS_NEED_DIRECT_URL: "moment",
  PASS_FAILED: "said",
  PENDING_DEEP: "state",
  PENDING_OLD: "state",
  POLICIES_CHANGED: "moment",
  POLICY_FILE_DIFFERS: "said",
  POLICY_LIMIT_REACHED: "state",
  POLICY_UNREADABLE: "said",
  RECEIPT_BACKLOG_GROWING: "said",
  RECONCILIATION_FAILED: "said",
  REPRICING_FAILED: "moment",
  RESENT_OFTEN: "state",
  RESERVATION_EXPIRED: "moment",
  RESERVED_PILE_UP: "said",
  RESUBMIT_SURGE: "said",
  RPC_BEHIND: "state",
  RPC_DISAGREES: "state",
  RPC_ENDPOINT_DOWN: "state",
  RPC_WRONG_CHAIN: "state",
  SCHEMA_TOO_NEW: "said",
  SIGNER_AWAY: "state",
  SIGNER_BACK: "relief",
  SIGNER_LIES: "state",
  SLOW_SIGNING: "moment",
  STABLE_BLOCKS_REPLACED: "moment",
  STUCK_HOOK_DECISION: "moment",
  STUCK_HOOK_FAILED: "moment",
  TX_REFUSED: "state",
  TX_STUCK: "state",
} as const satisfies Readonly<Record<string, AlertEnd>>;
export type AlertCode = keyof typeof ALERT_ENDS;
export const ALERT_CODES = Object.keys(ALERT_ENDS) as readonly AlertCode[];

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

export type AlertSeverity = "WARNING" | "ERROR" | "CRITICAL";
