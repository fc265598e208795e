/**
 * Stage 1, before everything else: a request to a pool gets its lane. Where the pool gave it one before, that transaction is
 * the answer; else the member with the shortest wait that can pay is chosen, and the request goes on as one to that signer.
 * The choice binds nothing until the nonce is given: the row that says which lane has the request is written in the same
 * database transaction (domain/ledger/allocate.ts, adapters/postgres/commit/pool-rows.ts), and who comes second with the
 * same id, on another lane or another node, is answered with the first one's transaction.
 *
 * Reads: what pools gave, queues, balances. Writes: nothing. Invariant: I5, for (chain, pool, request id). A crash here
 * leaves nothing behind.
 */
import { DatabaseSilent, FencepostError, queueFull } from "../../../domain/errors.ts";
import { intrinsicGas } from "../../../domain/gas.ts";
import type { Address, Lane } from "../../../domain/lane.ts";
import { isSpent } from "../../../domain/ledger/index.ts";
import { chooseMember, type MemberFacts, type PoolAsked, type Pools, stickyMember } from "../../../domain/pool.ts";
import { forbidden, isWithin, type Limits, refuseOutside } from "../../../domain/principal.ts";
import type { Intent } from "../../../domain/transaction.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ExistingTransaction, Spent } from "../../../ports/lane-store.ts";
import type { Created } from "../../api.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { hear, type NormalisePorts } from "../../requests/normalise.ts";
import { namesPool, parsePool } from "../../requests/pool.ts";
import { answerOwned } from "./answer-existing.ts";
import type { Creates, Teller, Told } from "./create.ts";
import { type PoolMemberPorts, PoolMembers } from "./pool-members.ts";
import { PooledRequests } from "./pooled-requests.ts";

export interface PoolPorts {
  readonly clock: Pick<Clock, "soon">;
  readonly intents: NormalisePorts;
  readonly pools: Pools;
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly requests: PooledRequests;
  readonly members: PoolMembers;
}

/** Of what a node has. */
export function poolPortsOf(
  ports: Omit<PoolPorts, "requests" | "members"> &
    PoolMemberPorts & { readonly store: ConstructorParameters<typeof PooledRequests>[0] },
): PoolPorts {
  return { ...ports, requests: new PooledRequests(ports.store, ports.clock), members: new PoolMembers(ports) };
}

type Fate = Created | FencepostError;

/** A request to a pool: as it was told, as it was heard, and what was tried for it. */
interface Errand {
  readonly told: Told;
  readonly asked: PoolAsked;
  /** Its lane is a member only once one is chosen. */
  readonly intent: Intent;
  /** Of the pool, on the request's chain. */
  readonly lanes: readonly Lane[];
  readonly tried: Set<Address>;
}

/** So many members are tried for a request that one refuses, because it cannot pay or has no room. */
const MOST_TRIES = 3;
/** Stands in the place of a signer until one is chosen. */
const NOBODY = `0x${"0".repeat(40)}` as Address;

/** The entrance of creates, in front of `Creates`: those that name a signer pass through. */
export class PoolCreates {
  private readonly ports: PoolPorts;
  private readonly creates: Pick<Creates, "create">;

  constructor(ports: PoolPorts, creates: Pick<Creates, "create">) {
    this.ports = ports;
    this.creates = creates;
  }

  /** One fate for each, in order. */
  async create(told: readonly Told[], by: Teller = "caller"): Promise<readonly Fate[]> {
    if (by !== "caller" || !told.some(isForPool)) return this.creates.create(told, by);
    const errands = await Promise.all(told.map((each) => (isForPool(each) ? this.receive(each) : each)));
    const fates = [...(await this.send(errands, told.length))];
    for (let tries = 1; tries < MOST_TRIES; tries++) {
      const again = errands.flatMap((each, at) => (isErrand(each) && mayTryAnother(each, fates[at]) ? [at] : []));
      if (again.length === 0) break;
      const next = await this.send(
        again.map((at) => errands[at] as Errand),
        again.length,
      );
      again.forEach((at, index) => {
        fates[at] = next[index] as Fate;
      });
    }
    return Promise.all(errands.map((each, at) => this.lastLook(each, fates[at] as Fate)));
  }

  /** Heard, and looked for. What needs no lane any more has its answer. */
  private async receive(told: Told): Promise<Errand | Told> {
    const { request, limits } = told;
    const { intents, pools, requests } = this.ports;
    // Whether the key is for the pool's signers is judged for all of them, below.
    const ofChains = limits === undefined ? {} : { limits: { ...limits, signers: null } };
    const intent = hear(intents, request, { ...told, ...ofChains, chosen: NOBODY });
    if (intent instanceof FencepostError) return { ...told, heard: intent };
    const asked = parsePool(request.signer as object);
    const { requestId, lane } = intent;
    const members = pools.get(asked.pool) ?? [];
    const lanes = members.map((signer) => ({ chainId: lane.chainId, signer }));
    try {
      if (limits !== undefined) refusePool(limits, asked.pool, lanes);
      const before =
        requestId === null ? null : await requests.find({ chainId: lane.chainId, pool: asked.pool, requestId, lanes });
      if (before !== null) return { ...told, heard: repeated(before, intent, limits) };
      if (members.length === 0) throw unknownPool(asked.pool, pools, limits);
    } catch (error) {
      const heard = error instanceof FencepostError ? error : new DatabaseSilent("nothing was accepted", error);
      return { ...told, heard };
    }
    return { told, asked, intent, lanes, tried: new Set() };
  }

  /** Chooses for those that need it, and has all of them created. */
  private async send(errands: readonly (Errand | Told)[], length: number): Promise<readonly Fate[]> {
    const { members } = this.ports;
    const needed = errands.filter(isErrand);
    await members.look(needed.flatMap(({ lanes }) => lanes));
    const chosen: Lane[] = [];
    const told = await Promise.all(
      errands.map(async (each): Promise<Told> => {
        if (!isErrand(each)) return each;
        const signer = await this.choose(each);
        if (signer instanceof FencepostError) return { ...each.told, heard: signer };
        const lane = { chainId: each.intent.lane.chainId, signer };
        each.tried.add(signer);
        chosen.push(lane);
        return { ...each.told, heard: { ...each.intent, lane } };
      }),
    );
    try {
      const fates = await this.creates.create(told);
      if (fates.length !== length) throw new Error(`${length} creates got ${fates.length} answers`);
      return fates;
    } finally {
      for (const lane of chosen) members.answered(lane);
    }
  }

  /** The choice is counted in the moment it is made: of those that choose at once, no two see the same queues. */
  private async choose({ asked, intent, lanes, tried }: Errand): Promise<Address | FencepostError> {
    const { members, chains } = this.ports;
    const { chainId } = intent.lane;
    if (asked.stickyKey !== null) {
      const signer = stickyMember(
        lanes.map((lane) => lane.signer),
        asked.stickyKey,
      );
      if (signer === null) throw new Error("a pool without members");
      members.choose({ chainId, signer });
      return signer;
    }
    const left = lanes.filter(({ signer }) => !tried.has(signer));
    const cost = leastCost(intent, chains.get(chainId));
    let facts = members.facts(left);
    let choice = chooseMember(facts, cost);
    if (choice.kind === "refused" && choice.why === "funds") {
      // Told long ago, perhaps: before a request is refused for it, the chain is asked.
      const balances = await members.freshBalances(left);
      facts = members.facts(left, balances);
      choice = chooseMember(facts, cost);
    }
    if (choice.kind === "refused") return choice.why === "full" ? queueFull() : noFunds(asked.pool, cost, facts);
    members.choose({ chainId, signer: choice.signer });
    return choice.signer;
  }

  /** A repeat may have been accepted on another lane while this one was being refused: an existing transaction wins. */
  private async lastLook(errand: Errand | Told, fate: Fate): Promise<Fate> {
    if (!isErrand(errand) || !(fate instanceof FencepostError) || !LOOKED_FOR.has(fate.code)) return fate;
    const { intent, asked, lanes, told } = errand;
    const { requestId, lane } = intent;
    if (requestId === null || fate.extras.outcome === "unknown") return fate;
    const about = { chainId: lane.chainId, pool: asked.pool, requestId, lanes };
    const found = await this.ports.requests.find(about).catch(() => null);
    return found === null ? fate : repeated(found, intent, told.limits);
  }
}

/** Refusals after which a request is looked for once more; of the others most are about the node, which may have little time. */
const LOOKED_FOR: ReadonlySet<string> = new Set(["SUBMISSION_REJECTED", "FORBIDDEN", "UNKNOWN_SIGNER", "NOT_LEADER"]);

function isForPool({ request }: Told): boolean {
  return namesPool((request as Told["request"] | null | undefined)?.signer);
}

function isErrand(each: Errand | Told): each is Errand {
  return "asked" in each;
}

/** Of a member that no live node signs for, or whose queue, or the key's part of it, has no room. */
const OF_ONE_MEMBER: ReadonlySet<string> = new Set(["UNKNOWN_SIGNER", "QUEUE_FULL", "QUOTA_EXCEEDED"]);

/** Nothing was accepted, and of another member it may well be. */
function mayTryAnother({ asked, lanes, tried }: Errand, fate: Fate | undefined): boolean {
  const isOver = asked.stickyKey !== null || tried.size === 0 || tried.size >= lanes.length;
  if (isOver || !(fate instanceof FencepostError)) return false;
  return OF_ONE_MEMBER.has(fate.code) || fate.extras.reason === "INSUFFICIENT_FUNDS";
}

function repeated(existing: ExistingTransaction | Spent, intent: Intent, limits: Limits | undefined): Fate {
  if (limits !== undefined && !isSpent(existing) && !isWithin(limits, existing.lane)) {
    return forbidden("signers", "this API key is not for the signer that the pool gave this request");
  }
  return answerOwned(existing, intent);
}

/** A key that is limited to signers may use a pool where all of its members are among them: any may be chosen. */
function refusePool(limits: Limits, pool: string, lanes: readonly Lane[]): void {
  const outside = lanes.some(({ signer }) => limits.signers?.has(signer) === false);
  if (outside) throw forbidden("signers", `this API key is not for every signer of the pool ${pool}`);
  for (const { chainId } of lanes.slice(0, 1)) refuseOutside(limits, { chainId });
}

function unknownPool(pool: string, pools: Pools, limits: Limits | undefined): FencepostError {
  const isSeen = (members: readonly Address[]) => members.every((signer) => limits?.signers?.has(signer) !== false);
  const names = [...pools].filter(([, members]) => isSeen(members)).map(([name]) => name);
  const known = names.length === 0 ? "none is configured for this key" : `there are ${names.join(", ")}`;
  return new FencepostError("UNKNOWN_SIGNER", `there is no pool ${pool} (${known})`);
}

/** Below what it will cost: its gas may have to be estimated yet, and its price to be found. */
function leastCost({ payload }: Intent, context: ChainContext | undefined): bigint {
  const { value, gas = intrinsicGas(payload), maxFeePerGas, gasPrice } = payload;
  const price = maxFeePerGas ?? gasPrice ?? context?.leastBaseFee ?? 0n;
  return value + gas * price;
}

function noFunds(pool: string, cost: bigint, facts: readonly MemberFacts[]): FencepostError {
  const dependsOnPending = facts.some(({ ahead }) => ahead > 0);
  const detail = `needs ${cost} wei at least (value + gas x fee cap), and no signer of the pool ${pool} has as much`;
  const reason = { reason: "INSUFFICIENT_FUNDS" as const };
  return new FencepostError("SUBMISSION_REJECTED", detail, dependsOnPending ? { ...reason, dependsOnPending } : reason);
}
