import type { Address } from "../../../src/domain/lane.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import { type LaneWrite, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import { BLOCK_MS, POLL_MS, type World, type WorldNode } from "../world.ts";
import { BlockTimes } from "./block-times.ts";

/** Time that an allocation takes at most after its count was asked for, on a node without faults, in ms. */
const ALLOCATED_MS = 2_000;
/** Longest time for which a planned allocation may wait for the database, in ms. */
const PLANNED_MS = 6_000;

/** Time after which the faults of a node's start are over, in ms. */
const STARTED_MS = 5_000;

interface Answer {
  readonly askedAtMs: number;
  readonly count: number;
}

/** What one node asked the chain about a signer's mined transactions. */
interface Asked {
  atMs: number;
  readonly answers: Answer[];
  /** When an allocation of this signer failed; null if none did since the last question. */
  failedAtMs: number | null;
}

/**
 * Checks at every allocation that the chain was asked for the count of the signer lately, and again after a failure; that
 * a count above the next nonce was seen a poll interval earlier; and that no nonce is given that was used long before.
 */
export class CountWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly isTroubled: (node: WorldNode) => boolean;
  private readonly followedAtMs = new Map<WorldNode, number>();
  private readonly times: BlockTimes;
  private readonly asked = new Map<WorldNode, Map<Address, Asked>>();

  constructor(world: World, isTroubled: (node: WorldNode) => boolean) {
    this.world = world;
    this.isTroubled = isTroubled;
    this.times = new BlockTimes(world);
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.committed(each);
    });
  }

  follow(node: WorldNode): void {
    this.followedAtMs.set(node, this.world.clock.monotonicMs());
    const { rpc, store } = node;
    const count = rpc.transactionCount.bind(rpc);
    const everywhere = rpc.transactionCountEverywhere.bind(rpc);
    const commit = store.commit.bind(store);
    const transactionCount: Chain["transactionCount"] = async (signer, tag) => {
      const begun = tag === "latest" ? this.begin(node, signer) : null;
      const answer = await count(signer, tag);
      begun?.(answer.count);
      return answer;
    };
    const transactionCountEverywhere: Chain["transactionCountEverywhere"] = async (signer, atBlock, tag) => {
      const begun = tag === "pending" ? null : this.begin(node, signer);
      const answers = await everywhere(signer, atBlock, tag);
      for (const each of answers) if (each.kind === "says") begun?.(each.count);
      return answers;
    };
    Object.assign(rpc, { transactionCount, transactionCountEverywhere });
    store.commit = async (writes) => {
      try {
        return await commit(writes);
      } catch (error) {
        const isFailed = error instanceof StoreUnavailable && !error.busy;
        if (isFailed) for (const write of writes) this.failed(node, write);
        throw error;
      }
    };
  }

  private begin(node: WorldNode, signer: Address): (count: number) => void {
    const askedAtMs = this.world.clock.monotonicMs();
    const asked = this.askedOf(node, signer);
    asked.atMs = askedAtMs;
    asked.failedAtMs = null;
    return (count) => void asked.answers.push({ askedAtMs, count });
  }

  private failed(node: WorldNode, { kind, fence }: LaneWrite): void {
    if (kind === "allocate") this.askedOf(node, fence.lane.signer).failedAtMs = this.world.clock.monotonicMs();
  }

  private askedOf(node: WorldNode, signer: Address): Asked {
    const ofNode = this.asked.get(node) ?? new Map<Address, Asked>();
    this.asked.set(node, ofNode);
    const known = ofNode.get(signer) ?? { atMs: Number.NEGATIVE_INFINITY, answers: [], failedAtMs: null };
    ofNode.set(signer, known);
    return known;
  }

  private committed({ write, before, outcome }: Applied): void {
    if (write.kind !== "allocate" || outcome.status !== "allocated") return;
    const { clock, nodes, database, settings, chain } = this.world;
    const url = database.state.instances.get(write.fence.instanceId)?.url;
    const node = nodes.find((each) => each.url === url);
    const { signer } = write.fence.lane;
    const given = outcome.items.flatMap((item) => (item.result === "created" ? item.nonce : []));
    if (node === undefined || given.length === 0) return;
    const asked = this.askedOf(node, signer);
    const nowMs = clock.monotonicMs();
    if (asked.failedAtMs !== null && nowMs - asked.failedAtMs > PLANNED_MS)
      this.violations.push(`nonces of ${signer} were given after a failure, and the chain was not asked again`);
    const floor = write.floor ?? 0;
    const first = asked.answers.find(({ count }) => count >= floor);
    const isRaised = before.cursor !== null ? floor > before.cursor : floor > 0;
    if (isRaised && first !== undefined && nowMs - first.askedAtMs < POLL_MS)
      this.violations.push(
        `nonces of ${signer} were skipped up to ${floor} ${nowMs - first.askedAtMs} ms after a first answer`,
      );
    const oldestMs = settings.nonceStateTimeoutMs + ALLOCATED_MS;
    if (this.isTroubled(node)) return;
    if (nowMs - asked.atMs > oldestMs)
      this.violations.push(`nonces of ${signer} were given ${nowMs - asked.atMs} ms after the chain was asked`);
    // At first, the node may have got no count, or a false one, which only for a new lane is not enough.
    const ageMs = nowMs - (this.followedAtMs.get(node) ?? 0);
    if (before.cursor !== null && ageMs < oldestMs + STARTED_MS) return;
    const used = chain.account(signer, this.times.newestSince(oldestMs + BLOCK_MS)).nonce;
    const [lowest = used] = given.toSorted((a, b) => a - b);
    if (lowest < used)
      this.violations.push(`nonce ${lowest} of ${signer} was given although ${used} were used long before`);
  }
}
