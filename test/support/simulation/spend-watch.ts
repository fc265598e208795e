import type { LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { type Charge, standing } from "../../../src/domain/policy/charges.ts";
import { type Amounts, hourOf, NOTHING, plus, type Use } from "../../../src/domain/policy/use.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import type { LaneRow, TransactionRow } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, type World } from "../world.ts";
import { COSTLY, COSTS, SHOP, SHOP_WAITS_MS, type SpentPayload, VALUES, verdictOf } from "./spend-kinds.ts";

const DAY_MS = 86_400_000;
const CHANGING: readonly LedgerWrite["kind"][] = ["allocate", "transition", "bind", "settleIntake", "expire"];
/** First part of the request ids of spenders. */
export const SPENT = "spend ";

/**
 * Checks at every commit that the policies allow what gets a nonce, and at the end that what is counted of the limits is
 * what was paid.
 */
export class SpendWatch {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  /** Since when the shop's receivers are certainly forbidden; null if they may be allowed. */
  closedSince: number | null = null;
  /** True while the policies in force are certainly ones that no node can read. */
  isUnreadable = false;
  private readonly world: World;
  private readonly seen = new Set<string>();
  /** Requests that waited for an approval. */
  private readonly waited = new Set<string>();
  /** Transactions with a step under policies that nobody can read: nothing is counted of it, nor given back. */
  private readonly uncorrected = new Set<string>();

  constructor(world: World) {
    this.world = world;
    world.database.state.watchers.push((applied) => this.committed(applied));
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  private committed(applied: readonly Applied[]): void {
    for (const { write, policies } of applied)
      if (write.kind === "transition" && (policies?.unreadable.length ?? 0) > 0)
        for (const { txId } of write.items) this.uncorrected.add(txId);
    if (!applied.some(({ write }) => CHANGING.includes(write.kind))) return;
    for (const { intent, approval, createdAt } of this.world.database.state.intake.values()) {
      if (intent.owner !== SHOP || approval === null || this.waited.has(intent.txId)) continue;
      this.waited.add(intent.txId);
      const ms = approval.expiresAt.getTime() - createdAt.getTime();
      if (ms !== SHOP_WAITS_MS) this.violations.push(`${intent.txId} waits ${ms} ms for its approval`);
    }
    for (const row of this.world.database.state.transactions.values()) {
      if (row.nonce === null || isSettled(row.state)) continue;
      const charged = this.chargedFor(row);
      const dearest = row.attempts.filter(({ kind }) => kind !== "external").map(({ gas, fees }) => gas * feeCap(fees));
      const most = dearest.reduce((a, b) => (a > b ? a : b), 0n);
      const first = (this.chargesOf(row)[0]?.cost ?? 0n) - row.payload.value;
      const isUnchanged = row.attempts.length > 0 && row.change === undefined;
      const isOwn = isUnchanged && row.attempts.every(({ kind }) => kind === "initial" || kind === "reprice");
      if (charged !== null && isOwn && charged.cost > row.payload.value + (first > most ? first : most))
        this.violations.push(`${row.txId} may cost ${most} beside its value, and ${charged.cost} is counted`);
      if (charged !== null && charged.cost < most)
        this.violations.push(`${row.txId} may cost ${most}, and ${charged.cost} is counted`);
      if (row.requestId?.startsWith(SPENT) !== true || this.seen.has(row.txId)) continue;
      this.seen.add(row.txId);
      this.allocated(row, charged);
    }
  }

  /** Everything that was counted, compared with what was paid. Call this at rest. */
  settled(): readonly string[] {
    const { state } = this.world.database;
    const rows = this.world.rows().filter((row) => this.chargedFor(row) !== null && !this.uncorrected.has(row.txId));
    const wrong = rows.flatMap((row) => {
      const misplaced = this.misplaced(row);
      if (misplaced !== null) return `${row.txId} ${misplaced}`;
      const [counted, paid] = [this.chargedFor(row) as Amounts, this.paidFor(row)];
      if (counted.value === paid.value && counted.cost === paid.cost) return [];
      return `${row.txId} paid ${paid.value}/${paid.cost}, and ${counted.value}/${counted.cost} is counted`;
    });
    const lanes = [...state.lanes.values()];
    const ofSigners = lanes.flatMap(({ lane, ledger: { guard } }) =>
      this.compared(`signer ${lane.signer}`, guard?.use, (row) => row.lane.signer === lane.signer),
    );
    const keys = state.keyUse.get(CHAIN_ID)?.every() ?? [];
    const ofKeys = keys.flatMap(([key, use]) => this.compared(`key ${key}`, use, ({ owner }) => owner === key));
    const counted = new Set(keys.map(([key]) => key));
    const uncounted = rows.flatMap(({ owner, txId }) =>
      owner === null || counted.has(owner) ? [] : [`${txId} of ${owner}`],
    );
    return [...wrong, ...ofSigners, ...ofKeys, ...uncounted.map((what) => `${what} is counted for no key`)];
  }

  /** What was given back is of the latest hours, and never more than an hour had; null if so. */
  private misplaced(row: TransactionRow): string | null {
    const charges = this.chargesOf(row);
    const idle = charges.some(({ value, cost, moves, settles }, place) => {
      return value === 0n && cost === 0n && !settles && moves === charges[place - 1]?.moves;
    });
    if (idle) return "is counted once more for nothing";
    const hours = [...new Set(charges.map(({ hourMs }) => hourMs))].sort((a, b) => b - a);
    for (const amount of ["value", "cost"] as const) {
      const sum = (hour: number, isIn: (settles: boolean) => boolean) =>
        charges.reduce((all, each) => (each.hourMs === hour && isIn(each.settles) ? all + each[amount] : all), 0n);
      const left = hours.map((hour) => sum(hour, () => true));
      const reduced = hours.map((hour) => sum(hour, (settles) => settles) < 0n);
      if (left.some((each) => each < 0n)) return `gives back more ${amount} of an hour than it had`;
      const earliest = reduced.lastIndexOf(true);
      if (left.slice(0, Math.max(0, earliest)).some((each) => each > 0n))
        return `gives ${amount} back of an early hour first`;
    }
    return null;
  }

  private allocated(row: TransactionRow, charged: Amounts | null): void {
    const { lane, owner, payload, gas, history } = row;
    const at = this.world.clock.now();
    const asked: SpentPayload = { ...payload, gas: gas ?? payload.gas ?? 0n };
    const verdict = verdictOf({ signer: lane.signer, owner: owner ?? "", payload: asked }, at);
    const complain = (why: string) =>
      this.violations.push(`${row.requestId} of ${owner} got nonce ${row.nonce} ${why}`);
    if (verdict === "never") complain("although a policy forbids it");
    const isApproved = history.some(({ event }) => event === "approve");
    if (verdict === "approval" && !isApproved) complain("although nobody approved it");
    if (owner === SHOP && this.closedSince !== null) complain("although the new policies forbid it");
    if (this.isUnreadable) complain("although nobody can read the policies");
    this.checkWindows(owner, complain);
    if (charged !== null && charged.value !== payload.value) complain(`and ${charged.value} is counted`);
    this.count(`spent by ${owner}`);
  }

  private checkWindows(owner: string | null, complain: (why: string) => void): void {
    const use = owner === null ? null : this.world.database.state.keyUse.get(CHAIN_ID)?.get(owner);
    if (use == null) return;
    if (owner === SHOP && (use.hour.value > VALUES.perHour || use.day.value > VALUES.perDay))
      complain("above its limits");
    if (owner === COSTLY && (use.hour.cost > COSTS.perHour || use.day.cost > COSTS.perDay))
      complain("above its limits");
  }

  private chargedFor(row: TransactionRow): Amounts | null {
    const charges = this.chargesOf(row);
    return charges.length === 0 ? null : standing(charges);
  }

  private chargesOf({ lane, txId }: TransactionRow): readonly Charge[] {
    return (this.world.database.state.lane(lane) as LaneRow).ledger.guard?.charges.get(txId) ?? [];
  }

  /** What the mined transaction paid, if it is ours. */
  private paidFor({ receipt, attempts }: TransactionRow): Amounts {
    const own = attempts.find(({ txHash, foreign }) => txHash === receipt?.txHash && foreign !== true);
    const hash = own?.txHash ?? null;
    const mined = hash === null ? null : this.world.chain.receipt(hash);
    const sent = hash === null ? null : this.world.chain.transaction(hash);
    if (mined === null || sent === null) return NOTHING;
    // Only the hash was reported, so the value is not known.
    const isKnown = mined.status === "success" && own?.kind !== "external";
    const value = isKnown ? sent.value : 0n;
    return { value, cost: value + mined.gasUsed * (mined.effectiveGasPrice ?? 0n) + (mined.besideGas ?? 0n) };
  }

  /** The use of a signer or a key is the sum of its charges. */
  private compared(name: string, use: Use | undefined, isIts: (row: TransactionRow) => boolean): readonly string[] {
    if (use === undefined) return [];
    const charges = this.world
      .rows()
      .filter(isIts)
      .flatMap(({ lane, txId }) => this.world.database.state.lane(lane)?.ledger.guard?.charges.get(txId) ?? []);
    const sum = (isIn: (hourMs: number) => boolean) =>
      charges.filter(({ hourMs }) => isIn(hourMs)).reduce<Amounts>(plus, NOTHING);
    const hour = sum((hourMs) => hourOf(hourMs) === use.hourMs);
    const day = sum((hourMs) => Math.floor(hourMs / DAY_MS) === Math.floor(use.hourMs / DAY_MS));
    const isSame = (a: Amounts, b: Amounts) => a.value === b.value && a.cost === b.cost;
    if (isSame(hour, use.hour) && isSame(day, use.day)) return [];
    return [`${name} counts ${use.hour.cost} and ${use.day.cost}, and its charges are ${hour.cost} and ${day.cost}`];
  }
}
