/**
 * Stage 1, choice of the lane: a request to a pool gets one of the pool's lanes. If the request id already has a
 * transaction in the pool, that is the answer. Otherwise the member with the shortest wait that can pay is chosen, and
 * the request continues as one to that signer. The choice is final only when the nonce is allocated: the same database
 * transaction writes the row that records which lane has the request (domain/ledger/allocate.ts,
 * adapters/postgres/commit/pool-rows.ts). A second request with the same id, on another lane or another node, is
 * answered with the first one's transaction.
 *
 * Reads: earlier choices of pools; queues, from memory for this node's lanes and from the database, once a second at
 * most, for others; balances as the chain last reported them. Writes: nothing. Invariant: I5, for (chain, pool, request
 * id). Outdated facts cause a worse choice, never a second transaction. A crash here leaves nothing behind.
 */
import { DatabaseSilent, FencepostError, queueFull } from "../../../domain/errors.ts";
import { intrinsicGas } from "../../../domain/fees/gas.ts";
import { forbidden, isWithin, type Limits, refuseOutside } from "../../../domain/keys/principal.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import {
  chooseMember,
  type MemberFacts,
  type Passage,
  type Pools,
  poolKey,
  stickyMember,
} from "../../../domain/nonces/pool.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import { bounded, type Clock } from "../../../ports/clock.ts";
import type { AskedOfPool, ExistingTransaction, LaneQueue, LaneStore, Spent } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { Gathering } from "../../cluster/gather.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { answerOwned, isOpen, type Result } from "./answer-existing.ts";
import { type CreateItem, isPooled, type PoolItem } from "./asked-create.ts";

interface PoolPorts {
  readonly clock: Clock;
  readonly store: Pick<LaneStore, "queues" | "findPooled" | "findByRequestIds">;
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly lanes: { find(lane: Lane): OwnedLane | null };
  readonly kills: { holds(signer: Address): boolean };
  /** True if this node, or a node that it can call, may act for the lane. */
  readonly reaches: (lane: Lane) => boolean;
  readonly admission: { readonly perLane: number };
  readonly pools: Pools;
}

type Earlier = ExistingTransaction | Spent;

/**
 * A request id to look up in a pool and on each of its lanes: a caller may have used the id on a lane without naming
 * the pool.
 */
interface AskedId extends AskedOfPool {
  readonly lanes: readonly Lane[];
}

/**
 * Maximum number of the pool's members that are tried for one request: if one cannot pay or its queue is full, the next
 * is tried.
 */
const MOST_TRIES = 3;
/** Maximum number of request ids in one read. */
const IDS_AT_ONCE = 500;

export class PoolChoice {
  private readonly ports: PoolPorts;
  private readonly members: PoolMembers;
  /** Looks up earlier transactions with the same request id; requests of one turn of the event loop share a read. */
  private readonly earlier: Gathering<AskedId, Earlier | null>;

  constructor(ports: PoolPorts) {
    this.ports = ports;
    this.members = new PoolMembers(ports);
    const read = async (asked: readonly AskedId[], answer: (at: number, found: Earlier | null) => void) => {
      const found = await readEarlier(ports.store, asked);
      asked.forEach((each, at) => void answer(at, found(each)));
    };
    this.earlier = new Gathering(ports.clock, read, IDS_AT_ONCE);
  }

  /**
   * Chooses a lane for each request to a pool, delivers all of them, and tries another member for requests that one
   * refused.
   */
  async choose(items: readonly CreateItem[], deliver: (items: readonly CreateItem[]) => Promise<void>): Promise<void> {
    const pooled = items.filter(isPooled);
    await Promise.all(pooled.map((item) => this.findEarlier(item)));
    let open = items.filter(isOpen);
    for (let tries = 1; open.length > 0; tries++) {
      await this.chooseLanes(open.filter(isPooled));
      open = open.filter(isOpen);
      try {
        await deliver(open);
      } finally {
        for (const { intent } of open.filter(isPooled)) this.members.answered(intent.lane);
      }
      open = tries < MOST_TRIES ? pooled.filter(mayTryAnother) : [];
    }
    await Promise.all(pooled.map((item) => this.findMeanwhile(item)));
  }

  /** Answers a request whose id the pool already has, or that none of its lanes may accept. */
  private async findEarlier(item: PoolItem) {
    const { intent, pool } = item;
    const { limits } = item.asked;
    const members = this.ports.pools.get(pool.asked.pool) ?? [];
    const lanes = members.map((signer) => ({ chainId: intent.lane.chainId, signer }));
    try {
      if (limits !== undefined) refusePool(limits, pool.asked.pool, lanes);
      const found = await this.find(item, lanes);
      if (found !== null) item.result = repeated(found, intent, limits);
      else if (members.length === 0) throw unknownPool(pool.asked.pool, this.ports.pools, limits);
      else pool.lanes = lanes;
    } catch (error) {
      item.result = error instanceof FencepostError ? error : new DatabaseSilent("nothing was accepted", error);
    }
  }

  private async chooseLanes(items: readonly PoolItem[]) {
    await this.members.look(items.flatMap(({ pool }) => pool.lanes));
    const choose = async (item: PoolItem) => {
      const signer = await this.chooseOne(item);
      item.result = signer instanceof FencepostError ? signer : null;
      if (signer instanceof FencepostError) return;
      item.pool.tried.add(signer);
      item.intent = { ...item.intent, lane: { chainId: item.intent.lane.chainId, signer } };
    };
    await Promise.all(items.map(choose));
  }

  /**
   * A repeat may have been accepted on another lane while this request was being refused: an existing transaction takes
   * precedence.
   */
  private async findMeanwhile(item: PoolItem) {
    if (item.pool.lanes.length === 0 || !isLookedFor(item.result)) return;
    const found = await this.find(item, item.pool.lanes).catch(() => null);
    if (found !== null) item.result = repeated(found, item.intent, item.asked.limits);
  }

  private async find({ intent, pool }: PoolItem, lanes: readonly Lane[]) {
    const { requestId, lane } = intent;
    if (requestId === null) return null;
    return this.earlier.add({ chainId: lane.chainId, pool: pool.asked.pool, requestId, lanes });
  }

  /** Chooses a member. The choice is counted at once, so that simultaneous requests do not all see the same queues. */
  private async chooseOne({ pool: { asked, lanes, tried }, intent }: PoolItem) {
    const { members } = this;
    const { chainId } = intent.lane;
    if (asked.stickyKey !== null) {
      const signers = lanes.map((lane) => lane.signer);
      const signer = stickyMember(signers, asked.stickyKey);
      if (signer === null) throw new Error("the pool has no members");
      members.choose({ chainId, signer });
      return signer;
    }
    const left = lanes.filter(({ signer }) => !tried.has(signer));
    const cost = leastCost(intent, this.ports.chains.get(chainId));
    let facts = members.facts(left);
    let choice = chooseMember(facts, cost);
    if (choice.kind === "refused" && choice.why === "funds") {
      // The known balances may be outdated: read them from the chain before a request is refused because of them.
      const balances = await members.freshBalances(left);
      facts = members.facts(left, balances);
      choice = chooseMember(facts, cost);
    }
    if (choice.kind === "refused") return choice.why === "full" ? queueFull() : noFunds(asked.pool, cost, facts);
    members.choose({ chainId, signer: choice.signer });
    return choice.signer;
  }
}

/**
 * Finds existing transactions of requests to pools, on any lane. A request id recorded for the pool takes precedence
 * over the same id on one of its lanes. This check may be outdated; stage 2 repeats it in the transaction that
 * allocates the nonce.
 */
async function readEarlier(store: PoolPorts["store"], asked: readonly AskedId[]) {
  const ofLanes = asked.flatMap(({ lanes, requestId }) => lanes.map((lane) => ({ lane, requestIds: [requestId] })));
  const [pooled, direct] = await Promise.all([store.findPooled(asked), store.findByRequestIds(ofLanes)]);
  const byPool = new Map(
    pooled.map((each) => {
      const chainId = isSpent(each) ? each.chainId : each.lane.chainId;
      return [`${chainId}:${poolKey(each.pool, each.requestId as string)}`, each];
    }),
  );
  const byLane = new Map(direct.map((each) => [`${laneKey(each.lane)}:${each.requestId}`, each]));
  return ({ chainId, pool, requestId, lanes }: AskedId): Earlier | null => {
    const [direct] = lanes.flatMap((lane) => byLane.get(`${laneKey(lane)}:${requestId}`) ?? []);
    return byPool.get(`${chainId}:${poolKey(pool, requestId)}`) ?? direct ?? null;
  };
}

/**
 * Codes of refusals after which the request id is looked up once more. Most other refusals concern the node itself,
 * which may have little time left for a look-up.
 */
const LOOKED_FOR: ReadonlySet<string> = new Set(["SUBMISSION_REJECTED", "FORBIDDEN", "UNKNOWN_SIGNER", "NOT_LEADER"]);

function isLookedFor(result: Result | null) {
  return result instanceof FencepostError && LOOKED_FOR.has(result.code) && result.extras.outcome !== "unknown";
}

/**
 * Refusals that concern only one member of the pool: no live node signs for it, its queue is full, or the API key's
 * share of the queue is full.
 */
const OF_ONE_MEMBER: ReadonlySet<string> = new Set(["UNKNOWN_SIGNER", "QUEUE_FULL", "QUOTA_EXCEEDED"]);

/** True if nothing was accepted and another member may accept the request. */
function mayTryAnother({ pool: { asked, lanes, tried }, result }: PoolItem) {
  const isOver = asked.stickyKey !== null || tried.size === 0 || tried.size >= lanes.length;
  if (isOver || !(result instanceof FencepostError)) return false;
  return OF_ONE_MEMBER.has(result.code) || result.extras.reason === "INSUFFICIENT_FUNDS";
}

function repeated(existing: Earlier, intent: Intent, limits: Limits | undefined) {
  if (limits !== undefined && !isSpent(existing) && !isWithin(limits, existing.lane)) {
    return forbidden("signers", "this API key may not use the signer that the pool chose for this request");
  }
  return answerOwned(existing, intent);
}

/** A key that is limited to signers may use a pool only if it may use all members: any of them may be chosen. */
function refusePool(limits: Limits, pool: string, lanes: readonly Lane[]) {
  const outside = lanes.some(({ signer }) => limits.signers?.has(signer) === false);
  if (outside) throw forbidden("signers", `this API key may not use all signers of the pool ${pool}`);
  for (const { chainId } of lanes.slice(0, 1)) refuseOutside(limits, { chainId });
}

function unknownPool(pool: string, pools: Pools, limits: Limits | undefined) {
  const isSeen = (members: readonly Address[]) => members.every((signer) => limits?.signers?.has(signer) !== false);
  const names = [...pools].filter(([, members]) => isSeen(members)).map(([name]) => name);
  const known = names.length === 0 ? "none is configured for this key" : `there are ${names.join(", ")}`;
  return new FencepostError("UNKNOWN_SIGNER", `there is no pool ${pool} (${known})`);
}

/** Lower bound of the cost: the gas may still have to be estimated, and the price to be found. */
function leastCost({ payload }: Intent, context: ChainContext | undefined) {
  const { value, gas = intrinsicGas(payload), maxFeePerGas, gasPrice } = payload;
  const price = maxFeePerGas ?? gasPrice ?? context?.leastBaseFee ?? 0n;
  return value + gas * price;
}

function noFunds(pool: string, cost: bigint, facts: readonly MemberFacts[]) {
  const dependsOnPending = facts.some(({ ahead }) => ahead > 0);
  const detail = `needs ${cost} wei at least (value + gas x fee cap), and no signer of the pool ${pool} has as much`;
  const reason = { reason: "INSUFFICIENT_FUNDS" as const };
  return new FencepostError("SUBMISSION_REJECTED", detail, dependsOnPending ? { ...reason, dependsOnPending } : reason);
}

/** Recent choices of one lane by this node that the queue lengths read from the database do not include yet. */
interface Chosen {
  /** Number of choices whose create is not answered yet. */
  open: number;
  /** Number of choices since the lane's queue length was last read, plus those without an answer at that time. */
  recent: number;
  /** Sequence number of this node's last choice of the lane. */
  last: number;
}

const QUEUES_KNOWN_FOR_MS = 1_000;
const BALANCE_KNOWN_FOR_MS = 15_000;
const FIRST_BALANCES_WITHIN_MS = 500;

const NOT_ASKING = { answers: Promise.resolve(), untilMs: 0 };

type Elsewhere = Pick<LaneQueue, "suspended" | "ahead" | "headAgeMs" | "isStuck">;

/** Queue of a lane without a row in the database, for which nothing was ever written. */
const UNUSED: Elsewhere = { suspended: false, ahead: 0, headAgeMs: 0, isStuck: false };

class PoolMembers {
  private readonly ports: PoolPorts;
  private readonly queues = new Map<LaneKey, { readonly queue: Elsewhere; readonly atMs: number }>();
  private readonly balancesAskedAtMs = new Map<LaneKey, number>();
  private readonly chosen = new Map<LaneKey, Chosen>();
  private choices = 0;
  private reading: Promise<void> | null = null;
  private asking: { readonly answers: Promise<unknown>; readonly untilMs: number } = NOT_ASKING;

  constructor(ports: PoolPorts) {
    this.ports = ports;
  }

  /**
   * Reads the queue lengths that were not read for a while. If a read fails, the values stay as they were, or unknown.
   */
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

  /**
   * Facts about the members now. No await: otherwise another choice could be made in between. `balances`: balances that
   * were just read.
   */
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

  /** Balances of the signers for which the chain answers; the others stay unknown. */
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

  /** Called when the create for which the lane was chosen has its result. */
  answered(lane: Lane): void {
    const chosen = this.chosen.get(laneKey(lane));
    if (chosen !== undefined) chosen.open--;
  }

  private async read(lanes: readonly Lane[]) {
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

  /**
   * Waits briefly for balances that are not known at all. A chain that does not answer by then does not delay the
   * create further.
   */
  private async askBalances(lanes: readonly Lane[]) {
    const { clock, chains } = this.ports;
    const nowMs = clock.monotonicMs();
    const old = lanes.filter((lane) => {
      const askedAtMs = this.balancesAskedAtMs.get(laneKey(lane));
      return askedAtMs === undefined || nowMs - askedAtMs >= BALANCE_KNOWN_FOR_MS;
    });
    for (const lane of old) this.balancesAskedAtMs.set(laneKey(lane), nowMs);
    if (old.length > 0) this.asking = { answers: this.freshBalances(old), untilMs: nowMs + FIRST_BALANCES_WITHIN_MS };
    const isKnown = ({ chainId, signer }: Lane) => chains.get(chainId)?.knownBalances.has(signer) !== false;
    if (!lanes.every(isKnown)) await bounded(clock, this.asking.answers, this.asking.untilMs);
  }

  private ofOwn(lane: OwnedLane, open: number) {
    const { clock, admission } = this.ports;
    const oldest = lane.oldestPendingAt();
    return {
      passage: ownPassage(lane),
      ahead: lane.unminedDepth() + Math.max(lane.creating, open),
      headAgeMs: oldest === null || !lane.hasUnmined() ? 0 : Math.max(0, clock.now().getTime() - oldest.getTime()),
      isFull: lane.creating >= admission.perLane,
    };
  }

  private passage(lane: Lane, { suspended, isStuck }: Elsewhere) {
    if (!this.ports.reaches(lane)) return "outOfReach";
    if (suspended || this.ports.kills.holds(lane.signer)) return "stopped";
    return isStuck ? "blocked" : "open";
  }
}

function ownPassage(lane: OwnedLane): Passage {
  if (lane.heldByHistory) return "outOfReach";
  if (lane.suspended) return "stopped";
  const isStuck = lane.unmined.get(lane.headOfLine() ?? -1)?.status.state === "STUCK";
  return isStuck || lane.pace.signer.kind === "away" ? "blocked" : "open";
}
