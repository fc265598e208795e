import { defined } from "../../domain/defined.ts";
import { invalid } from "../../domain/errors.ts";
import type { Hex } from "../../domain/lane.ts";
import type { FeeWishes } from "../../domain/transaction/fees.ts";
import { fingerprintOfJson } from "../../domain/transaction/fingerprint.ts";
import type { Payload } from "../../domain/transaction/transaction.ts";
import type { Codec } from "../../ports/codec.ts";
import type { ActionKey, Decision } from "../../ports/lane-store.ts";
import { STUCK_ACTIONS, type StuckAction } from "../../ports/stuck-hook.ts";
import type { AlertSeverity } from "../../ports/telemetry.ts";
import type { LaneActionRequest, TransactionAction, TransactionActionRequest } from "../api.ts";
import {
  asObject,
  type Fields,
  given,
  normalisePayload,
  parseAllowNoCode,
  parseFees,
  parseHex,
  refuseUnknownKeys,
} from "./fields.ts";
import { parseMetadata } from "./normalise.ts";

/** A validated operator action on a transaction: who, why, and its parameters. */
export interface Instruction {
  readonly action: TransactionAction;
  readonly reason: string;
  readonly decision: Decision;
  /**
   * Id of the action, stored in the audit record. It stays the same when nodes retry or forward the action, so that
   * they recognise what was already carried out. A caller's own repeat gets a new id, and is recognised only by its
   * idempotency key.
   */
  readonly decisionId: string;
  readonly fees: FeeWishes;
  readonly payload?: Payload;
  /** True if the new `payload` may be sent to an address without code. */
  readonly allowNoCode: boolean;
  /** For `resubmit`: the transaction may be sent to public endpoints. */
  readonly disclose: boolean;
  /** For `resolve`: the decision to carry out instead of calling the hook. */
  readonly verdict?: Verdict;
}

const AFTERWARDS = ["track", "stuck", "manual"] as const;

/** The decision of an operator or the hook about a stuck transaction. */
export interface Verdict {
  readonly action: StuckAction;
  readonly payload?: Payload;
  readonly allowNoCode: boolean;
  readonly fees: FeeWishes;
  readonly rawTransaction?: Hex;
  /** For PLACEHOLDER: the nonce to fill. The decision is refused if it would now fill another nonce. */
  readonly nonce?: number;
  /** State of the transaction afterwards; if absent, it stays unchanged. */
  readonly afterwards?: (typeof AFTERWARDS)[number];
}

const COMMON = ["reason", "audit"];
const FEES = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "type"];
const KEYS: Readonly<Record<TransactionAction, readonly string[]>> = {
  approve: COMMON,
  reject: COMMON,
  suspend: COMMON,
  resume: COMMON,
  resubmit: [...COMMON, "disclose"],
  reprice: [...COMMON, ...FEES],
  cancel: [...COMMON, ...FEES],
  replace: [...COMMON, "payload", "allowNoCode"],
  resolve: [...COMMON, "action", "payload", "allowNoCode", "fees", "rawTransaction", "then", "nonce"],
};
const MAX_REASON_CHARACTERS = 1_000;

export function parseAction(codec: Codec, received: TransactionActionRequest, decisionId: string): Instruction {
  const { txId, action, request, actor, idempotencyKey } = received;
  const fields = asObject(request, "");
  refuseUnknownKeys(fields, KEYS[action], "");
  const reason = parseReason(fields.reason);
  const verdict = action === "resolve" && fields.action !== undefined ? parseVerdict(codec, fields) : undefined;
  if (action === "resolve" && verdict === undefined) refuseUnknownKeys(fields, COMMON, "");
  const payload = action === "replace" ? normalisePayload(codec, fields.payload) : undefined;
  const allowNoCode = parseAllowNoCode(fields.allowNoCode);
  const disclose = parseDisclose(fields.disclose);
  const fees = payload === undefined ? parseFees(action === "resolve" ? {} : fields, "") : feesIn(payload);
  const audit = { ...parseMetadata(fields.audit, "audit"), action: verdict?.action ?? action, decisionId };
  const actionKey = parseActionKey(idempotencyKey, { subject: txId.toLowerCase(), action, request });
  const kept = actionKey === undefined ? audit : { ...audit, idempotencyKey: actionKey.key };
  const decision = defined({ actor, audit: kept, actionKey });
  return defined({ action, reason, decision, decisionId, fees, payload, allowNoCode, disclose, verdict });
}

function parseDisclose(value: unknown) {
  if (value === undefined || typeof value === "boolean") return value ?? false;
  throw invalid("disclose", "must be true or false");
}

export interface LaneInstruction {
  readonly reason: string;
  readonly chainId: unknown;
  /** For `realign`: the value to which the lane's next nonce is lowered. */
  readonly nonce: number | null;
  readonly actionKey?: ActionKey;
}

export function parseLaneAction(given: LaneActionRequest): LaneInstruction {
  const fields = asObject(given.request, "");
  refuseUnknownKeys(fields, ["reason", "chainId", ...(given.action === "realign" ? ["nonce"] : [])], "");
  const { chainId, ...request } = fields;
  const read = { reason: parseReason(fields.reason), chainId, nonce: parseNonce(fields.nonce) };
  // `chainId` is not part of the fingerprint that is stored with the idempotency key: the lane already names its chain,
  // and a request to a node with one chain may omit it.
  const actionKey = parseActionKey(given.idempotencyKey, { subject: "", action: given.action, request });
  return actionKey === undefined ? read : { ...read, actionKey };
}

function parseNonce(value: unknown) {
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid("nonce", "must be a whole number from 0 on");
}

/** Parses the fields of a decision; they are the same whether an operator or a hook decides. */
export function parseVerdict(codec: Codec, fields: Fields): Verdict {
  const action = parseWord(STUCK_ACTIONS, fields.action, "action");
  const wished = fields.fees === undefined || fields.fees === null ? {} : asObject(fields.fees, "fees");
  refuseUnknownKeys(wished, FEES, "fees");
  for (const name of ["payload", "allowNoCode", "rawTransaction"]) {
    if (fields[name] !== undefined && action !== "REPLACE")
      throw invalid(name, `cannot be combined with the action ${action}`);
  }
  if (fields.nonce !== undefined && action !== "PLACEHOLDER")
    throw invalid("nonce", `cannot be combined with the action ${action}`);
  const payload = given(fields.payload, (value) => normalisePayload(codec, value));
  return defined({
    action,
    fees: { ...(payload === undefined ? {} : feesIn(payload)), ...parseFees(wished, "fees") },
    afterwards: given(fields.then, (value) => parseWord(AFTERWARDS, value, "then")),
    payload,
    nonce: parseNonce(fields.nonce) ?? undefined,
    allowNoCode: parseAllowNoCode(fields.allowNoCode),
    rawTransaction: given(fields.rawTransaction, (value) => parseHex(value, "rawTransaction")),
  });
}

export function parseReason(value: unknown): string {
  if (typeof value !== "string" || value.trim() === "")
    throw invalid("reason", "is required: the audit log records why you act");
  if (value.length > MAX_REASON_CHARACTERS) {
    throw invalid("reason", `must have at most ${MAX_REASON_CHARACTERS} characters`);
  }
  if (/[\p{Cs}\0]/u.test(value)) throw invalid("reason", "must not contain NUL or unpaired surrogates");
  return value;
}

export function parseSeverity(value: unknown): AlertSeverity {
  return parseWord(["WARNING", "ERROR", "CRITICAL"], value, "severity");
}

function parseWord<const T extends readonly string[]>(words: T, value: unknown, path: string): T[number] {
  const word = words.find((each) => each === value);
  if (word === undefined) throw invalid(path, `must be one of ${words.join(", ")}`);
  return word;
}

function feesIn({ type, gasPrice, maxFeePerGas, maxPriorityFeePerGas }: Payload) {
  return defined({ type, gasPrice, maxFeePerGas, maxPriorityFeePerGas });
}

/** Form of an idempotency key: printable ASCII, as an HTTP header can carry it. */
const KEY = /^[ -~]{1,255}$/;

type Keyed = Pick<ActionKey, "subject"> & { readonly action: string; readonly request: unknown };

/**
 * Parses an idempotency key. Returns undefined if there is none; then a repeat counts as a new action. `subject`: the
 * id that the action is about; empty if it is about the whole lane.
 */
export function parseActionKey(key: unknown, { subject, action, request }: Keyed): ActionKey | undefined {
  if (key === undefined || key === null) return undefined;
  if (typeof key !== "string" || !KEY.test(key)) {
    throw invalid("idempotency-key", "must have 1 to 255 characters of printable ASCII");
  }
  return { subject, key, fingerprint: fingerprintOfJson([action, request]) };
}
