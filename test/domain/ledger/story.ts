import fc from "fast-check";
import type { Fence, Hash } from "../../../src/domain/lane.ts";
import {
  type Ledger,
  type LedgerTransaction,
  type LedgerWrite,
  type MessageWrite,
  Part,
  type TransitionItem,
  type WaitingIntent,
} from "../../../src/domain/ledger/index.ts";
import type { PreparedIntent, SignedAttempt } from "../../../src/domain/transaction/transaction.ts";
import {
  type Status,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
  transition,
} from "../../../src/domain/transaction/transitions.ts";

export const LANE = { chainId: 1, signer: `0x${"a".repeat(40)}` } as const;
export const FENCE: Fence = { lane: LANE, instanceId: "instance", token: 1 };

/** One random event. Its meaning follows from its numbers and from the lane's state at that time. */
export interface Happening {
  readonly kind: Exclude<LedgerWrite["kind"], MessageWrite["kind"]> | "intake" | "historyLost" | "time";
  readonly pick: number;
  readonly more: number;
  readonly amount: number;
  readonly flag: boolean;
}

const OFTEN = ["allocate", "allocate", "transition", "transition", "transition", "transition", "transition", "reserve"];
const SOMETIMES = ["release", "expire", "bind", "time", "intake", "settleIntake", "align", "findSkipped", "closeHoles"];
const RARELY = ["realign", "suspend", "unwatch", "reconcile", "historyLost"];
const KINDS = [...OFTEN, ...OFTEN, ...SOMETIMES, ...RARELY] as Happening["kind"][];

const PLAIN = { pick: fc.nat(1_000), more: fc.nat(1_000), amount: fc.nat(4), flag: fc.boolean() };
const happening: fc.Arbitrary<Happening> = fc.record({ kind: fc.constantFrom(...KINDS), ...PLAIN });

export const story = fc.array(happening, { minLength: 1, maxLength: 60, size: "max" });

/**
 * A random sequence in which transactions more often stop being watched for a reorg, and more often become old enough
 * to be removed.
 */
export const storyWithDepartures = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: happening },
    {
      weight: 1,
      arbitrary: fc.record({ ...PLAIN, kind: fc.constantFrom<Happening["kind"]>("unwatch", "time", "settleIntake") }),
    },
  ),
  { minLength: 1, maxLength: 60, size: "max" },
);

/** Turns random events into writes. Keeps the state outside the ledger, and generates ids. */
export class WriteMaker {
  now = new Date(1_700_000_000_000);
  intake: WaitingIntent[] = [];
  reconciled = true;
  private count = 0;

  /** The write that an event causes on this lane; null if the event does not write to the ledger. */
  make(ledger: Ledger, happening: Happening): LedgerWrite | null {
    const { kind, amount, flag } = happening;
    const base = { fence: FENCE } as const;
    const cursor = ledger.cursor ?? 0;
    switch (kind) {
      case "time":
        this.now = new Date(this.now.getTime() + amount * 10);
        return null;
      case "historyLost":
        this.reconciled = false;
        return null;
      case "intake": {
        const { txId, requestId, owner, fingerprint } = this.intent(happening);
        const row = { intakeId: ++this.count, txId, requestId, owner, fingerprint, acceptedAt: this.now };
        this.intake.push({ ...row, approval: null, unanswered: flag });
        return null;
      }
      case "allocate":
        return { ...base, kind, ...this.wanted(ledger, happening), items: this.items(ledger, happening) };
      case "transition":
        return { ...base, kind, items: this.steps(ledger, happening) };
      case "align":
      case "reconcile":
        return { ...base, kind, floor: Math.max(0, cursor + amount - 2) };
      case "realign":
        return { ...base, kind, floor: Math.max(0, cursor - amount), decision: DECISION };
      case "suspend":
        return { ...base, kind, suspended: flag, decision: DECISION };
      case "unwatch":
        return { ...base, kind, throughBlock: amount };
      case "settleIntake":
        return { ...base, kind, results: this.results(ledger, happening) };
      default:
        return this.aboutNonces(ledger, { ...happening, kind });
    }
  }

  /** Returns the ledger together with the rows that a store would load for each write. */
  loaded(ledger: Ledger): Ledger {
    const rows = this.intake.map((row) => [row.intakeId, row] as const);
    const unknown = Array.from({ length: this.count + 2 }, (_, id) => [id, null] as const);
    const intake = Part.of<number, WaitingIntent>("intake row", { kind: "named" }, [...unknown, ...rows]);
    return { ...ledger, reconciled: this.reconciled, mayHaveLost: true, intake };
  }

  /** Updates the generator's state outside the ledger after a write. */
  took({ reconciled, intake }: Ledger): void {
    this.reconciled = reconciled;
    this.intake = this.intake.filter(({ intakeId }) => intake.get(intakeId) !== null);
  }

  private aboutNonces(
    ledger: Ledger,
    happening: Happening & { kind: "reserve" | "release" | "expire" | "bind" | "closeHoles" | "findSkipped" },
  ): LedgerWrite {
    const { kind, pick, more, amount, flag } = happening;
    const base = { fence: FENCE } as const;
    const holes = [...ledger.holes.known()].map(([nonce]) => nonce);
    const reservationId = chosen([...ledger.reservations.known()], pick)?.[0] ?? "no such reservation";
    switch (kind) {
      case "reserve": {
        const named = { reservationId: `reservation-${++this.count}`, requestId: requestIdOf(happening) };
        return {
          ...base,
          kind,
          ...this.wanted(ledger, happening),
          ...named,
          ttlMs: amount * 10,
          owner: flag ? "ann" : null,
          most: 1 + (more % 6),
        };
      }
      case "release":
        return { ...base, kind, reservationId };
      case "expire":
        return { ...base, kind };
      case "closeHoles":
        return { ...base, kind, nonces: [chosen(holes, pick) ?? 0, amount] };
      case "findSkipped":
        return { ...base, kind, from: amount, below: amount + (more % 20) };
      case "bind": {
        const reserved = ledger.reservations.atHand(reservationId)?.nonce;
        const isBare = more % 3 === 0;
        const nonce = (isBare ? chosen(holes, pick) : reserved) ?? amount;
        const write = { ...base, kind, nonce, intent: this.intent(happening), reason: "bound" } as const;
        const attempt = this.attempt(1, flag);
        const reservation = { reservationId, ...becoming(happening) };
        return isBare ? { ...write, attempt } : { ...write, attempt, reservation };
      }
    }
  }

  private wanted(ledger: Ledger, { more, amount, flag }: Happening) {
    const floor = more % 3 === 0 ? null : Math.max(0, (ledger.cursor ?? 0) + amount - 3);
    return flag ? { floor, fill: [...[...ledger.holes.known()].map(([nonce]) => nonce), amount] } : { floor };
  }

  private items(ledger: Ledger, happening: Happening) {
    const { pick, more, amount } = happening;
    const known = chosen([...ledger.transactions.known()], pick)?.[0];
    return Array.from({ length: 1 + (amount % 3) }, (_, index) => {
      const intent = this.intent({ ...happening, pick: pick + index });
      if (more % 7 === 0 && known !== undefined) return { intent: { ...intent, txId: known }, mayExist: true };
      const waiting = more % 4 === 0 ? this.intake[index] : undefined;
      const named = more % 5 === 0 ? { exactNonce: (ledger.cursor ?? 0) + index + (more % 10 === 0 ? 1 : 0) } : {};
      if (waiting === undefined)
        return more % 23 === 0 ? { intent, intakeId: this.count } : { intent: { ...intent, ...named } };
      const { txId, requestId, fingerprint, intakeId } = waiting;
      return { intent: { ...intent, txId, requestId, fingerprint }, intakeId };
    });
  }

  private intent(happening: Happening): PreparedIntent {
    const fingerprint = `0x0${happening.more % 2}` as const;
    const payload = { to: null, data: "0x", value: 1n } as const;
    const named = { txId: `tx-${String(++this.count).padStart(4, "0")}`, requestId: requestIdOf(happening) };
    const intent = { ...named, owner: null, lane: LANE, payload, fingerprint, metadata: null };
    const validUntil = new Date(this.now.getTime() + happening.amount * 10);
    return { ...intent, gas: 21_000n, gasCost: 0n, ...(happening.more % 3 === 1 && { validUntil }) };
  }

  private attempt(ordinal: number, hasBytes: boolean): SignedAttempt {
    const txHash: Hash = `0x${String(++this.count).padStart(64, "0")}`;
    const fees = { type: "legacy", gasPrice: 1n } as const;
    return { ordinal, kind: "initial", txHash, gas: 21_000n, fees, rawTransaction: hasBytes ? "0x01" : null };
  }

  private results(ledger: Ledger, { pick, more, flag }: Happening) {
    const intakeId = chosen(this.intake, pick)?.intakeId ?? 0;
    const of = chosen([...ledger.transactions.known()], more)?.[0] ?? "tx";
    const event = more % 2 === 0 ? ("refuse" as const) : ("refuseReusedRequestId" as const);
    const problem = { code: "SUBMISSION_REJECTED", detail: "no" } as const;
    if (flag) return [{ intakeId, result: "alias", of } as const];
    return [{ intakeId, result: "refused", event, reason: "no", ...(more % 3 === 0 ? {} : { problem }) } as const];
  }

  /**
   * Generates one or two steps of a transaction. One step in eight is wrong on purpose: it starts from a state that the
   * transaction is not in.
   */
  private steps(ledger: Ledger, { pick, more, amount, flag }: Happening): readonly TransitionItem[] {
    const live = [...ledger.live.known()];
    // Sometimes choose the last transaction: an expiring transaction gives up its nonce only if no transaction has a
    // higher one.
    const tx = chosen(pick % 5 === 4 ? live.slice(-1) : live.slice(0, 4), pick)?.[1];
    const found = tx === undefined ? null : ledger.transactions.get(tx);
    if (found === null) return [this.step(ledger, NOBODY, { more, amount, flag })];
    const first = this.step(ledger, found, { more, amount, flag });
    const after = { ...found, state: first.to, subState: first.subState };
    const count = found.attemptCount + (first.attempt === undefined ? 0 : 1);
    const second = this.step(ledger, { ...after, attemptCount: count }, { more: more >> 1, amount, flag });
    return more % 5 === 0 ? [first, second] : [first];
  }

  private step(
    ledger: Ledger,
    tx: LedgerTransaction,
    { more, amount, flag }: Pick<Happening, "more" | "amount" | "flag">,
  ): TransitionItem {
    const legal = EVENTS.filter((event) => isLegal(event, tx));
    const onward = legal.filter((event) => ONWARD.includes(event));
    const likely = more % 8 === 0 ? EVENTS : more % 8 < 4 || onward.length === 0 ? legal : onward;
    const isLate = tx.state === "ALLOCATED" && tx.validUntil !== null && tx.validUntil <= this.now;
    const drawn = chosen(likely.length === 0 ? EVENTS : likely, more >> 3) as TransitionEvent;
    const event = isLate && flag ? "expire" : drawn;
    const from = isLegal(event, tx) ? tx : fromOf(event);
    const { state, subState } = transition(from, event);
    const rule: TransitionRule = TRANSITIONS[event];
    const isMistaken = more % 41 === 40;
    const ordinal = tx.attemptCount + (isMistaken ? 2 : 1);
    const isSigned = SIGNING.includes(event);
    const hole = chosen([...ledger.holes.known()], amount)?.[0];
    const attempt = isSigned ? { attempt: this.attempt(ordinal, true), claim: { ordinal } } : {};
    const txHash: Hash = `0x${"1".repeat(64)}`;
    const block = { blockNumber: amount, blockHash: txHash, transactionIndex: 0, status: "success" } as const;
    const receipt = { ...block, txHash, gasUsed: 1n, effectiveGasPrice: null, contractAddress: null };
    return {
      ...{ txId: tx.txId, event, from: from.state, to: isMistaken && flag ? "STUCK" : state, subState },
      reason: "because",
      ...attempt,
      ...(event === "shiftDown" ? { nonce: hole ?? amount } : {}),
      ...(event === "resubmit" && tx.attemptCount > 0 ? { claim: { ordinal: tx.attemptCount } } : {}),
      ...(event === "broadcast" && tx.attemptCount > 0 ? { accepted: { ordinal: tx.attemptCount } } : {}),
      ...(event === "mine" ? { receipt } : {}),
      ...(event === "withdraw" || event === "reorg" ? { receipt: null } : {}),
      ...(event === "submitFailed" ? { lastError: flag ? "refused" : null } : {}),
      ...(rule.completion === undefined ? {} : { completion: completionOf(event, txHash) }),
      ...(DECIDED.includes(event) && (event !== "cancel" || flag) ? { decision: BY_ME } : {}),
      ...(event === "cancel" && amount > 2 ? { expires: true } : {}),
      ...(event === "resubmit" && amount === 1 ? { sendRequested: true } : {}),
    };
  }
}

const DECISION = { action: "any", actor: "operator:me", reason: "because" };
const NOBODY: LedgerTransaction = {
  ...{
    txId: "nobody",
    requestId: null,
    owner: null,
    nonce: 0,
    live: true,
    lastEvent: "sign",
    steps: 2,
    attemptCount: 1,
    pinned: false,
  },
  ...{ state: "TRACKING", subState: "PENDING", acceptedOrdinal: null, fingerprint: "0x" },
  ...{ validUntil: null, heldSince: null, expiredAt: null },
  ...{ minedIn: null, attempts: undefined, details: undefined },
};
const EVENTS = (Object.keys(TRANSITIONS) as TransitionEvent[]).filter((event) => !fromNothing(event));
/** The events that an ordinary transaction passes through, including its possible outcomes. */
const ONWARD: readonly TransitionEvent[] = [
  ...([
    "sign",
    "broadcast",
    "mine",
    "confirm",
    "revert",
    "confirmReplacement",
    "confirmCancel",
    "confirmExpiry",
  ] as const),
  ...(["loseNonce", "adopt", "sendAnew", "unstick", "reorg"] as const),
];
const DECIDED: readonly TransitionEvent[] = ["decide", "hold", "unhold", "cancel"];
const BY_ME = { actor: "operator:me", audit: null };
const SIGNING: readonly TransitionEvent[] = ["sign", "reprice", "cancel", "replace", "placeholder"];

function fromNothing(event: TransitionEvent): boolean {
  return (TRANSITIONS[event].from as readonly (string | null)[]).includes(null);
}

function isLegal(event: TransitionEvent, { state, subState }: Status): boolean {
  try {
    transition({ state, subState }, event);
    return true;
  } catch {
    return false;
  }
}

function fromOf(event: TransitionEvent): Status {
  const { from, fromSubStates = [] }: TransitionRule = TRANSITIONS[event];
  const state = from[0] ?? "ALLOCATED";
  return { state, subState: fromSubStates[0] ?? (state === "TRACKING" ? "PENDING" : null) };
}

function completionOf(event: TransitionEvent, txHash: Hash): NonNullable<TransitionItem["completion"]> {
  const settled = event !== "stick" && event !== "reorg";
  const state = event === "reorg" ? "REORGED" : event === "stick" ? "STUCK" : "CONFIRMED";
  return { state, subState: null, settled, txHash };
}

function chosen<T>(from: readonly T[], pick: number): T | undefined {
  return from[pick % Math.max(1, from.length)];
}

/** Use only a few request ids, so that requests often have the same one. */
function requestIdOf({ pick }: Happening): string | null {
  return pick % 3 === 0 ? null : `request-${pick % 5}`;
}

function becoming({ more, flag }: Happening) {
  if (flag) return { becomes: "SUBMITTED" } as const;
  if (more % 2 === 0) return { becomes: "USED" } as const;
  return { becomes: "EXPIRED", ...(more % 5 === 0 ? {} : { mostPerHour: Math.floor(more / 2) % 3 }) } as const;
}
