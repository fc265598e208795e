/**
 * Collects the writes of a commit. Each write is accepted or refused by its lane's ledger (domain/ledger). The changes
 * are collected here until statements are made of them (commands.ts). Several changes of one row are written once, as
 * their sum.
 */
import { type Confirmation, reviseConfirmations } from "../../../domain/chain/confirmations.ts";
import type { FigureRow } from "../../../domain/figures/figures.ts";
import type { SpendRow } from "../../../domain/figures/spend.ts";
import { type Fence, type Hash, type LaneKey, laneKey } from "../../../domain/lane.ts";
import {
  apply,
  type Change,
  type Guard,
  type Ledger,
  type Moment,
  type Moved,
  stepsOf,
  type WaitingIntent,
} from "../../../domain/ledger/index.ts";
import type { Hole } from "../../../domain/nonces/holes.ts";
import type { Policies } from "../../../domain/policy/policy.ts";
import type { State } from "../../../domain/transaction/transitions.ts";
import type { ConfirmationsWrite, LaneChanges, LaneWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import { Loader } from "./load.ts";
import type { Found } from "./lookup.ts";
import { type Before, Move } from "./move.ts";
import type { Needs } from "./needs.ts";
import { PoolRows } from "./pool-rows.ts";

/** A locked lane, changed by the writes of the commit that were decided so far. */
export class LanePlan {
  readonly key: LaneKey;
  readonly row: LockedLaneRow;
  ledger: Ledger;
  /**
   * Changes of the lane's counters of confirmed and failed transactions; negative if outcomes were withdrawn after a
   * reorg.
   */
  confirmed = 0;
  failed = 0;
  /** Changes of the lane's counts of live transactions per state; null if nothing changes. */
  live: Partial<Record<State, number>> | null = null;
  /** Changes made by the writes decided so far. */
  readonly changes: Change[] = [];
  private readonly epoch: number;

  constructor(row: LockedLaneRow, ledger: Ledger, epoch: number) {
    this.key = laneKey(ledger.lane);
    this.row = row;
    this.ledger = ledger;
    this.epoch = epoch;
  }

  /** The lane's row after the commit; the same object as read if nothing changes. */
  left(): LockedLaneRow {
    const { row, epoch } = this;
    const { cursor, suspendedBy, reconciled } = this.ledger;
    const reconciledEpoch = reconciled ? Math.max(row.reconciledEpoch, epoch) : row.reconciledEpoch;
    const isSame = row.nextNonce === cursor && row.suspendedBy === suspendedBy;
    if (isSame && row.reconciledEpoch === reconciledEpoch) return row;
    return { ...row, nextNonce: cursor, suspendedBy, reconciledEpoch };
  }

  /**
   * Updates the counts of live transactions per state for one transaction. `from` and `to`: its state before and after;
   * null if it is not live.
   */
  count(from: State | null, to: State | null): void {
    if (from === to) return;
    this.live ??= {};
    if (from !== null) this.live[from] = (this.live[from] ?? 0) - 1;
    if (to !== null) this.live[to] = (this.live[to] ?? 0) + 1;
  }

  /**
   * Counts that a transaction was confirmed or failed for good, or that such an outcome was withdrawn, for the lane's
   * permanent counters. `from`: its state before; null for a refused intent.
   */
  countSettled(from: State | null, to: State): void {
    this.confirmed += Number(to === "CONFIRMED") - Number(from === "CONFIRMED");
    this.failed += Number(to === "FAILED_FINAL") - Number(from === "FAILED_FINAL");
  }
}

export interface ChainPlan {
  readonly stored: readonly Confirmation[];
  blocks: readonly Confirmation[];
  replacedFrom: number;
  pruneBelow: number;
}

/** A nonce that is a hole, or was one when the commit began. */
interface HoleChange {
  readonly lane: LanePlan;
  readonly nonce: number;
  readonly wasHole: boolean;
  hole: Hole | null;
}

/** Changes of one kind, each with its lane, in the order of the writes. */
export type Kept<Kind extends Change["kind"]> = readonly (readonly [
  Extract<Change, { readonly kind: Kind }>,
  LanePlan,
])[];

export class Plan {
  readonly lanes: ReadonlyMap<LaneKey, LanePlan>;
  readonly chains: ReadonlyMap<number, ChainPlan>;
  readonly moves = new Map<string, Move>();
  readonly holes = new Map<string, HoleChange>();
  /** Genesis hash of each chain, as read by a lane's owner. */
  readonly geneses = new Map<number, Hash>();
  /** Statistics, each row with the instance that counted it. */
  readonly figures: (FigureRow & { readonly instanceId: string })[] = [];
  readonly spend: (SpendRow & { readonly instanceId: string })[] = [];
  private readonly kept = new Map<Change["kind"], (readonly [Change, LanePlan])[]>();
  private readonly pools = new PoolRows();
  /** Use of API keys' limits after the writes decided so far, by chain. */
  private readonly keyUse = new Map<number, Guard["keyUse"]>();
  private readonly loader: Loader;

  /** `found`: all rows that the writes concern. `epoch`: the feed's epoch. */
  constructor(found: Found, { epoch, policies }: { readonly epoch: number; readonly policies: Policies | null }) {
    this.loader = new Loader(found, epoch, policies);
    const lanes = found.lanes.map((row) => new LanePlan(row, this.loader.bare(row), epoch));
    this.lanes = new Map(lanes.map((lane) => [lane.key, lane]));
    const chains = [...(found.blocks ?? [])].map(([chainId, stored]) => {
      return [chainId, { stored, blocks: stored, replacedFrom: Number.MAX_SAFE_INTEGER, pruneBelow: 0 }] as const;
    });
    this.chains = new Map(chains);
  }

  /**
   * Returns the lane of each write, loaded with the rows that the write concerns; null if the writing node no longer
   * owns the lane. All lanes are loaded before the first write is decided, because writes may concern the same rows.
   */
  load(needs: readonly Needs[]): readonly (LanePlan | null)[] {
    return needs.map((need) => {
      const lane = this.held(need.fence);
      if (lane !== null) lane.ledger = this.loader.load(lane.ledger, need);
      return lane;
    });
  }

  private held(fence: Fence) {
    const lane = this.lanes.get(laneKey(fence.lane));
    if (lane === undefined) return null;
    return lane.row.ownerInstance === fence.instanceId && lane.row.token === fence.token ? lane : null;
  }

  /**
   * Decides a write by its lane's ledger. Writes about a whole chain (its blocks, genesis hash and statistics) do not
   * use the ledger.
   */
  judge(lane: LanePlan, write: LaneWrite, moment: Moment): WriteOutcome {
    if (write.kind === "confirmations") return this.revise(write);
    if (write.kind === "identify") {
      this.geneses.set(lane.row.chainId, write.genesisHash);
      return { status: "done" };
    }
    if (write.kind === "figures") {
      const { instanceId } = write.fence;
      this.figures.push(...write.rows.map((row) => ({ ...row, instanceId })));
      this.spend.push(...write.spend.map((row) => ({ ...row, instanceId })));
      return { status: "done" };
    }
    const { ledger, outcome, changes } = apply(this.pools.beside(this.guarded(lane), write), write, moment);
    lane.ledger = ledger;
    if (ledger.guard !== null) this.keyUse.set(lane.row.chainId, ledger.guard.keyUse);
    for (const change of changes) {
      this.keep(lane, change);
      this.pools.keep(ledger, change);
    }
    return outcome;
  }

  /** The lane's ledger, including the amounts that its API keys have used on other lanes of this commit. */
  private guarded({ ledger, row: { chainId } }: LanePlan) {
    const { guard } = ledger;
    if (guard === null) return ledger;
    return { ...ledger, guard: { ...guard, keyUse: this.keyUse.get(chainId) ?? this.loader.keyUse(chainId) } };
  }

  /**
   * Revises the stored blocks of a chain. New blocks are added to the stored list. If a new block contradicts the list,
   * the list is replaced from the first height that differs.
   */
  private revise({ fence, blocks, pruneBelow }: ConfirmationsWrite): WriteOutcome {
    const chain = this.chains.get(fence.lane.chainId);
    if (chain === undefined)
      throw new Error(`cannot revise the stored blocks of chain ${fence.lane.chainId}: they were not read`);
    const change = reviseConfirmations(chain.blocks, blocks);
    const isFork = change.kind === "replace";
    const kept = isFork ? chain.blocks.filter(({ number }) => number < change.fromNumber) : chain.blocks;
    const all = change.kind === "same" ? kept : [...kept, ...change.blocks].sort((a, b) => a.number - b.number);
    if (isFork) chain.replacedFrom = Math.min(chain.replacedFrom, change.fromNumber);
    chain.pruneBelow = Math.max(chain.pruneBelow, pruneBelow);
    chain.blocks = all.filter(({ number }) => number >= chain.pruneBelow);
    return { status: "confirmations", newFork: isFork };
  }

  /** Changes per lane, to be reported to the lanes' owners once the plan is committed. */
  changes(): readonly LaneChanges[] {
    const changed = [...this.lanes.values()].filter(({ changes }) => changes.length > 0);
    return changed.map(({ ledger, row, changes }) => ({ lane: ledger.lane, token: row.token, changes }));
  }

  /** Number of a lane's settled transactions, as read by this commit, whose watch for reorgs may end. */
  pastWatch({ key }: LanePlan): number {
    return this.loader.rows.unwatchable.get(key)?.length ?? 0;
  }

  of<Kind extends Change["kind"]>(kind: Kind): Kept<Kind> {
    return (this.kept.get(kind) ?? []) as unknown as Kept<Kind>;
  }

  /**
   * Records a change. Changes of the next nonce, of a suspension and of the reconciliation are already in the lane's
   * ledger; changes of counts are added to the lane's row.
   */
  private keep(lane: LanePlan, change: Change) {
    lane.changes.push(change);
    const known = this.kept.get(change.kind);
    if (known === undefined) this.kept.set(change.kind, [[change, lane]]);
    else known.push([change, lane]);
    switch (change.kind) {
      case "allocated":
        lane.count(null, "ALLOCATED");
        break;
      case "moved":
        this.move(lane, change);
        lane.countSettled(change.item.from, change.item.to);
        lane.count(change.item.from, change.live ? change.item.to : null);
        break;
      case "unwatched":
        lane.count(change.state, null);
        break;
      case "refused":
        lane.countSettled(null, "FAILED_FINAL");
        break;
      case "holeLeft":
        this.setHole(lane, change.hole.nonce, change.hole);
        break;
      case "holeClosed":
        this.setHole(lane, change.nonce, null);
        break;
    }
  }

  /**
   * Number of history steps of an intent before it got its nonce, and the time of its acceptance. The time is text,
   * because a Date cannot hold microseconds. It is null if the intent did not come through the intake table.
   */
  accepted(intake: WaitingIntent | null): { readonly acceptedAt: string | null; readonly stepsBefore: number } {
    if (intake === null) return NOT_ACCEPTED;
    return {
      acceptedAt: this.loader.rows.intake.get(intake.intakeId)?.acceptedAt ?? null,
      stepsBefore: stepsOf(intake),
    };
  }

  private setHole(lane: LanePlan, nonce: number, hole: Hole | null) {
    const key = `${lane.key}:${nonce}`;
    const known = this.holes.get(key);
    if (known !== undefined) known.hole = hole;
    else this.holes.set(key, { lane, nonce, wasHole: hole === null, hole });
  }

  private move(lane: LanePlan, change: Moved) {
    const { txId } = change.item;
    const known = this.moves.get(txId);
    if (known !== undefined) known.add(change);
    else this.moves.set(txId, new Move(lane, this.loader.rows.transactions.get(txId) ?? this.created(txId), change));
  }

  /** A transaction that this commit creates, as its row is inserted. */
  private created(txId: string): Before {
    const [allocated, lane] = this.of("allocated").findLast(([{ intent }]) => intent.txId === txId) ?? [];
    if (allocated === undefined || lane === undefined)
      throw new Error(`cannot change transaction ${txId}: its row was not read`);
    const { nonce, intake } = allocated;
    const { nodeId, token } = lane.row;
    const term = intake === null ? { allocatedBy: nodeId, allocatedUnder: token } : NO_TERM;
    return { ...term, isNew: true, txId, nonce, state: "ALLOCATED", steps: this.accepted(intake).stepsBefore + 1 };
  }
}

const NO_TERM = { allocatedBy: null, allocatedUnder: null };
const NOT_ACCEPTED = { acceptedAt: null, stepsBefore: 0 };
