/**
 * The transition table: the only definition of which state may follow which, and which completion each step appends to
 * the feed. The database mirrors it (CHECK constraints on transaction and history); a test compares the two in both
 * directions.
 */

export const STATES = ["CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"] as const;
export type State = (typeof STATES)[number];

export const SUB_STATES = {
  CREATED: ["AWAITING_APPROVAL"],
  ALLOCATED: [],
  TRACKING: ["PENDING", "BROADCAST", "STALE", "MINED", "UNKNOWN_SUBMIT_RESULT"],
  CONFIRMED: ["REPLACED"],
  FAILED_FINAL: ["REVERTED", "CANCELLED", "NONCE_CONSUMED_EXTERNALLY", "REJECTED", "REQUEST_ID_REUSED", "EXPIRED"],
  STUCK: [],
} as const satisfies Record<State, readonly string[]>;
export type SubState = (typeof SUB_STATES)[State][number];

/**
 * States in which `subState` may be null. In the others it is always set: in TRACKING to the progress, in FAILED_FINAL
 * to the cause.
 */
export const BARE_STATES: readonly State[] = ["CREATED", "ALLOCATED", "CONFIRMED", "STUCK"];

export interface Status {
  readonly state: State;
  readonly subState: SubState | null;
}

/** States that the completion feed reports. REORGED is only the state of a completion, never of a transaction. */
export const COMPLETION_STATES = ["CONFIRMED", "FAILED_FINAL", "STUCK", "REORGED"] as const;
export type CompletionState = (typeof COMPLETION_STATES)[number];

export interface TransitionRule {
  /** States from which the transition is allowed; `null` means "no row yet". */
  readonly from: readonly (State | null)[];
  /** Sub-states from which the transition is allowed; null means "no sub-state". Absent: all sub-states of `from`. */
  readonly fromSubStates?: readonly (SubState | null)[];
  readonly to: Status | "same";
  readonly completion?: { readonly state: CompletionState; readonly settled: boolean };
}

/** States of an intent without a nonce that needs no approval or is already approved. */
const unbound = { from: [null, "CREATED"], fromSubStates: [null] } as const;
const awaiting = { from: ["CREATED"], fromSubStates: ["AWAITING_APPROVAL"] } as const;
const open = ["TRACKING", "STUCK"] as const;
/** Sub-states without a receipt, in which the transaction may get another payload at its nonce. */
const unmined = ["PENDING", "BROADCAST", "STALE"] as const;
const unminedOrUnknown = [...unmined, "UNKNOWN_SUBMIT_RESULT"] as const;
const unseen = { from: ["TRACKING"], fromSubStates: ["UNKNOWN_SUBMIT_RESULT"] } as const;
const mined = { from: ["TRACKING"], fromSubStates: ["MINED"] } as const;
const pending = { state: "TRACKING", subState: "PENDING" } as const;
const broadcast = { state: "TRACKING", subState: "BROADCAST" } as const;
const signedAgain = { from: open, fromSubStates: unminedOrUnknown, to: pending } as const;

/** The state of a transaction after its outcome, and the completion that is appended to the feed. */
function settledAs<S extends "CONFIRMED" | "FAILED_FINAL", U extends SubState | null>(state: S, subState: U) {
  return { to: { state, subState }, completion: { state, settled: true } } as const;
}

export const TRANSITIONS = {
  // Transitions of create and allocation
  accept: { from: [null], to: { state: "CREATED", subState: null } },
  allocate: { ...unbound, to: { state: "ALLOCATED", subState: null } },
  refuse: { ...unbound, ...settledAs("FAILED_FINAL", "REJECTED") },
  refuseReusedRequestId: { ...unbound, ...settledAs("FAILED_FINAL", "REQUEST_ID_REUSED") },
  // Transitions of approval: a policy requires a second API key before the intent gets a nonce
  await: { from: ["CREATED"], fromSubStates: [null], to: { state: "CREATED", subState: "AWAITING_APPROVAL" } },
  approve: { ...awaiting, to: { state: "CREATED", subState: null } },
  reject: { ...awaiting, ...settledAs("FAILED_FINAL", "REJECTED") },
  /**
   * The intent was not approved in time, or its `validUntil` passed before anything was signed. The transaction has no
   * nonce from then on.
   */
  expire: { from: ["CREATED", "ALLOCATED"], ...settledAs("FAILED_FINAL", "EXPIRED") },
  /** The intent was cancelled before or after approval: it has no nonce, and nothing was ever signed. */
  callOff: { from: ["CREATED"], ...settledAs("FAILED_FINAL", "CANCELLED") },
  // Transitions of signing and broadcast
  sign: { from: ["ALLOCATED"], to: pending },
  broadcast: { from: ["TRACKING"], fromSubStates: unmined, to: broadcast },
  resubmit: { from: open, to: "same" },
  submitFailed: { from: open, to: "same" },
  // Transitions of retries and replacements
  stale: { from: ["TRACKING"], fromSubStates: ["PENDING", "BROADCAST"], to: { state: "TRACKING", subState: "STALE" } },
  reprice: { from: open, fromSubStates: unmined, to: pending },
  cancel: signedAgain,
  replace: signedAgain,
  placeholder: signedAgain,
  /** Replaces the payload of a transaction that is not signed yet: the new payload will be signed at its nonce. */
  amend: { from: ["ALLOCATED"], to: "same" },
  /**
   * A decision that changes no state, by an operator, hook or policy. It is recorded so that the history names who
   * decided.
   */
  decide: { from: ["ALLOCATED", "TRACKING", "STUCK"], to: "same" },
  /** An operator puts the transaction on hold, or releases it. */
  hold: { from: ["CREATED", "ALLOCATED", "TRACKING", "STUCK"], to: "same" },
  unhold: { from: ["CREATED", "ALLOCATED", "TRACKING", "STUCK"], to: "same" },
  stick: {
    from: ["TRACKING"],
    fromSubStates: unminedOrUnknown,
    to: { state: "STUCK", subState: null },
    completion: { state: "STUCK", settled: false },
  },
  unstick: { from: ["STUCK"], to: pending },
  // Transitions of nonce gaps: transactions that move down, or give up their nonce
  shiftDown: { from: ["ALLOCATED"], to: "same" },
  giveUp: { from: ["ALLOCATED"], ...settledAs("FAILED_FINAL", "REJECTED") },
  // Transitions after an RPC node that signs by itself did not respond: there is no hash to search for
  loseSight: {
    from: ["TRACKING"],
    fromSubStates: unmined,
    to: { state: "TRACKING", subState: "UNKNOWN_SUBMIT_RESULT" },
  },
  adopt: { ...unseen, to: broadcast },
  sendAnew: { ...unseen, to: pending },
  // Transitions of receipt and finality
  mine: { from: open, to: { state: "TRACKING", subState: "MINED" } },
  withdraw: { ...mined, to: pending },
  confirm: { ...mined, ...settledAs("CONFIRMED", null) },
  revert: { ...mined, ...settledAs("FAILED_FINAL", "REVERTED") },
  confirmReplacement: { ...mined, ...settledAs("CONFIRMED", "REPLACED") },
  confirmCancel: { ...mined, ...settledAs("FAILED_FINAL", "CANCELLED") },
  /** A cancel that was made because `validUntil` had passed is mined and final. */
  confirmExpiry: { ...mined, ...settledAs("FAILED_FINAL", "EXPIRED") },
  /** Another program's transaction is mined at the nonce, with enough confirmations. */
  loseNonce: { ...mined, ...settledAs("FAILED_FINAL", "NONCE_CONSUMED_EXTERNALLY") },
  reorg: { from: ["CONFIRMED", "FAILED_FINAL"], to: pending, completion: { state: "REORGED", settled: false } },
} as const satisfies Record<string, TransitionRule>;

export type TransitionEvent = keyof typeof TRANSITIONS;

export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
  constructor(event: TransitionEvent, from: Status | null) {
    super(`${event} is not legal from ${from === null ? "nothing" : `${from.state}/${from.subState ?? "-"}`}`);
  }
}

/** The status that follows `from` after `event`; throws if the table has no such transition. */
export function transition(from: Status | null, event: TransitionEvent): Status {
  const rule: TransitionRule = TRANSITIONS[event];
  const fromState = from?.state ?? null;
  if (!rule.from.includes(fromState) || !leavesFrom(rule, from)) throw new IllegalTransition(event, from);
  if (rule.to !== "same") return rule.to;
  if (from === null) throw new IllegalTransition(event, from);
  return from;
}

/** True if the rule applies to this sub-state. */
export function leavesFrom({ from: states, fromSubStates }: TransitionRule, from: Status | null): boolean {
  if (fromSubStates === undefined || from === null || !states.includes(from.state)) return true;
  const own: readonly SubState[] = SUB_STATES[from.state];
  const isNarrowed = fromSubStates.some((each) => each === null || own.includes(each));
  return !isNarrowed || fromSubStates.some((each) => each === from.subState);
}

/** True for states that the feed reports: the final ones and STUCK. */
export function isFinal(state: State): boolean {
  return state === "STUCK" || isSettled(state);
}

/**
 * True for states that are final for the caller: CONFIRMED and FAILED_FINAL. STUCK is final for the feed only and may
 * be left again.
 */
export function isSettled(state: State): boolean {
  return state === "CONFIRMED" || state === "FAILED_FINAL";
}
