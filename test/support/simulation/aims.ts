import type { Fence, Hex } from "../../../src/domain/lane.ts";
import type { AllocateWrite, BindWrite, LedgerWrite, TransitionItem } from "../../../src/domain/ledger/index.ts";
import {
  leavesFrom,
  type Status,
  TRANSITIONS,
  type TransitionRule,
  transition,
} from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { DatabaseState, TransactionRow } from "../../doubles/memory-store/state.ts";

/** Steps that a transaction may take in some state, and that another write has taken before. */
type Steps = readonly TransitionItem[];

/** Remembered parts of other writes. */
export interface Known {
  readonly steps: Steps;
  readonly items: AllocateWrite["items"];
  readonly binds: readonly BindWrite[];
  readonly decisions: readonly NonNullable<TransitionItem["decision"]>[];
}

/**
 * Writes about what a lane holds at this moment, which no owner should make: another step of any of its transactions, a
 * transaction at any of its free nonces, and nonces that are looked for although somebody has them.
 */
export class Aims {
  private readonly dice: Dice;
  private made = 0;

  constructor(dice: Dice) {
    this.dice = dice;
  }

  /** Null if the lane holds nothing of the kind that was drawn. */
  write(fence: Fence, state: DatabaseState, known: Known): LedgerWrite | null {
    const { dice } = this;
    const cursor = state.lane(fence.lane)?.cursor ?? 0;
    const near = () => Math.max(0, cursor + dice.int(-6, 1));
    const holes = state
      .holes()
      .filter(({ lane }) => lane.signer === fence.lane.signer)
      .map(({ nonce }) => nonce);
    const kind = dice.pick([
      "step",
      "step",
      "step",
      "move",
      "bind",
      "bind",
      "allocate",
      "find",
      "close",
      "realign",
    ] as const);
    const rows = [...state.transactions.values()].filter(({ lane, live }) => live && lane.signer === fence.lane.signer);
    if (kind === "find") return { kind: "findSkipped", fence, from: near(), below: near() };
    if (kind === "close") return { kind: "closeHoles", fence, nonces: [near()] };
    if (kind === "realign") return { kind: "realign", fence, floor: near() };
    if (kind === "allocate") return this.allocate(fence, known.items, { holes, near });
    if (kind === "bind") return this.bind(fence, known, { holes, near, state });
    if (rows.length === 0) return null;
    if (kind === "step") return this.step(fence, dice.pick(rows), known);
    const named = rows.filter(({ pinned }) => pinned);
    const { txId, state: from, subState } = dice.pick(named.length > 0 && dice.chance(0.5) ? named : rows);
    const nonce = holes.length > 0 && dice.chance(0.7) ? dice.pick(holes) : near();
    const item = { txId, event: "shiftDown", from, to: from, subState, nonce, reason: "" } as const;
    return { kind: "transition", fence, items: [item] };
  }

  private step(fence: Fence, tx: TransactionRow, { steps, decisions }: Known): LedgerWrite | null {
    const { dice } = this;
    const status: Status = { state: tx.state, subState: tx.subState };
    const possible = steps.filter(({ event }) => isPossible(status, TRANSITIONS[event]));
    if (possible.length === 0) return null;
    const { attempt, claim, ...step } = dice.pick(possible);
    const { state: to, subState } = transition(status, step.event);
    const again =
      attempt === undefined || dice.chance(0.4) ? {} : { attempt: { ...attempt, ordinal: tx.attemptCount + 1 } };
    const claims = claim === undefined || dice.chance(0.4) ? {} : { claim };
    const decided = decisions.length > 0 && dice.chance(0.2) ? { decision: dice.pick(decisions) } : {};
    const changed = { ...again, ...claims, ...decided };
    return { kind: "transition", fence, items: [{ ...step, ...changed, txId: tx.txId, from: tx.state, to, subState }] };
  }

  /** A nonce for a new request, from a free one below or above what the chain has proved. */
  private allocate(
    fence: Fence,
    items: AllocateWrite["items"],
    { holes, near }: { holes: readonly number[]; near: () => number },
  ): LedgerWrite | null {
    const { dice } = this;
    if (items.length === 0) return null;
    const { intent } = dice.pick(items);
    const { exactNonce: _, ...fresh } = { ...intent, txId: this.idLike(intent.txId), requestId: null };
    const floor = dice.chance(0.3) ? null : near();
    return { kind: "allocate", fence, floor, fill: holes.slice(0, 3), items: [{ intent: fresh }] };
  }

  private idLike(txId: string): string {
    return `${txId.slice(0, -6)}${String(++this.made).padStart(6, "0")}`;
  }

  /** A transaction at a free nonce, under a decision that may be carried out already, or under a reservation. */
  private bind(
    fence: Fence,
    { binds, decisions }: Known,
    { holes, near, state }: { holes: readonly number[]; near: () => number; state: DatabaseState },
  ): LedgerWrite | null {
    const { dice } = this;
    if (binds.length === 0) return null;
    const { chosen: _, reservation: before, ...bind } = dice.pick(binds);
    const txId = this.idLike(bind.intent.txId);
    const intent = { ...bind.intent, txId, requestId: null, fingerprint: `0x${txId}` as Hex };
    const decided = decisions.length > 0 && dice.chance(0.5) ? { decision: dice.pick(decisions) } : {};
    const own = state.reservations().filter(({ lane }) => lane.signer === fence.lane.signer);
    const reserved = own.length > 0 ? dice.pick(own) : null;
    const reservationId = reserved?.reservationId ?? before?.reservationId;
    const free = holes.length > 0 && dice.chance(0.8) ? dice.pick(holes) : near();
    const nonce = reserved !== null && dice.chance(0.5) ? reserved.nonce : free;
    const becomes = dice.pick(["SUBMITTED", "EXPIRED", null] as const);
    const under = reservationId === undefined || becomes === null ? null : { reservationId, becomes };
    const reservation = under === null ? {} : { reservation: this.limited(under) };
    return { ...bind, ...decided, ...reservation, fence, nonce, intent };
  }

  private limited(reservation: { readonly reservationId: string; readonly becomes: "SUBMITTED" | "EXPIRED" }) {
    const { reservationId, becomes } = reservation;
    if (becomes === "SUBMITTED") return { reservationId, becomes };
    return { reservationId, becomes, mostPerHour: this.dice.int(0, 2) };
  }
}

function isPossible(status: Status, rule: TransitionRule): boolean {
  return rule.from.includes(status.state) && leavesFrom(rule, status);
}
