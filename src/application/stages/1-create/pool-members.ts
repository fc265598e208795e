/**
 * Stage 1: what is known of the lanes that a pool could choose. Of those that this node holds, its own memory; of the others
 * what the database says of their queues, read once a second at most however many creates ask; balances as the chain last
 * told them, asked for beside the creates, and awaited where none was ever told.
 *
 * Reads: queues, balances. Writes: nothing. A wrong or old picture makes a worse choice, never a second transaction: what
 * decides is the row that is written with the nonce. A crash here leaves nothing behind.
 */
import type { Address, Lane, LaneKey } from "../../../domain/lane.ts";
import { laneKey } from "../../../domain/lane.ts";
import type { MemberFacts, Passage } from "../../../domain/nonces/pool.ts";
import { bounded, type Clock } from "../../../ports/clock.ts";
import type { LaneQueue, LaneStore } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";

export interface PoolMemberPorts {
  readonly clock: Clock;
  readonly store: Pick<LaneStore, "queues">;
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly lanes: { find(lane: Lane): OwnedLane | null };
  readonly kills: { holds(signer: Address): boolean };
  /** A node that this one can ask acts for the lane, or this one may. */
  readonly reaches: (lane: Lane) => boolean;
  readonly admission: { readonly perLane: number };
}

/** What this node has chosen, and the database does not show. */
interface Chosen {
  /** Not answered yet. */
  open: number;
  /** Since the lane's queue was last read, or open then. */
  recent: number;
  /** The number of the last choice. */
  last: number;
}

const QUEUES_KNOWN_FOR_MS = 1_000;
const BALANCE_KNOWN_FOR_MS = 15_000;
const FIRST_BALANCES_WITHIN_MS = 500;

const NOT_ASKING = { answers: Promise.resolve(), untilMs: 0 };

type Elsewhere = Pick<LaneQueue, "suspended" | "ahead" | "headAgeMs" | "isStuck">;

/** No row: nothing was ever written for the lane. */
const UNUSED: Elsewhere = { suspended: false, ahead: 0, headAgeMs: 0, isStuck: false };

export class PoolMembers {
  private readonly ports: PoolMemberPorts;
  private readonly queues = new Map<LaneKey, { readonly queue: Elsewhere; readonly atMs: number }>();
  private readonly balancesAskedAtMs = new Map<LaneKey, number>();
  private readonly chosen = new Map<LaneKey, Chosen>();
  private choices = 0;
  private reading: Promise<void> | null = null;
  private asking: { readonly answers: Promise<unknown>; readonly untilMs: number } = NOT_ASKING;

  constructor(ports: PoolMemberPorts) {
    this.ports = ports;
  }

  /** Looks at those whose queues were not looked at for a while. What cannot be read stays as it was, or unknown. */
  async look(lanes: readonly Lane[]): Promise<void> {
    await this.askBalances(lanes);
    while (this.reading !== null) await this.reading;
    const nowMs = this.ports.clock.monotonicMs();
    const old = lanes.filter((lane) => {
      const known = this.queues.get(laneKey(lane));
      return this.ports.lanes.find(lane) === null && (known === undefined || nowMs - known.atMs >= QUEUES_KNOWN_FOR_MS);
    });
    if (old.length === 0) return;
    this.reading = this.read(old).finally(() => {
      this.reading = null;
    });
    await this.reading;
  }

  /** As they stand at this very moment: no choice comes between. `balances`: asked anew. */
  facts(lanes: readonly Lane[], balances: ReadonlyMap<Address, bigint> | null = null): readonly MemberFacts[] {
    return lanes.map((lane) => {
      const { open = 0, recent = 0, last = 0 } = this.chosen.get(laneKey(lane)) ?? {};
      const held = this.ports.lanes.find(lane);
      const known = balances ?? this.ports.chains.get(lane.chainId)?.knownBalances;
      const common = { signer: lane.signer, balance: known?.get(lane.signer) ?? null, lastChosen: last };
      if (held !== null) return { ...common, ...this.ofOwn(held, open) };
      const queue = this.queues.get(laneKey(lane))?.queue ?? UNUSED;
      const { ahead, headAgeMs } = queue;
      return { ...common, passage: this.passage(lane, queue), ahead: ahead + recent, headAgeMs, isFull: false };
    });
  }

  /** Of all that the chain answers for; those that it does not are unknown. */
  async freshBalances(lanes: readonly Lane[]): Promise<ReadonlyMap<Address, bigint>> {
    const asked = lanes.map(async ({ chainId, signer }) => {
      const balance = await this.ports.chains
        .get(chainId)
        ?.balance(signer)
        .catch(() => undefined);
      return balance === undefined ? [] : [[signer, balance] as const];
    });
    return new Map((await Promise.all(asked)).flat());
  }

  choose(lane: Lane): void {
    const { open, recent } = this.chosen.get(laneKey(lane)) ?? { open: 0, recent: 0 };
    this.chosen.set(laneKey(lane), { open: open + 1, recent: recent + 1, last: ++this.choices });
  }

  /** What was chosen is answered. */
  answered(lane: Lane): void {
    const chosen = this.chosen.get(laneKey(lane));
    if (chosen !== undefined) chosen.open--;
  }

  private async read(lanes: readonly Lane[]): Promise<void> {
    const { store, clock } = this.ports;
    const queues = await store.queues(lanes).catch(() => null);
    if (queues === null) return;
    const byLane = new Map(queues.map((queue) => [laneKey(queue.lane), queue]));
    const atMs = clock.monotonicMs();
    for (const lane of lanes) {
      const key = laneKey(lane);
      this.queues.set(key, { queue: byLane.get(key) ?? UNUSED, atMs });
      const chosen = this.chosen.get(key);
      if (chosen !== undefined) chosen.recent = chosen.open;
    }
  }

  /** Waits a moment for those that are not known at all; a chain that does not answer by then keeps nobody waiting. */
  private async askBalances(lanes: readonly Lane[]): Promise<void> {
    const { clock, chains } = this.ports;
    const nowMs = clock.monotonicMs();
    const old = lanes.filter((lane) => {
      const askedAtMs = this.balancesAskedAtMs.get(laneKey(lane));
      return askedAtMs === undefined || nowMs - askedAtMs >= BALANCE_KNOWN_FOR_MS;
    });
    for (const lane of old) this.balancesAskedAtMs.set(laneKey(lane), nowMs);
    if (old.length > 0) this.asking = { answers: this.freshBalances(old), untilMs: nowMs + FIRST_BALANCES_WITHIN_MS };
    const isKnown = ({ chainId, signer }: Lane): boolean => chains.get(chainId)?.knownBalances.has(signer) !== false;
    if (!lanes.every(isKnown)) await bounded(clock, this.asking.answers, this.asking.untilMs);
  }

  private ofOwn(lane: OwnedLane, open: number): Pick<MemberFacts, "passage" | "ahead" | "headAgeMs" | "isFull"> {
    const { clock, admission } = this.ports;
    const head = lane.headOfLine();
    const oldest = lane.oldestPendingAt();
    const isStuck = head !== null && lane.unmined.get(head)?.status.state === "STUCK";
    const isAway = lane.pace.signer.kind === "away";
    const passages: readonly (readonly [boolean, Passage])[] = [
      [lane.heldByHistory, "outOfReach"],
      [lane.suspended, "stopped"],
      [isStuck || isAway, "blocked"],
    ];
    return {
      passage: passages.find(([holds]) => holds)?.[1] ?? "open",
      ahead: lane.unminedDepth() + Math.max(lane.creating, open),
      headAgeMs: oldest === null || !lane.hasUnmined() ? 0 : Math.max(0, clock.now().getTime() - oldest.getTime()),
      isFull: lane.creating >= admission.perLane,
    };
  }

  private passage(lane: Lane, { suspended, isStuck }: Elsewhere): Passage {
    if (!this.ports.reaches(lane)) return "outOfReach";
    if (suspended || this.ports.kills.holds(lane.signer)) return "stopped";
    return isStuck ? "blocked" : "open";
  }
}
