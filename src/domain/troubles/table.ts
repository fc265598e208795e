import type { Lane } from "../lane.ts";

/**
 * Table of every trouble of a running node: its severity, what it is about, its remedies, the consequences that it
 * hides on the attention list, whether it makes a node unready, and how its alert ends. Explanations, the attention
 * list, alerts and readiness read this table; `fencepost doctor` has its own (setup.ts). The runbook of an alert is the
 * section of its code in docs/operations/alerts.md.
 */

/** Severities, worst first. */
export const SEVERITIES = ["CRITICAL", "ERROR", "WARNING"] as const;
export type Severity = (typeof SEVERITIES)[number];

/**
 * What a row of the attention list is about. Rows about the same lane, node or other object are merged. Rows about
 * transactions are not: each transaction needs a separate decision.
 */
type About = "everything" | "node" | "chain" | "endpoint" | "lane" | "transaction" | "subscriber";

/**
 * How an alert ends. "state": it is shown as long as its trouble lasts. "said": an event ends it. "relief": it reports
 * that another alert is over. "moment": it reports a single event, so it has no end.
 */
export type AlertEnd = "state" | "said" | "relief" | "moment";

interface Row {
  /** Severity of the trouble. Null: the code stands for a transaction's progress or outcome, not for a trouble. */
  readonly severity: Severity | null;
  readonly about: About;
  /**
   * Remedies, best first; possible.ts decides which of them help now. Present if explanations use this code as a cause.
   */
  readonly helps?: readonly HelpCode[];
  /**
   * Codes of troubles that this trouble causes. Rows with these codes, about the same lane, chain or node, are not
   * shown beside it.
   */
  readonly hides?: readonly string[];
  /** True if a node is not ready for the chain that has this trouble. */
  readonly unready?: true;
  /** How the alert of this code ends. Present if there is such an alert. */
  readonly ends?: AlertEnd;
  /** Code of the alert, if it differs from the row's code. */
  readonly alert?: string;
}

/** Codes of possible remedies; advice.ts has the text and the request of each. */
export const HELP_CODES = [
  "WAIT",
  "LOOK_AT_BLOCKER",
  "END_KILL",
  "RESUME_LANE",
  "RESUME_TRANSACTION",
  "START_A_NODE",
  "CHECK_RPC",
  "CHECK_SIGNER",
  "FUND_SIGNER",
  "REPRICE",
  "RAISE_CEILING",
  "APPROVE",
  "RAISE_LIMIT",
  "RESUBMIT",
  "DISCLOSE",
  "CANCEL",
  "REPLACE",
  "FILL_HOLE",
  "USE_NONCE_ELSEWHERE",
  "USE_RESERVATION",
  "SEND_ANEW",
  "PROTECT_KEY",
] as const;
export type HelpCode = (typeof HELP_CODES)[number];

const calm = { severity: null, about: "transaction", helps: [] } as const;
const again = { ...calm, helps: ["SEND_ANEW"] } as const;
const lasting = { severity: "WARNING", about: "lane", ends: "state" } as const;
const said = { ...lasting, ends: "said" } as const;
const moment = { ...lasting, ends: "moment" } as const;
const failure = { ...moment, severity: "ERROR" } as const;
const ofNode = { ...moment, about: "node" } as const;
const relief = { ...lasting, ends: "relief" } as const;

/** These codes are symptoms, not causes: a lane has old or many open transactions because something else stops it. */
export const SYMPTOMS = ["HEAD_OF_LINE_OLD", "PENDING_OLD", "PENDING_DEEP"] as const;
/** Default of a trouble that stops a lane. */
const blocking = { severity: "WARNING", about: "lane", hides: SYMPTOMS } as const;

export const TROUBLES = {
  NODE_LOST: { severity: "ERROR", about: "node", hides: ["OWNER_SILENT"], alert: "NODE_VANISHED" },

  CONFIRMED: calm,
  REPLACED: calm,
  REVERTED: again,
  CANCELLED: calm,
  NONCE_CONSUMED_EXTERNALLY: { ...calm, helps: ["PROTECT_KEY", "SEND_ANEW"] },
  REJECTED: again,
  REQUEST_ID_REUSED: again,
  EXPIRED: again,
  AWAITING_APPROVAL: { severity: "WARNING", about: "transaction", helps: ["APPROVE", "CANCEL"] },
  HELD: { ...blocking, about: "transaction", helps: ["RESUME_TRANSACTION", "CANCEL"] },
  EXPIRES: calm,
  EXPIRING: calm,
  REFUSAL_UNCONFIRMED: { severity: "ERROR", about: "lane", helps: ["CHECK_RPC"], alert: "RPC_DISAGREES" },
  WAITING_FOR_ALLOCATION: calm,
  WAITING_FOR_WINDOW: calm,
  WAITING_FOR_SIGNATURE: calm,
  WAITING_FOR_SEND: calm,
  WAITING_FOR_BLOCK: calm,
  WAITING_FOR_CONFIRMATIONS: calm,
  WAITING_FOR_FINALITY_TAG: calm,
  WAITING_BEHIND: { severity: "WARNING", about: "lane", helps: ["LOOK_AT_BLOCKER"] },
  HOLE_BELOW: {
    severity: "ERROR",
    about: "lane",
    hides: [...SYMPTOMS, "STUCK", "WAITING_BEHIND"],
    helps: ["FILL_HOLE", "USE_NONCE_ELSEWHERE", "RAISE_LIMIT", "CHECK_SIGNER"],
  },
  RESERVED_BELOW: { ...blocking, helps: ["USE_RESERVATION"] },
  KILLED: { severity: "CRITICAL", about: "everything", helps: ["END_KILL"], hides: SYMPTOMS, ends: "state" },
  LANE_SUSPENDED: { ...blocking, helps: ["RESUME_LANE"] },
  LANE_UNOWNED: {
    severity: "ERROR",
    about: "lane",
    helps: ["START_A_NODE"],
    ends: "state",
    hides: [...SYMPTOMS, "STUCK"],
  },
  OWNER_SILENT: { severity: "ERROR", about: "node", helps: ["START_A_NODE"] },
  CHAIN_UNKNOWN: { severity: "WARNING", about: "chain", helps: ["START_A_NODE"] },
  CHAIN_UNREACHABLE: {
    severity: "CRITICAL",
    about: "chain",
    helps: ["CHECK_RPC"],
    alert: "CHAIN_DOWN",
    unready: true,
    hides: [...SYMPTOMS, "RPC_ENDPOINT_DOWN", "CHAIN_STALLED"],
  },
  CHAIN_STALLED: {
    severity: "ERROR",
    about: "chain",
    helps: ["CHECK_RPC"],
    hides: ["STUCK", "RESENT_OFTEN", ...SYMPTOMS],
    ends: "state",
  },
  CHAIN_DOUBTED: { ...blocking, severity: "CRITICAL", helps: ["CHECK_RPC"], alert: "CHAIN_DISTRUSTED" },
  SIGNER_AWAY: { ...blocking, severity: "ERROR", helps: ["CHECK_SIGNER"], ends: "state" },
  SIGNER_LIES: {
    ...lasting,
    severity: "CRITICAL",
    helps: ["CHECK_SIGNER"],
    hides: ["SIGNER_AWAY", ...SYMPTOMS],
  },
  RPC_DISAGREES: { severity: "ERROR", about: "chain", helps: ["CHECK_RPC"], ends: "state" },
  RPC_BEHIND: { severity: "WARNING", about: "chain", helps: ["CHECK_RPC"], ends: "state" },
  FEE_BELOW_BASE_FEE: { ...blocking, helps: ["REPRICE", "CANCEL", "USE_NONCE_ELSEWHERE"] },
  FEE_CEILING_REACHED: { ...blocking, helps: ["REPRICE", "RAISE_CEILING", "CANCEL"], ends: "state" },
  POLICY_LIMIT_REACHED: { ...blocking, helps: ["RAISE_LIMIT", "CANCEL"], ends: "state" },
  UNDERPRICED: { ...blocking, helps: ["REPRICE", "CANCEL"] },
  INSUFFICIENT_FUNDS: {
    severity: "ERROR",
    about: "lane",
    helps: ["FUND_SIGNER", "CANCEL"],
    ends: "state",
    hides: [...SYMPTOMS, "LOW_BALANCE"],
  },
  NODE_REFUSED: { ...blocking, helps: ["REPLACE", "CANCEL"], alert: "TX_REFUSED" },
  NODE_WANTS_LOWER_NONCE: calm,
  NODE_DID_NOT_ANSWER: { ...blocking, helps: ["CHECK_RPC"] },
  SENT_PRIVATELY: { ...calm, helps: ["DISCLOSE"] },
  NOT_IN_POOL: { ...blocking, helps: ["RESUBMIT"] },
  NONCE_CONSUMED: calm,
  NONCE_USED_BY_OTHERS: { severity: "WARNING", about: "lane", helps: ["PROTECT_KEY"] },
  SUBMIT_RESULT_UNKNOWN: { ...blocking, helps: [], alert: "GRAY_ZONE_ENTERED" },
  REORGED: calm,
  RESENT_OFTEN: { ...blocking, helps: ["REPRICE", "CHECK_RPC", "CANCEL"], ends: "state" },
  STUCK: {
    ...blocking,
    severity: "ERROR",
    alert: "TX_STUCK",
    helps: ["RESUBMIT", "REPRICE", "CHECK_RPC", "CANCEL", "USE_NONCE_ELSEWHERE"],
  },

  CANNOT_RESIGN: { ...blocking, ends: "state" },
  CHAIN_DISTRUSTED: { ...lasting, severity: "CRITICAL" },
  CHAIN_DOWN: { severity: "CRITICAL", about: "chain", ends: "state" },
  CHAIN_TRUSTED_AGAIN: relief,
  COMMITS_MAY_BE_LOST: { severity: "CRITICAL", about: "everything", ends: "state" },
  DATABASE_HISTORY_CHANGED: { severity: "CRITICAL", about: "everything", ends: "moment" },
  DEEP_REORG: { ...moment, severity: "CRITICAL" },
  EXTERNAL_KEY_USE: { ...lasting, severity: "CRITICAL" },
  FENCED_SURGE: { severity: "ERROR", about: "node", ends: "said" },
  FINALITY_TAG_MISSING: { severity: "ERROR", about: "chain", ends: "said" },
  FOREIGN_PENDING: said,
  FOREIGN_REPLACEMENT: said,
  GAS_ORACLE_AWAY: { ...said, about: "chain" },
  GRAY_ZONE_ENTERED: lasting,
  GRAY_ZONE_LEFT: relief,
  GRAY_ZONE_TIMED_OUT: failure,
  HEAD_OF_LINE_OLD: lasting,
  HOLE_FILLED: moment,
  HOLE_USED_ELSEWHERE: moment,
  KEY_FILE_OPEN: ofNode,
  LANE_AWAITS_OPERATOR: { ...lasting, severity: "CRITICAL", hides: ["LANE_SUSPENDED", ...SYMPTOMS] },
  LOW_BALANCE: lasting,
  MAX_ATTEMPTS_REACHED: { ...blocking, ends: "state" },
  NODE_VANISHED: { severity: "ERROR", about: "node", ends: "state" },
  NONCE_CONSUMED_UNSEEN: said,
  NONCE_DRIFT: failure,
  NONCE_GIVEN_UP: failure,
  NOTIFICATIONS_NEED_DIRECT_URL: ofNode,
  PASS_FAILED: { severity: "ERROR", about: "chain", ends: "said" },
  PENDING_DEEP: lasting,
  PENDING_OLD: lasting,
  POLICIES_CHANGED: { ...moment, about: "everything" },
  POLICY_FILE_DIFFERS: { ...said, about: "node" },
  POLICY_UNREADABLE: { severity: "ERROR", about: "node", ends: "said" },
  RECEIPT_BACKLOG_GROWING: { severity: "ERROR", about: "node", ends: "said" },
  RECONCILIATION_FAILED: { severity: "CRITICAL", about: "chain", ends: "said" },
  REPRICING_FAILED: moment,
  RESERVATION_EXPIRED: moment,
  RESERVED_PILE_UP: said,
  RESUBMIT_SURGE: { ...said, about: "node" },
  RPC_ENDPOINT_DOWN: { ...lasting, about: "endpoint" },
  RPC_WRONG_CHAIN: { severity: "CRITICAL", about: "endpoint", ends: "state" },
  SCHEMA_TOO_NEW: { severity: "CRITICAL", about: "node", ends: "said" },
  SIGNER_BACK: relief,
  SLOW_SIGNING: ofNode,
  STABLE_BLOCKS_REPLACED: { ...failure, about: "chain" },
  STUCK_HOOK_DECISION: moment,
  STUCK_HOOK_FAILED: failure,
  TX_REFUSED: { ...lasting, severity: "ERROR" },
  TX_STUCK: { ...lasting, severity: "ERROR" },
  WEBHOOK_BEHIND: { ...lasting, about: "subscriber" },
  WEBHOOK_FAILING: { ...lasting, about: "subscriber" },
  WEBHOOK_PAUSED: { ...lasting, severity: "ERROR", about: "subscriber" },
  WEBHOOK_UNSERVED: { ...lasting, severity: "ERROR", about: "subscriber" },
} as const satisfies Readonly<Record<string, Row>>;

type Table = typeof TROUBLES;
type Having<Column extends string> = {
  [Code in keyof Table]: Table[Code] extends Readonly<Record<Column, unknown>> ? Code : never;
}[keyof Table];

export type TroubleCode = keyof Table;
/** Codes that the explanation of a transaction may name as its cause. */
export type CauseCode = Having<"helps">;
/** Codes that raise an alert. */
export type AlertCode = Having<"ends">;

const having = <Code extends TroubleCode>(column: keyof Row): readonly Code[] =>
  (Object.keys(TROUBLES) as Code[]).filter((code) => column in TROUBLES[code]);

export const TROUBLE_CODES = Object.keys(TROUBLES) as readonly TroubleCode[];
export const CAUSE_CODES = having<CauseCode>("helps");
export const ALERT_CODES = having<AlertCode>("ends").toSorted();

export function rowOf(code: TroubleCode): Row {
  return TROUBLES[code];
}

/**
 * Subject of an alert: a lane, a transaction of the lane, a chain, an endpoint of the chain, or a subscriber; if none
 * is set, the node.
 */
export interface AlertSubject {
  readonly code: AlertCode;
  readonly lane?: Lane;
  readonly txId?: string;
  readonly chainId?: number;
  /** Index of the endpoint in the configuration, from 0. */
  readonly endpoint?: number;
  /** Name of the subscriber. */
  readonly subscriber?: string;
}

/**
 * Identity of an alert: its code, and the lane, transaction, chain, endpoint, subscriber or node that it is about. The
 * text is not part of it, because numbers in it may change each time.
 */
export function alertKey({ code, lane, txId, chainId = lane?.chainId, endpoint, subscriber }: AlertSubject): string {
  const where = `${code} ${chainId ?? ""}:${lane?.signer ?? ""} ${txId ?? ""} ${endpoint ?? ""}`;
  return subscriber === undefined ? where : `${where} ${subscriber}`;
}

export type AlertSeverity = Severity;
