/**
 * This node's part in the cluster: what it publishes, what it knows of the other nodes, and which lanes it should own.
 *
 * Reads: heartbeat rows, kills. Writes: its own announcement, kills. A node that joins gets its share of the lanes from
 * the others, a few per heartbeat; a node that drains or loses a chain gives its lanes away. None of this is needed for
 * correctness: the fence decides (I10).
 */

import { findsKeyAway, isReachable, type Member } from "../../domain/cluster/placement.ts";
import { afterSilence, type Silences, standsBack } from "../../domain/cluster/stand-back.ts";
import { type FencepostError, notLeader } from "../../domain/errors.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import type { HistoryChanged } from "../../ports/lane-store.ts";
import type { InstanceRecord, InstanceRegistration } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { DatabaseClock } from "../database-clock.ts";
import type { Lanes } from "../lane/lanes.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { forwardCreates } from "./gather.ts";
import { KeysAway } from "./keys-away.ts";
import { KillSwitch } from "./kill-switch.ts";
import { Membership, unownedLanes } from "./membership.ts";
import { Dequeue, OwnerActions } from "./owner-actions.ts";
import { PendingCreates } from "./pending-creates.ts";
import { type PendingRequestPorts, PendingRequests } from "./pending-requests.ts";
import { type RoutePorts, Router } from "./route.ts";
import { UnownedWatch } from "./unowned-watch.ts";

interface ClusterPorts
  extends Pick<RoutePorts, "selfUrl" | "onUnreachable">,
    Pick<PendingRequestPorts, "onEnqueued">,
    Pick<Ports, "store" | "signer" | "entropy" | "telemetry" | "peers" | "wakeUps"> {
  readonly clock: DatabaseClock;
  readonly lease: () => { readonly instanceId: string; historyChanged(error: HistoryChanged): void };
  readonly lanes: () => Lanes;
  readonly mode: "basic" | "worker-queue";
  readonly chains: ReadonlyMap<number, ChainContext>;
  /**
   * A chain that was unreachable for this long is no longer announced; a node without a heartbeat for this long is
   * dead.
   */
  readonly leaseDurationMs: number;
  /** Called when the view of the cluster changed: there may be lanes to claim. */
  readonly onChange: () => void;
  /** Maximum number of creates that may wait for one lane. */
  readonly queueLimit: number;
}

/**
 * How fast misplaced lanes move to their intended owners: one in `MOVE_PART` of them per pass, and at least
 * `MOVE_LEAST`. A node that joins must not move all lanes at once.
 */
const MOVE_PART = 4;
const MOVE_LEAST = 4;
/**
 * For this time in ms, this node does not reclaim a lane that it gave away, so that the new owner can claim it. The
 * time covers many heartbeats of the new owner, but is shorter than the time that a create waits.
 */
const LEFT_TO_TAKER_MS = 1_000;

export class Cluster {
  readonly membership;
  readonly router;
  readonly forwardCreates;
  readonly actions;
  readonly kills;
  readonly keys;
  readonly pendingCreates;
  private readonly pendingRequests;
  /** Dequeues requests that other nodes enqueued for this node's lanes. */
  readonly dequeue;
  /** Reports lanes that no node owns. */
  readonly unownedWatch;
  private readonly ports;
  private readonly signers: ReadonlySet<Address>;
  private readonly awaySince = new Map<number, number>();
  /**
   * The last hand-over of each lane: its new owner and the time. If this node owns the lane again, the new owner did
   * not claim it. Then the lane is not given to that node again for the length of one lease.
   */
  private readonly given = new Map<LaneKey, { readonly taker: string; readonly atMs: number }>();
  private readonly unowned;
  /**
   * Lanes that this node claimed after all while it was leaving its lanes to other nodes
   * (domain/cluster/stand-back.ts), each with its intended owner. The intended owner did not claim the lane, so it is
   * not given the lane again.
   */
  private readonly leftBy = new Map<LaneKey, string>();
  private silences: Silences | null = null;
  private announced = "";
  private draining = false;

  constructor(ports: ClusterPorts) {
    this.ports = ports;
    this.signers = new Set(ports.signer.addresses());
    this.keys = new KeysAway(ports);
    this.membership = new Membership(ports.store);
    this.unowned = unownedLanes(ports);
    this.forwardCreates = forwardCreates(ports);
    this.router = new Router({
      ...ports,
      membership: this.membership,
      forwards: this.forwards,
      selfId: () => this.selfId,
      holds: (lane) => ports.lanes().holds(lane),
      hasKey: (lane) => this.hasKey(lane),
      canServe: (lane) => this.canServe(lane),
      lookAgain: () => this.lookAgain(),
    });
    const { queueLimit: perLane } = ports;
    const requests = new PendingRequests({ ...ports, perLane });
    this.pendingRequests = requests;
    this.pendingCreates = new PendingCreates({ requests, perLane });
    this.kills = new KillSwitch({
      ...ports,
      members: () => this.membership.members,
      onEnded: () => this.goOn(),
      onWritten: () => ports.wakeUps.notify("lanes"),
      onHistoryChanged: (error) => ports.lease().historyChanged(error),
    });
    const lanes = { own: (lane: Lane) => ports.lanes().own(lane) };
    this.actions = new OwnerActions({ peers: ports.peers, lanes, router: this.router, requests });
    const instanceId = () => this.selfId;
    this.unownedWatch = new UnownedWatch({ ...ports, instanceId, members: () => this.membership.members });
    this.dequeue = new Dequeue({ ...ports, instanceId, actions: this.actions, onAnswered: () => this.answered() });
  }

  private get selfId() {
    return this.ports.lease().instanceId;
  }

  /** True if this node forwards requests for other nodes' lanes; false if it refuses them and names the owner's URL. */
  get forwards(): boolean {
    return this.ports.mode === "worker-queue";
  }

  /** Chains and signers that this node can serve now. */
  serving(): Pick<InstanceRegistration, "signers" | "chains" | "standsBack" | "keysAway"> {
    return { signers: [...this.signers], ...this.abilities() };
  }

  /**
   * Called after this node lost its lanes because its heartbeat was late: for a while, it leaves those lanes to other
   * nodes that can serve them.
   */
  wasSilent(): void {
    const { clock, leaseDurationMs } = this.ports;
    this.silences = afterSilence(this.silences, clock.monotonicMs(), leaseDurationMs);
    this.unowned.forget();
    this.leftBy.clear();
  }

  /** True if placement assigns this lane to this node, or if no known member can serve it. */
  isOurs(lane: Lane): boolean {
    const favourite = this.membership.favourite(lane);
    return favourite === null ? !this.draining : favourite.instanceId === this.selfId;
  }

  /**
   * Lanes that this node should claim although they are assigned to other nodes, because no node has owned them for the
   * length of a lease.
   */
  async unownedAmong(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    if (!this.standsBack) return [];
    const chains = this.reachableChains();
    const free = await this.unowned.among(lanes.filter((lane) => this.canServe(lane) && chains.includes(lane.chainId)));
    for (const lane of free) {
      const favourite = this.membership.favourite(lane);
      if (favourite !== null) this.leftBy.set(laneKey(lane), favourite.instanceId);
    }
    return free;
  }

  /**
   * True if the lane is left to another node: this node gave it away a moment ago, or has lost its lanes and leaves
   * them to others for a while (domain/cluster/stand-back.ts). True only for a short time, because the new owner may
   * have crashed before it claimed the lane. Before a request is sent to the new owner, its liveness is checked.
   */
  async isForAnother(lane: Lane): Promise<boolean> {
    if (!this.isLeftToAnother(lane)) return false;
    await this.lookAgain();
    return this.isLeftToAnother(lane);
  }

  /**
   * True if a create for the lane can be served from here: by this node itself, by a node that it forwards the create
   * to, or by an owner that it enqueues the create for.
   */
  reaches(lane: Lane): boolean {
    const favourite = this.membership.favourite(lane);
    if (favourite === null || favourite.instanceId === this.selfId) return this.canServe(lane);
    return this.forwards || !isReachable(favourite) || this.ports.selfUrl === "";
  }

  /** Number of other nodes that are live, accept lanes (are not draining) and can be called. */
  get peers(): number {
    const { selfUrl } = this.ports;
    const isPeer = (member: Member) => isReachable(member) && member.url !== selfUrl && !member.draining;
    return this.membership.members.filter(isPeer).length;
  }

  async learn(instances: readonly InstanceRecord[]): Promise<void> {
    if (instances[0] !== undefined) this.ports.clock.observe(instances[0].readAt);
    this.ports.peers.know(instances);
    await this.kills.noticed(instances[0]?.killChanges);
    if (await this.membership.learn(instances)) this.ports.onChange();
  }

  /** Publishes this node's announcement if it has changed. */
  async announce(): Promise<void> {
    const announcement = { ...this.abilities(), draining: this.draining };
    const text = `${this.selfId} ${JSON.stringify(announcement)}`;
    if (text === this.announced) return;
    await this.ports.store.announce(this.selfId, announcement);
    this.announced = text;
  }

  /**
   * Called after this node answered or declined requests that were enqueued for its lanes: notifies the senders, of
   * which this node may be one.
   */
  answered(): void {
    this.ports.wakeUps.notify("taken");
    this.answersCame();
  }

  /** Called when owners of lanes have answered enqueued requests: reads the answers that this node waits for. */
  answersCame(): void {
    this.pendingRequests.look();
  }

  /** Stops this node from claiming lanes, for shutdown. */
  async drain(): Promise<void> {
    this.draining = true;
    this.pendingRequests.close();
    await this.announce();
    await this.lookAgain();
  }

  /** Gives away some of the lanes that placement now assigns to other nodes. */
  async rebalance(): Promise<void> {
    // Nothing to do on a single node: there is no other node to give lanes to.
    const { selfId } = this;
    if (!this.draining && this.membership.members.every((member) => member.instanceId === selfId)) return;
    const all = this.ports.lanes().all();
    const strays = all.filter(({ lane }) => !this.isOurs(lane) && !this.isLeftHere(lane));
    const moving = strays.slice(0, Math.max(MOVE_LEAST, Math.ceil(strays.length / MOVE_PART)));
    await Promise.all(moving.map((lane) => this.give(lane)));
  }

  /**
   * Error for a request whose lane this node cannot serve. Membership is read once more before a signer is reported as
   * unknown.
   */
  async refusal(lane: Lane): Promise<FencepostError> {
    if (!this.hasKey(lane) && !this.membership.isKnown(lane)) await this.lookAgain();
    const favourite = this.membership.favourite(lane);
    if (favourite === null || favourite.instanceId === this.selfId || !isReachable(favourite))
      return this.router.unserved(lane);
    return notLeader(`the node at ${favourite.url} acts for this signer`, favourite.url);
  }

  /** Wakes the signing and sending of all lanes after a kill has ended. */
  private goOn() {
    for (const { signing, broadcasting } of this.ports.lanes().all()) {
      signing?.kick();
      broadcasting?.kick();
    }
  }

  private abilities() {
    return { chains: this.reachableChains(), standsBack: this.standsBack, keysAway: this.keys.list() };
  }

  private async give(lane: OwnedLane) {
    if (!(await this.ports.lanes().handOver(lane, "placed on another node"))) return;
    const taker = this.membership.favourite(lane.lane);
    if (taker === null) return;
    this.given.set(lane.key, { taker: taker.instanceId, atMs: this.ports.clock.monotonicMs() });
  }

  private get standsBack() {
    return standsBack(this.silences, this.ports.clock.monotonicMs(), this.ports.leaseDurationMs);
  }

  /**
   * True if this node keeps the lane although another node is its intended owner, because that node did not claim the
   * lane when it could, or cannot sign for it.
   */
  private isLeftHere(lane: Lane) {
    if (this.isWithTaker(lane, this.ports.leaseDurationMs)) return true;
    const favourite = this.membership.favourite(lane);
    // Moving the lane would not help: its intended owner reports that it cannot sign with the lane's key.
    if (favourite !== null && findsKeyAway(favourite, lane)) return true;
    return this.standsBack && favourite !== null && this.leftBy.get(laneKey(lane)) === favourite.instanceId;
  }

  private isLeftToAnother(lane: Lane) {
    if (this.isWithTaker(lane, LEFT_TO_TAKER_MS)) return true;
    const favourite = this.membership.favourite(lane);
    return this.standsBack && favourite !== null && isReachable(favourite) && !this.isOurs(lane);
  }

  /** True if this node gave the lane, within the last `withinMs`, to the node that is still its intended owner. */
  private isWithTaker(lane: Lane, withinMs: number) {
    const favourite = this.membership.favourite(lane);
    const given = this.given.get(laneKey(lane));
    if (favourite === null || given?.taker !== favourite.instanceId || !isReachable(favourite)) return false;
    return this.ports.clock.monotonicMs() - given.atMs < withinMs;
  }

  private async lookAgain() {
    await this.learn(await this.ports.store.instances());
  }

  private canServe(lane: Lane) {
    return !this.draining && this.hasKey(lane);
  }

  private hasKey(lane: Lane) {
    return this.ports.chains.has(lane.chainId) && this.signers.has(lane.signer);
  }

  private reachableChains(): readonly number[] {
    const nowMs = this.ports.clock.monotonicMs();
    return [...this.ports.chains].flatMap(([chainId, { reachable }]) => {
      const sinceMs = this.awaySince.get(chainId) ?? nowMs;
      if (reachable) this.awaySince.delete(chainId);
      else this.awaySince.set(chainId, sinceMs);
      return reachable || nowMs - sinceMs < this.ports.leaseDurationMs ? [chainId] : [];
    });
  }
}
